"""Conditions on people as plain values: what a client may say, and nothing a database would run.

A condition is a small tree of these values. It holds names of filters and literals; it is compiled to bound
parameters (`compile.py`) after it was checked (`check.py`) and brought to one spelling (`canonical.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

Literal = str | int | float | bool | date

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class Compare:
    """People whose `column` compares so with `value`; somebody without an entry is never among them."""

    column: str
    op: str
    value: Literal


@dataclass(frozen=True)
class OneOf:
    """People whose `column` is one of `values`."""

    column: str
    values: tuple[Literal, ...]


@dataclass(frozen=True)
class Between:
    """People whose `column` lies from `low` to `high`, both included."""

    column: str
    low: Literal
    high: Literal


@dataclass(frozen=True)
class Box:
    """People inside a rectangle on the map, its borders included; west > east crosses the date line."""

    latitude: str
    longitude: str
    south: float
    west: float
    north: float
    east: float


@dataclass(frozen=True)
class And:
    """People for whom every part holds; without parts: everybody."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """People for whom some part holds."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not:
    """People for whom the part is known not to hold."""

    part: Predicate


Predicate = Compare | OneOf | Between | Box | And | Or | Not
EVERYBODY = And(())


def plain(predicate: Predicate) -> list[object]:
    """Return the tree as nested lists of JSON types; equal trees give equal lists."""
    match predicate:
        case Compare(column, op, value):
            return [op, column, _plain_literal(value)]
        case OneOf(column, values):
            return ["in", column, [_plain_literal(value) for value in values]]
        case Between(column, low, high):
            return ["between", column, _plain_literal(low), _plain_literal(high)]
        case Box():
            corners = [predicate.south, predicate.west, predicate.north, predicate.east]
            return ["box", predicate.latitude, predicate.longitude, *corners]
        case And(parts):
            return ["and", *map(plain, parts)]
        case Or(parts):
            return ["or", *map(plain, parts)]
        case Not(part):
            return ["not", plain(part)]


def _plain_literal(value: Literal) -> object:
    # The kind is part of the meaning: 1, 1.0 and true are three literals.
    match value:
        case bool():
            return {"boolean": value}
        case float():
            return {"number": value.hex()}
        case date():
            return {"date": value.isoformat()}
    return value
