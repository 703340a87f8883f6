"""What conditions mean, in plain Python: three-valued logic over rows, as databases have it."""

from __future__ import annotations

import operator
import random
from collections.abc import Mapping
from datetime import date
from typing import Any

from incrowd.gateway.predicate import And, Between, Box, Compare, Not, OneOf, Or, Predicate

OPERATIONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COLUMN = {"is_member": "member"}
"""Filters whose column has another name."""


def holds(predicate: Predicate, row: Mapping[str, Any]) -> bool | None:
    """True, False, or None where an entry is missing."""
    match predicate:
        case And(parts):
            found = [holds(part, row) for part in parts]
            return False if False in found else None if None in found else True
        case Or(parts):
            found = [holds(part, row) for part in parts]
            return True if True in found else None if None in found else False
        case Not(part):
            inner = holds(part, row)
            return None if inner is None else not inner
        case Compare(column, op, value):
            entry = row.get(COLUMN.get(column, column))
            return None if entry is None else bool(OPERATIONS[op](entry, value))
        case OneOf(column, values):
            entry = row.get(COLUMN.get(column, column))
            return None if entry is None else entry in values
        case Between(column, low, high):
            both = And((Compare(column, ">=", low), Compare(column, "<=", high)))
            return holds(both, row)
        case Box():
            sides: tuple[Predicate, ...] = (
                Compare(box_longitude(predicate), ">=", predicate.west),
                Compare(box_longitude(predicate), "<=", predicate.east),
            )
            around = And(sides) if predicate.west <= predicate.east else Or(sides)
            return holds(And((Between(predicate.latitude, predicate.south, predicate.north), around)), row)


def box_longitude(box: Box) -> str:
    return box.longitude


def random_row(chance: random.Random) -> dict[str, Any]:
    """A person whose entries may be missing."""

    def perhaps(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    return {
        "city": perhaps(chance.choice(["Denver", "Boulder", "Zürich", "O'Fallon", 'a"b', "%s ? $1", ""])),
        "age": perhaps(chance.randint(18, 24)),
        "height": perhaps(chance.choice([1.5, 1.75, 1.8, -0.0, 2.0])),
        "lat": perhaps(chance.choice([-90.0, -10.5, 0.0, 39.7, 90.0])),
        "lon": perhaps(chance.choice([-180.0, -104.9, 0.0, 8.5, 180.0])),
        "born": perhaps(date(2000, 1, chance.randint(1, 5))),
        "member": perhaps(chance.random() < 0.5),
    }


def random_predicate(chance: random.Random, depth: int = 3) -> Predicate:
    """Any condition the limits of the tests' policy allow."""
    if depth and chance.random() < 0.5:
        kind = chance.choice([And, Or, Not])
        if kind is Not:
            return Not(random_predicate(chance, depth - 1))
        return kind(tuple(random_predicate(chance, depth - 1) for _ in range(chance.randint(1, 3))))
    row = {name: value for name, value in random_row(chance).items() if value is not None}
    column = chance.choice([name for name in row if name not in ("lat", "lon")] or ["age"])
    value = row.get(column, 20)
    name = "is_member" if column == "member" else column
    if column in ("city", "member"):
        others = [random_row(chance)[column] for _ in range(3)]
        choices = tuple(dict.fromkeys([value, *(one for one in others if one is not None)]))
        return chance.choice(
            [Compare(name, chance.choice(["=", "!="]), value), OneOf(name, choices), _random_box(chance)]
        )
    other = random_row(chance)[column]
    low, high = sorted([value, value if other is None else other])
    return chance.choice(
        [
            Compare(name, chance.choice(list(OPERATIONS)), value),
            Between(name, low, high),
            OneOf(name, (low, high)),
        ]
    )


def _random_box(chance: random.Random) -> Box:
    south, north = sorted(chance.choices([-90.0, -10.5, 0.0, 39.7, 90.0], k=2))
    west, east = chance.choices([-180.0, -104.9, 0.0, 8.5, 180.0], k=2)
    return Box("lat", "lon", south, west, north, east)
