"""Conditions on people as plain values: what a client may say, in one spelling, and as SQL with bound parameters.

A condition is a small tree of values. It holds names of filters and literals. `query.py` checks it, `canonical`
brings it to one spelling (`age < 25`, `NOT age >= 25` and, of whole numbers, `age <= 24` are one question),
`compile_predicate` makes SQL of it: names come from the policy, literals never touch the text.

Denials use three-valued logic as databases do, where De Morgan's rules hold, so moving NOT to the leaves changes
nobody's membership. One spelling is about convenience, not about safety: classes with the same members are
recognised later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

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


def canonical(predicate: Predicate) -> Predicate:
    """Return the one spelling that all trivially different spellings of a condition share."""
    match predicate:
        case And(parts):
            return _gathered(And, _tightest(_flat(And, map(canonical, parts))))
        case Or(parts):
            return _gathered(Or, _choices(_flat(Or, map(canonical, parts))))
        case Not(part):
            return _opposite(canonical(part))
        case Between(column, low, high):
            return canonical(And((Compare(column, ">=", low), Compare(column, "<=", high))))
        case OneOf(column, values):
            chosen = tuple(sorted(set(values), key=_literal_order))
            return Compare(column, "=", chosen[0]) if len(chosen) == 1 else OneOf(column, chosen)
        case Compare():
            return _closed(predicate)
        case Box():
            return predicate


def _opposite(predicate: Predicate) -> Predicate:
    match predicate:
        case And(parts) if parts:
            return canonical(Or(tuple(map(_opposite, parts))))
        case Or(parts):
            return canonical(And(tuple(map(_opposite, parts))))
        case Not(part):
            return part
        case Compare(column, op, value):
            return _closed(Compare(column, OPPOSITE[op], value))
    return Not(predicate)


def _closed(leaf: Compare) -> Predicate:
    """Whole numbers and days have neighbours: `< 25` is `<= 24`."""
    step = _step(leaf.value)
    if leaf.op == "<" and step:
        return Compare(leaf.column, "<=", step(-1))
    if leaf.op == ">" and step:
        return Compare(leaf.column, ">=", step(1))
    return leaf


def _step(value: Literal):  # type: ignore[no-untyped-def]  # a function or None
    if isinstance(value, date):
        inside = date.min < value < date.max
        return (lambda days: value + timedelta(days=days)) if inside else None
    if isinstance(value, int) and not isinstance(value, bool):
        return lambda more: value + more
    return None


def _flat(kind: type[And] | type[Or], parts: Iterable[Predicate]) -> list[Predicate]:
    found: list[Predicate] = []
    for part in parts:
        found += part.parts if isinstance(part, kind) and part.parts else [part]
    return found


def _gathered(kind: type[And] | type[Or], parts: Iterable[Predicate]) -> Predicate:
    """Sort, drop repeats, and leave out a wrapper around one part."""
    distinct = {_order(part): part for part in parts}
    if kind is And:
        distinct.pop(_order(And(())), None)
    ordered = tuple(distinct[key] for key in sorted(distinct))
    return ordered[0] if len(ordered) == 1 else kind(ordered)


def _tightest(parts: list[Predicate]) -> list[Predicate]:
    """Of several upper (or lower) limits on one column the tightest says it all."""
    limits: dict[tuple[str, str], list[Compare]] = {}
    others: list[Predicate] = []
    for part in parts:
        if isinstance(part, Compare) and part.op[0] in "<>":
            limits.setdefault((part.column, part.op[0]), []).append(part)
        else:
            others.append(part)
    return others + [_tighter(same) for same in limits.values()]


def _tighter(same: list[Compare]) -> Compare:
    upper = same[0].op[0] == "<"
    extreme = min if upper else max
    value = extreme((limit.value for limit in same), key=_literal_order)
    strict = f"{same[0].op[0]}"
    is_strict = any(limit.op == strict and limit.value == value for limit in same)
    return Compare(same[0].column, strict if is_strict else f"{strict}=", value)


def _choices(parts: list[Predicate]) -> list[Predicate]:
    """`a = 1 OR a = 2` is `a IN (1, 2)`."""
    chosen: dict[str, list[Literal]] = {}
    others: list[Predicate] = []
    for part in parts:
        if isinstance(part, Compare) and part.op == "=":
            chosen.setdefault(part.column, []).append(part.value)
        elif isinstance(part, OneOf):
            chosen.setdefault(part.column, []).extend(part.values)
        else:
            others.append(part)
    return others + [canonical(OneOf(column, tuple(values))) for column, values in chosen.items()]


def _order(predicate: Predicate) -> str:
    return json.dumps(plain(predicate), sort_keys=True, ensure_ascii=True)


def _literal_order(value: Literal) -> tuple[str, Literal]:
    return (type(value).__name__, value)


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
