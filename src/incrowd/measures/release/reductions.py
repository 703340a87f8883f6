"""Making a response smaller without changing q: absorbed values go, unconnected parts are parted.

Absorption: a value all of whose holders-set contains another value's holders adds nothing, since whoever
accounts for the rarer value accounts for it too. Parts: values that share no user are independent; the
number of minimal groups multiplies and q is the smallest q of a part (proofs in NOTES.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.release.patterns import PatternCounts


def absorb(patterns: PatternCounts) -> PatternCounts:
    """Leave out every value whose holders include all holders of another value."""
    keep = np.flatnonzero(~redundant(patterns))
    return patterns if len(keep) == len(patterns.values) else patterns.select(keep)


def redundant(patterns: PatternCounts) -> NDArray[np.bool_]:
    """Mark the absorbed values; of values with the same holders the first stays."""
    contains = holders_contained(patterns)
    first = np.tri(len(patterns.values), k=-1, dtype=np.bool_).T  # first[i, j]: i comes before j
    absorbs = contains & (~contains.T | first)
    np.fill_diagonal(absorbs, False)
    return np.asarray(absorbs.any(axis=0))


def holders_contained(patterns: PatternCounts) -> NDArray[np.bool_]:
    """Table [i, j]: every holder of value i also lists value j."""
    table = patterns.table
    together = table.T.astype(np.float32) @ table.astype(np.float32)  # patterns with both; exact below 2^24
    return np.asarray(together == np.diag(together)[:, None])


def parts(patterns: PatternCounts) -> list[PatternCounts]:
    """Split into connected parts: no user lists values of two of them."""
    return [patterns.select(places) for places in connected_values(patterns)]


def connected_values(patterns: PatternCounts) -> list[NDArray[np.int64]]:
    """Return the positions of the values of each connected part, in order of their first value."""
    table = patterns.table
    part = np.full(len(patterns.values), -1)
    number = 0
    for first in range(len(part)):
        if part[first] < 0:
            part[_reachable(table, first)] = number
            number += 1
    return [np.flatnonzero(part == i) for i in range(number)]


def _reachable(table: NDArray[np.bool_], first: int) -> NDArray[np.bool_]:
    reached: NDArray[np.bool_] = np.arange(table.shape[1]) == first
    while True:
        touched = table[:, reached].any(axis=1)
        wider = np.asarray(table[touched].any(axis=0))
        if np.array_equal(wider, reached):
            return reached
        reached = wider
