"""The distances, written so that anybody can check them by eye.

Every metric compares two people by what the adversary sees of them: one row of non-negative numbers each.
All of them run from 0 (indistinguishable) to 1 (nothing in common). Faster kernels answer the same
questions and are tested against these functions.

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

import numpy as np
import numpy.typing as npt

from incrowd.errors import InputError

Floats = npt.NDArray[np.float64]


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
register(Metric(name="angular-cosine", distance=angular_cosine, rows=RowKind.NONZERO))
register(Metric(name="total-variation", distance=total_variation, rows=RowKind.PROBABILITIES))
register(Metric(name="hellinger", distance=hellinger, rows=RowKind.PROBABILITIES))
