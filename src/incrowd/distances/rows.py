"""Reads what callers hand in, whatever its layout, into one: CSR, float64, sorted, no stored zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from incrowd.distances.reference import Metric, RowKind
from incrowd.errors import InputError

SUM_TOLERANCE = 1e-6
_CHUNK = 2**22


def as_rows(values: Any, name: str = "X") -> sparse.csr_matrix:
    """Return rows of non-negative finite numbers; `Profiles`, sparse and dense input are taken alike."""
    values = getattr(values, "matrix", values)
    if not sparse.issparse(values):
        values = np.atleast_2d(np.asarray(values, dtype=np.float64))
        if values.ndim != 2:
            raise InputError(
                f"{name}: expected a matrix with one row a profile; got {values.ndim} dimensions."
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
