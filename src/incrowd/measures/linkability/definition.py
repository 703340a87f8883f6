"""The mathematics of linking: matching sets, precision and recall, intervals and baselines.

Paper 003 with the corrections of NOTES.md. A *true pair* is one person's source and target identity; `nearer`
counts the targets strictly nearer to the source than the true one, `tied` those at exactly its distance (the
true one not counted).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]
Counts = NDArray[np.integer[Any]]

DEFAULT_KS = (1, 5, 10, 20)
RADII = np.arange(1_001) / 1_000
"""The thresholds of paper 003: 0, 0.001, ..., 1."""


def hits_at(nearer: ArrayLike, k: int, tied: ArrayLike = 0) -> Array:
    """Return for each pair how probably the true target is among the k nearest, ties broken by lot.

    >>> hits_at([0, 3, 1], 2, tied=[0, 0, 1]).tolist()
    [1.0, 0.0, 0.5]
    """
    room = k - np.asarray(nearer, dtype=np.float64)
    return np.asarray(np.clip(room / (np.asarray(tied) + 1.0), 0.0, 1.0))


def guess_at(k: int, targets: int) -> float:
    """Return the chance that somebody who guesses k of the targets has the true one among them."""
    return min(k / targets, 1.0) if targets else float("nan")


@dataclass(frozen=True)
class Interval:
    """A mean with an interval that respects that one person's pairs belong together."""

    mean: float
    low: float
    high: float
    pairs: int
    people: int


def clustered_mean(values: ArrayLike, people: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the mean over pairs with a confidence interval clustered by person.

    The standard error is the cluster-robust one, ``sqrt(sum_u (sum of u's residuals)^2 * g/(g-1)) / n`` over
    g people; with one person it is unknown, and the interval is all of [0, 1].
    """
    from scipy.stats import t

    x = np.asarray(values, dtype=np.float64)
    n = x.size
    if n == 0:
        return Interval(float("nan"), float("nan"), float("nan"), 0, 0)
    mean = float(x.mean())
    _, cluster = np.unique(np.asarray(people), return_inverse=True)
    g = int(cluster.max()) + 1
    if g == 1:
        return Interval(mean, 0.0, 1.0, n, 1)
    residuals = np.bincount(cluster, weights=x - mean)
    error = float(np.sqrt((residuals**2).sum() * g / (g - 1)) / n)
    if error == 0.0:  # nobody, or everybody, was hit: the rule of three gives the far end
        far = 1.0 - (1.0 - level) ** (1.0 / g)
        return Interval(mean, max(mean - far, 0.0), min(mean + far, 1.0), n, g)
    half = float(t.ppf((1 + level) / 2, g - 1)) * error
    return Interval(mean, max(mean - half, 0.0), min(mean + half, 1.0), n, g)


@dataclass(frozen=True)
class PrecisionRecall:
    """What linking everything within each threshold would give; NaN where nothing is linked."""

    thresholds: Array
    precision: Array
    recall: Array
    predicted: Counts


def precision_recall(true_distances: ArrayLike, linked: ArrayLike, thresholds: ArrayLike) -> PrecisionRecall:
    """Return pooled precision and recall for each threshold.

    Parameters
    ----------
    true_distances
        The distance of each true pair.
    linked
        For each threshold, how many (source, target) pairs lie within it: over sources with a match
        (*closed*), or over all sources (*open*, which lowers precision).
    """
    thresholds = np.asarray(thresholds, dtype=np.float64)
    ordered = np.sort(np.asarray(true_distances, dtype=np.float64))
    found = np.searchsorted(ordered, thresholds, side="right")
    predicted = np.asarray(linked, dtype=np.int64)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(predicted > 0, found / predicted, np.nan)
        recall = found / ordered.size if ordered.size else np.full(thresholds.shape, np.nan)
    return PrecisionRecall(thresholds, precision, np.asarray(recall), predicted)


def best_threshold(curve: PrecisionRecall) -> float:
    """Return the threshold with the highest F1, the smallest of equals; NaN if nothing is ever found."""
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = 2 * curve.precision * curve.recall / (curve.precision + curve.recall)
    if not np.isfinite(f1).any():
        return float("nan")
    return float(curve.thresholds[int(np.nanargmax(f1))])


def conformity(local: ArrayLike, matching: ArrayLike) -> Array:
    """Return ``|mu| / |M(d)|``: how much of the matching set also looks like the target; at most 1."""
    return np.asarray(np.asarray(local, dtype=np.float64) / np.asarray(matching, dtype=np.float64))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return Spearman's rank correlation; NaN for fewer than three pairs or a constant side."""
    from scipy.stats import rankdata

    a, b = (rankdata(np.asarray(v)) for v in (x, y))
    if a.size < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def shuffled_pairs(targets: ArrayLike, seed: int) -> Counts:
    """Return the targets with every person moved to another's place: the control without true pairs.

    A random cyclic shift of a random order moves everybody (a derangement) when there are at least two.
    """
    array = np.asarray(targets)
    generator = np.random.default_rng(seed)
    order = generator.permutation(array.size)
    moved = array.copy()
    moved[order] = array[np.roll(order, 1)]
    return np.asarray(moved)
