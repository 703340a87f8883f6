"""Exact integers of any size from arithmetic in machine words: count modulo primes, then put together.

The counts of this engine have hundreds of digits and are differences of still larger numbers, so floats
fail. Kernels count modulo several primes below 2^27 and the Chinese remainder theorem gives the integer,
as long as the product of the primes passes twice the bound on the result.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Lanes = NDArray[np.uint64]
PRIME_BITS = 27
"""Below 2^32 / 32, so that 32 products fit under one Montgomery reduction (see `reduce_word`)."""


@cache
def primes(count: int) -> tuple[int, ...]:
    """Return the largest primes below 2^27, largest first."""
    found: list[int] = []
    candidate = 2**PRIME_BITS - 1
    while len(found) < count:
        if _is_prime(candidate):
            found.append(candidate)
        candidate -= 2
    return tuple(found)


def primes_for(bound: int) -> tuple[int, ...]:
    """Return enough primes to tell every integer from 0 to `bound` apart."""
    return primes(bound.bit_length() // (PRIME_BITS - 1) + 1)


def _is_prime(number: int) -> bool:
    # Miller-Rabin; the bases 2, 3, 5 and 7 decide every number below 3,215,031,751.
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7):
        power = pow(base, odd, number)
        if power not in (1, number - 1) and all(
            (power := power * power % number) != number - 1 for _ in range(twos - 1)
        ):
            return False
    return True


def lanes(moduli: tuple[int, ...]) -> Lanes:
    """Constants of each prime p for the kernels: p, -1/p mod 2^32, 2^32 mod p, 2^64 mod p."""
    rows = [(p, pow(-p, -1, 2**32), 2**32 % p, 2**64 % p) for p in moduli]
    return np.array(rows, dtype=np.uint64).reshape(len(rows), 4)


def combine(residues: NDArray[Any], moduli: tuple[int, ...]) -> list[int]:
    """Chinese remainder theorem, for each column of `residues` (one row a prime)."""
    whole = 1
    for p in moduli:
        whole *= p
    factors = [whole // p * pow(whole // p, -1, p) for p in moduli]
    columns = residues.T.tolist()
    return [sum(r * f for r, f in zip(column, factors, strict=True)) % whole for column in columns]


@njit(inline="always")
def reduce_word(word, p, negative_inverse):  # type: ignore[no-untyped-def]
    """Montgomery reduction: word / 2^32 mod p, for word < p * 2^32, without a division."""
    low = np.uint64(np.uint32(word)) * negative_inverse
    high = (word + np.uint64(np.uint32(low)) * p) >> np.uint64(32)
    return high - p if high >= p else high
