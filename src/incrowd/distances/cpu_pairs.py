"""From sums over shared words to distances, counts and exact pairs; compiled by Numba on first use."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from incrowd.distances.cpu_jit import Array, F, inline, jit
from incrowd.distances.cpu_rules import Formula, Shape


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
