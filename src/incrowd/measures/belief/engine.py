"""The one face of every belief engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from incrowd.measures.belief.space import Evidence, Floats, Space


class Belief(Protocol):
    """What an adversary thinks of a person before and after seeing something of them."""

    @property
    def space(self) -> Space:
        """The attributes the belief is about."""
        ...

    @property
    def words(self) -> str:
        """Say in plain words where the belief comes from."""
        ...

    def mass(self, evidence: Evidence) -> Floats:
        """Return the probability of the evidence, one number a person."""
        ...

    def posteriors(self, targets: Sequence[int], evidence: Evidence) -> list[Floats]:
        """Return for each target attribute (by place) an (n, values) table; NaN where nothing fits."""
        ...

    def focused(self, evidence: Evidence, keep: Collection[int]) -> tuple[Belief, Evidence]:
        """Return a smaller belief that answers the same about one person as long as they only hide things.

        Attributes in `keep` stay as they are; of the others only the person's own value may be asked.
        """
        ...


def normalised(weights: Floats) -> Floats:
    """Divide each row by its sum; a row without mass becomes NaN: what was seen cannot be."""
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0, weights / total, np.nan))


def joint_probability(belief: Belief, event: Mapping[int, int], evidence: Evidence) -> Floats:
    """Return how sure the adversary is that all the values of an event (place: code) hold at once."""
    narrowed = evidence
    for place, code in event.items():
        narrowed = narrowed.hinting(place, np.arange(evidence.space.sizes[place]) == code)
    before = belief.mass(evidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(before > 0, belief.mass(narrowed) / before, np.nan))
