"""The local bound of many patterns, compiled: see `bounds.local_counts` for what it means."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.measures.release.patterns import Masks


def smallest_local_count(
    masks: Masks, weights: NDArray[np.int64], values: int, floor: int, stop: NDArray[np.int64]
) -> int:
    """Return the smallest local count, or `floor` once it is reached or `stop` is raised."""
    return int(_smallest(masks, weights, values, floor, stop))


@cache
def compile_local() -> None:
    """Compile the kernel beforehand (or read it from the cache)."""
    smallest_local_count(np.ones((1, 1), np.uint64), np.ones(1, np.int64), 1, 0, np.zeros(1, np.int64))


@njit(cache=True, nogil=True)
def _smallest(masks, weights, values, floor, stop):  # type: ignore[no-untyped-def]
    words = masks.shape[1]
    counts = np.zeros(values, np.int64)
    smallest = np.int64(1) << 62
    for row in range(len(masks)):
        if stop[0]:
            return floor
        counts[:] = 0
        for other in range(len(masks)):
            inside = True
            for word in range(words):
                inside = inside and masks[other, word] & ~masks[row, word] == 0
            if inside:
                for value in range(values):
                    if masks[other, value >> 6] >> np.uint64(value & 63) & np.uint64(1):
                        counts[value] += weights[other]
        for value in range(values):
            if masks[row, value >> 6] >> np.uint64(value & 63) & np.uint64(1):
                smallest = min(smallest, counts[value])
        if smallest <= floor:
            return floor
    return smallest
