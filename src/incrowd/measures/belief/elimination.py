"""Exact inference by variable elimination: sum one variable out after the other, the cheapest first.

Own code, because it is short: the maintained libraries for Bayesian networks bring a deep-learning framework or a
plotting stack with them, and answer one person at a time. NumPy's einsum does each sum, for a batch of people at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.measures.belief.space import Floats

PEOPLE = -1
"""The label of the axis that runs over people."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A table over some variables; the axis of people, where there is one, comes first."""

    labels: tuple[int, ...]
    table: Floats


def eliminate(factors: Sequence[Factor], keep: tuple[int, ...]) -> Floats:
    """Multiply all factors and sum out every variable that is not kept; axes come in the order of `keep`."""
    waiting = list(factors)
    sizes = {label: size for one in waiting for label, size in zip(one.labels, one.table.shape, strict=True)}
    while left := {label for one in waiting for label in one.labels} - set(keep) - {PEOPLE}:
        variable = min(left, key=lambda label: (_cost(waiting, label, sizes), label))
        touched = [one for one in waiting if variable in one.labels]
        waiting = [one for one in waiting if variable not in one.labels]
        waiting.append(_product(touched, variable))
    return _einsum(waiting, keep)


def _cost(factors: Sequence[Factor], variable: int, sizes: dict[int, int]) -> int:
    """Return the size of the table that summing out a variable makes, before the sum."""
    joined = {label for one in factors if variable in one.labels for label in one.labels}
    cost = 1
    for label in joined:
        cost *= sizes[label]
    return cost


def _product(factors: Sequence[Factor], variable: int) -> Factor:
    joined = sorted({label for one in factors for label in one.labels} - {variable})
    return Factor(tuple(joined), _einsum(factors, tuple(joined)))


def _einsum(factors: Sequence[Factor], out: tuple[int, ...]) -> Floats:
    # einsum takes labels below 52 only, so the few variables of one sum are numbered afresh.
    fresh = {label: number for number, label in enumerate({label for one in factors for label in one.labels})}
    arguments: list[Any] = []
    for one in factors:
        arguments += [one.table, [fresh[label] for label in one.labels]]
    return np.asarray(np.einsum(*arguments, [fresh[label] for label in out], optimize=len(factors) > 2))
