"""A small Bayesian network over personal attributes, whose tables are known.

A node's table has one row for each combination of its parents' values (the last parent runs fastest) and one
column a value; rows add up to 1. The joint probability of a person is the product over the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from incrowd.crowd.synthetic.chance import Floats, Ints, integers, normal, stream, uniform, zipf
from incrowd.crowd.synthetic.words import made_up_words

Codes = Mapping[str, Ints]
"""For each attribute the position of each person's value in the node's `values`."""


ALMOST_ONE = 1 - 1e-9  # keeps a draw below 1 after a row number is added to it


@dataclass(frozen=True, eq=False)
class Node:
    """One attribute: its values, the attributes it depends on, and how."""

    name: str
    values: tuple[str, ...]
    parents: tuple[str, ...]
    table: Floats


@dataclass(frozen=True)
class Network:
    """Attributes in an order in which parents come first."""

    nodes: tuple[Node, ...]

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """The nodes by attribute."""
        return {node.name: node for node in self.nodes}

    def row(self, node: Node, codes: Codes) -> Ints:
        """Return the row of the node's table that applies to each person."""
        people = len(next(iter(codes.values()))) if codes else 0
        row = np.zeros(people, dtype=np.int64)
        for parent in node.parents:
            row = row * len(self.by_name[parent].values) + codes[parent]
        return row

    def probability(self, codes: Codes) -> Floats:
        """Return the exact joint probability of each fully described person."""
        factors = [node.table[self.row(node, codes), codes[node.name]] for node in self.nodes]
        return np.asarray(np.prod(factors, axis=0))

    def sample(self, person: Ints, seed: int) -> dict[str, Ints]:
        """Draw every attribute of the given persons (by number)."""
        codes: dict[str, Ints] = {}
        for node in self.nodes:
            row = self.row(node, codes) if node.parents else np.zeros(len(person), dtype=np.int64)
            draws = np.minimum(uniform(stream(seed, f"attribute {node.name}"), person), ALMOST_ONE)
            codes[node.name] = _drawn(node.table, row, draws)
        return codes

    def conditional(self, name: str) -> pl.DataFrame:
        """Return a node's table in long form: the parents' values, the value, and its probability."""
        node = self.by_name[name]
        axes = [list(self.by_name[parent].values) for parent in node.parents] + [list(node.values)]
        grid = np.meshgrid(*(np.arange(len(axis)) for axis in axes), indexing="ij")
        labels = [pl.Series(axis).gather(index.ravel()) for axis, index in zip(axes, grid, strict=True)]
        columns = dict(zip([*node.parents, name], labels, strict=True))
        return pl.DataFrame({**columns, "probability": node.table.ravel()})


def _drawn(table: Floats, row: Ints, draws: Floats) -> Ints:
    """Return the value that each draw picks from its row, by one search over all rows.

    The cumulative shares of row *r* are lifted to the interval [r, r + 1], so that they rise throughout.
    """
    borders = np.minimum(np.cumsum(table[:, :-1], axis=1), 1.0) + np.arange(len(table))[:, None]
    places = np.searchsorted(borders.ravel(), row + draws, side="right")
    return np.asarray(places - row * borders.shape[1])


# name: (values or how many, parents, how strongly the parents decide)
AGES = ("under 18", "18-25", "26-35", "36-50", "51-65", "over 65")
PLAN: dict[str, tuple[tuple[str, ...] | int, tuple[str, ...], float]] = {
    "zip": (90, (), 0.0),
    "city": (15, ("zip",), np.inf),
    "region": (4, ("city",), np.inf),
    "age": (AGES, (), 0.0),
    "gender": (("female", "male", "other"), (), 0.0),
    "birthday": (365, (), 0.0),
    "language": (6, ("region",), 2.0),
    "school": (25, ("city",), 1.5),
    "degree": (("none", "school", "bachelor", "master", "doctorate"), ("age",), 1.0),
    "employer": (60, ("city", "school"), 1.5),
    "job": (20, ("employer",), 1.5),
    "income": (("low", "middle", "high", "very high"), ("degree", "age"), 1.0),
    "religion": (7, ("region", "language"), 1.2),
    "politics": (("left", "green", "centre", "right", "none"), ("religion", "age"), 1.0),
    "relationship": (("single", "partner", "married", "divorced"), ("age", "gender"), 1.0),
    "children": (("none", "one", "two", "more"), ("relationship", "age"), 1.0),
    "pet": (("none", "dog", "cat", "other"), ("children",), 0.8),
    "sport": (8, ("age", "gender"), 1.0),
    "music": (10, ("age", "language"), 1.0),
    "smoker": (("no", "yes"), ("degree",), 0.8),
}


def default_network(seed: int = 0) -> Network:
    """Return a network of 20 attributes; the zip code decides the city, the city the region."""
    nodes: dict[str, Node] = {}
    for name, (values, parents, strength) in PLAN.items():
        labels = values if isinstance(values, tuple) else _labels(name, values)
        rows = int(np.prod([len(nodes[parent].values) for parent in parents], dtype=np.int64))
        nodes[name] = Node(name, labels, parents, _table(name, rows, len(labels), strength, seed))
    return Network(tuple(nodes.values()))


def _labels(name: str, count: int) -> tuple[str, ...]:
    if name == "zip":
        return tuple(f"{10_000 + 37 * number}" for number in range(count))
    if name == "birthday":
        days = pl.date_range(pl.date(2001, 1, 1), pl.date(2001, 12, 31), eager=True)
        return tuple(days.dt.strftime("%m-%d"))
    return tuple(made_up_words(count, start=400 * list(PLAN).index(name)).str.to_titlecase())


def _table(name: str, rows: int, columns: int, strength: float, seed: int) -> Floats:
    """Return a table whose rows differ the more, the greater the strength; at infinity the parents decide."""
    key = stream(seed, f"table {name}")
    if np.isinf(strength):
        chosen = integers(key, np.arange(rows), columns)
        chosen[:columns] = np.arange(columns)  # every value occurs
        return np.eye(columns)[chosen]
    usual = np.full(columns, 1 / columns) if name in ("birthday", "gender") else zipf(columns, 0.7)
    lean = normal(key, np.arange(rows * columns)).reshape(rows, columns)
    table = usual * np.exp(strength * lean)
    return np.asarray(table / table.sum(axis=1, keepdims=True))
