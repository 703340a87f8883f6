"""Exact integers of any size from arithmetic in machine words: count modulo primes, then put together.

The counts of this engine have hundreds of digits and are differences of still larger numbers, so floats
fail. Kernels count modulo several primes below 2^27 and the Chinese remainder theorem gives the integer,
as long as the product of the primes passes twice the bound on the result.
"""

from __future__ import annotations

import math
from functools import cache
from operator import mul
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.measures.release.budget import Deadline

Lanes = NDArray[np.uint64]
PRIME_BITS = 27
"""Below 2^32 / 32, so that 32 products fit under one Montgomery reduction (see `reduce_word`)."""
SIEVED = 2**17
"""Numbers below 2^27 that are looked through for primes at first: 7,000 of them, for 180,000 bits."""


def primes_for(bits: int) -> tuple[int, ...]:
    """Return enough primes to tell all integers of so many bits apart, the largest first."""
    count = bits // (PRIME_BITS - 1) + 1
    room = SIEVED
    while len(found := _primes_below(room)) < count:
        room *= 4
    return found[:count]


@cache
def _primes_below(room: int) -> tuple[int, ...]:
    """Return the primes among the last `room` numbers below 2^27, the largest first."""
    top = 2**PRIME_BITS
    first = max(top - room, 2)
    composite = np.zeros(top - first, dtype=np.bool_)
    for p in range(2, math.isqrt(top) + 1):  # multiples of composites are crossed out twice: no harm
        if p % 2 or p == 2:
            composite[max(-first % p, p * p - first) :: p] = True
    return tuple((first + np.flatnonzero(~composite)[::-1]).tolist())


def montgomery(weights: NDArray[np.int64], primes: Lanes) -> Lanes:
    """Return w * 2^32 mod p for each weight (rows) and prime: the form that `reduce_word` multiplies."""
    p = primes[:, 0]
    return np.asarray((weights.astype(np.uint64)[:, None] % p << np.uint64(32)) % p)


def lanes(moduli: tuple[int, ...]) -> Lanes:
    """Constants of each prime p for the kernels: p, -1/p mod 2^32, 2^32 mod p, 2^64 mod p."""
    rows = [(p, pow(-p, -1, 2**32), 2**32 % p, 2**64 % p) for p in moduli]
    return np.array(rows, dtype=np.uint64).reshape(len(rows), 4)


def combine(residues: NDArray[Any], moduli: tuple[int, ...], deadline: Deadline) -> list[int] | None:
    """Chinese remainder theorem, for each column of `residues` (one row per prime); None once time is up."""
    whole = math.prod(moduli)
    factors = [whole // p * pow(whole // p, -1, p) for p in moduli]
    integers = []
    for column in residues.T:
        if deadline.passed:
            return None
        integers.append(sum(map(mul, column.tolist(), factors)) % whole)
    return integers


@njit(inline="always")
def reduce_word(word, p, negative_inverse):  # type: ignore[no-untyped-def]
    """Montgomery reduction: word / 2^32 mod p, for word < p * 2^32, without a division."""
    low = np.uint64(np.uint32(word)) * negative_inverse
    high = (word + np.uint64(np.uint32(low)) * p) >> np.uint64(32)
    return high - p if high >= p else high
