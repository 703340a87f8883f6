"""How an adversary who sees only distances chooses among candidates.

Given distances d_1..d_n from a profile to its candidates, a *choice rule* says how probable each candidate is.
Paper 000 prints ``1 - d_i/S`` (S the sum of distances), which sums to n - 1 and so is no distribution; it stays
available as :func:`raw_score`. Three rules that are distributions take its place.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Rule = Literal["inverse", "normalised", "softmax"]
RULES: tuple[Rule, ...] = get_args(Rule)
TEMPERATURE = 0.05
"""Default of the softmax rule: a candidate this much nearer is e times as probable."""

Array = NDArray[np.floating[Any]]


def raw_score(distances: ArrayLike) -> Array:
    """Return ``1 - d_i/S``, the rule as printed in paper 000; the scores sum to n - 1, not to 1.

    >>> raw_score([1.0, 1.0, 2.0]).tolist()
    [0.75, 0.75, 0.5]
    """
    d = _checked(distances)
    total = d.sum()
    return np.full(d.shape, np.nan) if total == 0 else 1.0 - d / total


def choice_probabilities(
    distances: ArrayLike, rule: Rule = "inverse", *, temperature: float = TEMPERATURE
) -> Array:
    """Return how probably an adversary takes each candidate for the match; the values sum to 1.

    ``inverse``: proportional to ``1/d`` (candidates at distance 0 share everything);
    ``normalised``: ``(1 - d/S)/(n - 1)``, undefined for all-zero distances;
    ``softmax``: proportional to ``exp(-d/temperature)``.

    >>> choice_probabilities([0.1, 0.2, 0.2]).tolist()
    [0.5, 0.25, 0.25]
    """
    d = _checked(distances)
    if d.size == 1:
        return np.ones(1)
    if rule == "inverse":
        return _inverse(d)
    if rule == "normalised":
        return raw_score(d) / (d.size - 1)
    if rule == "softmax":
        weights = np.exp(-(d - d.min()) / temperature)
        return np.asarray(weights / weights.sum())
    raise ValueError(f"rule must be one of {', '.join(RULES)}, got {rule!r}")


def linkage_bound(c: ArrayLike, d: ArrayLike, k: ArrayLike, rule: Rule = "inverse") -> Array:
    """Bound how probably an adversary links e* to e', when e* is (k, d)-anonymous.

    Parameters
    ----------
    c
        The distance between e* and e', or any lower bound of it.
    d, k
        e* has a crowd of at least k members (itself included) within d.
    rule
        How the adversary chooses; see :func:`choice_probabilities`.

    Returns
    -------
    The corrected bound of theorem 2 of paper 000, between 0 and 1; the proofs are in the NOTES.md of the
    anonymity measure.

    >>> round(float(linkage_bound(0.5, 0.2, 5)), 4)
    0.2593
    """
    c, d, k = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (c, d, k)))
    with np.errstate(invalid="ignore", divide="ignore"):
        if rule == "inverse":
            bound = (c + d) / (k * c + d)
        elif rule == "normalised":
            bound = (c + d) / (k * c + (k - 1) * d)
        elif rule == "softmax":
            bound = 1.0 / (1.0 + (k - 1) * np.exp(-d / TEMPERATURE))
        else:
            raise ValueError(f"rule must be inverse, normalised or softmax, got {rule!r}")
    # c = d = 0: all k are at distance 0 and share the mass evenly.
    return np.asarray(np.minimum(np.where((c == 0) & (d == 0), 1.0 / k, bound), 1.0))


def printed_bound(c: ArrayLike, d: ArrayLike, k: ArrayLike) -> Array:
    """Return theorem 2's bound as printed, ``1 - c/(c + (k-1)(c+d))``: wrong, kept for comparison."""
    c, d, k = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (c, d, k)))
    with np.errstate(invalid="ignore"):
        return np.asarray(1.0 - c / (c + (k - 1) * (c + d)))


def _inverse(d: Array) -> Array:
    zero = d == 0
    if zero.any():
        return np.asarray(zero / zero.sum())
    # Scaling by the smallest distance keeps the weights in (0, 1], so that none overflows.
    weights = d.min() / d
    return np.asarray(weights / weights.sum())


def _checked(distances: ArrayLike) -> Array:
    d = np.asarray(distances, dtype=np.float64)
    if d.ndim != 1 or d.size == 0:
        raise ValueError(f"distances must be a non-empty list of numbers, got shape {d.shape}")
    if not (d >= 0).all():
        raise ValueError("distances must be numbers of at least 0")
    return d
