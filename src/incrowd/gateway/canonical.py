"""One spelling for one meaning: conditions that differ only in how they are written become equal.

`age < 25` and `NOT age >= 25` and `age <= 24` (of whole numbers) are one question, and a repeat of a question
has to find the answer that was given before. Denials use three-valued logic as databases do, where De
Morgan's rules hold, so moving NOT to the leaves changes nobody's membership.

This is about convenience, not about safety: classes with the same members are recognised as the same later,
however they were asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, timedelta

from incrowd.gateway.predicate import (
    OPPOSITE,
    And,
    Between,
    Box,
    Compare,
    Literal,
    Not,
    OneOf,
    Or,
    Predicate,
    plain,
)


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
