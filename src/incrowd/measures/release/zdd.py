"""Minimal groups as a zero-suppressed decision diagram: best when groups share structure.

A node (x, lo, hi) stands for a family of sets: those of `lo`, and those of `hi` with pattern x added. With
H(f) the family of minimal groups of the clauses f = lo ∪ x·hi, and A = H(lo ∪ hi):

    H(f) = A ∪ x · (H(lo) − A),

where plain set difference is enough (NOTES.md). Users with the same pattern are one variable of the diagram,
so symmetric crowds cost nothing. The diagram is our own: three operations, one hash table, compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.measures.release.modular import Lanes, montgomery, reduce_word

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
