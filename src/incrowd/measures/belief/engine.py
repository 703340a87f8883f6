"""What every belief engine answers, the plainest one (models written down one by one, which all others are checked
against), and how reliable an engine's beliefs are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.arrays import Floats, Ints
from incrowd.measures.belief.definition import EntityModel
from incrowd.profiles.attributes import HIDDEN, AttributeSpace, AttributeTable, SeenAttributes


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


# Does "70 % sure" mean right seven times in ten? Reliability of beliefs on people the adversary never saw.

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
