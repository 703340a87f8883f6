"""Making a response smaller without changing q: absorbed values go, unconnected parts are parted.

Absorption: a value all of whose holders-set contains another value's holders adds nothing, since whoever
accounts for the rarer value accounts for it too. Parts: values that share no user are independent; the
number of minimal groups multiplies and q is the smallest q of a part (proofs in NOTES.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.release.patterns import PatternCounts, pack, unpack


def absorb(patterns: PatternCounts) -> PatternCounts:
    """Leave out every value whose holders include all holders of another value."""
    keep = np.flatnonzero(~redundant(patterns))
    return patterns if len(keep) == len(patterns.values) else patterns.select(keep)


def redundant(patterns: PatternCounts) -> NDArray[np.bool_]:
    """Mark the absorbed values; of values with the same holders the first stays."""
    contained = holders_contained(patterns)
    size = patterns.table.sum(axis=0)
    earlier = np.tri(len(size), k=-1, dtype=np.bool_).T  # [i, j]: i comes before j
    absorbs = contained & ((size[:, None] < size) | earlier)
    return np.asarray(absorbs.any(axis=0))


def holders_contained(patterns: PatternCounts) -> NDArray[np.bool_]:
    """Table [i, j]: every holder of value i also lists value j."""
    values, rows = np.nonzero(patterns.table.T)
    starts = np.searchsorted(values, np.arange(len(patterns.values)))
    in_all = np.bitwise_and.reduceat(patterns.masks[rows], starts, axis=0)
    return unpack(in_all, len(patterns.values))


def parts(patterns: PatternCounts) -> list[PatternCounts]:
    """Split into connected parts: no user lists values of two of them."""
    return [part for _, part in parts_with_places(patterns)]


def parts_with_places(patterns: PatternCounts) -> list[tuple[NDArray[np.int64], PatternCounts]]:
    """Split into connected parts, each with the positions of its values."""
    if not patterns.values:
        return []
    part_of, table = connected(patterns), patterns.table
    row_part = part_of[table.argmax(axis=1)]
    by_part = np.argsort(row_part, kind="stable")
    ends = np.searchsorted(row_part[by_part], np.arange(part_of.max() + 1), side="right")
    found = []
    for number, rows in enumerate(np.split(by_part, ends[:-1])):
        places = np.flatnonzero(part_of == number)
        # All values of a row are in its part, so the rows stay different from each other.
        masks = pack(table[rows][:, places])
        labels = tuple(patterns.values[place] for place in places.tolist())
        found.append((places, PatternCounts(labels, masks, patterns.weights[rows])))
    return found


def connected(patterns: PatternCounts) -> NDArray[np.int64]:
    """Number the connected parts, in order of their first value; return the part of each value."""
    rows, values = np.nonzero(patterns.table)
    row_start = np.searchsorted(rows, np.arange(len(patterns.weights)))
    label = np.arange(len(patterns.values))
    while True:  # the smallest label spreads over shared users until nothing changes
        smallest = np.minimum.reduceat(label[values], row_start)
        spread = label.copy()
        np.minimum.at(spread, values, smallest[rows])
        spread = spread[spread]
        if np.array_equal(spread, label):
            return np.unique(label, return_inverse=True)[1].astype(np.int64)
        label = spread
