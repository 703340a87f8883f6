"""Sets of people as numbers and as bits, and compiled counts of what they list.

Each person keeps one number through all snapshots. Classes are large and replies wait meanwhile, so counting and
collecting what a class lists is compiled.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b

import numpy as np
from numba import njit
from numpy.typing import NDArray

Numbers = NDArray[np.int32]
Words = NDArray[np.uint64]
WORD = 64


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """The people a query selects."""

    members: Numbers
    """Their numbers, rising."""

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return f"Selection({len(self)} people)"

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that stand for exactly these people."""
        return digest_of(self.members)

    def words(self, size: int) -> Words:
        """One bit per person, for `size` people."""
        return words_of(self.members, size)

    def flags(self, size: int) -> NDArray[np.bool_]:
        """True for each member, for `size` people."""
        flags = np.zeros(size, dtype=np.bool_)
        flags[self.members] = True
        return flags

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return int(self.members.nbytes)


def digest_of(members: Numbers) -> bytes:
    """16 bytes that stand for a set of people, given in rising order."""
    return blake2b(members.astype("<i4").tobytes(), digest_size=16).digest()


def words_of(members: Numbers, size: int) -> Words:
    """Pack numbers into bits."""
    bits = np.zeros(-(-size // WORD) * WORD, dtype=np.bool_)
    bits[members] = True
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def members_of(words: Words) -> Numbers:
    """Return the numbers whose bits are set."""
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int32)


def widened(words: Words, size: int) -> Words:
    """Give older bits room for people who came later."""
    needed = -(-size // WORD)
    return np.pad(words, (0, needed - len(words))) if len(words) < needed else words


def how_many(words: Words) -> NDArray[np.int64]:
    """Count the bits of each row."""
    return np.asarray(np.bitwise_count(words).sum(axis=-1, dtype=np.int64))


Ids = NDArray[np.int64]


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


def packed(people: Words) -> bytes:
    """Return the bits of some people as they are stored."""
    return zlib.compress(people.astype("<u8").tobytes(), 1)


def unpacked(stored: bytes) -> Words:
    """Read what `packed` made."""
    return np.frombuffer(zlib.decompress(stored), "<u8").astype(np.uint64)
