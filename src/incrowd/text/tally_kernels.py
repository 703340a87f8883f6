"""The compiled part of :mod:`incrowd.text.tally`. Importing this loads Numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def mark_seen(
    rows: Ints, lengths: Ints, tokens: Ints, row_places: Longs, seen: npt.NDArray[np.bool_]
) -> None:
    """Mark the tokens of posts whose row has a place."""
    start = 0
    for post in range(len(rows)):
        end = start + lengths[post]
        if row_places[rows[post]] >= 0:
            for k in range(start, end):
                seen[tokens[k]] = True
        start = end


@njit(cache=True, nogil=True)
def lay_out(
    rows: Ints,
    lengths: Ints,
    tokens: Ints,
    row_places: Longs,
    token_places: Longs,
    first: int,
    cursors: Longs,
    columns: Ints,
) -> None:
    """Write each post's tokens at its row's cursor, for the rows from place `first` on that have a cursor."""
    start = 0
    for post in range(len(rows)):
        end = start + lengths[post]
        row = row_places[rows[post]] - first
        if 0 <= row < len(cursors):
            at = cursors[row]
            for k in range(start, end):
                columns[at] = token_places[tokens[k]]
                at += 1
            cursors[row] = at
        start = end


@njit(cache=True, nogil=True)
def count_sorted(columns: Ints, starts: Longs, counts: Ints, lengths: Longs) -> int:
    """Sort each row and count equal neighbours; what remains moves to the front. Return how many remain."""
    n = 0
    for row in range(len(starts) - 1):
        begin, end = starts[row], starts[row + 1]
        own = columns[begin:end]
        own.sort()
        before = n
        for k in range(begin, end):
            if n > before and columns[n - 1] == columns[k]:
                counts[n - 1] += 1
            else:
                columns[n], counts[n] = columns[k], 1
                n += 1
        lengths[row] = n - before
    return n
