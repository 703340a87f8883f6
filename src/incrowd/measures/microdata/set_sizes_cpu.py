"""Compiled loops behind :mod:`set_sizes`: who shares what, the exact search, the random samples."""

# Numba types these loops when it compiles them.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,assignment,misc"
from __future__ import annotations

import numba as nb
import numpy as np

from incrowd.measures.microdata.overlaps_cpu import _ones


@nb.njit(cache=True, nogil=True)
def shared_bits(starts, holders, people, items, member, least):
    """Return a row of bits (one an item) for everybody who shares at least `least` items."""
    overlap = np.zeros(people, dtype=np.int32)
    for item in items:
        for at in range(starts[item], starts[item + 1]):
            overlap[holders[at]] += 1
    if member >= 0:
        overlap[member] = -1
    place = np.full(people, -1, dtype=np.int32)
    count = 0
    for person in range(people):
        if overlap[person] >= least:
            place[person] = count
            count += 1
    bits = np.zeros((count, (len(items) + 63) // 64), dtype=np.uint64)
    for k in range(len(items)):
        for at in range(starts[items[k]], starts[items[k] + 1]):
            row = place[holders[at]]
            if row >= 0:
                bits[row, k >> 6] |= np.uint64(1) << np.uint64(k & 63)
    return bits


@nb.njit(cache=True)
def _has(shares, person, item):
    return (shares[person, item >> 6] >> np.uint64(item & 63)) & np.uint64(1)


@nb.njit(cache=True)
def _by_item(shares, who, items):
    """Turn rows of people into rows of items, for the people named in `who`."""
    table = np.zeros((items, (len(who) + 63) // 64), dtype=np.uint64)
    for k in range(len(who)):
        for item in range(items):
            table[item, k >> 6] |= _has(shares, who[k], item) << np.uint64(k & 63)
    return table


@nb.njit(cache=True)
def _left(shares, a, b, first):
    """Count the items from `first` on that both a and b share."""
    total = np.uint64(0)
    for w in range(first >> 6, shares.shape[1]):
        word = shares[a, w] & shares[b, w]
        if w == first >> 6:
            word &= np.uint64(0xFFFFFFFFFFFFFFFF) << np.uint64(first & 63)
        total += _ones(word)
    return np.int64(total)


@nb.njit(cache=True)
def _surplus(part, whole):
    """Keep a difference of probabilities only where it is more than rounding."""
    return part if part > 1e-14 * whole else 0.0


@nb.njit(cache=True)
def _settle(shares, fitting, count, depth, first, items, tail, found):
    """Count all larger samples on this branch in closed form: at most two others still fit."""
    rest = tail[depth, items - first]
    if count == 0:
        found[0] += rest
        return
    one = tail[depth, _left(shares, fitting[0], fitting[0], first)]
    if count == 1:
        found[1] += one
        found[0] += _surplus(rest - one, rest)
        return
    two = tail[depth, _left(shares, fitting[1], fitting[1], first)]
    both = tail[depth, _left(shares, fitting[0], fitting[1], first)]
    found[2] += both
    found[1] += _surplus(one + two - 2 * both, rest)
    found[0] += _surplus(rest - one - two + both, rest)


@nb.njit(cache=True)
def _members(words, who, fitting, most):
    """List the first `most` people whose bit is set."""
    count = 0
    for w in range(len(words)):
        word = words[w]
        while word != 0 and count < most:
            low = word & (~word + np.uint64(1))
            fitting[count] = who[(w << 6) + np.int64(_ones(low - np.uint64(1)))]
            count += 1
            word ^= low
    return count


@nb.njit(cache=True)
def _walk(shares, who, table, items, start, depth0, least, most, leaf, tail, budget, found):
    """Walk all samples that extend a branch at `depth0` by items from `start` on; False if out of budget.

    Once 64 people or fewer are left, the walk goes on in :func:`_narrow`; not by calling itself, since
    Numba's cache does not survive recursion.
    """
    width = table.shape[1]
    fits = np.empty((most + 2, width), dtype=np.uint64)
    for w in range(width):
        fits[depth0, w] = ~np.uint64(0)
    if len(who) & 63:
        fits[depth0, width - 1] = (np.uint64(1) << np.uint64(len(who) & 63)) - np.uint64(1)
    next_item = np.empty(most + 2, dtype=np.int64)
    next_item[depth0] = start
    fitting = np.empty(64, dtype=np.int64)
    depth = depth0
    while depth >= depth0:
        item = next_item[depth]
        # Too few items are left to reach the smallest sample, or the largest is reached.
        if item >= items or depth >= most or depth + items - item < least:
            depth -= 1
            continue
        next_item[depth] = item + 1
        budget[0] -= width
        if budget[0] < 0:
            return False
        count = 0
        for w in range(width):
            fits[depth + 1, w] = fits[depth, w] & table[item, w]
            count += np.int64(_ones(fits[depth + 1, w]))
        found[count] += leaf[depth + 1]
        if depth + 1 == most:
            continue
        if count <= 2:
            _members(fits[depth + 1], who, fitting, 2)
            _settle(shares, fitting, count, depth + 1, item + 1, items, tail, found)
        elif count <= 64 and width > 1:
            _members(fits[depth + 1], who, fitting, 64)
            few = np.empty(count, dtype=np.int64)
            for k in range(count):
                few[k] = fitting[k]
            narrow = _by_item(shares, few, items)
            budget[0] -= items * count // 16
            if not _narrow(
                shares, few, narrow, items, item + 1, depth + 1, least, most, leaf, tail, budget, found
            ):
                return False
        else:
            depth += 1
            next_item[depth] = item + 1
    return True


@nb.njit(cache=True)
def _narrow(shares, who, table, items, start, depth0, least, most, leaf, tail, budget, found):
    """The same walk for at most 64 people: one word says who still fits."""
    fits = np.empty(most + 2, dtype=np.uint64)
    fits[depth0] = ~np.uint64(0) if len(who) == 64 else (np.uint64(1) << np.uint64(len(who))) - np.uint64(1)
    next_item = np.empty(most + 2, dtype=np.int64)
    next_item[depth0] = start
    fitting = np.empty(64, dtype=np.int64)
    word = np.empty(1, dtype=np.uint64)
    depth = depth0
    while depth >= depth0:
        item = next_item[depth]
        if item >= items or depth >= most or depth + items - item < least:
            depth -= 1
            continue
        next_item[depth] = item + 1
        budget[0] -= 1
        if budget[0] < 0:
            return False
        word[0] = fits[depth] & table[item, 0]
        count = np.int64(_ones(word[0]))
        found[count] += leaf[depth + 1]
        if depth + 1 == most:
            continue
        if count <= 2:
            _members(word, who, fitting, 2)
            _settle(shares, fitting, count, depth + 1, item + 1, items, tail, found)
        else:
            depth += 1
            fits[depth] = word[0]
            next_item[depth] = item + 1
    return True


@nb.njit(cache=True, nogil=True)
def search(shares, items, least, most, leaf, tail, steps, found):
    """Fill found[k] = Pr(k others fit) exactly; False if it would take more than `steps`."""
    people, zero = np.int64(len(shares)), np.int64(0)
    everybody, budget = np.empty(people, dtype=np.int64), np.empty(1, dtype=np.int64)
    for person in range(people):
        everybody[person] = person
    budget[0] = steps
    found[people] += leaf[0]
    if people <= 2:
        _settle(shares, everybody, people, zero, zero, items, tail, found)
        return True
    table = _by_item(shares, everybody, items)
    return _walk(shares, everybody, table, items, zero, zero, least, most, leaf, tail, budget, found)


@nb.njit(cache=True)
def _mix(state):
    """SplitMix64: a counter turned into 64 random bits, the same on every machine and thread."""
    z = state * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@nb.njit(cache=True)
def _uniform(state):
    """A number from 0 up to 1."""
    return np.float64(_mix(state) >> np.uint64(11)) / 2.0**53


@nb.njit(cache=True)
def _place(ascending, value):
    """How many numbers of an ascending list are at most `value` (np.searchsorted takes seconds to compile)."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@nb.njit(cache=True, nogil=True)
def draw(shares, items, sizes, cumulative, wrong, rounds, seed, number, found):
    """Count in found[k] how many of `rounds` random samples fit exactly k others."""
    people, width = shares.shape
    state = _mix(_mix(np.uint64(seed) + np.uint64(1)) ^ np.uint64(number))
    pool, sample = np.empty(items, dtype=np.int64), np.zeros(width, dtype=np.uint64)
    for k in range(items):
        pool[k] = k
    for _ in range(rounds):
        state += np.uint64(1)
        level = _place(cumulative, _uniform(state) * cumulative[-1])
        size = sizes[min(level, len(sizes) - 1)]
        for w in range(width):
            sample[w] = np.uint64(0)
        for k in range(size):  # the first `size` places of a shuffle
            state += np.uint64(1)
            # 2^64 is so much larger than any profile that the remainder's bias is below 1e-14.
            pick = k + np.int64(_mix(state) % np.uint64(items - k))
            pool[k], pool[pick] = pool[pick], pool[k]
            sample[pool[k] >> 6] |= np.uint64(1) << np.uint64(pool[k] & 63)
        count = 0
        for person in range(people):
            missing = np.uint64(0)
            for w in range(width):
                missing += _ones(sample[w] & ~shares[person, w])
                if missing > wrong:
                    break
            count += np.int64(missing <= wrong)
        found[count] += 1
