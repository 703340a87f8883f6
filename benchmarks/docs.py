"""Every measured number of the documentation with the command that prints it, and whether it still does.

    python -m benchmarks docs                  run what is quick and whose data is there; show differences
    python -m benchmarks.docs --all            also what takes long
    python -m benchmarks.docs --list           only the list: page, number, command
    python -m benchmarks.docs --missing        sections with numbers that look measured and are on neither list

The list is benchmarks/measured.toml. A passage is a piece of text on a page, as it stands there, and speaks for the
section it is in. Where its numbers do not depend on the machine, each has its place in the command's JSON.
Sections whose numbers no command prints (worked examples, settings, bounds) are listed as `given`, with the reason.
Data is looked for in INCROWD_DATA, or in ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "benchmarks" / "measured.toml"
CROWDS = ROOT / "build" / "bench" / "crowds"
DATA = Path(os.environ.get("INCROWD_DATA", ROOT.parent / "shared" / "data"))


@dataclass(frozen=True, kw_only=True)
class Passage:
    """Numbers on a page that one command prints."""

    page: str
    says: str
    """The text as it stands there."""
    command: str
    """{NAME} is a crowd in build/bench/crowds: `python -m benchmarks reproduction` and `microdata_scores` make them;
    not `blog`, the bloggers of the Blog Authorship Corpus with their attributes."""
    needs: str = ""
    """A folder of the data, a module, or words for what else it takes; empty: nothing."""
    long: bool = False
    timing: bool = False
    """About this or that machine: nothing to compare."""
    values: dict[str, Any] = field(default_factory=dict)
    """Place in the JSON, parted by ' > ' -> number on the page."""
    within: float = 0.006

    @property
    def stands_there(self) -> bool:
        """Whether the page still says it; line breaks do not matter."""
        return " ".join(self.says.split()) in " ".join((ROOT / self.page).read_text("utf-8").split())

    @property
    def possible(self) -> bool:
        """Whether this machine has the data and the crowds made of it."""
        crowds = re.findall(r"\{(\w+)\}", self.command)
        return (not self.needs or (DATA / self.needs).exists()) and all(
            (CROWDS / name).exists() for name in crowds
        )


def passages() -> list[Passage]:
    """Read the list."""
    return [Passage(**one) for one in tomllib.loads(LIST.read_text("utf-8"))["passage"]]


LOOKS_MEASURED = re.compile(
    r"(?<![\w./-])(?:\d*\.\d+|\d+\s?%|\d[\d,.]*\s?(?:s|ms|seconds|minutes|hours|[KMG]i?B|x|times)\b)"
)
"""Shares, percentages, sizes, times; whole numbers count people or posts as often as not."""


@dataclass(frozen=True)
class Section:
    """A part of a page under one heading."""

    page: str
    heading: str
    text: str
    """In one line, without program code."""

    @property
    def looks_measured(self) -> bool:
        """Whether numbers like those of a measurement stand in it."""
        return LOOKS_MEASURED.search(re.sub(r"`[^`]*`", "", self.text)) is not None


def sections() -> Iterator[Section]:
    """Yield the sections of all pages and notes but the generated reference of commands."""
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/NOTES.md")]
    for path in sorted(pages):
        page = path.relative_to(ROOT).as_posix()
        if page != "docs/reference/commands.md":
            bare = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
            for part in re.split(r"^(?=#+ )", bare, flags=re.MULTILINE):
                yield Section(page, part.partition("\n")[0].strip("# "), " ".join(part.split()))


def unlisted() -> list[Section]:
    """Return the sections with numbers that look measured, of which nothing says where they come from."""
    listed = passages()
    given = {(one["page"], one["section"]) for one in tomllib.loads(LIST.read_text("utf-8"))["given"]}
    return [
        section
        for section in sections()
        if section.looks_measured
        and (section.page, section.heading) not in given
        and not any(one.page == section.page and " ".join(one.says.split()) in section.text for one in listed)
    ]


def found(report: Any, place: str) -> Any:
    """Look a number up: keys and places in lists, or the row of a table that starts with a name.

    >>> found({"a": [{"rows": [["x", 1], ["y", 2]]}]}, "a > 0 > rows > y > 1")
    2
    """
    for step in place.split(" > "):
        if isinstance(report, dict):
            report = report[step]
        elif step.isdecimal():
            report = report[int(step)]
        else:
            report = next(row for row in report if step in _names(row))
    return report


def _names(row: Any) -> Iterator[Any]:
    if isinstance(row, dict):
        yield from (row.get(key) for key in ("heading", "table", "chart", "result", "name"))
    else:
        yield row[0]


def run(command: str) -> Any:
    """Run a command and return the JSON it prints; a benchmark may print more before it."""
    filled = command.format_map(
        {path.name: str(path) for path in CROWDS.iterdir()} if CROWDS.exists() else {}
    )
    words = shlex.split(filled)
    start = [sys.executable, "-m", "incrowd"] if words[0] == "incrowd" else [sys.executable]
    done = subprocess.run([*start, *words[1:]], capture_output=True, text=True, encoding="utf-8", cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    try:
        return last_object(done.stdout)
    except ValueError:
        return {"rows": table_rows(done.stdout)}


def last_object(printed: str) -> Any:
    """Return the JSON that ends what a command prints; it may say how far it is before.

    >>> last_object('{"done": 1}\\nfilms {"done": 2}\\n')
    {'done': 2}
    """
    for start in re.finditer(r"\{", printed):
        try:
            return json.loads(printed[start.start() :])
        except json.JSONDecodeError:
            continue
    raise ValueError("the command prints no JSON")


def table_rows(printed: str) -> list[list[str | float]]:
    """Return the rows of the tables that a command prints for a page, without heads; a cell's first number counts.

    >>> table_rows("| people | found |\\n|---|---|\\n| 2,000 | 5.9 (27%) |")
    [[2000.0, 5.9]]
    """
    rows: list[list[str | float]] = []
    for line in printed.splitlines():
        if re.fullmatch(r"\|[-|: ]+\|", line):
            rows.pop()  # the head stands above the line
        elif line.startswith("|"):
            rows.append([_cell(one.strip()) for one in line.strip("|").split("|")])
    if not rows:
        raise ValueError("the command prints neither JSON nor a table")
    return rows


def _cell(written: str) -> str | float:
    number = re.match(r"[−-]?[\d,]*\.?\d+(?![\w.])", written)
    return float(number[0].replace(",", "").replace("−", "-")) if number else written


def compare(one: Passage, report: Any) -> list[str]:
    """Return a line for every number that is another one now."""
    lines = []
    for place, written in one.values.items():
        now = found(report, place)
        if (
            now != written
            if isinstance(written, str)
            else now is None or abs(float(now) - written) > one.within
        ):
            lines.append(f"      {place}: the page says {written}, the command {now}")
    return lines


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="Also what takes long.")
    parser.add_argument("--list", action="store_true", help="Only say which command prints what.")
    parser.add_argument("--missing", action="store_true", help="Only say what is on neither list.")
    args = parser.parse_args()
    if args.missing:
        return {"missing": [f"{section.page}: {section.heading}" for section in unlisted()]}
    reports: dict[str, Any] = {}
    tally = {"passages": 0, "gone": 0, "compared": 0, "different": 0, "not run": 0}
    for one in passages():
        tally["passages"] += 1
        print(f"   {one.page}: {one.says.strip().splitlines()[0][:70]}\n      {one.command}", flush=True)
        if not one.stands_there:
            tally["gone"] += 1
            print("      the page no longer says this")
        if args.list or one.timing or not one.values or not one.possible or (one.long and not args.all):
            tally["not run"] += 1
            continue
        try:
            reports.setdefault(one.command, run(one.command) if one.command not in reports else None)
            lines = compare(one, reports[one.command])
        except (RuntimeError, KeyError, StopIteration, ValueError) as error:
            lines = [f"      {type(error).__name__}: {error}"]
        tally["compared"] += len(one.values)
        tally["different"] += len(lines)
        print("\n".join(lines) or "      as written")
    return tally


if __name__ == "__main__":
    print(json.dumps(main()))
