"""A checked condition as SQL with bound parameters: names come from the policy, literals never touch the text."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.gateway.predicate import And, Between, Box, Compare, Literal, Not, OneOf, Or, Predicate

COLUMN_PREFIX = "f_"
"""Filters are columns of the snapshot under their policy name, with this before it: no name is a keyword."""
SPELT = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass(frozen=True)
class Condition:
    """What stands after WHERE, and what is bound to its placeholders."""

    sql: str
    parameters: tuple[Literal, ...] = ()


def compile_predicate(predicate: Predicate, placeholder: str) -> Condition:
    """Spell a checked condition for a database whose placeholder is `?` or `%s`.

    >>> compile_predicate(Compare("city", "=", "Denver'; --"), "?")
    Condition(sql='f_city = ?', parameters=("Denver'; --",))
    """
    bound: list[Literal] = []

    def bind(value: Literal) -> str:
        bound.append(value)
        return placeholder

    def spell(part: Predicate) -> str:
        match part:
            case Compare(name, op, value):
                return f"{column(name)} {SPELT[op]} {bind(value)}"
            case OneOf(name, values):
                return f"{column(name)} IN ({', '.join([bind(value) for value in values])})"
            case Between(name, low, high):
                return f"{column(name)} BETWEEN {bind(low)} AND {bind(high)}"
            case Box():
                return _box(part, bind)
            case And(parts):
                return " AND ".join(f"({spell(one)})" for one in parts) or "TRUE"
            case Or(parts):
                return " OR ".join(f"({spell(one)})" for one in parts) or "FALSE"
            case Not(one):
                return f"NOT ({spell(one)})"

    return Condition(spell(predicate), tuple(bound))


def column(name: str) -> str:
    """Return the snapshot's column of a filter."""
    if not name.isidentifier() or not name.isascii():
        raise ValueError("the name of a filter was not checked")
    return f"{COLUMN_PREFIX}{name}"


def _box(box: Box, bind) -> str:  # type: ignore[no-untyped-def]  # a function from literal to placeholder
    latitude, longitude = column(box.latitude), column(box.longitude)
    north_south = f"{latitude} BETWEEN {bind(box.south)} AND {bind(box.north)}"
    if box.west <= box.east:
        return f"{north_south} AND {longitude} BETWEEN {bind(box.west)} AND {bind(box.east)}"
    return f"{north_south} AND ({longitude} >= {bind(box.west)} OR {longitude} <= {bind(box.east)})"
