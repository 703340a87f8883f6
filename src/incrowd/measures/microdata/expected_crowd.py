"""How many people would fit, estimated from published popularities alone: a score with an absolute reading.

If items were independent, a random person would hold s given items with the product of their popularities,
and the adversary's random s of your n items with the average of that product over all choices: the s-th
elementary symmetric polynomial divided by the number of choices. What breaks independence most is that some
people have a lot of everything. So people are told apart by *activity class* (and, if published, *taste
group*): inside a class items are independent, and its popularities follow a logistic (Rasch) model,

    p(item | class) = 1 / (1 + exp(-(b_item + a_class))), sum over classes: share * p(item | class) = p(item).

A provider publishes a_class and the shares, a dozen numbers about large groups; b_item follows from p(item).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import gammaln

from incrowd.arrays import Floats
from incrowd.measures.microdata.definition import known_sizes, levels
from incrowd.measures.microdata.overlaps import clean, in_threads, shares_of
from incrowd.measures.microdata.spec import Knowledge

SMALLEST, LARGEST = 1e-12, 1.0 - 1e-9
"""Popularities are kept inside (0, 1)."""
NEGLIGIBLE = -690.0
"""Logarithm of what may be left out when ranking people: below it a double is zero anyway."""
NOBODY = -46.0
"""Logarithm of what may be left out when telling one person: 1e-20 people."""
HALVINGS = 50


@dataclass(frozen=True)
class ActivityGroups:
    """Groups of people by how much they have."""

    shares: Floats
    """Of the crowd, adding up to 1."""
    levels: Floats
    """How much more readily than average they take an item, on the logistic scale."""


def symmetric_means(probabilities: ArrayLike, sizes: NDArray[np.int64]) -> Floats:
    """Return log of e_s(p) / C(n, s) for each size s: the average product of s of the n probabilities.

    Probabilities with one row per class give one row per class. The recurrence e_s = cumulative sum of p_j e_(s-1)
    has positive terms only, so no digits are lost; each step is rescaled, so nothing under- or overflows.

    >>> np.exp(symmetric_means([[0.5, 0.2, 0.1]], np.array([1, 2]))).round(4).tolist()
    [[0.2667, 0.0567]]
    """
    p = np.sort(np.atleast_2d(np.asarray(probabilities, dtype=np.float64)), axis=1)  # order must not matter
    classes, n = p.shape
    out = np.zeros((classes, len(sizes)))
    below = np.ones((classes, n))
    log_scale = np.zeros(classes)
    for s in range(1, int(sizes.max(initial=0)) + 1):
        sums = np.cumsum(p * below, axis=1)
        top = sums[:, -1:]
        log_scale += np.log(top[:, 0])
        below[:, 1:] = sums[:, :-1] / top
        below[:, 0] = 0.0
        out[:, sizes == s] = log_scale[:, None]
    log_choices = gammaln(n + 1) - gammaln(sizes + 1) - gammaln(n - sizes + 1)
    return np.asarray(out - log_choices)


def expected_others(probabilities: ArrayLike, people: ArrayLike, knowledge: Knowledge) -> float:
    """Return how many of `people` (a class each) would fit, for one profile's items (a column each).

    Maclaurin's inequality bounds a class's part by people * mean(p)^s; parts that cannot matter are not
    computed, which keeps profiles of thousands of items quick.
    """
    p, crowd = (
        np.atleast_2d(np.asarray(probabilities, dtype=np.float64)),
        np.asarray(people, dtype=np.float64),
    )
    sizes, weights = known_sizes(p.shape[1], knowledge)
    with np.errstate(divide="ignore"):
        bound = np.log(crowd)[:, None] + sizes * np.log(p.mean(axis=1))[:, None]
    kept_classes, kept_sizes = (bound >= NOBODY).any(axis=1), (bound >= NOBODY).any(axis=0)
    if not kept_classes.any():
        return 0.0
    means = np.exp(symmetric_means(p[kept_classes], sizes[kept_sizes]))
    return float(crowd[kept_classes] @ means @ weights[kept_sizes])


def expected_others_of_all(
    matrix: sparse.csr_matrix, probabilities: Floats, people: Floats, knowledge: Knowledge
) -> Floats:
    """Return :func:`expected_others` of every row; probabilities has one row per class and one column per item."""
    from incrowd.measures.microdata import kernels as cpu  # Numba takes a third of a second to load

    matrix = clean(matrix)
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
    table = levels(np.diff(indptr), knowledge)
    out = np.zeros(matrix.shape[0])
    by_item, people = np.ascontiguousarray(probabilities.T), np.asarray(people, np.float64)
    fixed = (indptr, indices, by_item, people, table.starts, table.sizes, table.weights, NEGLIGIBLE, out)
    in_threads(lambda rows: cpu.expected_crowds(rows, *fixed), shares_of(np.diff(indptr)))
    return out


def class_probabilities(popularity: ArrayLike, activity: ActivityGroups) -> Floats:
    """Return p(item | class), one row per class, so that the classes together have the given popularity."""
    p = np.clip(np.asarray(popularity, dtype=np.float64), SMALLEST, LARGEST)
    distinct, where = np.unique(p, return_inverse=True)
    base = _item_levels(distinct, activity)
    return np.asarray(_logistic(base[where][None, :] + activity.levels[:, None]))


def activity_class(sizes: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return each person's class by profile size, 0 = fewest items; people of one size share a class."""
    cuts = np.unique(np.quantile(sizes, np.linspace(0, 1, classes + 1)[1:-1]))
    return np.unique(np.searchsorted(cuts, sizes, side="right"), return_inverse=True)[1].astype(np.int64)


def fit_activity(sizes: NDArray[np.int64], popularity: ArrayLike, classes: int) -> ActivityGroups:
    """Cut people into classes by profile size and find the level that explains each class's average size."""
    label = activity_class(sizes, classes)
    members = np.bincount(label)
    return fit_levels(members / len(sizes), np.bincount(label, weights=sizes) / members, popularity)


def fit_levels(shares: Floats, mean_size: Floats, popularity: ArrayLike) -> ActivityGroups:
    """Find the level of each class at which its people have so many items on average."""
    p = np.clip(np.asarray(popularity, dtype=np.float64), SMALLEST, LARGEST)
    distinct, times = np.unique(p, return_counts=True)
    level = np.log(mean_size / (mean_size @ shares))
    for _ in range(100):
        q = _logistic(_item_levels(distinct, ActivityGroups(shares, level)) + level[:, None])
        # Newton's step on the size of each class, kept short while far away.
        step = np.clip((mean_size - q @ times) / np.maximum((q * (1 - q)) @ times, 1e-12), -1.0, 1.0)
        level = level + step
        if np.abs(step).max() < 1e-9:
            break
    return ActivityGroups(shares, level)


def _item_levels(p: Floats, activity: ActivityGroups) -> Floats:
    """Solve sum of share * logistic(b + level) = p for b by halving: the sum grows with b."""
    logit = np.log(p) - np.log1p(-p)
    low, high = logit - activity.levels.max(), logit - activity.levels.min()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = activity.shares @ _logistic(middle[None, :] + activity.levels[:, None]) > p
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray((low + high) / 2)


def _logistic(x: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def independent(popularity: ArrayLike) -> tuple[Floats, Floats]:
    """Return the one-class model: everybody alike, items independent (the plain estimate, for comparison)."""
    p = np.clip(np.asarray(popularity, dtype=np.float64), SMALLEST, LARGEST)
    return p[None, :], np.ones(1)


def reading(people: float) -> str:
    """Say the expected number of others in words."""
    if people < 0.05:
        return "nobody else would fit"
    if people < 1.5:
        return "about one other person would fit" if people >= 0.5 else "hardly anybody else would fit"
    digits = 2 - math.floor(math.log10(people)) - 1
    return f"about {round(people, digits):,.0f} other people would fit"
