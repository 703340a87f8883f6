"""Thinning an answer by people who could account for one of its values alone, with all they were told before.

The joint rule (`joint.py`, NOTES.md) asks for such people whatever else is known, so the search for an answer that
passes it looks at them from the start. It never decides what may leave: `Joint.allowed` does.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.gateway.groups import Group
from incrowd.gateway.snapshot import AttributeIndex
from incrowd.measures.release.thin import Lists, compile_thin, thin

Ints = NDArray[np.int64]
ROUNDS = 1
"""More find hardly more: 4,737 values against 4,733 over 40 classes."""
EFFORT = 300_000
"""Rows that exchanges may visit. Counted, not timed: the same data give the same answer."""


def most_alone(
    index: AttributeIndex,
    group: Group,
    codes: tuple[int, ...],
    about: Ints,
    threshold: int,
    rank: Ints,
    blur: Ints,
) -> tuple[int, ...]:
    """Return as many of these values as have, each, `threshold` people of the class who list no other of them.

    Parameters
    ----------
    about
        Person -> the one value they were told about so far, or a negative number: -1 none, -2 several.
    rank, blur
        For each value: which of two goes first, and a secret amount that hides exact counts in such choices.
    """
    place = np.full(len(index.values), -1, dtype=np.int64)
    place[np.array(codes, dtype=np.int64)] = np.arange(len(codes))
    lists = Lists(*_lists(index.starts, index.codes, group.members, place, about, index.offset, len(codes)))
    kept = thin(lists, threshold, rank, ROUNDS, EFFORT, np.zeros(1, dtype=np.int64), blur)
    return tuple(code for code, stays in zip(codes, kept.tolist(), strict=True) if stays)


@cache
def compile_lone() -> None:
    """Compile the kernels beforehand (or read them from the cache)."""
    one, number = np.zeros(1, np.int64), np.zeros(1, np.int32)
    compile_thin()
    _lists(np.array([0, 1]), number, number, one, one - 1, 0, 1)


@njit(cache=True, nogil=True)
def _lists(starts, codes, members, place, about, offset, values):  # type: ignore[no-untyped-def]
    """Lay out who lists which of the values, both ways round, as `thin` wants it."""
    row_start = np.zeros(len(members) + 1, np.int64)
    value_start = np.zeros(values + 1, np.int64)
    rows = 0
    for person in members:
        entries = 0
        if _may_be_alone(about[person], place, offset):
            for i in range(starts[person], starts[person + 1]):
                if place[codes[i]] >= 0:
                    value_start[place[codes[i]] + 1] += 1
                    entries += 1
        if entries:
            row_start[rows + 1] = row_start[rows] + entries
            rows += 1
    value_start = np.cumsum(value_start)
    row_values = np.empty(row_start[rows], np.int64)
    value_rows = np.empty(row_start[rows], np.int64)
    filled = value_start[:-1].copy()
    row, entry = 0, 0
    for person in members:
        before = entry
        if _may_be_alone(about[person], place, offset):
            for i in range(starts[person], starts[person + 1]):
                value = place[codes[i]]
                if value >= 0:
                    row_values[entry] = value
                    value_rows[filled[value]] = row
                    filled[value] += 1
                    entry += 1
        row += entry > before
    return row_start[: rows + 1], row_values, value_start, value_rows, np.ones(rows, np.int64)


@njit(inline="always")
def _may_be_alone(told, place, offset):  # type: ignore[no-untyped-def]
    """False for somebody who already accounts for values that are not in question."""
    code = told - offset
    return told == -1 or (told >= 0 and 0 <= code < len(place) and place[code] >= 0)
