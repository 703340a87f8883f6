"""What a study hands over: tables and charts as plain values, to be tested first and drawn after."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["lines", "scatter", "bars"]
Cell = str | int | float | None


@dataclass(frozen=True)
class Series:
    """One line, one cloud of points, or one set of bars."""

    name: str
    x: tuple[float, ...]
    """For bars: 0, 1, 2, ... as the chart's categories."""
    y: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"series '{self.name}': {len(self.x)} x values but {len(self.y)} y values")

    @classmethod
    def of(cls, name: str, x: Iterable[float], y: Iterable[float]) -> Series:
        """Make a series from any numbers (lists, arrays, columns)."""
        return cls(name, tuple(float(v) for v in x), tuple(float(v) for v in y))


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure as numbers."""

    kind: Kind
    title: str
    sentence: str
    """What a lay person should read off it."""
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    categories: tuple[str, ...] = ()
    """Names of the bars."""
    lines: tuple[float, ...] = ()
    """Dashed horizontal lines, e.g. borders between groups."""

    def __post_init__(self) -> None:
        if self.kind != "bars":
            return
        places = {float(k) for k in range(len(self.categories))}
        if any(not places.issuperset(one.x) for one in self.series):
            raise ValueError(
                f"chart '{self.title}': bars stand at 0 to {len(self.categories) - 1}, one a category"
            )


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


@dataclass(frozen=True, kw_only=True)
class Study:
    """An experiment on a crowd, ready to be printed."""

    name: str
    title: str
    summary: str
    sections: tuple[Section, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Adversary, parameters, seed, data hash, versions: what it takes to run it again."""
    headlines: tuple[Headline, ...] = ()
    """The paper's best-known results beside ours."""

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
