"""What a study hands over: tables and charts as plain values, to be tested first and drawn after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from incrowd.drawing import Chart, picture
from incrowd.result import Result, as_pandas

Cell = str | int | float | None
HEADLINE_COLUMNS = ["result", "paper", "here", "why"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under column names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table '{self.title}': a row of {len(row)} cells under {len(self.columns)} columns"
                )


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, what it is about, and its figures."""

    heading: str
    text: str
    parts: tuple[Chart | Table, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A result a paper is known for, computed as the paper does, beside what comes out here."""

    result: str
    paper: str
    """The paper's words or number."""
    here: Cell
    why: str
    """Why the two differ, or what their agreement rests on."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Study(Result):
    """An experiment on a crowd, ready to be printed."""

    name: str
    title: str
    summary: str
    sections: tuple[Section, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Adversary, parameters, seed, data hash, versions: what it takes to run it again."""
    headlines: tuple[Headline, ...] = ()
    """The paper's best-known results beside ours."""

    def sentence(self) -> str:
        """Say what came out."""
        return self.summary

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the paper's results beside ours."""
        return self.to_dict()["headlines"]  # type: ignore[no-any-return]

    def to_frame(self, *, pandas: bool = False) -> Any:
        """Return the paper's results beside ours as a table; a number and a sentence may stand in one column."""
        frame = pl.DataFrame(
            [{**row, "here": str(row["here"])} for row in self.rows()], schema=HEADLINE_COLUMNS
        )
        return as_pandas(frame) if pandas else frame

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, in the order of the page."""
        return tuple(part for one in self.sections for part in one.parts if isinstance(part, Chart))

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables, in the order of the page."""
        return tuple(part for one in self.sections for part in one.parts if isinstance(part, Table))

    def chart(self, number: int = 0) -> str:
        """Draw one of the charts as a stand-alone SVG picture."""
        return picture(self.charts[number])

    @property
    def _title(self) -> str:
        return self.title

    @property
    def beside_the_paper(self) -> Section:
        """The headlines as a section of the page."""
        table = Table(
            title="The paper's results, and the same quantities here",
            columns=("result", "paper", "here", "why they differ"),
            rows=tuple((one.result, one.paper, one.here, one.why) for one in self.headlines),
        )
        return Section(heading="Beside the paper", text="", parts=(table,) if self.headlines else ())

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types: all numbers, no drawings."""
        return {
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "facts": dict(self.facts),
            "headlines": [
                {"result": one.result, "paper": one.paper, "here": _number(one.here), "why": one.why}
                for one in self.headlines
            ],
            "sections": [
                {"heading": one.heading, "text": one.text, "parts": [_part(part) for part in one.parts]}
                for one in self.sections
            ],
        }


def _part(part: Chart | Table) -> dict[str, Any]:
    if isinstance(part, Table):
        rows = [[_number(cell) for cell in row] for row in part.rows]
        return {"table": part.title, "columns": list(part.columns), "rows": rows, "note": part.note}
    series = [
        {"name": one.name, "x": [_number(v) for v in one.x], "y": [_number(v) for v in one.y]}
        for one in part.series
    ]
    return {
        "chart": part.title,
        "kind": part.kind,
        "sentence": part.sentence,
        "x": part.x_label,
        "y": part.y_label,
        "categories": list(part.categories),
        "lines": list(part.lines),
        "series": series,
    }


def _number(value: Cell) -> Cell:
    return None if isinstance(value, float) and not math.isfinite(value) else value
