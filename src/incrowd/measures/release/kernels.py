"""The compiled loops over who lists what: counting holders, the local bound, and the greedy choice of values.

Numba is loaded with this module, which takes longer than measuring a small answer: it is imported where it is needed.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.arrays import Ints

Masks = NDArray[np.uint64]


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


OWN_WEIGHTS = (1.5, 1.0, 2.0, 1.25, 3.0, 0.75, 2.5, 0.5)
"""What a value's own shortfall counts against what its withholding gives to others; one round each."""
PAIRS_UP_TO = 1024
"""Values for which a table of pairs is kept; beyond, one percent of the values go at a time."""


class Lists(NamedTuple):
    """Rows of users and the values they list, both ways round, as flat arrays."""

    row_start: Ints
    row_values: Ints
    value_start: Ints
    value_rows: Ints
    weights: Ints


def lists_from_pairs(rows: Ints, values: Ints, weights: Ints, count: int) -> Lists:
    """Build both directions from pairs (row, value), sorted by row."""
    by_value = np.argsort(values, kind="stable")
    return Lists(
        np.searchsorted(rows, np.arange(len(weights) + 1)).astype(np.int64),
        values.astype(np.int64),
        np.searchsorted(values[by_value], np.arange(count + 1)).astype(np.int64),
        rows[by_value].astype(np.int64),
        weights.astype(np.int64),
    )


def greedy_release(
    lists: Lists, threshold: int, rank: Ints, rounds: int, effort: int, stop: Ints, blur: Ints | None = None
) -> NDArray[np.bool_]:
    """Return which values to release: the best outcome of several greedy rounds.

    `rank` breaks ties (lower is withheld later). `effort` caps the rows visited by exchanges, so that the
    outcome depends on the data alone and never on the clock. Nothing is released once `stop` is raised.
    `blur` is added to what each value lacks when values are compared, never to the threshold: with secret
    amounts, which one of two was withheld does not tell exact counts.
    """
    best = np.zeros(len(rank), dtype=np.bool_)
    blur = np.zeros(len(rank), dtype=np.int64) if blur is None else blur
    by_rank = np.argsort(rank).astype(np.int64)
    small = len(rank) <= PAIRS_UP_TO
    for own in OWN_WEIGHTS[: max(rounds, 1)]:
        released = np.ones(len(rank), dtype=np.bool_)
        _greedy_round(lists, threshold, own, by_rank, blur, released, small, effort // max(rounds, 1), stop)
        if released.sum() > best.sum():
            best = released
    return best if not stop[0] else np.zeros_like(best)


@cache
def compile_greedy_release() -> None:
    """Compile the kernels beforehand (or read them from the cache)."""
    one = np.zeros(1, dtype=np.int64)
    greedy_release(lists_from_pairs(one, one, one + 1, 1), 1, one, 1, 0, np.zeros(1, dtype=np.int64))


@njit(cache=True, nogil=True)
def _greedy_round(lists, t, own, by_rank, blur, released, small, effort, stop):  # type: ignore[no-untyped-def]
    values = len(by_rank)
    listed = np.zeros(len(lists.weights), np.int64)  # released values in each row
    single = np.zeros(values, np.int64)  # p_i: users who list value i alone
    pairs = np.zeros((values, values) if small else (0, 0), np.int64)  # users who list two values alone
    no_pairs = np.zeros((0, 0), np.int64)
    for row in range(len(listed)):
        first = lists.row_start[row]
        listed[row] = lists.row_start[row + 1] - first
        if listed[row] == 1:
            single[lists.row_values[first]] += lists.weights[row]
        elif listed[row] == 2:
            _pair(pairs, lists.row_values[first], lists.row_values[first + 1], lists.weights[row])
    score = np.zeros(values, np.float64)
    while not stop[0] and _score(lists, t, own, blur, released, listed, single, pairs, score):
        batch = 1 if small else max(1, released.sum() // 100)
        for _ in range(batch):
            worst = -1
            for place in range(values - 1, -1, -1):
                value = by_rank[place]
                if released[value] and (worst < 0 or score[value] > score[worst]):
                    worst = value
            if worst >= 0:
                _put_away(lists, worst, released, listed, single, pairs)
    for value in by_rank:
        _take_back(lists, t, value, released, listed, single)
    _exchange(lists, t, by_rank, released, listed, single, no_pairs, effort, stop)


@njit(inline="always")
def _pair(pairs, a, b, users):  # type: ignore[no-untyped-def]
    if len(pairs):
        pairs[a, b] += users
        pairs[b, a] += users


@njit(cache=True, nogil=True)
def _score(lists, t, own, blur, released, listed, single, pairs, score):  # type: ignore[no-untyped-def]
    """Score each value by the shortfall its withholding would end; False if nothing is short."""
    short = False
    for value in range(len(score)):
        score[value] = own * max(t + blur[value] - single[value], 0) if released[value] else 0
        short = short or (released[value] and single[value] < t)
    if not short:
        return False
    if not len(pairs):
        for row in range(len(listed)):
            if listed[row] == 2:
                a, b = _others(lists, row, -1, released)
                score[a] += lists.weights[row] if single[b] < t else 0
                score[b] += lists.weights[row] if single[a] < t else 0
    for helped in range(len(pairs)):
        lack = t + blur[helped] - single[helped]
        if released[helped] and lack > 0:
            for value in range(len(score)):
                score[value] += min(pairs[helped, value], lack)
    return True


@njit(inline="always")
def _others(lists, row, value, released):  # type: ignore[no-untyped-def]
    """Return the first two released values of a row besides `value`; -1 where there is none."""
    first, second = -1, -1
    for i in range(lists.row_start[row], lists.row_start[row + 1]):
        other = lists.row_values[i]
        if other != value and released[other]:
            if first < 0:
                first = other
            else:
                second = other
                break
    return first, second


@njit(cache=True, nogil=True)
def _put_away(lists, value, released, listed, single, pairs):  # type: ignore[no-untyped-def]
    """Withhold a value: rows it shared with one other become that one's singles."""
    released[value] = False
    for i in range(lists.value_start[value], lists.value_start[value + 1]):
        row = lists.value_rows[i]
        listed[row] -= 1
        if listed[row] == 1:
            a, _ = _others(lists, row, value, released)
            single[a] += lists.weights[row]
            _pair(pairs, a, value, -lists.weights[row])
        elif listed[row] == 2 and len(pairs):
            a, b = _others(lists, row, value, released)
            _pair(pairs, a, b, lists.weights[row])


@njit(cache=True, nogil=True)
def _take_back(lists, t, value, released, listed, single):  # type: ignore[no-untyped-def]
    """Release a value again if everything stays certified; return whether it was."""
    if released[value]:
        return False
    first, last = lists.value_start[value], lists.value_start[value + 1]
    gain = 0
    for i in range(first, last):
        gain += lists.weights[lists.value_rows[i]] if listed[lists.value_rows[i]] == 0 else 0
    fits = gain >= t
    done = first
    while fits and done < last:
        row = lists.value_rows[done]
        if listed[row] == 1:
            a, _ = _others(lists, row, value, released)
            single[a] -= lists.weights[row]
            fits = single[a] >= t
        done += 1
    if fits:
        released[value] = True
        single[value] = gain
        for i in range(first, last):
            listed[lists.value_rows[i]] += 1
        return True
    for i in range(first, done):
        row = lists.value_rows[i]
        if listed[row] == 1:
            a, _ = _others(lists, row, value, released)
            single[a] += lists.weights[row]
    return False


@njit(cache=True, nogil=True)
def _exchange(lists, t, by_rank, released, listed, single, no_pairs, effort, stop):  # type: ignore[no-untyped-def]
    """Withhold one value if at least two others then fit; end when none pays or the effort is spent."""
    added = np.zeros(len(by_rank), np.int64)
    improved = True
    while improved:
        improved = False
        for out in by_rank:
            if not released[out]:
                continue
            if effort < 0 or stop[0]:
                return
            _put_away(lists, out, released, listed, single, no_pairs)
            count = 0
            for value in by_rank:
                effort -= lists.value_start[value + 1] - lists.value_start[value]
                if value != out and _take_back(lists, t, value, released, listed, single):
                    added[count] = value
                    count += 1
            if count >= 2:
                improved = True
                continue
            for i in range(count):
                _put_away(lists, added[i], released, listed, single, no_pairs)
            _take_back(lists, t, out, released, listed, single)
