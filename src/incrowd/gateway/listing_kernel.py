"""Counting and collecting what the people of a class list, compiled: classes are large, and replies wait meanwhile."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Numbers = NDArray[np.int32]


def count_listed(starts: Ids, codes: Numbers, members: Numbers, values: int) -> Ids:
    """For each value how many of these people list it."""
    return np.asarray(_count(starts, codes, members, values))


def collect_listed(
    starts: Ids, codes: Numbers, members: Numbers, wanted: NDArray[np.bool_]
) -> tuple[Numbers, Numbers]:
    """Return pairs (person, value) of these people and the values flagged as wanted, by person."""
    people, listed = _collect(starts, codes, members, wanted)
    return np.asarray(people), np.asarray(listed)


@cache
def compile_listing() -> None:
    """Compile the kernels beforehand (or read them from the cache)."""
    starts, one = np.array([0, 1]), np.zeros(1, np.int32)
    count_listed(starts, one, one, 1)
    collect_listed(starts, one, one, np.ones(1, np.bool_))


@njit(cache=True, nogil=True)
def _count(starts, codes, members, values):  # type: ignore[no-untyped-def]
    counts = np.zeros(values, np.int64)
    for person in members:
        for i in range(starts[person], starts[person + 1]):
            counts[codes[i]] += 1
    return counts


@njit(cache=True, nogil=True)
def _collect(starts, codes, members, wanted):  # type: ignore[no-untyped-def]
    size = 0
    for person in members:
        for i in range(starts[person], starts[person + 1]):
            size += wanted[codes[i]]
    people, listed = np.empty(size, np.int32), np.empty(size, np.int32)
    place = 0
    for person in members:
        for i in range(starts[person], starts[person + 1]):
            if wanted[codes[i]]:
                people[place], listed[place] = person, codes[i]
                place += 1
    return people, listed
