"""The mathematics of paper 002, in plain NumPy: what every faster twin is checked against.

Symbols: a profile *u* holds *n* items; the adversary knows *s* of them; another profile shares *o* items
with *u*. The anonymity set |AS| is the number of profiles that fit what the adversary knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from incrowd.arrays import Floats, Ints
from incrowd.measures.microdata.spec import Knowledge, Rounding

_ROUND: dict[Rounding, Callable[[Floats], Floats]] = {
    "half-up": lambda exact: np.floor(exact + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def risk_raw(items: ArrayLike, rare_items: ArrayLike, log_base: float = math.e) -> Floats:
    """Return how much a profile gives away: the share of rare items plus the logarithm of all items.

    ``rare/all + log(all)``, paper 002 eq. 1. Range: 0 (one popular item) upwards; higher is riskier.
    An empty profile has none (NaN).

    >>> risk_raw([10], [5]).round(4).tolist()
    [2.8026]
    """
    n, rare = np.asarray(items, dtype=np.float64), np.asarray(rare_items, dtype=np.float64)
    known = np.where(n > 0, n, np.nan)
    return np.asarray(rare / known + np.log(known) / math.log(log_base), dtype=np.float64)


def privacy_score(raw: ArrayLike, raw_min: float, raw_max: float) -> Floats:
    """Turn the raw risk into a score: 1 for the least risky person, 0 for the most risky one.

    ``1 - (raw - raw_min) / (raw_max - raw_min)``. Somebody outside the crowd may fall outside 0 to 1;
    clamping is the caller's business. NaN if everybody has the same raw risk.
    """
    values = np.asarray(raw, dtype=np.float64)
    if not raw_max > raw_min:
        return np.full_like(values, np.nan)
    return 1.0 - (values - raw_min) / (raw_max - raw_min)


def round_share(percents: ArrayLike, items: int, rounding: Rounding = "half-up") -> Ints:
    """Return how many of `items` items each percentage means."""
    exact = np.asarray(percents, dtype=np.float64) * items / 100.0
    return np.asarray(_ROUND[rounding](np.asarray(exact)), dtype=np.int64)


def known_sizes(items: int, knowledge: Knowledge) -> tuple[Ints, Floats]:
    """Return the numbers of items the adversary may know of a profile, and how likely each is.

    >>> sizes, weights = known_sizes(20, Knowledge())
    >>> dict(zip(sizes.tolist(), weights.tolist()))
    {1: 0.1875, 2: 0.3125, 3: 0.3125, 4: 0.1875}
    """
    shares = round_share(knowledge.percents, items, knowledge.rounding)
    wanted = np.concatenate([shares, np.asarray(knowledge.items, dtype=np.int64)])
    sizes = np.minimum(np.maximum(wanted, knowledge.minimum), items)
    weights = np.asarray(knowledge.weights or np.ones(len(sizes)), dtype=np.float64)
    distinct, where = np.unique(sizes, return_inverse=True)
    merged = np.asarray(np.bincount(where, weights=weights / weights.sum()), dtype=np.float64)
    return distinct[merged > 0], merged[merged > 0]


def fit_probability(overlap: ArrayLike, items: int, known: int, wrong: int = 0) -> Floats:
    """Return how likely a profile sharing `overlap` of the `items` items fits `known` random ones.

    With no slips allowed C(o, s) / C(n, s): the sample must lie inside what both share. With up to
    `wrong` slips the hypergeometric tail: at least s - wrong of the sample lie inside.
    """
    o = np.asarray(overlap, dtype=np.float64)
    total = np.zeros_like(o)
    for slips in range(min(wrong, known) + 1):
        total += np.exp(
            _log_choose(o, known - slips) + _log_choose(items - o, slips) - _log_choose(items, known)
        )
    return np.minimum(total, 1.0)


@lru_cache(maxsize=64)
def fit_weights(items: int, knowledge: Knowledge) -> Floats:
    """Return, for every possible overlap 0..n, how likely such a profile is to fit what is known."""
    sizes, weights = known_sizes(items, knowledge)
    overlaps = np.arange(items + 1)
    parts = [
        weight * fit_probability(overlaps, items, int(size), knowledge.wrong)
        for size, weight in zip(sizes, weights, strict=True)
    ]
    table = np.sum(parts, axis=0)
    table.setflags(write=False)
    return np.asarray(table)


def expected_others(overlaps: ArrayLike, items: int, knowledge: Knowledge) -> float:
    """Return how many of the profiles with these overlaps fit on average.

    The sum of :func:`fit_weights` over them: exact by linearity of expectation, since a profile fits
    exactly if the known items lie inside what it shares. Range 0 to the number of profiles; higher is safer.
    """
    return float(fit_weights(items, knowledge)[np.asarray(overlaps, dtype=np.int64)].sum())


def expected_set_size(
    profile: Collection[Any], crowd: Sequence[Collection[Any]], knowledge: Knowledge
) -> float:
    """Return E|AS| of a profile in a crowd that contains it: on average so many people fit.

    >>> crowd = [{1, 2, 3, 4}, {1, 2}, {3}]
    >>> expected_set_size(crowd[0], crowd, Knowledge(percents=(), items=(1,)))  # 1 + 2/4 + 1/4
    1.75
    """
    mine = set(profile)
    return expected_others([len(mine & set(other)) for other in crowd], len(mine), knowledge)


def _log_choose(n: ArrayLike, k: ArrayLike) -> Floats:
    """Logarithm of n over k; minus infinity where there is no way to choose."""
    n, k = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64))
    possible = (k >= 0) & (k <= n)
    m, j = np.where(possible, n, 0.0), np.where(possible, k, 0.0)
    return np.where(possible, gammaln(m + 1) - gammaln(j + 1) - gammaln(m - j + 1), -np.inf)


@dataclass(frozen=True)
class Levels:
    """The knowledge levels of every profile size: sizes[starts[n]:starts[n + 1]] and their weights."""

    starts: Ints
    sizes: Ints
    weights: Floats
    wrong: int


def levels(profile_sizes: NDArray[np.int64], knowledge: Knowledge) -> Levels:
    """Tabulate the adversary's knowledge for the profile sizes that occur."""
    largest = int(profile_sizes.max(initial=0))
    lengths = np.zeros(largest + 2, dtype=np.int64)
    sizes, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
    for n in np.unique(profile_sizes):
        size, weight = known_sizes(int(n), knowledge)
        lengths[n + 1] = len(size)
        sizes.append(size)
        weights.append(weight)
    return Levels(np.cumsum(lengths), np.concatenate(sizes), np.concatenate(weights), knowledge.wrong)


def log_factorials(largest: int) -> Floats:
    """Return log(0!), log(1!), ..., log(largest!)."""
    return np.asarray(gammaln(np.arange(largest + 1) + 1.0))
