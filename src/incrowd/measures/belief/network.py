"""Belief as a Bayesian network: given, or learnt from a crowd as the best tree.

The tree is Chow and Liu's (1968) with one change: an edge is worth what it adds to the log-probability of people who
are left out, not the mutual information of those who are not.

Inference is exact, by variable elimination: sum one variable out after the other, the cheapest first. Own code,
because it is short: the maintained libraries for Bayesian networks bring a deep-learning framework or a plotting
stack with them, and answer one person at a time. NumPy's einsum does each sum, for a batch of people at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from incrowd.arrays import Floats
from incrowd.measures.belief.engine import normalised
from incrowd.profiles.attributes import HIDDEN, AttributeSpace, AttributeTable, SeenAttributes

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


PRIOR_PEOPLE = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Each row of a learnt table starts with so many made-up people who follow the whole crowd's shares; the number under
which left-out people are predicted best is taken."""
HALF = 0.5
BLOCK_CELLS = 2**22


class NodeLike(Protocol):
    """An attribute with its values, parents, and a table: one row per combination of parents, one column per value."""

    @property
    def name(self) -> str: ...  # noqa: D102  # told by the class
    @property
    def values(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def parents(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def table(self) -> Floats: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class NetworkBelief:
    """A joint distribution as a product of one table per attribute, given its parents."""

    space: AttributeSpace
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[Floats, ...]
    """For each attribute an array with an axis a parent and a last axis for itself."""
    people: int | None = None

    @classmethod
    def given(cls, nodes: Iterable[NodeLike]) -> NetworkBelief:
        """Take known tables, e.g. those of ``incrowd.synthetic``'s networks."""
        listed = list(nodes)
        space = AttributeSpace.of({node.name: node.values for node in listed})
        parents = tuple(tuple(space.place(parent) for parent in node.parents) for node in listed)
        tables = tuple(
            np.asarray(node.table, np.float64).reshape([*(space.sizes[p] for p in above), space.sizes[place]])
            for place, (node, above) in enumerate(zip(listed, parents, strict=True))
        )
        return cls(space, parents, tables)

    @classmethod
    def learn(cls, table: AttributeTable) -> NetworkBelief:
        """Learn the tree that keeps most of what attributes say about each other."""
        space, above = table.space, _best_tree(table)
        shares = [_counts(table, (place,)) for place in range(len(above))]
        usual = [(share + 1e-9) / (share + 1e-9).sum() for share in shares]
        tables = tuple(
            usual[place] if parent is None else _conditional(_counts(table, (parent, place)), usual[place])
            for place, parent in enumerate(above)
        )
        parents = tuple(() if parent is None else (parent,) for parent in above)
        return cls(space, parents, tables, len(table.codes))

    @property
    def words(self) -> str:
        """Say where the belief comes from."""
        source = "known tables" if self.people is None else f"a crowd of {self.people:,} people"
        return f"someone who knows how attributes go together, from {source}"

    def mass(self, evidence: SeenAttributes) -> Floats:
        """Return the probability of the evidence."""
        return self._in_blocks(evidence, ())[:, 0]

    def posteriors(self, targets: Sequence[int], evidence: SeenAttributes) -> list[Floats]:
        """Return the belief in each value of each target, by exact inference."""
        return [normalised(self._in_blocks(evidence, (place,))) for place in targets]

    def focused(
        self, evidence: SeenAttributes, keep: Collection[int]
    ) -> tuple[NetworkBelief, SeenAttributes]:
        """Return the belief itself: elimination works on a batch of variants at once."""
        return self, evidence

    def _in_blocks(self, evidence: SeenAttributes, keep: tuple[int, ...]) -> Floats:
        if not len(evidence):
            return np.empty((0, self.space.sizes[keep[0]] if keep else 1))
        used = self._needed({*keep, *evidence.informative})
        largest = max((self.tables[place].size for place in used), default=1)
        size = max(1, BLOCK_CELLS // largest)
        parts = [
            self._block(evidence.people(slice(first, first + size)), keep, used)
            for first in range(0, len(evidence), size)
        ]
        return np.concatenate(parts)

    def _block(self, evidence: SeenAttributes, keep: tuple[int, ...], used: list[int]) -> Floats:
        factors = [Factor((*self.parents[place], place), self.tables[place]) for place in used]
        fixed = {} if len(evidence) > 1 else _fixed(evidence, keep)
        factors = [_sliced(factor, fixed) for factor in factors]
        factors += [
            Factor((PEOPLE, place), evidence.likelihood(place))
            for place in evidence.informative
            if place not in fixed
        ]
        scale = np.prod([evidence.soft[p][0, code] for p, code in fixed.items() if p in evidence.soft])
        factors.append(Factor((PEOPLE,), np.full(len(evidence), float(scale))))
        found = eliminate(factors, (PEOPLE, *keep))
        return found if keep else found[:, None]

    def _needed(self, asked: set[int]) -> list[int]:
        """Return the attributes asked for and all above them; the others sum to 1 and drop out."""
        needed, waiting = set(asked), list(asked)
        while waiting:
            for parent in self.parents[waiting.pop()]:
                if parent not in needed:
                    needed.add(parent)
                    waiting.append(parent)
        return sorted(needed)

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Return which attribute depends on which: (parent, child)."""
        name = self.space.attributes
        return tuple(
            (name[parent], name[place]) for place, above in enumerate(self.parents) for parent in above
        )


def _fixed(evidence: SeenAttributes, keep: tuple[int, ...]) -> dict[int, int]:
    seen = np.flatnonzero(evidence.seen[0] != HIDDEN).tolist()
    return {place: int(evidence.seen[0, place]) for place in seen if place not in keep}


def _sliced(factor: Factor, fixed: dict[int, int]) -> Factor:
    """Keep the part of a table that agrees with the values seen."""
    index = tuple(fixed.get(label, slice(None)) for label in factor.labels)
    return Factor(tuple(label for label in factor.labels if label not in fixed), factor.table[index])


def _counts(table: AttributeTable, places: tuple[int, ...]) -> Floats:
    """Count people by their values of one or two attributes; those who gave not all are left out."""
    codes = table.codes[:, list(places)].astype(np.int64)
    codes = codes[(codes != HIDDEN).all(axis=1)]
    sizes = [table.space.sizes[place] for place in places]
    flat = np.ravel_multi_index(tuple(codes.T), sizes)
    return np.bincount(flat, minlength=int(np.prod(sizes))).reshape(sizes).astype(np.float64)


def _conditional(counts: Floats, usual: Floats) -> Floats:
    weighed = counts + _best_prior(counts)[0] * usual
    return np.asarray(weighed / weighed.sum(axis=1, keepdims=True))


def _best_prior(counts: Floats) -> tuple[float, float]:
    """Return how many made-up people a row should start with, and by how many nats the parent then helps.

    Each person is predicted from the others alone (their column's value, with and without knowing their row), so two
    attributes with many values do not seem to say much about each other in a small crowd.
    """
    rows, columns = np.nonzero(counts)
    people, both = counts.sum(), counts[rows, columns]
    if people < 2:
        return PRIOR_PEOPLE[-1], 0.0
    usual = (counts.sum(axis=0) - 1 + HALF)[columns] / (people - 1 + HALF * counts.shape[1])
    row = counts.sum(axis=1)[rows]
    gains = [
        float((both * (np.log((both - 1) / usual + prior) - np.log(row - 1 + prior))).sum())
        for prior in PRIOR_PEOPLE
    ]
    best = int(np.argmax(gains))
    return PRIOR_PEOPLE[best], gains[best]


def _gain(counts: Floats) -> float:
    """Return what an edge between two attributes is worth, either way round on average."""
    return (_best_prior(counts)[1] + _best_prior(counts.T)[1]) / 2


def _best_tree(table: AttributeTable) -> list[int | None]:
    """Return each attribute's parent in the tree that predicts left-out people best; None for roots."""
    many = len(table.space.attributes)
    gain = np.zeros((many, many))
    for one in range(many):
        for other in range(one + 1, many):
            gain[one, other] = max(_gain(_counts(table, (one, other))), 0.0)
    tree = minimum_spanning_tree(csr_matrix(-gain))
    parents: list[int | None] = [None] * many
    seen: set[int] = set()
    for root in range(many):
        if root in seen:
            continue
        order, before = breadth_first_order(tree, root, directed=False)
        seen |= set(order.tolist())
        for place in order[1:]:
            parents[int(place)] = int(before[place])
    return parents
