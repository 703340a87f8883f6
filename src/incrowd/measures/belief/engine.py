"""What every belief engine answers, and the plainest one: models written down one by one, which all others are
checked against.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from incrowd.measures.belief.definition import EntityModel
from incrowd.profiles.attributes import AttributeSpace, Floats, Ints, SeenAttributes


class BeliefModel(Protocol):
    """What an adversary thinks of a person before and after seeing something of them."""

    @property
    def space(self) -> AttributeSpace:
        """The attributes the belief is about."""
        ...

    @property
    def words(self) -> str:
        """Say in plain words where the belief comes from."""
        ...

    def mass(self, evidence: SeenAttributes) -> Floats:
        """Return the probability of the evidence, one number per person."""
        ...

    def posteriors(self, targets: Sequence[int], evidence: SeenAttributes) -> list[Floats]:
        """Return for each target attribute (by place) an (n, values) table; NaN where nothing fits."""
        ...

    def focused(self, evidence: SeenAttributes, keep: Collection[int]) -> tuple[BeliefModel, SeenAttributes]:
        """Return a smaller belief that answers the same about one person as long as they only hide things.

        Attributes in `keep` stay as they are; of the others only the person's own value may be asked.
        """
        ...


def normalised(weights: Floats) -> Floats:
    """Divide each row by its sum; a row without mass becomes NaN: what was seen cannot be."""
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0, weights / total, np.nan))


def joint_probability(belief: BeliefModel, event: Mapping[int, int], evidence: SeenAttributes) -> Floats:
    """Return how sure the adversary is that all the values of an event (place: code) hold at once."""
    narrowed = evidence
    for place, code in event.items():
        narrowed = narrowed.hinting(place, np.arange(evidence.space.sizes[place]) == code)
    before = belief.mass(evidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(before > 0, belief.mass(narrowed) / before, np.nan))


@dataclass(frozen=True, eq=False)
class ExplicitBelief:
    """A probability for every model (definition 4). Exact, and only for spaces small enough to list."""

    space: AttributeSpace
    models: Ints
    """(models, attributes) codes."""
    weights: Floats

    @classmethod
    def over(
        cls, values: Mapping[str, Sequence[str | None]], weights: ArrayLike | None = None
    ) -> ExplicitBelief:
        """Believe in all combinations of the given values: uniformly, or with weights in their order."""
        space = AttributeSpace.of(values)
        models = np.stack([axis.ravel() for axis in np.indices(space.sizes)], axis=1).astype(np.int64)
        weight = np.ones(len(models)) if weights is None else np.asarray(weights, np.float64).ravel()
        return cls(space, models, weight / weight.sum())

    @property
    def words(self) -> str:
        """Say where the belief comes from."""
        return f"someone who weighs {len(self.models):,} possible descriptions"

    def model(self, number: int) -> EntityModel:
        """Return one of the models."""
        values = {
            name: self.space.values[place][self.models[number, place]]
            for place, name in enumerate(self.space.attributes)
        }
        return EntityModel.from_mapping(values)

    def weigh(self, evidence: SeenAttributes) -> Floats:
        """Return Pr[O | theta] b[theta] for every person and model."""
        weight = np.repeat(self.weights[None, :], len(evidence), axis=0)
        for place in evidence.informative:
            weight *= evidence.likelihood(place)[:, self.models[:, place]]
        return weight

    def mass(self, evidence: SeenAttributes) -> Floats:
        """Return the probability of the evidence."""
        return np.asarray(self.weigh(evidence).sum(axis=1))

    def posteriors(self, targets: Sequence[int], evidence: SeenAttributes) -> list[Floats]:
        """Add up the models that share a value."""
        weight = self.weigh(evidence)
        return [
            normalised(weight @ (self.models[:, [place]] == np.arange(self.space.sizes[place])))
            for place in targets
        ]

    def focused(
        self, evidence: SeenAttributes, keep: Collection[int]
    ) -> tuple[ExplicitBelief, SeenAttributes]:
        """Return the belief itself: it is small."""
        return self, evidence
