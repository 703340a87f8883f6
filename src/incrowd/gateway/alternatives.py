"""Who else could account for what was told: the tests and searches behind the joint rule (`history.py`, NOTES.md).

`enough_alternatives` is the readable version of the test, `failing_values` its compiled twin for many values at once.
`most_with_sole_holders` looks for an answer that can pass: it never decides what may leave, `Joint.allowed` does.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.arrays import Ints
from incrowd.gateway.people import Selection
from incrowd.gateway.snapshot import AttributeIndex
from incrowd.measures.release.kernels import Lists, compile_greedy_release, greedy_release

Ids = NDArray[np.int64]


def enough_alternatives(clauses: NDArray[np.bool_], alone: Ids, least: Ids) -> bool:
    """Test one value: does everybody have enough alternatives for every clause about it?

    Parameters
    ----------
    clauses
        A row for each kind of membership among the people who list the value, a column for each answer that
        released it.
    alone
        For each row, how many of them could account for this value and for no other.
    least
        How many alternatives each column needs.

    Examples
    --------
    Thirty people are in the first class only, twelve in both; nobody lists another released value.

    >>> both = np.array([[True, False], [True, True]])
    >>> enough_alternatives(both, np.array([30, 12]), np.array([10, 10]))
    True
    >>> enough_alternatives(both, np.array([30, 9]), np.array([10, 10]))
    False
    """
    within = ~(clauses[:, None, :] & ~clauses[None, :, :]).any(
        axis=2
    )  # [x, P]: x holds nothing that P does not
    alternatives = within.T.astype(np.int64) @ (alone[:, None] * clauses)
    return bool((alternatives >= least)[clauses].all())


EFFORT = 2**27
"""Steps that one call may take. Counted, not timed: the same data always give the same answer."""
Words = NDArray[np.uint64]


def failing_values(
    *,
    starts: Ids,
    members: NDArray[np.int32],
    codes: Ids,
    names: Ids,
    answers: Words,
    cell: NDArray[np.int32],
    cells: Words,
    inside: NDArray[np.bool_],
    about: Ids,
    new: int,
    base: int,
    threshold: int,
    effort: int = EFFORT,
) -> NDArray[np.bool_]:
    """Flag the values for which somebody has too few alternatives, or which were not reached within the effort.

    Parameters
    ----------
    starts, members
        People who list each value of an attribute.
    codes, names, answers
        The values to test: position in `starts`, number in `about`, and bits of the answers that release them.
    cell, cells
        Cell of each person; bits of the answered classes that make up each cell.
    inside, new
        Who is in the class of the newest answer, and the bit of that answer.
    about
        The one value each person could account for.
    base, threshold
        How many alternatives a clause needs: older ones, and those of the newest answer.
    """
    return np.asarray(
        _failing(
            starts, members, codes, names, answers, cell, cells, inside, about, new, base, threshold, effort
        )
    )


@cache
def compile_alternatives() -> None:
    """Compile the kernel beforehand (or read it from the cache)."""
    one, words = np.zeros(1, np.int64), np.zeros((1, 1), np.uint64)
    failing_values(
        starts=np.array([0, 1]),
        members=np.zeros(1, np.int32),
        codes=one,
        names=one,
        answers=words,
        cell=np.zeros(1, np.int32),
        cells=words,
        inside=np.zeros(1, np.bool_),
        about=one,
        new=0,
        base=1,
        threshold=1,
    )


@njit(cache=True, nogil=True)
def _failing(  # type: ignore[no-untyped-def]
    starts, members, codes, names, answers, cell, cells, inside, about, new, base, threshold, effort
):
    failing = np.zeros(len(codes), np.bool_)
    width = answers.shape[1]
    listing = np.zeros(2 * len(cells), np.int64)
    alone = np.zeros(2 * len(cells), np.int64)
    spots = np.zeros(2 * len(cells), np.int64)
    for i in range(len(codes)):
        used = 0
        for place in range(starts[codes[i]], starts[codes[i] + 1]):
            person = members[place]
            spot = 2 * np.int64(cell[person]) + (1 if inside[person] else 0)
            if listing[spot] == 0:
                spots[used] = spot
                used += 1
            listing[spot] += 1
            if about[person] == names[i]:
                alone[spot] += 1
        rows = np.zeros((used, width), np.uint64)
        weights = np.zeros(used, np.int64)
        kinds = 0
        for s in range(used):
            spot = spots[s]
            kinds, steps = _add_row(
                rows, weights, kinds, cells[spot >> 1], answers[i], spot & 1, new, alone[spot]
            )
            effort -= steps
            listing[spot] = 0
            alone[spot] = 0
        effort -= kinds * kinds * width
        failing[i] = effort < 0 or not _enough(rows[:kinds], weights[:kinds], new, base, threshold)
    return failing


@njit(cache=True, nogil=True)
def _add_row(rows, weights, kinds, classes, answers, is_new, new, alone):  # type: ignore[no-untyped-def]
    """Put the clauses of a cell into `rows`, unless they are there; nobody in none of the classes matters."""
    width = rows.shape[1]
    some = np.uint64(0)
    for w in range(width):
        row = classes[w] & answers[w] if w < len(classes) else np.uint64(0)
        if is_new and w == new >> 6:
            row |= answers[w] & (np.uint64(1) << np.uint64(new & 63))
        rows[kinds, w] = row
        some |= row
    if some == 0:
        return kinds, width
    for k in range(kinds):
        same = True
        for w in range(width):
            same = same and rows[k, w] == rows[kinds, w]
        if same:
            weights[k] += alone
            return kinds, (k + 1) * width
    weights[kinds] = alone
    return kinds + 1, (kinds + 1) * width


@njit(cache=True, nogil=True)
def _enough(rows, weights, new, base, threshold):  # type: ignore[no-untyped-def]
    width = rows.shape[1]
    counts = np.zeros(64 * width, np.int64)
    for p in range(len(rows)):
        counts[:] = 0
        for x in range(len(rows)):
            if weights[x] == 0:
                continue
            within = True
            for w in range(width):
                if rows[x, w] & ~rows[p, w] != 0:
                    within = False
                    break
            if within:
                for w in range(width):
                    left = rows[x, w]
                    bit = 0
                    while left != 0:
                        if left & np.uint64(1):
                            counts[64 * w + bit] += weights[x]
                        left >>= np.uint64(1)
                        bit += 1
        for w in range(width):
            left = rows[p, w]
            bit = 0
            while left != 0:
                if left & np.uint64(1):
                    answer = 64 * w + bit
                    if counts[answer] < (threshold if answer == new else base):
                        return False
                left >>= np.uint64(1)
                bit += 1
    return True


ROUNDS = 1
"""More find hardly more: 4,737 values against 4,733 over 40 classes."""
EXCHANGE_EFFORT = 300_000
"""Rows that exchanges may visit. Counted, not timed: the same data give the same answer."""


def most_with_sole_holders(
    index: AttributeIndex,
    group: Selection,
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
    kept = greedy_release(lists, threshold, rank, ROUNDS, EXCHANGE_EFFORT, np.zeros(1, dtype=np.int64), blur)
    return tuple(code for code, stays in zip(codes, kept.tolist(), strict=True) if stays)


@cache
def compile_sole_holders() -> None:
    """Compile the kernels beforehand (or read them from the cache)."""
    one, number = np.zeros(1, np.int64), np.zeros(1, np.int32)
    compile_greedy_release()
    _lists(np.array([0, 1]), number, number, one, one - 1, 0, 1)


@njit(cache=True, nogil=True)
def _lists(starts, codes, members, place, about, offset, values):  # type: ignore[no-untyped-def]
    """Lay out who lists which of the values, both ways round, as `greedy_release` wants it."""
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
