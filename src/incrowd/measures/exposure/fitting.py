"""Fit word vectors to a background: take off what all words share, even out how far posts spread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.exposure.space import Floats

EVENING = 0.2
"""What every direction's spread counts as besides its own, as a share of the mean spread."""


def centre(vectors: Floats, used: NDArray[Any]) -> NDArray[np.float32]:
    """Take the mean off word vectors, each word counted as often as it is used.

    >>> centre(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3, 1])).tolist()
    [[0.25, -0.25], [-0.75, 0.75]]
    """
    return np.asarray(vectors - (used @ vectors) / max(1, used.sum()), np.float32)


def evening(parts: Iterable[Floats]) -> NDArray[np.float32]:
    """Return the map after which posts spread alike in all directions, but for those in which they hardly do.

    The inverse square root of the posts' covariance, with a share of its mean eigenvalue added.
    """
    posts, total, products = 0, np.zeros(1), np.zeros((1, 1))
    for part in parts:
        posts += len(part)
        total = total + part.sum(axis=0, dtype=np.float64)
        products = products + part.T @ part
    mean = total / max(1, posts)
    spread, directions = np.linalg.eigh(products / max(1, posts) - np.outer(mean, mean))
    spread = np.maximum(spread, 0) + EVENING * max(float(spread.mean()), 1e-12)
    return np.asarray(directions / np.sqrt(spread) @ directions.T, np.float32)
