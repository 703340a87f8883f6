"""Compiled loops of the determined adversary. Importing this loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]


@njit(cache=True, nogil=True)
def count_holders(indices: Ints, holders: Ints) -> None:
    """Add up how many rows hold each habit."""
    for column in indices:
        holders[column] += 1


@njit(cache=True, nogil=True)
def fill_rows(
    indptr: Longs,
    indices: Ints,
    counts: Singles,
    damped: Doubles,
    slot: Ints,
    rarity: Singles,
    dense: Singles,
    starts: Longs,
    columns: Ints,
    values: Singles,
) -> None:
    """Weigh each row's habits by rarity, scale it to length 1, and write the kept ones where they belong.

    `damped` is what a count is worth, for small counts. Without `rarity` (no entries) the values are taken as
    they are. A habit that cannot meet anybody on the other side (its slot is -1) is not written, but counts
    towards the length. Rare habits go one after the other into `columns` and `values`; `starts` says where.
    """
    common = dense.shape[1]
    to = 0
    for row in range(len(indptr) - 1):
        first, squares = to, 0.0
        # Slots and rarities lie far apart: each is looked up once, and what is written is scaled afterwards.
        for at in range(indptr[row], indptr[row + 1]):
            column = indices[at]
            weight = float(counts[at])
            if len(rarity):
                weight = _worth(counts[at], damped) * rarity[column]
                squares += weight * weight
            place = slot[column]
            if place >= common:
                columns[to], values[to] = place - common, weight
                to += 1
            elif place >= 0:
                dense[row, place] = weight
        starts[row + 1] = to
        if squares > 0:
            scale = 1.0 / np.sqrt(squares)
            for place in range(common):
                dense[row, place] *= scale
            for at in range(first, to):
                values[at] *= scale


@njit(cache=True, nogil=True)
def _worth(count: float, damped: Doubles) -> float:
    return float(damped[int(count)]) if count < len(damped) else 1.0 + float(np.log(count))


@njit(cache=True, nogil=True)
def posting_lists(
    starts: Longs, columns: Ints, values: Singles, ends: Longs, holders: Ints, weights: Singles
) -> None:
    """Turn rows into lists by habit; `ends` holds where each list begins and is moved to where it ends."""
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            to = ends[columns[at]]
            holders[to], weights[to] = row, values[at]
            ends[columns[at]] = to + 1


@njit(cache=True, nogil=True)
def add_rare(
    rows: Longs,
    starts: Longs,
    columns: Ints,
    values: Singles,
    edges: Longs,
    list_starts: Longs,
    holders: Ints,
    weights: Singles,
    out: Singles,
) -> None:
    """Add to each (row, target) the product over the rare habits both have.

    `columns` rise within a row. `edges` cut the habits into ranges whose lists stay in the processor's cache
    while all rows meet them.
    """
    cursors = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        cursors[i] = starts[rows[i]]
    for edge in edges:
        for i in range(len(rows)):
            at, stop = cursors[i], starts[rows[i] + 1]
            while at < stop and columns[at] < edge:
                value = values[at]
                for place in range(list_starts[columns[at]], list_starts[columns[at] + 1]):
                    out[i, holders[place]] += value * weights[place]
                at += 1
            cursors[i] = at


@njit(cache=True, nogil=True)
def add_to_hubs(
    cosines: Singles,
    source_hub: Doubles,
    source_sum: Doubles,
    target_sum: Doubles,
    target_best: Singles,
) -> float:
    """Take in some sources: each one's mean over its nearest targets, sums, and each target's nearest so far.

    `target_best` holds the largest values of each target, rising. Returns the sum of squares.
    """
    targets, nearest = target_best.shape
    best = np.empty(nearest, np.float32)
    squares = 0.0
    for i in range(len(cosines)):
        best[:] = -np.inf
        total = 0.0
        for t in range(targets):
            value = cosines[i, t]
            total += value
            squares += float(value) * value
            target_sum[t] += value
            if value > best[0]:
                _insert(best, value)
            if value > target_best[t, 0]:
                _insert(target_best[t], value)
        source_sum[i] = total
        source_hub[i] = best.astype(np.float64).sum() / nearest
    return squares


@njit(cache=True, nogil=True)
def _insert(rising: Singles, value: float) -> None:
    """Put a value into a short rising list in place of its smallest."""
    place = 0
    while place + 1 < len(rising) and rising[place + 1] < value:
        rising[place] = rising[place + 1]
        place += 1
    rising[place] = value
