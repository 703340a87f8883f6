"""Says what differs between JSON files of two versions: ``python benchmarks/same_answers.py OLD NEW``.

OLD and NEW are files, or folders with files of the same names. New keys are fine; numbers may differ by 1e-9.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ASIDE = {"version", "incrowd", "time"}


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Yield every place whose value is gone or not the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() - ASIDE:
            if name in new:
                yield from differences(old[name], new[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}: gone"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place}: {len(old)} entries, now {len(new)}"
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from differences(one, other, f"{place}[{number}]")
    elif isinstance(old, int | float) and isinstance(new, int | float):
        if not math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{place}: {old}, now {new}"
    elif old != new:
        yield f"{place}: {old!r:.90}, now {new!r:.90}"


def main(old: Path, new: Path) -> int:
    """Compare two files or folders; the number of differences decides the exit code."""
    pairs = [(old, new)] if old.is_file() else [(one, new / one.name) for one in sorted(old.glob("*.json"))]
    found = 0
    for one, other in pairs:
        if not other.exists():
            continue
        told = list(differences(*(json.loads(path.read_text("utf-8")) for path in (one, other))))
        found += len(told)
        print(f"{one.name}: {len(told)} differences", *told[:20], sep="\n  ")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3])))
