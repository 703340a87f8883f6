"""Compiled loops of :mod:`adversaries`."""

# Numba types these loops when it compiles them.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,assignment,misc"
from __future__ import annotations

import numba as nb
import numpy as np

from incrowd.measures.microdata.set_sizes_cpu import _mix, _place, _uniform


@nb.njit(cache=True, nogil=True)
def rarest_first(
    rows, indptr, indices, starts, holders, level_starts, sizes, weights, people, inside, out
):  # fmt: skip
    """Intersect posting lists item by item, rarest first, and note how many others are left at each size."""
    for row in rows:
        n = indptr[row + 1] - indptr[row]
        left = np.empty(0, dtype=np.int32)
        taken, total = 0, 0.0
        for level in range(level_starts[n], level_starts[n + 1]):
            while taken < sizes[level] and (taken == 0 or len(left) > 0):
                item = indices[indptr[row] + taken]
                posting = holders[starts[item] : starts[item + 1]]
                left = posting.copy() if taken == 0 else _common(left, posting)
                taken += 1
            fitting = people if sizes[level] == 0 else len(left)
            total += weights[level] * (fitting - 1 if inside else fitting)
        out[row] = total


@nb.njit(cache=True)
def _common(some, others):
    """Keep those of a sorted list that are in another sorted list."""
    kept = np.empty(len(some), dtype=np.int32)
    count = 0
    for person in some:
        at = _place(others, person)
        if at > 0 and others[at - 1] == person:
            kept[count] = person
            count += 1
    return kept[:count]


@nb.njit(cache=True)
def _believe(items, size, wrong, popular, state, pool, believed):
    """Draw `size` of the person's items, then `wrong` others by popularity; return the generator's state."""
    for k in range(len(items)):
        pool[k] = k
    for k in range(size):
        state += np.uint64(1)
        pick = k + np.int64(_uniform(state) * (len(items) - k))
        pool[k], pool[pick] = pool[pick], pool[k]
        believed[k] = pool[k]
    for k in range(wrong):
        item = -1
        for _ in range(100):  # nearly always the first draw; a person who has everything keeps a doubtful one
            state += np.uint64(1)
            item = min(_place(popular, _uniform(state)), len(popular) - 1)
            at = _place(items, item)
            if at == 0 or items[at - 1] != item:
                break
        believed[size + k] = item
    return state


@nb.njit(cache=True, nogil=True)
def scoring_attack(
    part, rows, indptr, indices, starts, holders, entries, marks, scales, item_weight, popular,
    level_starts, sizes, weights, wrong, clear, rounds, seed, counts,
):  # fmt: skip
    """Fill counts[k] = rounds that found person rows[k], accepted somebody else, or stayed undecided."""
    people = len(indptr) - 1
    points = np.zeros(people)
    touched = np.empty(people, dtype=np.int64)
    for k in part:
        row = rows[k]
        items = indices[indptr[row] : indptr[row + 1]]
        n = len(items)
        low, high = level_starts[n], level_starts[n + 1]
        cumulative = np.cumsum(weights[low:high])
        state = _mix(_mix(np.uint64(seed) + np.uint64(7)) ^ np.uint64(row))
        pool, believed = np.empty(n, dtype=np.int64), np.empty(n + wrong, dtype=np.int64)
        for _ in range(rounds):
            state += np.uint64(1)
            level = min(_place(cumulative, _uniform(state) * cumulative[-1]), high - low - 1)
            size = sizes[low + level]
            state = _believe(items, size, wrong, popular, state, pool, believed)
            seen = 0
            for b in range(size + wrong):
                mine = b < size
                item = np.int64(items[believed[b]]) if mine else believed[b]
                own = indptr[row] + believed[b]
                for at in range(starts[item], starts[item + 1]):
                    gain = item_weight[item]
                    if mine and len(marks):
                        near = 0.0
                        for m in range(len(marks)):
                            gap = abs(marks[m, entries[at]] - marks[m, own])
                            near += np.exp(-gap / scales[m]) if gap == gap else 0.0
                        gain *= near
                    person = holders[at]
                    if points[person] == 0.0 and gain > 0.0:
                        touched[seen] = person
                        seen += 1
                    points[person] += gain
            counts[k, _verdict(points, touched, seen, people, row, clear)] += 1
            for t in range(seen):
                points[touched[t]] = 0.0


@nb.njit(cache=True)
def _verdict(points, touched, seen, people, row, clear):
    """Return 0 if the right person stands out, 1 if another does, 2 if nobody does."""
    best, second, winner, total, squares = 0.0, 0.0, -1, 0.0, 0.0
    for t in range(seen):
        value = points[touched[t]]
        total += value
        squares += value * value
        if value > best:
            best, second, winner = value, best, touched[t]
        elif value > second:
            second = value
    spread = np.sqrt(max(squares / people - (total / people) ** 2, 0.0))
    if winner < 0 or spread == 0.0 or best - second < clear * spread:
        return 2
    return 0 if winner == row else 1
