"""Which columns of the studies do the tests hold to the definitions? Each is spoilt once, and a test has to notice.

    python -m tests.oracles.spoiled [STUDY ...] [--again]      writes compared.json; some minutes with --again

A column that no test on the list of `test_every_printed_value` compares is printed, and fails in that test.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from incrowd.drawing import Chart, Series
from incrowd.study.figures import Cell, Headline, Table

COMPARED = Path(__file__).with_name("compared.json")
TESTS = Path(__file__).parents[1]
HEADLINES = "Beside the paper"
"""The part of a page that has a paper's numbers beside ours."""


@dataclass(frozen=True)
class Column:
    """One column of a table, one side of a line in a chart, or one number beside a paper's."""

    part: str
    """How the title starts."""
    name: str


def columns(study: dict[str, Any], starts: Any) -> Iterator[Column]:
    """Yield all of them that a study's JSON has."""
    for part in (part for section in study["sections"] for part in section["parts"]):
        title = str(part.get("table", part.get("chart")))
        start = max((one for one in starts if title.startswith(one)), key=len, default=title)
        for name in _cells(part) if "table" in part else _sides(part):
            yield Column(start, name)
    for one in study["headlines"]:
        yield Column(HEADLINES, one["result"])


def _cells(table: dict[str, Any]) -> Iterator[str]:
    """Columns without a name go by their place."""
    for place, name in enumerate(table["columns"]):
        yield name or str(place)


def _sides(chart: dict[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys(_series(one["name"]) for one in chart["series"]):
        yield f"{name}, y"
        if chart["kind"] != "bars":
            yield f"{name}, x"
    if chart["lines"]:
        yield "lines"


def _series(name: str) -> str:
    """Groups count as one, however many a crowd falls into."""
    return re.sub(r"^group \d+$", "groups", name)


@contextlib.contextmanager
def spoilt(column: Column) -> Iterator[None]:
    """Meanwhile each study that is made has other values there."""
    headline, table, chart = Headline.__init__, Table.__post_init__, Chart.__post_init__

    def other_headline(self: Headline, **given: Any) -> None:
        if (column.part, column.name) == (HEADLINES, given["result"]):
            given["here"] = _other(given["here"])
        headline(self, **given)

    def other_table(self: Table) -> None:
        table(self)
        names = [name or str(place) for place, name in enumerate(self.columns)]
        if self.title.startswith(column.part) and column.name in names:
            place = names.index(column.name)
            rows = tuple((*row[:place], _other(row[place]), *row[place + 1 :]) for row in self.rows)
            object.__setattr__(self, "rows", rows)

    def other_chart(self: Chart) -> None:
        chart(self)
        if self.title.startswith(column.part):
            if column.name == "lines":
                object.__setattr__(self, "lines", tuple(_other(one) for one in self.lines))
            series = tuple(_other_side(one, column.name) for one in self.series)
            object.__setattr__(self, "series", series)

    Headline.__init__ = other_headline  # type: ignore[method-assign]
    Table.__post_init__, Chart.__post_init__ = other_table, other_chart  # type: ignore[method-assign]
    try:
        yield
    finally:
        Headline.__init__ = headline  # type: ignore[method-assign]
        Table.__post_init__, Chart.__post_init__ = table, chart  # type: ignore[method-assign]


def _other_side(one: Series, name: str) -> Series:
    if name == f"{_series(one.name)}, y":
        return replace(one, y=tuple(_other(value) for value in one.y))
    if name == f"{_series(one.name)}, x":
        return replace(one, x=tuple(_other(value) for value in one.x))
    return one


def _other(value: Cell) -> Any:
    if value is None or value != value:
        return 0.5
    return value + " spoilt" if isinstance(value, str) else value * 1.07 + 0.013


def noticed(column: Column, tests: tuple[str, ...]) -> bool:
    """Whether one of the tests fails once the column is spoilt."""
    paths = [f"{TESTS / file}::{test}" for file, test in (one.split("::") for one in tests)]
    with spoilt(column), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = pytest.main(["-q", "-x", "--assert=plain", "-p", "no:cacheprovider", *paths])
    return found == pytest.ExitCode.TESTS_FAILED


def main() -> None:
    from tests.oracles.test_every_printed_value import STUDIES, WORKED_OUT

    parser = argparse.ArgumentParser()
    parser.add_argument("studies", nargs="*", metavar="STUDY")
    parser.add_argument("--again", action="store_true", help="Also the columns that are listed already.")
    args = parser.parse_args()
    for name in args.studies or STUDIES:
        listed = WORKED_OUT[name]
        with tempfile.TemporaryDirectory() as folder:
            pages = [study.to_dict() for study in STUDIES[name](Path(folder))]
        known = {} if args.again else _compared().get(name, {})
        found: dict[str, list[str]] = {}
        for column in dict.fromkeys(one for page in pages for one in columns(page, listed)):
            tests = listed.get(column.part, ())
            if column.name in known.get(column.part, ()) or (tests and noticed(column, tests)):
                found.setdefault(column.part, []).append(column.name)
            else:
                print(f"{name} | {column.part} | {column.name}: no test notices", flush=True)
        every = {**_compared(), name: found}
        COMPARED.write_text(json.dumps(every, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _compared() -> dict[str, dict[str, list[str]]]:
    return dict(json.loads(COMPARED.read_text("utf-8"))) if COMPARED.exists() else {}


if __name__ == "__main__":
    main()
