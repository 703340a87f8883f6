"""People with attributes drawn from a known Bayesian network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.arrays import Floats, Ints
from incrowd.crowd.schema import COLUMNS
from incrowd.crowd.synthetic.chance import integers, normal, stream, uniform, zipf
from incrowd.crowd.synthetic.table import CHUNK, SyntheticTable, require
from incrowd.crowd.synthetic.words import made_up_words, user_names

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


@dataclass(frozen=True, kw_only=True)
class SyntheticAttributes(SyntheticTable):
    """A crowd with attributes drawn from a Bayesian network; its tables are the truth.

    Examples
    --------
    >>> people = SyntheticAttributes(users=3, missing=0)
    >>> people.to_frame().height == 3 * len(people.truth.nodes)
    True
    """

    kind = "attributes"

    users: int = 1_000
    network: Network | None = None
    """None: :func:`default_network` with this seed."""
    missing: float | Mapping[str, float] = 0.1
    """The share of people who do not give an attribute, for all attributes or by name."""
    cast: tuple[tuple[str, Mapping[str, str]], ...] = ()
    """Names of users 0, 1, ... and values they have whatever the network says."""
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.users >= 1, "users", "at least 1", self.users)
        shares = self.missing.values() if isinstance(self.missing, Mapping) else [self.missing]
        require(all(0 <= share <= 1 for share in shares), "missing", "shares from 0 to 1", self.missing)

    @cached_property
    def truth(self) -> Network:
        """The network the people are drawn from."""
        return default_network(self.seed) if self.network is None else self.network

    @property
    def rows(self) -> int:
        """How many values are given."""
        everybody = np.arange(self.users)
        return sum(int((~self._silent(node.name, everybody)).sum()) for node in self.truth.nodes)

    @cached_property
    def user_names(self) -> pl.Series:
        """The name of every user."""
        return user_names(self.users, tuple(name for name, _ in self.cast))

    def codes(self, person: Ints) -> dict[str, Ints]:
        """Return the attributes of the given persons as positions in the nodes' values; none is missing."""
        codes = self.truth.sample(person, self.seed)
        for number, (_, known) in enumerate(self.cast):
            for attribute, value in known.items():
                codes[attribute][person == number] = self.truth.by_name[attribute].values.index(value)
        return codes

    def wide(self, chunk: int = CHUNK) -> Iterator[pl.DataFrame]:
        """Yield one row per person: user, then one column per attribute, null where it is not given."""
        require(chunk >= 1, "chunk", "at least 1 row", chunk)
        for first in range(0, self.users, chunk):
            person = np.arange(first, min(first + chunk, self.users))
            codes = self.codes(person)
            columns = {
                node.name: self._given(node.name, codes[node.name], person) for node in self.truth.nodes
            }
            yield pl.DataFrame({"user": self.user_names.gather(person), **columns})

    def frames(self, chunk: int = CHUNK) -> Iterator[pl.DataFrame]:
        """Yield the given values person by person, those of about `chunk` values at a time."""
        require(chunk >= 1, "chunk", "at least 1 row", chunk)
        order = list(COLUMNS["attributes"])
        for wide in self.wide(max(1, chunk // len(self.truth.nodes))):
            numbered = wide.with_row_index("person")
            long = numbered.unpivot(index=["person", "user"], variable_name="attribute", value_name="value")
            yield long.sort("person", maintain_order=True).drop_nulls("value").select(order)

    def _given(self, name: str, codes: Ints, person: Ints) -> pl.Series:
        """Return the values as text, null where the person keeps silent; the cast never does."""
        values = pl.Series(name, self.truth.by_name[name].values, dtype=pl.String).gather(codes)
        return values.set(pl.Series(self._silent(name, person)), None)

    def _silent(self, name: str, person: Ints) -> npt.NDArray[np.bool_]:
        share = self.missing.get(name, 0.0) if isinstance(self.missing, Mapping) else self.missing
        draws = uniform(stream(self.seed, f"silent {name}"), person)
        return np.asarray((draws < share) & (person >= len(self.cast)))
