"""Does "70 % sure" mean right seven times in ten? Reliability of beliefs on people the adversary never saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.measures.belief.engine import BeliefModel
from incrowd.profiles.attributes import HIDDEN, AttributeTable, Floats, SeenAttributes

BINS = 10


@dataclass(frozen=True, eq=False)
class Reliability:
    """Beliefs in groups of a tenth: how sure on average, how often right, how many."""

    sure: Floats
    right: Floats
    count: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap of sure and right, over beliefs. 0 = honest, 1 = worst."""
        total = self.count.sum()
        if total == 0:
            return float("nan")
        gap = np.where(self.count > 0, np.abs(self.sure - self.right), 0.0)
        return float((gap * self.count).sum() / total)


def reliability(sure: ArrayLike, right: ArrayLike) -> Reliability:
    """Group beliefs (0 to 1) with whether they were right.

    >>> reliability([0.9, 0.9, 0.3], [1, 1, 0]).error
    0.1666...
    """
    p, hit = np.asarray(sure, np.float64), np.asarray(right, np.float64)
    group = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    count = np.bincount(group, minlength=BINS)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(group, values, minlength=BINS) / count for values in (p, hit)]
    return Reliability(means[0], means[1], count)


@dataclass(frozen=True, eq=False)
class Guesses:
    """For every held-out person and attribute they gave: what was believed when it was hidden."""

    place: NDArray[np.int64]
    person: NDArray[np.int64]
    top: Floats
    """Belief in the most believed value."""
    right: NDArray[np.bool_]
    true: Floats
    """Belief in the true value."""
    prior: Floats
    """Belief in the true value before anything was seen."""

    def reliability(self) -> Reliability:
        """Return how honest the most believed values are."""
        return reliability(self.top, self.right)


def hide_and_guess(belief: BeliefModel, people: AttributeTable, targets: list[int] | None = None) -> Guesses:
    """Hide each attribute of each person in turn and let the belief guess it from the rest."""
    parts: list[tuple[Any, ...]] = []
    codes = people.codes.astype(np.int64)
    nothing = SeenAttributes.nothing(people.space)
    for place in range(len(people.space.attributes)) if targets is None else targets:
        known = np.flatnonzero(codes[:, place] != HIDDEN)
        if not known.size:
            continue
        seen, truth = codes[known].copy(), codes[known, place]
        seen[:, place] = HIDDEN
        sure = belief.posteriors([place], SeenAttributes(people.space, seen))[0]
        prior = belief.posteriors([place], nothing)[0][0]
        sure = np.where(np.isnan(sure), prior, sure)
        rows = np.arange(len(known))
        parts.append(
            (
                np.full(len(known), place),
                known,
                sure.max(axis=1),
                sure.argmax(axis=1) == truth,
                sure[rows, truth],
                prior[truth],
            )
        )
    return Guesses(*(np.concatenate(column) for column in zip(*parts, strict=True)))
