"""Two exact searches for minimal groups, which take as long as they take: a depth-first listing, and a diagram.

The listing never keeps a group and is best when there are few; it is the search of Murakami and Uno (MMCS, Discrete
Applied Mathematics 170, 2014): take an uncovered value with the fewest candidates, try each of them, and drop a
candidate as soon as it would leave somebody already chosen without a value of their own. A branch stands for a
choice of patterns, not of users, so its weight is the product of the numbers of users who share the patterns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.measures.release.patterns import Masks, pack
from incrowd.measures.release.sums import Lanes, montgomery, reduce_word


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


# Minimal groups as a zero-suppressed decision diagram: best when groups share structure.
#
# A node (x, lo, hi) stands for a family of sets: those of `lo`, and those of `hi` with pattern x added. With
# H(f) the family of minimal groups of the clauses f = lo ∪ x·hi, and A = H(lo ∪ hi):
#
#     H(f) = A ∪ x · (H(lo) − A),
#
# where plain set difference is enough (NOTES.md). Users with the same pattern are one variable of the diagram,
# so symmetric crowds cost nothing. The diagram is our own: three operations, one hash table, compiled.

NOTHING, UNIT = 0, 1
"""The family without a set, and the family of the empty set."""
UNION, WITHOUT, HITTING = 0, 1, 2
BYTES_PER_NODE = 4 * (3 + 2) + 4 * 4


def count_by_diagram(
    table: NDArray[np.bool_],
    weights: NDArray[np.int64],
    primes: Lanes,
    stop: NDArray[np.int64],
    nodes: int,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
    """Count modulo each prime: all minimal groups, and those that hold one given user of each pattern.

    `table` has the patterns as rows in the order of the diagram's variables. None if `stop` was raised or
    more than `nodes` nodes were needed.
    """
    diagram = Diagram(nodes, len(weights), stop)
    clauses = diagram.family([np.flatnonzero(column) for column in table.T])
    root = diagram.apply(HITTING, clauses, NOTHING) if clauses >= 0 else -1
    if root < 0:
        return None
    factors = montgomery(weights, primes)
    totals = np.zeros((len(primes), 1), dtype=np.uint64)
    shares = np.zeros((len(primes), len(weights)), dtype=np.uint64)
    for lane in range(len(primes)):
        if stop[0]:
            return None
        constants, factor = primes[lane], factors[:, lane].copy()
        totals[lane] = _count(
            root, diagram.variable, diagram.low, diagram.high, factor, constants, shares[lane]
        )
    return totals, shares


class Diagram:
    """The nodes, the table that makes equal nodes one, and the memory of operations already done."""

    def __init__(self, nodes: int, variables: int, stop: NDArray[np.int64]) -> None:
        size = 1 << max(10, (2 * nodes - 1).bit_length())
        self.variable = np.full(nodes, 2**31 - 1, dtype=np.int32)
        self.low = np.zeros(nodes, dtype=np.int32)
        self.high = np.zeros(nodes, dtype=np.int32)
        self.places = np.zeros(size, dtype=np.int32)
        self.memory = np.full((size // 2, 3), -1, dtype=np.int32)
        self.used = np.array([2, 0], dtype=np.int64)  # nodes in use, operations done
        self.stack = np.zeros((2 * variables + 8, 7), dtype=np.int64)
        self.stop = stop

    def apply(self, operation: int, f: int, g: int) -> int:
        """Return the node of the result; -1 if the nodes or the time ran out."""
        nodes = (self.variable, self.low, self.high, self.places, self.memory, self.used)
        return int(_apply(operation, f, g, *nodes, self.stack, self.stop))

    def family(self, sets: list[NDArray[Any]]) -> int:
        """Return the family of these sets of variables."""
        nodes = (self.variable, self.low, self.high, self.places, self.used)
        family = NOTHING
        for members in sets:
            one = int(_set(members, *nodes))
            family = self.apply(UNION, family, one) if one >= 0 else -1
            if family < 0 or self.stop[0]:
                return -1
        return family


@njit(cache=True, nogil=True)
def _set(members, variable, low, high, places, used):  # type: ignore[no-untyped-def]
    """Return the family of one set; -1 if the nodes ran out."""
    node = UNIT
    for i in range(len(members) - 1, -1, -1):
        node = _node(members[i], NOTHING, node, variable, low, high, places, used)
        if node < 0:
            break
    return node


@njit(cache=True, nogil=True)
def _node(x, lo, hi, variable, low, high, places, used):  # type: ignore[no-untyped-def]
    """Return the one node (x, lo, hi); a node without `hi` is its `lo`."""
    if hi == NOTHING:
        return lo
    mask = len(places) - 1
    place = _mix(x, lo, hi) & mask
    while places[place] != 0:
        node = places[place]
        if variable[node] == x and low[node] == lo and high[node] == hi:
            return node
        place = (place + 1) & mask
    node = used[0]
    if node >= len(variable):
        return -1
    used[0] = node + 1
    variable[node], low[node], high[node] = x, lo, hi
    places[place] = node
    return node


@njit(inline="always")
def _mix(a, b, c):  # type: ignore[no-untyped-def]
    word = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
    word ^= np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F)
    word ^= np.uint64(c) * np.uint64(0x165667B19E3779F9)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(word >> np.uint64(33))


@njit(cache=True, nogil=True)
def _apply(operation, f, g, variable, low, high, places, memory, used, stack, stop):  # type: ignore[no-untyped-def]
    """Union, difference or minimal hitting sets, remembered.

    A recursion on a stack of our own: (operation, f, g, stage, x, lo, place in memory) of everything under
    way. A result travels up in `result`, which `stage` tells what to do with.
    """
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = operation, f, g, 0
    depth, result = 0, 0
    while depth >= 0:
        task = stack[depth]
        if task[3] == 0:
            used[1] += 1
            if stop[0]:
                return -1
            result = _known(task, low, memory)
            if result >= 0:
                depth -= 1
                continue
            f, g = task[1], task[2]
            depth += 1
            if task[0] == HITTING:
                task[4] = variable[f]
                _call(stack[depth], UNION, low[f], high[f])
            else:
                task[4] = min(variable[f], variable[g])
                f_low = low[f] if variable[f] == task[4] else f
                g_low = low[g] if variable[g] == task[4] else g
                _call(stack[depth], task[0], f_low, g_low)
            task[3] = 1
            continue
        if task[0] == HITTING and task[3] < 4:
            depth += 1
            if task[3] == 1:
                _call(stack[depth], HITTING, result, NOTHING)
            elif task[3] == 2:
                task[5] = result
                _call(stack[depth], HITTING, low[task[1]], NOTHING)
            else:
                _call(stack[depth], WITHOUT, result, task[5])
            task[3] += 1
            continue
        if task[0] != HITTING and task[3] == 1:
            task[5] = result
            f_high = high[task[1]] if variable[task[1]] == task[4] else NOTHING
            g_high = high[task[2]] if variable[task[2]] == task[4] else NOTHING
            depth += 1
            _call(stack[depth], task[0], f_high, g_high)
            task[3] = 2
            continue
        result = _node(task[4], task[5], result, variable, low, high, places, used)
        if result < 0:
            return -1
        place = task[6]
        memory[place, 0], memory[place, 1], memory[place, 2] = task[1], task[2] * 4 + task[0], result
        depth -= 1
    return result


@njit(inline="always")
def _call(task, operation, f, g):  # type: ignore[no-untyped-def]
    task[0], task[1], task[2], task[3] = operation, f, g, 0


@njit(cache=True, nogil=True)
def _known(task, low, memory):  # type: ignore[no-untyped-def]
    """Return a result that needs no work, -1 if there is none."""
    operation, f, g = task[0], task[1], task[2]
    if operation == HITTING:
        if f == NOTHING:
            return UNIT
        lowest = f
        while lowest > UNIT:
            lowest = low[lowest]
        if lowest == UNIT:  # a clause without users: nothing hits it
            return NOTHING
    elif f == g:
        return f if operation == UNION else NOTHING
    elif g == NOTHING:
        return f
    elif f == NOTHING:
        return g if operation == UNION else NOTHING
    elif operation == UNION and f > g:
        task[1], task[2] = g, f
        f, g = g, f
    place = _mix(f, g, operation) & (len(memory) - 1)
    task[6] = place
    if memory[place, 0] == f and memory[place, 1] == g * 4 + operation:
        return np.int64(memory[place, 2])
    return -1


@njit(cache=True, nogil=True)
def _count(root, variable, low, high, factors, constants, shares):  # type: ignore[no-untyped-def]
    """Weigh the sets below each node, then above each node; children always come before their parents."""
    p, negative_inverse = constants[0], constants[1]
    below = np.zeros(root + 1, np.uint64)
    above = np.zeros(root + 1, np.uint64)
    below[UNIT] = 1
    above[root] = 1
    for node in range(2, root + 1):
        word = below[low[node]] + reduce_word(
            below[high[node]] * factors[variable[node]], p, negative_inverse
        )
        below[node] = word - p if word >= p else word
    for node in range(root, 1, -1):
        if above[node] == 0:
            continue
        x, here = variable[node], above[node]
        word = above[low[node]] + here
        above[low[node]] = word - p if word >= p else word
        word = above[high[node]] + reduce_word(here * factors[x], p, negative_inverse)
        above[high[node]] = word - p if word >= p else word
        shares[x] += reduce_word(here * below[high[node]], p, negative_inverse)
    for x in range(len(shares)):
        shares[x] = shares[x] % p * constants[2] % p
    return below[root]
