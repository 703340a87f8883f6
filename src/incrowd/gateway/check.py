"""Checking a condition against what may be asked: names, kinds of literals, size. Deny by default."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from incrowd.errors import InputError
from incrowd.gateway.predicate import (
    OPERATORS,
    And,
    Between,
    Box,
    Compare,
    Literal,
    Not,
    OneOf,
    Or,
    Predicate,
)

KINDS = ("text", "integer", "number", "date", "boolean", "latitude", "longitude")
ORDERED = frozenset({"integer", "number", "date", "latitude", "longitude"})
FLOATING = frozenset({"number", "latitude", "longitude"})
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LARGEST = 2**62
"""Whole numbers beyond fit no column; the room above keeps `< n` and `<= n - 1` the same."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What may be asked, and how large a question may be."""

    filters: Mapping[str, str]
    """Name of a filter -> its kind, one of `KINDS`."""
    attributes: tuple[str, ...]
    allow_not: bool = False
    depth: int = 8
    nodes: int = 64
    choices: int = 64
    """Entries of one `in` list."""
    text: int = 200
    """Characters of one text literal."""
    characters: int = 2000
    """Characters of a query in text form."""

    def __hash__(self) -> int:
        return hash((tuple(sorted(self.filters.items())), self.attributes, self.depth, self.nodes))


def checked(predicate: Predicate, limits: Limits) -> Predicate:
    """Return the condition with literals of the right kind, or refuse it."""
    checker = _Checker(limits, [limits.nodes])
    return checker.check(predicate, 1)


@dataclass(frozen=True)
class _Checker:
    limits: Limits
    left: list[int]
    """How many more nodes are allowed, one number."""

    def check(self, predicate: Predicate, depth: int) -> Predicate:
        self._count(depth)
        match predicate:
            case And(parts):
                return And(tuple(self.check(part, depth + 1) for part in parts))
            case Or(parts):
                if not parts:
                    raise InputError("query: 'or' must have at least one part")
                return Or(tuple(self.check(part, depth + 1) for part in parts))
            case Not(part):
                self._allow_not()
                return Not(self.check(part, depth + 1))
            case Box():
                return self._box(predicate)
            case Compare() | OneOf() | Between():
                return self._leaf(predicate)
        raise InputError("query: a condition of an unknown form")

    def _count(self, depth: int) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise InputError(f"query: conditions may have {self.limits.nodes} parts in all, this has more")
        if depth > self.limits.depth:
            raise InputError(f"query: conditions may be nested {self.limits.depth} deep, this goes deeper")

    def _allow_not(self) -> None:
        if not self.limits.allow_not:
            raise InputError("query: 'not' and '!=' are not allowed here; say whom you mean instead")

    def _leaf(self, leaf: Compare | OneOf | Between) -> Predicate:
        kind = self._kind(leaf.column)
        match leaf:
            case Compare(column, op, value):
                if op not in OPERATORS or (op not in ("=", "!=") and kind not in ORDERED):
                    raise InputError(f"query: '{column}' ({kind}) cannot be compared in this way")
                if op == "!=":
                    self._allow_not()
                return Compare(column, op, self._literal(column, kind, value))
            case OneOf(column, values):
                if not 1 <= len(values) <= self.limits.choices:
                    raise InputError(f"query: 'in' takes 1 to {self.limits.choices} values")
                return OneOf(column, tuple(self._literal(column, kind, value) for value in values))
            case Between(column, low, high):
                if kind not in ORDERED:
                    raise InputError(f"query: '{column}' ({kind}) has no order, so nothing lies between")
                low, high = self._literal(column, kind, low), self._literal(column, kind, high)
                if low > high:  # type: ignore[operator]  # both are of the column's kind
                    raise InputError("query: 'between' takes the lower value first")
                return Between(column, low, high)

    def _kind(self, column: object) -> str:
        kind = self.limits.filters.get(column) if isinstance(column, str) else None
        if kind is None:
            allowed = ", ".join(f"'{name}'" for name in self.limits.filters)
            raise InputError(f"query: column must be one of {allowed}")
        return kind

    def _literal(self, column: str, kind: str, value: Any) -> Literal:
        made = _of_kind(kind, value)
        if made is None or (isinstance(made, str) and not self._decent(made)):
            raise InputError(f"query: '{column}' is compared with {_WANTED[kind]}, got something else")
        return made

    def _decent(self, text: str) -> bool:
        """Short, and free of control characters, surrogates and unassigned code points."""
        return len(text) <= self.limits.text and not any(unicodedata.category(c)[0] == "C" for c in text)

    def _box(self, box: Box) -> Box:
        if (self._kind(box.latitude), self._kind(box.longitude)) != ("latitude", "longitude"):
            raise InputError("query: a box takes a latitude and a longitude column")
        south, west, north, east = (
            _of_kind("number", corner) for corner in (box.south, box.west, box.north, box.east)
        )
        if not (_within(south, 90) and _within(north, 90) and _within(west, 180) and _within(east, 180)):
            raise InputError("query: a box lies between latitudes -90 and 90, longitudes -180 and 180")
        if south > north:  # type: ignore[operator]  # both are floats
            raise InputError("query: a box has its south below its north")
        return Box(box.latitude, box.longitude, south, west, north, east)  # type: ignore[arg-type]


_WANTED = {
    "text": "a short text without control characters",
    "integer": "a whole number",
    "number": "a number",
    "latitude": "a number",
    "longitude": "a number",
    "date": "a day as 'YYYY-MM-DD'",
    "boolean": "true or false",
}


def _of_kind(kind: str, value: Any) -> Literal | None:
    """Return the literal as the column's kind, or None if it is of another."""
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if kind == "text":
        return value if isinstance(value, str) else None
    if kind == "date":
        return _day(value)
    if not isinstance(value, int | float) or not abs(value) < LARGEST:  # NaN is refused here, too
        return None
    if kind in FLOATING:
        return float(value) + 0.0  # there is one zero
    return (
        int(value) if float(value).is_integer() and (isinstance(value, int) or abs(value) < 2**53) else None
    )


def _day(value: Any) -> date | None:
    if isinstance(value, date) and type(value) is date:
        return value
    if not isinstance(value, str) or not DAY.fullmatch(value):  # Python alone takes weeks and blanks, too
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _within(value: Literal | None, most: float) -> bool:
    return isinstance(value, float) and math.fabs(value) <= most
