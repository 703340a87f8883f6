"""The sum over value states: the number of minimal groups at a cost that ignores how many users there are.

For k values, n is a sum of 3^k terms, one for each way to call every value *marked* (X), *avoided* (Z) or
*free*; NOTES.md proves

    n = sum over (X, Z) of (-1)^|X| [t^(|X|+|Z|)] (1 - t)^|Z| exp(-W(t)),
    W(t) = sum over patterns P with P∩Z = ∅, P∩X ≠ ∅ of w(P) t^|P∩X|.

The older form of the same sum has 5^k terms. The derivative of n by w(P) counts the minimal groups that
hold one given user of pattern P; one pass back through the same recursion gives all of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.measures.release.modular import Lanes, reduce_word

MARKED, AVOIDED, FREE = 0, 1, 2
LANES = 4


def count_by_sum(
    masks: list[int], weights: NDArray[np.int64], values: int, primes: Lanes, stop: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
    """Count modulo each prime: all minimal groups, and those that hold one given user of each pattern.

    None if `stop` was raised.
    """
    table = np.zeros(1 << values, dtype=np.int64)
    table[masks] = weights
    totals = np.zeros((len(primes), 1), dtype=np.uint64)
    each = np.zeros((len(primes), len(masks)), dtype=np.uint64)
    for first in range(0, len(primes), LANES):
        some = slice(first, first + LANES)
        # A short last batch repeats its prime; the result of the repeats is not read.
        batch = primes[np.minimum(np.arange(first, first + LANES), len(primes) - 1)]
        total, back = np.zeros(LANES, np.uint64), np.zeros((len(table), LANES), np.uint64)
        if not _sum_modulo(table, values, _constants(batch, values), total, back, stop):
            return None
        totals[some, 0], each[some] = total[: len(totals[some])], back[masks].T[: len(each[some])]
    return totals, each


def _constants(primes: Lanes, k: int) -> NDArray[np.uint64]:
    """Rows of lanes: p, -1/p, 2^96, then 1/i and i and -i in Montgomery form for i = 0..k."""
    p = primes[:, 0].tolist()
    rows = [p, primes[:, 1].tolist(), [pow(2, 96, q) for q in p]]
    rows += [[pow(i, -1, q) * 2**32 % q if i else 0 for q in p] for i in range(k + 1)]
    rows += [[i * 2**32 % q for q in p] for i in range(k + 1)]
    rows += [[-i * 2**32 % q for q in p] for i in range(k + 1)]
    return np.array(rows, dtype=np.uint64)


@njit(cache=True, nogil=True)
def _sum_modulo(table, k, constants, total, each, stop):  # type: ignore[no-untyped-def]
    """Walk the 3^k states depth first, keeping for each level the patterns that are left.

    At level d the first d values have their state; entry `start[d] + rest * (d + 1) + r` of `left` counts
    the users whose pattern on the other values is `rest` and who list r marked values and none avoided.
    `back` holds the derivatives by the same entries, a lane a prime.
    """
    start = np.zeros(k + 2, np.int64)
    for d in range(k + 1):
        start[d + 1] = start[d] + ((d + 1) << (k - d))
    left = np.zeros(start[k + 1], np.int64)
    back = np.zeros((start[k + 1], LANES), np.uint64)
    left[: 1 << k] = table
    leaf = start[k]
    series = np.zeros((k + 1, LANES), np.uint64)
    slope = np.zeros((k + 2, LANES), np.uint64)
    word = np.zeros(LANES, np.uint64)
    state = np.full(k, -1, np.int64)
    marked, avoided, d, steps = 0, 0, 0, 0
    while d >= 0:
        if d == k:
            _series(left, leaf, marked, avoided, constants, slope, series, word)
            _collect(series, marked, avoided, constants, back, leaf, total)
            d -= 1
            steps += 1
            if steps & 1023 == 0 and stop[0]:
                return False
            continue
        if state[d] >= 0:
            _fold(back, start[d], start[d + 1], 1 << (k - d - 1), d + 1, state[d])
            marked -= state[d] == MARKED
            avoided -= state[d] == AVOIDED
        state[d] += 1
        if state[d] == 3:
            state[d] = -1
            d -= 1
            continue
        marked += state[d] == MARKED
        avoided += state[d] == AVOIDED
        _restrict(left, start[d], start[d + 1], 1 << (k - d - 1), d + 1, state[d])
        back[start[d + 1] : start[d + 2]] = 0
        d += 1
    for lane in range(LANES):
        total[lane] %= constants[0, lane]
        for i in range(len(each)):
            each[i, lane] = back[i, lane] % constants[0, lane]
    return True


@njit(cache=True, nogil=True)
def _restrict(left, above, below, rests, width, state):  # type: ignore[no-untyped-def]
    """Give the next value its state: users without it stay; users with it stay, go, or count as marked."""
    for rest in range(rests):
        without, here = above + 2 * rest * width, below + rest * (width + 1)
        with_it = without + width
        left[here + width] = 0
        for r in range(width):
            left[here + r] = left[without + r]
        if state == FREE:
            for r in range(width):
                left[here + r] += left[with_it + r]
        elif state == MARKED:
            for r in range(width):
                left[here + r + 1] += left[with_it + r]


@njit(cache=True, nogil=True)
def _fold(back, above, below, rests, width, state):  # type: ignore[no-untyped-def]
    """Send derivatives back through `_restrict`. At most 3^20 of them below 2^27 add up, within a word."""
    for rest in range(rests):
        without, here = above + 2 * rest * width, below + rest * (width + 1)
        with_it = without + width
        for r in range(width):
            for lane in range(LANES):
                back[without + r, lane] += back[here + r, lane]
        if state == FREE:
            for r in range(width):
                for lane in range(LANES):
                    back[with_it + r, lane] += back[here + r, lane]
        elif state == MARKED:
            for r in range(width):
                for lane in range(LANES):
                    back[with_it + r, lane] += back[here + r + 1, lane]


@njit(cache=True, nogil=True)
def _series(left, leaf, x, z, constants, slope, series, word):  # type: ignore[no-untyped-def]
    """Coefficients of F = (1 - t)^z exp(-W): from (1 - t) F' = -(z + (1 - t) W') F, one after another.

    Lanes are the innermost loops: their reductions do not wait for each other.
    """
    k = (len(constants) - 3) // 3 - 1
    for lane in range(LANES):
        slope[0, lane] = constants[3 + 2 * (k + 1) + z, lane]  # -z
        slope[x + 1, lane] = 0
        series[0, lane] = 1
    for j in range(1, x + 1):
        users = np.uint64(j * left[leaf + j])
        for lane in range(LANES):
            p, negative_inverse = constants[0, lane], constants[1, lane]
            part = reduce_word(users, p, negative_inverse)
            slope[j, lane] = reduce_word(part * constants[2, lane], p, negative_inverse)
    for j in range(x + 1):  # from z and j W_j to the coefficients of -(z + (1 - t) W')
        for lane in range(LANES):
            p = constants[0, lane]
            difference = slope[j, lane] + p - slope[j + 1, lane]
            slope[j, lane] = difference - p if difference >= p else difference
    for i in range(1, x + z + 1):
        for lane in range(LANES):
            word[lane] = constants[3 + k + i, lane] * series[i - 1, lane]
        for j in range(min(i, x + 1)):
            for lane in range(LANES):
                word[lane] += slope[j, lane] * series[i - 1 - j, lane]
        for lane in range(LANES):
            p, negative_inverse = constants[0, lane], constants[1, lane]
            step = reduce_word(word[lane], p, negative_inverse)
            series[i, lane] = reduce_word(step * constants[3 + i, lane], p, negative_inverse)


@njit(cache=True, nogil=True)
def _collect(series, x, z, constants, back, leaf, total):  # type: ignore[no-untyped-def]
    """Add the term of one state to n, and its derivative by each rank of what is left."""
    for lane in range(LANES):
        p = constants[0, lane]
        term = series[x + z, lane]
        total[lane] += p - term if x & 1 else term
        for r in range(1, x + 1):
            share = series[x + z - r, lane]
            back[leaf + r, lane] = share if x & 1 else p - share
