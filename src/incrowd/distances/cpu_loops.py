"""The loops of the CPU kernel, compiled by Numba on first use. `cpu.py` explains the method.

Vocabulary: a *strip* is a range of people (the rows or the columns of a tile) with their words split into
blocks; a *panel* is one block of words of LANES people, stored word by word, so that one person's word
meets LANES people in a few vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import numba as nb
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

# How each metric maps onto the CPU kernel's loops. Plain numbers, readable without Numba.


class Term(IntEnum):
    """What a shared word adds to a pair's sum."""

    ENTROPY = 0
    """(p+q) log2(p+q) − p log2 p − q log2 q"""
    PRODUCT = 1
    """p q"""
    OVERLAP = 2
    """min(p, q)"""


class Shape(IntEnum):
    """How the sum becomes a distance; mass is half of what both rows sum to."""

    ROOT_OF_REST = 0
    """sqrt(mass − sum)"""
    REST = 1
    """mass − sum"""
    ANGLE = 2
    """arccos(sum) / π"""


class Formula(IntEnum):
    """The formula for one pair in double precision."""

    JENSEN_SHANNON = 0
    TOTAL_VARIATION = 1
    HELLINGER = 2
    ANGULAR = 3


@dataclass(frozen=True, kw_only=True)
class MetricLoop:
    """One metric, for the loops."""

    formula: Formula
    term: Term
    shape: Shape
    small: float
    """Distances below this are computed again; above it an error of 3e-7 in the sum is within tolerance."""
    root: bool = False
    """Work on square roots of the values."""
    unit_length: bool = False
    """Work on rows of length 1."""


RULES = {
    "jensen-shannon": MetricLoop(
        formula=Formula.JENSEN_SHANNON, term=Term.ENTROPY, shape=Shape.ROOT_OF_REST, small=0.3
    ),
    "total-variation": MetricLoop(
        formula=Formula.TOTAL_VARIATION, term=Term.OVERLAP, shape=Shape.REST, small=0.0
    ),
    "hellinger": MetricLoop(
        formula=Formula.HELLINGER, term=Term.PRODUCT, shape=Shape.ROOT_OF_REST, small=0.3, root=True
    ),
    "angular-cosine": MetricLoop(
        formula=Formula.ANGULAR, term=Term.PRODUCT, shape=Shape.ANGLE, small=0.05, unit_length=True
    ),
}


LANES = 64
"""People in a panel: eight vector registers of eight."""
BLOCK = 256
"""Words in a block: a panel then fits the second-level cache."""
FLUSH = 32
"""Words summed in single precision before the sum moves to double."""
BAND = 32
"""Rows that meet the posting lists together, so that a list is read once for all of them."""


f4, i4, u4 = np.float32, np.int32, np.uint32
F = TypeVar("F", bound=Callable[..., Any])
Array = npt.NDArray[Any]


def jit(function: F) -> F:
    """Compile. Sums may use fused multiply-add but are never reordered: tiles must not change results."""
    compiled: Any = nb.njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def inline(function: F) -> F:
    """Compile into its callers."""
    compiled: Any = nb.njit(inline="always", fastmath={"contract"}, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


def _bitcast(source: Any, target: Any, width: Any) -> Any:
    def typing(context: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], width)

        return target(source), generate

    return intrinsic(typing)


_bits = _bitcast(types.float32, types.int32, ir.IntType(32))
_number = _bitcast(types.int32, types.float32, ir.FloatType())

# log2 in units of 2**-23, the lowest bit of the mantissa: the exponent's bits are then the integer part as
# they stand. With s = 2**e (1 + t) and sqrt(1/2) <= 1 + t < sqrt(2), log2 s = e + t P(t); P is the minimax
# polynomial of degree 7, |error| <= 5e-8, which is what float32 itself loses.
LOG_UNIT = 2.0**23
_C0, _C1 = f4(1.44269477 * LOG_UNIT), f4(-0.721357149 * LOG_UNIT)
_C2, _C3 = f4(0.480939445 * LOG_UNIT), f4(-0.360087215 * LOG_UNIT)
_C4, _C5 = f4(0.286707463 * LOG_UNIT), f4(-0.250069055 * LOG_UNIT)
_C6, _C7 = f4(0.236890331 * LOG_UNIT), f4(-0.145744375 * LOG_UNIT)
_SQRT_HALF, _EXPONENT, _ONE = i4(0x3F3504F3), i4(-0x800000), f4(1)


@inline
def log2_units(s: Any) -> Any:
    """log2 of a positive float32, times 2**23."""
    bits = _bits(s)
    exponent = i4(bits - _SQRT_HALF) & _EXPONENT
    t = _number(i4(bits - exponent)) - _ONE
    t2 = t * t
    low = (_C1 * t + _C0) + t2 * (_C3 * t + _C2)
    high = (_C5 * t + _C4) + t2 * (_C7 * t + _C6)
    return f4(exponent) + t * (low + (t2 * t2) * high)


@inline
def _entropy(p: Any, p_aux: Any, q: Any, q_aux: Any) -> Any:
    """(p+q) log2(p+q) − p log2 p − q log2 q, with x log2 x at hand as auxiliary numbers. 0 if q is 0."""
    s = p + q
    return s * log2_units(s) - (p_aux + q_aux)  # p and q may change places without changing a bit


@inline
def _terms(term: int, p: Any, p_aux: Any, q: Array, q_aux: Array, terms: Array, count: int) -> None:
    """Write what one word adds for each of `count` people."""
    if term == Term.ENTROPY:
        for m in range(count):
            terms[m] = _entropy(p, p_aux, q[m], q_aux[m])
    elif term == Term.PRODUCT:
        for m in range(count):
            terms[m] = p * q[m]
    else:
        for m in range(count):
            terms[m] = min(p, q[m])


@inline
def _add_terms(term: int, p: Any, p_aux: Any, q: Array, q_aux: Array, sums: Array) -> None:
    """Add what one word adds for each of LANES people."""
    if term == Term.ENTROPY:
        for lane in range(LANES):
            sums[lane] += _entropy(p, p_aux, q[lane], q_aux[lane])
    elif term == Term.PRODUCT:
        for lane in range(LANES):
            sums[lane] += p * q[lane]
    else:
        for lane in range(LANES):
            sums[lane] += min(p, q[lane])


class Strip(NamedTuple):
    """Some people's words, split into blocks. People stand by number of frequent words, fewest first."""

    order: Array
    """Which person stands at a place."""
    sizes: Array
    """Number of frequent words at each place, rising."""
    starts: Array
    """(blocks, people + 1): where the words of a block and place begin."""
    words: Array
    """Number of the word inside its block."""
    values: Array
    """Value times the block's scale, float32."""
    aux: Array
    """x log2 x of the value, if the term is ENTROPY."""


@jit
def count_words(rows: Any, first: int, people: int, block_of: Array, blocks: int) -> Array:
    """Count everybody's words in every block: (blocks, people)."""
    indptr, indices, _, _ = rows
    counts = np.zeros((blocks, people), np.int64)
    for i in range(people):
        for k in range(indptr[first + i], indptr[first + i + 1]):
            counts[block_of[indices[k]], i] += 1
    return counts


@jit
def fill_strip(
    rows: Any, first: int, order: Array, starts: Array, block_of: Array, slot_of: Array, scales: Array,
    root: bool, term: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Write the words of a strip, their scaled values and auxiliary numbers where `starts` has room for them."""
    indptr, indices, data, factors = rows
    filled = starts[-1, -1]
    words, values, aux = np.empty(filled, u4), np.empty(filled, f4), np.empty(filled, f4)
    ends = starts.copy()
    for at in range(len(order)):
        person = first + order[at]
        for k in range(indptr[person], indptr[person + 1]):
            block = block_of[indices[k]]
            slot = ends[block, at]
            ends[block, at] += 1
            x = f4((np.sqrt(data[k]) if root else data[k]) * factors[person] * scales[block])
            words[slot] = slot_of[indices[k]]
            values[slot] = x
            aux[slot] = x * log2_units(x) if term == Term.ENTROPY else f4(0)
    return words, values, aux


@jit
def _fill_panel(columns: Any, block: int, left: int, people: int, panel: Array, panel_aux: Array) -> None:
    """Lay a block of words of up to LANES people out word by word, zeros where a word is not used."""
    _, _, starts, words, values, aux = columns
    panel[:] = f4(0)
    panel_aux[:] = f4(0)
    for lane in range(people):
        for k in range(starts[block, left + lane], starts[block, left + lane + 1]):
            panel[words[k], lane] = values[k]
            panel_aux[words[k], lane] = aux[k]


@jit
def add_frequent(
    term: int, rows: Any, columns: Any, begin: Array, reached: Array, blocks: int, scales: Array, out: Array,
    row_step: int, column_step: int,
) -> None:  # fmt: skip
    """Add the frequent words: every word of a row meets LANES columns at once.

    The row at place a meets the columns at places begin[a] and after; begin rises, so the first reached[n]
    rows meet somebody of panel n. The result for places a and b goes to out[a * row_step + b * column_step].
    """
    _, _, starts, words, values, aux = rows
    width = len(columns[0])
    panel, panel_aux = np.empty((BLOCK, LANES), f4), np.empty((BLOCK, LANES), f4)
    sums, totals = np.zeros(LANES, f4), np.zeros(LANES)
    for n in range(len(reached)):
        left, right = n * LANES, min((n + 1) * LANES, width)
        for block in range(blocks if reached[n] else 0):
            _fill_panel(columns, block, left, right - left, panel, panel_aux)
            back = 1.0 / scales[block]
            for a in range(reached[n]):
                k, stop = starts[block, a], starts[block, a + 1]
                while k < stop:
                    pause = min(k + FLUSH, stop)
                    while k < pause:
                        word = words[k]
                        _add_terms(term, values[k], aux[k], panel[word], panel_aux[word], sums)
                        k += 1
                    for lane in range(LANES):
                        totals[lane] += sums[lane]
                        sums[lane] = f4(0)
                for b in range(max(begin[a], left), right):
                    out[a * row_step + b * column_step] += totals[b - left] * back
                totals[:] = 0.0


@jit
def _postings(
    strip: Any, block: int, left: int, right: int, word_count: int
) -> tuple[Array, Array, Array, Array]:
    """Turn a block of words of the places left to right round: for every word who uses it, and how much."""
    _, _, starts, words, values, aux = strip
    begin, end = starts[block, left], starts[block, right]
    offsets = np.zeros(word_count + 2, np.int64)
    for k in range(begin, end):
        offsets[words[k] + u4(2)] += 1
    for w in range(2, word_count + 2):
        offsets[w] += offsets[w - 1]
    who, by_word, by_word_aux = (
        np.empty(end - begin, u4),
        np.empty(end - begin, f4),
        np.empty(end - begin, f4),
    )
    for at in range(left, right):
        for k in range(starts[block, at], starts[block, at + 1]):
            slot = offsets[words[k] + u4(1)]
            offsets[words[k] + u4(1)] += 1
            who[slot], by_word[slot], by_word_aux[slot] = u4(at - left), values[k], aux[k]
    return offsets[:-1], who, by_word, by_word_aux


@jit
def add_rare(
    term: int, rows: Any, columns: Any, block: int, left: int, right: int, word_count: int, triangle: bool,
    scale: float, out: Array,
) -> None:  # fmt: skip
    """Add a block of rare words for the columns at places left to right: list of rows meets list of columns.

    In a triangle (the same people on both sides) a row meets only the columns behind it.
    """
    height, back = len(rows[0]), 1.0 / scale
    column_offsets, column_who, q, q_aux = _postings(columns, block, left, right, word_count)
    start = column_offsets[:-1].copy()
    # Sums in double: a pair may share thousands of equal terms, whose roundings would add up in single.
    sums, terms = np.zeros((BAND, right - left)), np.empty(right - left, f4)
    for top in range(0, min(height, right) if triangle else height, BAND):
        bottom = min(top + BAND, height)
        row_offsets, row_who, p, p_aux = _postings(rows, block, top, bottom, word_count)
        for word in range(word_count):
            if row_offsets[word] == row_offsets[word + 1]:
                continue
            end = column_offsets[word + 1]
            if triangle:
                while start[word] < end and np.int64(column_who[start[word]]) + left <= top:
                    start[word] += 1
            begin = start[word]
            who, some_q, some_aux = column_who[begin:end], q[begin:end], q_aux[begin:end]
            for k in range(row_offsets[word], row_offsets[word + 1]):
                row_sums = sums[row_who[k]]
                _terms(term, p[k], p_aux[k], some_q, some_aux, terms, end - begin)
                for m in range(end - begin):
                    row_sums[who[m]] += terms[m]
        for a in range(top, bottom):
            for b in range(max(left, a + 1) if triangle else left, right):
                out[a, b] += sums[a - top, b - left] * back
                sums[a - top, b - left] = 0.0
        if triangle:
            sums[:] = 0.0


# From sums over shared words to distances, counts and exact pairs; compiled by Numba on first use.


def _jit_plain(function: F) -> F:
    """Compile without contraction, so that formulas symmetric on paper are symmetric to the bit."""
    compiled: Any = nb.njit(nogil=True, cache=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


@jit
def to_distances(
    shared: Array, row_mass: Array, column_mass: Array, factor: float, shape: int, triangle: bool
) -> None:
    """Turn sums over shared words into distances, in place; NaN where a side is empty."""
    height, width = shared.shape
    for a in range(height):
        for b in range(a if triangle else 0, width):
            rest = 0.5 * (row_mass[a] + column_mass[b]) - factor * shared[a, b]
            if shape == Shape.ROOT_OF_REST:
                d = np.sqrt(min(max(rest, 0.0), 1.0))
            elif shape == Shape.REST:
                d = min(max(rest, 0.0), 1.0)
            else:
                d = np.arccos(min(max(factor * shared[a, b], 0.0), 1.0)) / np.pi
            if triangle and a == b:
                d = 0.0
            if row_mass[a] == 0.0 or column_mass[b] == 0.0:
                d = np.nan
            shared[a, b] = d
            if triangle:
                shared[b, a] = d


CELLS = 4096
"""Steps of the table that says where to start looking for a distance among sorted radii."""


def first_guesses(radii: Array) -> Array:
    """Return, for every step of [0, 1], the first radius that is not below it."""
    return np.searchsorted(radii, np.arange(CELLS + 1) / CELLS, side="left")


@inline
def _reach(radii: Array, guesses: Array, d: float) -> Any:
    """Return the number of the smallest radius >= d."""
    at = guesses[int(d * CELLS)]
    while at < len(radii) and radii[at] < d:
        at += 1
    return at


@jit
def near_radius(
    distances: Array, radii: Array, guesses: Array, tolerance: float, below: float, triangle: bool
) -> tuple[Array, Array]:
    """List the pairs within `tolerance` of a radius or nearer than `below`; behind the diagonal only once."""
    height, width = distances.shape
    rows, columns = np.empty(64, np.int64), np.empty(64, np.int64)
    found = 0
    for a in range(height):
        for b in range(a + 1 if triangle else 0, width):
            d = distances[a, b]
            if np.isnan(d):
                continue
            close = d < below
            if len(radii) and not close:
                at = _reach(radii, guesses, d)
                close = (at > 0 and d - radii[at - 1] <= tolerance) or (
                    at < len(radii) and radii[at] - d <= tolerance
                )
            if close:
                if found == len(rows):
                    rows, columns = np.append(rows, rows), np.append(columns, columns)
                rows[found], columns[found] = a, b
                found += 1
    return rows[:found], columns[:found]


@jit
def count_within(distances: Array, radii: Array, guesses: Array, triangle: bool) -> tuple[Array, Array]:
    """Count, for every row and column, pairs by the smallest radius that reaches them (self included)."""
    height, width = distances.shape
    by_row = np.zeros((height, len(radii) + 1), np.int32)
    by_column = np.zeros((width, len(radii) + 1), np.int32)
    for a in range(height):
        for b in range(width):
            at = _reach(radii, guesses, distances[a, b])
            by_row[a, at] += np.int32(1)
            if not triangle:
                by_column[b, at] += np.int32(1)
    return by_row, by_column


@_jit_plain
def exact_pairs(x: Any, y: Any, rows: Array, columns: Array, formula: int) -> Array:
    """Compute listed pairs in double precision by formulas without cancellation, symmetric to the bit."""
    x_indptr, x_indices, x_data, x_factors = x
    y_indptr, y_indices, y_data, y_factors = y
    distances = np.empty(len(rows))
    for n in range(len(rows)):
        i, i_end = x_indptr[rows[n]], x_indptr[rows[n] + 1]
        j, j_end = y_indptr[columns[n]], y_indptr[columns[n] + 1]
        total, other = 0.0, 0.0
        empty = i == i_end or j == j_end
        while i < i_end or j < j_end:
            word = x_indices[i] if i < i_end else y_indices[j]
            if j < j_end and y_indices[j] < word:
                word = y_indices[j]
            p = q = 0.0
            if i < i_end and x_indices[i] == word:
                p = x_data[i] * x_factors[rows[n]] if formula == Formula.ANGULAR else x_data[i]
                i += 1
            if j < j_end and y_indices[j] == word:
                q = y_data[j] * y_factors[columns[n]] if formula == Formula.ANGULAR else y_data[j]
                j += 1
            if formula == Formula.JENSEN_SHANNON:
                if p == 0.0 or q == 0.0:
                    total += p + q
                elif p != q:
                    m = (p + q) / 2
                    total += p * np.log2(p / m) + q * np.log2(q / m)
            elif formula == Formula.TOTAL_VARIATION:
                total += abs(p - q)
            elif formula == Formula.HELLINGER:
                total += (np.sqrt(p) - np.sqrt(q)) ** 2
            else:
                total += (p - q) ** 2
                other += (p + q) ** 2
        if formula == Formula.ANGULAR:
            d = 2 * np.arctan2(np.sqrt(total), np.sqrt(other)) / np.pi
        else:
            d = min(max(total / 2, 0.0), 1.0)
            if formula != Formula.TOTAL_VARIATION:
                d = np.sqrt(d)
        distances[n] = np.nan if empty else d
    return distances
