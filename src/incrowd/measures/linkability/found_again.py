"""From how sure the determined adversary is of a link today to how often it holds with other posts.

How sure somebody is of a true pair, by the posts that are there, says too much: with other posts of the same two
profiles, links held to be impossible come out one time in seven, and some that were certain do not. How often the true
profile came first again, when the later halves of two profiles were compared in place of the earlier ones, was learnt
by how sure the adversary had been and by how much there was to read (`python -m benchmarks.link_odds`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.statistics import Logistic

Floats = NDArray[np.float64]

SUREST = 1 - 1e-6
"""Nobody is surer than this, or of the opposite."""
FOUND_AGAIN = Logistic(
    mean=np.array([0.0, 0.0]),
    spread=np.array([1.0, 1.0]),
    weights=np.array([0.0, 1.0, 0.0]),
    covariance=np.zeros((3, 3)),
)


def columns(sure: Any, words: Any) -> Floats:
    """Return what the regression goes by: log odds, and the logarithm of the words in the shorter profile."""
    p = np.clip(np.asarray(sure, float), 1 - SUREST, SUREST)
    return np.column_stack([np.log(p / (1 - p)), np.log(np.maximum(words, 1))])


def found_again(sure: Any, words: Any) -> Floats:
    """Return how likely a link holds with other posts."""
    return FOUND_AGAIN.predict(columns(sure, words))


def found_again_interval(sure: Any, words: Any) -> tuple[Floats, Floats]:
    """Return between which rates it lies for people like these, 90 times of 100."""
    return FOUND_AGAIN.interval(columns(sure, words))
