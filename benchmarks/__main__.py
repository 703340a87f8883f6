"""Run benchmarks by name, or all; keep what each reports in build/bench/<name>.json and print it."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parent / "build" / "bench"


def flat(value: object, name: str = "") -> list[tuple[str, object]]:
    """Return a report's numbers with dotted names."""
    if not isinstance(value, dict):
        return [(name, value)]
    return [row for key, part in value.items() for row in flat(part, f"{name}.{key}".lstrip("."))]


def run(name: str) -> None:
    print(f"== {name}", flush=True)
    sys.argv = [name]
    try:
        report = importlib.import_module(f"benchmarks.{name}").main()
    except ImportError as missing:
        print(f"   skipped: {missing}")
        return
    if report is None:  # it printed its own
        return
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    for key, value in flat(report):
        print(f"   {key:44} {value:,.4g}" if isinstance(value, int | float) else f"   {key:44} {value}")


def main(names: list[str]) -> None:
    there = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    unknown = set(names) - set(there)
    if unknown:
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(there)}")
    for name in names or there:
        run(name)


if __name__ == "__main__":
    main(sys.argv[1:])
