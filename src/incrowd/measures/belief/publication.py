"""How a profile shows an attribute: as it is, not at all, coarser, or changed with a stated probability.

A publication function (definition 6) treats attributes one by one. It must leave at least one attribute as it is,
so that the profile is still of use. Each way says how probable the shown value is under every true value, which is
all an adversary who knows the way needs. Withholding is taken to be independent of the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from incrowd.errors import InputError
from incrowd.measures.belief.bands import Bands, band_name
from incrowd.measures.belief.space import HIDDEN, Evidence, Floats, Ints, Space


@dataclass(frozen=True)
class Publish:
    """Show the value."""

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return Pr[shown | value] for every value."""
        return np.array([float(value == shown) for value in values])

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Return what readers see."""
        return value


@dataclass(frozen=True)
class Withhold:
    """Show nothing."""

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return 1 for every value: silence says nothing."""
        return np.ones(len(values))

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Return nothing."""
        return None


@dataclass(frozen=True)
class Generalise:
    """Show the name of a group of values; a value in no group is shown as it is."""

    groups: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        members = [value for group in self.groups.values() for value in group]
        if len(members) != len(set(members)):
            raise InputError("generalise: a value belongs to one group only, got one in two groups")

    def _name(self, value: str | None) -> str | None:
        return next((name for name, group in self.groups.items() if value in group), value)

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return 1 for the values that are shown so."""
        return np.array([float(self._name(value) == shown) for value in values])

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Return the group's name."""
        return self._name(value)


@dataclass(frozen=True)
class Band:
    """Show only the range a number lies in; what is no number is shown as it is."""

    bands: Bands

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return 1 for the values in the range."""
        return np.array([float(band_name(self.bands, value) == shown) for value in values])

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Return the range."""
        return band_name(self.bands, value)


@dataclass(frozen=True)
class Perturb:
    """Show the true value with probability `keep`, otherwise one of the others, each as probably."""

    keep: float

    def __post_init__(self) -> None:
        if not 0 <= self.keep <= 1:
            raise InputError(f"perturb: keep must be a probability from 0 to 1, got {self.keep}")

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return keep for the shown value and the rest spread over the others."""
        others = max(len(values) - 1, 1)
        same = np.array([value == shown for value in values])
        return np.where(same, self.keep if len(values) > 1 else 1.0, (1 - self.keep) / others)

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Draw what readers see."""
        others = [one for one in values if one != value]
        if not others or rng.random() < self.keep:
            return value
        return others[int(rng.integers(len(others)))]


Way = Publish | Withhold | Generalise | Band | Perturb


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What a profile does with each attribute; those not named are published as they are."""

    ways: Mapping[str, Way] = field(default_factory=dict)

    def check(self, attributes: Sequence[str]) -> None:
        """Refuse a publication that is truthful on no attribute (definition 6)."""
        if not any(isinstance(self.ways.get(name, Publish()), Publish) for name in attributes):
            raise InputError(
                "publication: at least one attribute must be shown as it is, got none. Withhold, generalise or "
                "perturb fewer attributes."
            )

    def show(self, truth: Mapping[str, str], space: Space, seed: int = 0) -> dict[str, str]:
        """Return what readers see of a person (a restricted model); the seed decides perturbed values."""
        self.check([*truth])
        rng = np.random.default_rng(seed)
        shown: dict[str, str] = {}
        for name in sorted(truth):
            seen = self.ways.get(name, Publish()).show(truth[name], space.values[space.place(name)], rng)
            if seen is not None:
                shown[name] = seen
        return shown

    def observe(self, shown: Mapping[str, str], space: Space, own_rows: Ints | None = None) -> Evidence:
        """Return what was shown as evidence: what an adversary who knows these ways may conclude."""
        evidence = Evidence.nothing(space, own_rows=own_rows)
        for name, value in shown.items():
            way, place = self.ways.get(name, Publish()), space.place(name)
            if isinstance(way, Publish):
                evidence.seen[0, place] = space.code(name, value)
            elif not isinstance(way, Withhold):
                evidence = evidence.hinting(place, way.likelihood(space.values[place], value))
        return evidence


def shown_places(evidence: Evidence) -> list[int]:
    """Return the attributes one person showed as they are."""
    return [int(place) for place in np.flatnonzero(evidence.seen[0] != HIDDEN)]
