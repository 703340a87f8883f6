"""The open-world framework of paper 000, section 4, in its own terms; numbers in the docstrings are the paper's.

An entity is described by attributes, some of them NULL (here: ``None``). An adversary holds a belief over such
models, sees what was published, and updates by Bayes. Everything finite is exact here; the engines beside this
file answer the same questions for populations that cannot be enumerated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]
Value = Hashable


@dataclass(frozen=True)
class EntityModel:
    """What one profile could tell about somebody (definition 1): a value, or None, for every attribute.

    >>> model = EntityModel.of(city="Tana", religion=None)
    >>> sorted(model.domain)
    ['city']
    """

    values: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, **values: Value) -> EntityModel:
        """Make a model from attribute=value; the order does not matter."""
        return cls.from_mapping(values)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Value]) -> EntityModel:
        """Make a model from a mapping."""
        return cls(tuple(sorted(values.items())))

    def __getitem__(self, attribute: str) -> Value:
        return dict(self.values).get(attribute)

    @property
    def domain(self) -> frozenset[str]:
        """The attributes that have a value: dom(theta)."""
        return frozenset(name for name, value in self.values if value is not None)

    def restricted(self, attributes: Iterable[str]) -> EntityModel:
        """Keep the given attributes and make the rest NULL (definition 2)."""
        kept = frozenset(attributes)
        if not kept:
            raise ValueError("a restriction keeps at least one attribute, got none")
        return EntityModel(tuple((name, value if name in kept else None) for name, value in self.values))

    def with_default(self, attribute: str, default: Value = None) -> EntityModel:
        """Reset one attribute to its default: theta^alpha of definition 11."""
        return EntityModel.from_mapping({**dict(self.values), attribute: default})


def posterior(prior: ArrayLike, likelihood: ArrayLike) -> Floats:
    """Return Bayes' a-posteriori belief over models (definition 8); NaN if the observation is impossible.

    >>> posterior([0.5, 0.5], [1.0, 0.25]).tolist()
    [0.8, 0.2]
    """
    weight = np.asarray(prior, dtype=np.float64) * np.asarray(likelihood, dtype=np.float64)
    total = weight.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0, weight / total, np.nan))


def total_variation(p: ArrayLike, q: ArrayLike) -> float:
    """Return SD (definition 10), half the L1 distance: 0 = the same belief, 1 = nothing in common.

    >>> total_variation([0.5, 0.5, 0.0], [0.0, 0.5, 0.5])
    0.5
    """
    return float(np.abs(np.asarray(p, np.float64) - np.asarray(q, np.float64)).sum() / 2)


def satisfies(posterior_mass: ArrayLike, sigma: float) -> bool:
    """Say whether no listed value is believed more than sigma (definition 13); undefined mass never satisfies."""
    return bool((np.asarray(posterior_mass, np.float64) <= sigma).all())


def is_sensitive(attributes: Iterable[str], requirements: Iterable[Iterable[str]]) -> bool:
    """Say whether a non-empty attribute set lies within some requirement (definition 14)."""
    asked = frozenset(attributes)
    return bool(asked) and any(asked <= frozenset(named) for named in requirements)
