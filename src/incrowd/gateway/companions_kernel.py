"""The companion test for many values at once, compiled; see `companions.enough_companions` for what it means."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

EFFORT = 2**27
"""Steps that one call may take. Counted, not timed: the same data always give the same answer."""
Words = NDArray[np.uint64]
Ids = NDArray[np.int64]


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
    """Flag the values for which somebody has too few companions, or which were not reached within the effort.

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
        How many companions a clause needs: older ones, and those of the newest answer.
    """
    return np.asarray(
        _failing(
            starts, members, codes, names, answers, cell, cells, inside, about, new, base, threshold, effort
        )
    )


@cache
def compile_companions() -> None:
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
