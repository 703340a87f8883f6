"""Making a response smaller without changing q: absorbed values go, unconnected parts are parted.

Absorption: a value all of whose holders-set contains another value's holders adds nothing, since whoever
accounts for the rarer value accounts for it too. Parts: values that share no user are independent; the
number of minimal groups multiplies and q is the smallest q of a part (proofs in NOTES.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.release.patterns import WORD, PatternCounts, pack, unpack

SIDE_BY_SIDE = 2**22
"""Words of masks that are laid side by side to compare holders: 32 MiB."""


def absorb(patterns: PatternCounts) -> PatternCounts:
    """Leave out every value whose holders include all holders of another value."""
    keep = np.flatnonzero(~redundant(patterns))
    return patterns if len(keep) == len(patterns.values) else patterns.select(keep)


def redundant(patterns: PatternCounts) -> NDArray[np.bool_]:
    """Mark the absorbed values; of values with the same holders the first stays."""
    masks, values = patterns.masks, len(patterns.values)
    holders = np.packbits(patterns.table, axis=0).T
    first_with = {row.tobytes(): value for value, row in reversed(list(enumerate(holders)))}
    firsts = np.array(sorted(first_with.values()))
    # Bit j of row i: every holder of the i-th value also lists value j. A few values at a time: the rows of
    # all their holders lie side by side.
    absorbed = np.zeros(masks.shape[1], dtype=np.uint64)
    at_once = max(1, SIDE_BY_SIDE // masks.size)
    for start in range(0, len(firsts), at_once):
        some = firsts[start : start + at_once]
        places, rows = np.nonzero(patterns.table[:, some].T)
        starts = np.searchsorted(places, np.arange(len(some)))
        in_all = np.bitwise_and.reduceat(masks[rows], starts, axis=0)
        in_all[np.arange(len(some)), some // WORD] &= ~(np.uint64(1) << (some % WORD).astype(np.uint64))
        absorbed |= np.bitwise_or.reduce(in_all, axis=0)
    return np.asarray(unpack(absorbed[None], values)[0])


def parts(patterns: PatternCounts) -> list[PatternCounts]:
    """Split into connected parts: no user lists values of two of them."""
    return [part for _, part in parts_with_places(patterns, connected(patterns))] if patterns.values else []


def parts_with_places(
    patterns: PatternCounts, part_of: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], PatternCounts]]:
    """Split into connected parts, as `connected` numbers them, each with the positions of its values."""
    table = patterns.table
    found = []
    for rows, places in zip(_members(part_of[table.argmax(axis=1)]), _members(part_of), strict=True):
        # All values of a row are in its part, so the rows stay different from each other.
        masks = pack(table[rows][:, places])
        labels = tuple(patterns.values[place] for place in places.tolist())
        found.append((places, PatternCounts(labels, masks, patterns.weights[rows])))
    return found


def _members(part_of: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return for each part the places that belong to it, in rising order."""
    by_part = np.argsort(part_of, kind="stable")
    ends = np.searchsorted(part_of[by_part], np.arange(part_of.max() + 1), side="right")
    return np.split(by_part, ends[:-1])


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
