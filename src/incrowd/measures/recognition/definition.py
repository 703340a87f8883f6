"""How few posts it takes, as pure functions.

An adversary has read n posts of somebody elsewhere, compares them with everybody in a community and names whoever
resembles them most (:func:`incrowd.statistics.first_place`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def halves(posts: int) -> tuple[int, int]:
    """Cut a history of posts, in the order of time, into an earlier and a later half; the earlier one is not smaller.

    >>> halves(5)
    (3, 2)
    """
    return (posts + 1) // 2, posts // 2


def posts_it_takes(probability: Mapping[int, float], line: float = 0.5) -> float:
    """Return the smallest number of posts at which the probability reaches the line; infinity if none does.

    Between the numbers that were tried, the log odds are taken to grow with the logarithm of the number of posts;
    probabilities never fall when more is known.

    >>> posts_it_takes({1: 0.1, 3: 0.2, 10: 0.5, 30: 0.9})
    10.0
    >>> posts_it_takes({1: 0.6, 3: 0.8})
    1.0
    >>> posts_it_takes({1: 0.1, 3: 0.2})
    inf
    """
    known = [(n, p) for n, p in sorted(probability.items()) if not math.isnan(p)]
    reached = np.maximum.accumulate([p for _, p in known]) if known else np.zeros(0)
    for place, ((n, _), p) in enumerate(zip(known, reached, strict=True)):
        if p < line:
            continue
        if place == 0:
            return float(n)
        before, lower = known[place - 1][0], float(reached[place - 1])
        share = (_log_odds(line) - _log_odds(lower)) / (_log_odds(float(p)) - _log_odds(lower))
        return float(math.ceil(math.exp(math.log(before) + share * math.log(n / before)) - 1e-9))
    return math.inf


def _log_odds(p: float) -> float:
    p = min(max(p, 1e-6), 1 - 1e-6)
    return math.log(p / (1 - p))


def pick(
    history: Sequence[int] | NDArray[np.int64], count: int, draws: int, rng: Any
) -> list[NDArray[np.int64]]:
    """Draw `count` posts without replacement, `draws` times."""
    return [np.asarray(rng.choice(history, count, replace=False), np.int64) for _ in range(draws)]
