"""Sets of people as numbers and as bits, over numbers that each person keeps through all snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int32]
Words = NDArray[np.uint64]
WORD = 64


@dataclass(frozen=True, eq=False, repr=False)
class Group:
    """The people a query selects."""

    members: Numbers
    """Their numbers, rising."""

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return f"Group({len(self)} people)"

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that stand for exactly these people."""
        return digest_of(self.members)

    def words(self, size: int) -> Words:
        """One bit a person, for `size` people."""
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
