"""The distances, written so that anybody can check them by eye.

Every metric compares two people by what the adversary sees of them: one row of non-negative numbers each.
All of them run from 0 (indistinguishable) to `largest` (nothing in common): 1, or ½ for the angle. Faster
kernels answer the same questions and are tested against these functions.

A new metric is one function and one registration:

>>> def hamming(p, q):
...     return ((p > 0) != (q > 0)).mean(axis=-1)
>>> _ = register(Metric(name="hamming", distance=hamming, rows=RowKind.NONZERO))
>>> float(METRICS["hamming"].distance(np.array([1.0, 0.0]), np.array([1.0, 1.0])))
0.5
>>> del METRICS["hamming"]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats
from incrowd.errors import InputError

if TYPE_CHECKING:
    from scipy import sparse


class RowKind(StrEnum):
    """What a row must be for a metric to make sense."""

    PROBABILITIES = "probabilities"
    """Non-negative, sums to 1."""
    NONZERO = "nonzero"
    """Non-negative, at least one entry above 0; scale does not matter."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A distance between two rows, with what the rows must be."""

    name: str
    distance: Callable[[Floats, Floats], Floats]
    """(..., words) and (..., words) -> (...): broadcasts like any NumPy function."""
    rows: RowKind
    largest: float = 1.0
    """What two rows with nothing in common are apart; radii and thresholds lie between 0 and this."""


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    """How differently two people choose words: sqrt(½ KL(p‖m) + ½ KL(q‖m)), m = (p+q)/2, base 2.

    0 for equal profiles, 1 for profiles without a common word. A metric (Endres & Schindelin 2003).
    Clipped, because rounding can push disjoint profiles above 1.

    >>> float(jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
    1.0
    """
    m = (p + q) / 2
    divergence = (_relative_entropy(p, m) + _relative_entropy(q, m)) / 2
    return np.sqrt(np.clip(divergence, 0, 1))


def _relative_entropy(p: Floats, m: Floats) -> Floats:
    ratio = np.divide(p, m, out=np.ones_like(m), where=p > 0)
    return np.asarray((p * np.log2(ratio)).sum(axis=-1))


def angular_cosine(p: Floats, q: Floats) -> Floats:
    """The angle between two profiles as a share of a half turn: arccos(cos(p, q)) / π.

    For non-negative rows it lies in [0, ½]. `1 - cos` is no metric (it breaks the triangle inequality);
    the angle is.

    >>> float(angular_cosine(np.array([2.0, 0.0]), np.array([0.0, 3.0])))
    0.5
    """
    u = p / np.linalg.norm(p, axis=-1, keepdims=True)
    v = q / np.linalg.norm(q, axis=-1, keepdims=True)
    # arccos of a dot product loses half the digits for small angles; the chords do not.
    chord, cochord = np.linalg.norm(u - v, axis=-1), np.linalg.norm(u + v, axis=-1)
    return np.asarray(2 * np.arctan2(chord, cochord) / np.pi)


def total_variation(p: Floats, q: Floats) -> Floats:
    """The largest difference in probability any event can have under two profiles: ½ Σ |p − q|.

    >>> float(total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75])))
    0.25
    """
    return np.asarray(np.clip(np.abs(p - q).sum(axis=-1) / 2, 0, 1))


def hellinger(p: Floats, q: Floats) -> Floats:
    """sqrt(½ Σ (√p − √q)²): like Jensen-Shannon, cheaper, and it weighs rare words more.

    >>> float(hellinger(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
    1.0
    """
    squared = ((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=-1) / 2
    return np.asarray(np.sqrt(np.clip(squared, 0, 1)))


METRICS: dict[str, Metric] = {}


def register(metric: Metric) -> Metric:
    """Make a metric available by name to every question; the reference kernel answers it at once."""
    METRICS[metric.name] = metric
    return metric


def metric_named(name: str) -> Metric:
    """Look a metric up, or say which ones there are."""
    if name not in METRICS:
        raise InputError(f"metric: expected one of {', '.join(sorted(METRICS))}; got {name!r}.")
    return METRICS[name]


register(Metric(name="jensen-shannon", distance=jensen_shannon, rows=RowKind.PROBABILITIES))
register(Metric(name="angular-cosine", distance=angular_cosine, rows=RowKind.NONZERO, largest=0.5))
register(Metric(name="total-variation", distance=total_variation, rows=RowKind.PROBABILITIES))
register(Metric(name="hellinger", distance=hellinger, rows=RowKind.PROBABILITIES))


# Reads what callers hand in, whatever its layout, into one: CSR, float64, sorted, no stored zeros.

SUM_TOLERANCE = 1e-6
_CHUNK = 2**22


def as_rows(values: Any, name: str = "X") -> sparse.csr_matrix:
    """Return rows of non-negative finite numbers; `Profiles`, sparse and dense input are taken alike."""
    from scipy import sparse  # not at the top: checking a draft asks for the range of a distance only

    values = getattr(values, "matrix", values)
    if not sparse.issparse(values):
        values = np.atleast_2d(np.asarray(values, dtype=np.float64))
        if values.ndim != 2:
            raise InputError(
                f"{name}: expected a matrix with one row per profile; got {values.ndim} dimensions."
            )
    rows = sparse.csr_matrix(values, dtype=np.float64)
    if not (rows.has_canonical_format and rows.has_sorted_indices) or rows.data.min(initial=1) == 0:
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    if not (rows.data.min(initial=1) > 0 and rows.data.max(initial=0) < np.inf):  # NaN fails both
        raise InputError(f"{name}: expected finite numbers, none below 0. Check how the profiles were made.")
    return rows


def check_pair(x: sparse.csr_matrix, y: sparse.csr_matrix) -> None:
    """Both sides must speak of the same words."""
    if x.shape[1] != y.shape[1]:
        raise InputError(
            f"X and Y: expected the same columns (words), got {x.shape[1]} and {y.shape[1]}. "
            "Build both from one vocabulary."
        )


def check_rows(
    rows: sparse.csr_matrix, metric: Metric, name: str = "X", *, allow_empty: bool = False
) -> None:
    """Refuse rows the metric is undefined for, and say which."""
    sums = row_sums(rows)
    empty = np.flatnonzero(sums == 0)
    if len(empty) and not allow_empty:
        raise InputError(
            f"{name}: {len(empty)} of {len(sums)} rows are empty (first: row {empty[0]}), so no distance is "
            "defined for them (empty_profile). Drop them first; incrowd.profiles does so and records why."
        )
    if metric.rows is RowKind.PROBABILITIES:
        off = np.flatnonzero((np.abs(sums - 1) > SUM_TOLERANCE) & (sums > 0))
        if len(off):
            raise InputError(
                f"{name}: {metric.name} needs rows that sum to 1; row {off[0]} sums to {sums[off[0]]:.6g} "
                f"({len(off)} such rows). Use incrowd.profiles, or divide each row by its sum."
            )


def word_users(rows: sparse.csr_matrix) -> npt.NDArray[np.int64]:
    """Count the people who use each word, without a wide copy of all indices."""
    users = np.zeros(rows.shape[1], np.int64)
    for start in range(0, rows.nnz, _CHUNK):
        users += np.bincount(rows.indices[start : start + _CHUNK], minlength=rows.shape[1])
    return users


def row_sums(rows: sparse.csr_matrix) -> npt.NDArray[np.float64]:
    """Return the sum of every row."""
    return np.asarray(rows.sum(axis=1)).ravel()
