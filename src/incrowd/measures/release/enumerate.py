"""Listing minimal groups depth first, without ever keeping them: best when there are few.

The search of Murakami and Uno (MMCS, Discrete Applied Mathematics 170, 2014): take an uncovered value with
the fewest candidates, try each of them, and drop a candidate as soon as it would leave somebody already
chosen without a value of their own. A branch stands for a choice of patterns, not of users, so its weight is
the product of the numbers of users who share the patterns.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.measures.release.modular import Lanes, montgomery, reduce_word
from incrowd.measures.release.patterns import Masks, pack


def count_by_enumeration(
    masks: Masks,
    table: NDArray[np.bool_],
    weights: NDArray[np.int64],
    primes: Lanes,
    stop: NDArray[np.int64],
    steps: int = 2**62,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
    """Count modulo each prime: all minimal groups, and those that hold one given user of each pattern.

    None if `stop` was raised or the search took more than so many steps.
    """
    patterns, values = table.shape
    depth = min(patterns, values) + 1
    factors = montgomery(weights, primes)
    uncovered = np.zeros((depth, masks.shape[1]), np.uint64)
    uncovered[0] = pack(np.ones((1, values), np.bool_))[0]
    holders = pack(table.T)
    candidates = np.zeros((depth, holders.shape[1]), np.uint64)
    candidates[0] = pack(np.ones((1, patterns), np.bool_))[0]
    sums = np.zeros((depth, len(primes)), np.uint64)
    shares = np.zeros((patterns, len(primes)), np.uint64)
    if not _search(masks, holders, factors, primes, uncovered, candidates, sums, shares, stop, steps):
        return None
    return sums[0][:, None], shares.T


@njit(cache=True, nogil=True)
def _search(masks, holders, factors, primes, uncovered, candidates, sums, shares, stop, most_steps):  # type: ignore[no-untyped-def]
    depths, words = uncovered.shape
    lanes = primes.shape[0]
    to_try = np.zeros_like(candidates)
    chosen = np.zeros(depths, np.int64)
    once = np.zeros((depths, words), np.uint64)  # values that exactly one of those chosen so far lists
    product = np.zeros((depths, lanes), np.uint64)  # product of the weights chosen so far
    for lane in range(lanes):
        product[0, lane] = 1
    steps, d = 0, 0
    entering = True
    while d >= 0:
        steps += 1
        if stop[0] or steps > most_steps:
            return False
        if entering:
            value = _hardest(uncovered[d], holders, candidates[d])
            if value == -1:  # everything is covered: a minimal group
                for lane in range(lanes):
                    sums[d, lane] = 1
                entering = False
                d -= 1
                if d >= 0:
                    _return(d, chosen[d], sums, shares, product, factors, primes)
                continue
            for lane in range(lanes):
                sums[d, lane] = 0
            for word in range(to_try.shape[1]):
                to_try[d, word] = holders[value, word] & candidates[d, word]
                candidates[d, word] &= ~to_try[d, word]
            entering = False
        pattern = _take(to_try[d])
        if pattern < 0:
            d -= 1
            if d >= 0:
                _return(d, chosen[d], sums, shares, product, factors, primes)
            continue
        for word in range(words):
            new = masks[pattern, word] & uncovered[d, word]
            once[d + 1, word] = once[d, word] & ~masks[pattern, word] | new
            uncovered[d + 1, word] = uncovered[d, word] & ~masks[pattern, word]
        if not _all_keep_own(masks, chosen, d, once[d + 1]):
            continue
        for lane in range(lanes):
            word = product[d, lane] * factors[pattern, lane]
            product[d + 1, lane] = reduce_word(word, primes[lane, 0], primes[lane, 1])
        candidates[d + 1] = candidates[d]
        # Later branches may use the pattern again: it did not hurt anybody.
        candidates[d, pattern >> 6] |= np.uint64(1) << np.uint64(pattern & 63)
        chosen[d] = pattern
        d += 1
        entering = True
    for lane in range(lanes):
        p = primes[lane, 0]
        for pattern in range(shares.shape[0]):
            shares[pattern, lane] = shares[pattern, lane] % p * primes[lane, 2] % p
    return True


@njit(cache=True, nogil=True)
def _return(d, pattern, sums, shares, product, factors, primes):  # type: ignore[no-untyped-def]
    """Take what the branch of a pattern found into the sum of the level above."""
    for lane in range(primes.shape[0]):
        p, negative_inverse = primes[lane, 0], primes[lane, 1]
        below = sums[d + 1, lane]
        shares[pattern, lane] += reduce_word(product[d, lane] * below, p, negative_inverse)
        word = sums[d, lane] + reduce_word(factors[pattern, lane] * below, p, negative_inverse)
        sums[d, lane] = word - p if word >= p else word


@njit(cache=True, nogil=True)
def _all_keep_own(masks, chosen, d, once):  # type: ignore[no-untyped-def]
    """Say whether everybody chosen before still has a value that only they list."""
    for i in range(d):
        kept = False
        for word in range(len(once)):
            if masks[chosen[i], word] & once[word]:
                kept = True
                break
        if not kept:
            return False
    return True


@njit(cache=True, nogil=True)
def _hardest(uncovered, holders, candidates):  # type: ignore[no-untyped-def]
    """Return the uncovered value with the fewest candidates; -1 if all are covered."""
    best, fewest = -1, 1 << 62
    for word in range(len(uncovered)):
        rest = uncovered[word]
        while rest:
            value = 64 * word + _lowest(rest)
            rest &= rest - np.uint64(1)
            count = 0
            for part in range(len(candidates)):
                count += _ones(holders[value, part] & candidates[part])
            if count < fewest:
                best, fewest = value, count
    return best


@njit(cache=True, nogil=True)
def _take(words):  # type: ignore[no-untyped-def]
    """Remove the lowest set bit and return its place; -1 if there is none."""
    for word in range(len(words)):
        if words[word]:
            place = 64 * word + _lowest(words[word])
            words[word] &= words[word] - np.uint64(1)
            return place
    return -1


@njit(inline="always")
def _lowest(word):  # type: ignore[no-untyped-def]
    return _ones((word & (~word + np.uint64(1))) - np.uint64(1))


@njit(inline="always")
def _ones(word):  # type: ignore[no-untyped-def]
    """Count set bits, by pairs, fours and eights."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
