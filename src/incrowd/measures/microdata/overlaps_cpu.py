"""Compiled loops that count overlaps on the processor. Imported only when something is counted."""

# Numba types these loops when it compiles them.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,assignment,misc"
from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba.extending import intrinsic


@intrinsic
def _ones(typing_context: Any, word: Any) -> Any:
    """Count the set bits of a word: one machine instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


@nb.njit(cache=True)
def lay_out(indptr, indices, marks, bit_of, cursor, holders, sorted_marks, words):
    """Fill posting lists and bit rows in one pass over the table; lists come out ascending."""
    for person in range(len(indptr) - 1):
        for entry in range(indptr[person], indptr[person + 1]):
            item = indices[entry]
            bit = bit_of[item]
            if bit >= 0:
                words[person, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
                continue
            at = cursor[item]
            holders[at] = person
            for m in range(len(marks)):
                sorted_marks[m, at] = marks[m, entry]
            cursor[item] = at + 1


@nb.njit(cache=True, nogil=True)
def count_overlaps(
    indptr, indices, marks, within, mine,
    people, words, bit_of, list_starts, holders, list_marks,
    starts, counts, block,
):  # fmt: skip
    """Fill the histograms of the profiles named in `mine`, a block of people at a time."""
    longest = 0
    for r in mine:
        longest = max(longest, indptr[r + 1] - indptr[r])
    cursor = np.empty((len(mine), longest), dtype=np.int64)
    bits = np.zeros((len(mine), words.shape[1]), dtype=np.uint64)
    for k in range(len(mine)):
        _start(indptr, indices, mine[k], bit_of, list_starts, cursor[k], bits[k])
    shared = np.zeros(block, dtype=np.uint32)
    for first in range(0, people, block):
        last = min(first + block, people)
        for k in range(len(mine)):
            r = mine[k]
            _compare_words(bits[k], words, first, last, shared)
            _walk(indptr, indices, marks, within, r, cursor[k], list_starts, holders, list_marks,
                  first, last, shared)  # fmt: skip
            base = starts[r]
            for j in range(last - first):
                counts[base + shared[j]] += np.uint32(1)


@nb.njit(cache=True)
def _start(indptr, indices, r, bit_of, list_starts, cursor, bits):
    for k in range(indptr[r + 1] - indptr[r]):
        item = indices[indptr[r] + k]
        bit = bit_of[item]
        if bit >= 0:
            bits[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
        cursor[k] = list_starts[item]


@nb.njit(cache=True)
def _compare_words(mine, words, first, last, shared):
    width = words.shape[1]
    for j in range(last - first):
        total = np.uint64(0)
        for w in range(width):
            total += _ones(mine[w] & words[first + j, w])
        shared[j] = np.uint32(total)


@nb.njit(cache=True)
def _walk(
    indptr, indices, marks, within, r, cursor, list_starts, holders, list_marks, first, last, shared
):  # fmt: skip
    """Go on along the posting list of each of a profile's items, up to the end of the block."""
    for k in range(indptr[r + 1] - indptr[r]):
        entry = indptr[r] + k
        at, end = cursor[k], list_starts[indices[entry] + 1]
        while at < end and holders[at] < last:
            agrees = True
            for m in range(len(marks)):
                # What the person has not rated nobody can know: it agrees. A rating against none does not.
                agrees &= np.isnan(marks[m, entry]) or abs(list_marks[m, at] - marks[m, entry]) <= within[m]
            shared[holders[at] - first] += np.uint32(agrees)
            at += 1
        cursor[k] = at


@nb.njit(cache=True)
def weigh(starts, counts, level_starts, sizes, weights, wrong, log_factorial, out):
    """Sum count(o) * Pr(a profile sharing o fits) over each histogram: fit_weights, only where needed."""
    for r in range(len(starts) - 1):
        n = starts[r + 1] - starts[r] - 1
        total = 0.0
        for level in range(level_starts[n], level_starts[n + 1]):
            s = sizes[level]
            log_all = log_factorial[n] - log_factorial[s] - log_factorial[n - s]
            part = 0.0
            for o in range(max(0, s - wrong), n + 1):
                count = counts[starts[r] + o]
                if count == 0:
                    continue
                fits = 0.0
                for slips in range(min(wrong, s) + 1):
                    if s - slips > o or slips > n - o:
                        continue
                    fits += np.exp(
                        log_factorial[o] - log_factorial[s - slips] - log_factorial[o - s + slips]
                        + log_factorial[n - o] - log_factorial[slips] - log_factorial[n - o - slips] - log_all
                    )  # fmt: skip
                part += count * min(fits, 1.0)
            total += weights[level] * part
        out[r] = total
