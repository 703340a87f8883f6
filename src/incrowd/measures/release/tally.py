"""Counting the holders of each value straight from bit masks, compiled: only entries cost time, not empty cells."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray


def tally(
    masks: NDArray[np.uint64], weights: NDArray[np.int64], values: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many users list each value, and how many list it and no other."""
    listed, alone = np.zeros((2, values), dtype=np.int64)
    _tally(masks, weights, listed, alone)
    return listed, alone


@cache
def compile_tally() -> None:
    """Compile the kernel beforehand (or read it from the cache)."""
    tally(np.ones((1, 1), np.uint64), np.ones(1, np.int64), 1)


@njit(cache=True, nogil=True)
def _tally(masks, weights, listed, alone):  # type: ignore[no-untyped-def]
    for row in range(len(masks)):
        entries, last = 0, 0
        for word in range(masks.shape[1]):
            left = masks[row, word]
            while left:
                lowest = left & (~left + np.uint64(1))
                last = word * 64 + _place(lowest)
                listed[last] += weights[row]
                entries += 1
                left ^= lowest
        if entries == 1:
            alone[last] += weights[row]


@njit(inline="always")
def _place(bit):  # type: ignore[no-untyped-def]
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        if bit >> np.uint64(step):
            place += step
            bit >>= np.uint64(step)
    return place
