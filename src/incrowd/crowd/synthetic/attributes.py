"""Attribute tables: who lives, works, believes and votes where and how, with known correlations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.crowd.schema import COLUMNS
from incrowd.crowd.synthetic.chance import Ints, stream, uniform
from incrowd.crowd.synthetic.network import Network, default_network
from incrowd.crowd.synthetic.table import CHUNK, SyntheticTable, require
from incrowd.crowd.synthetic.words import user_names


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
        """Yield one row a person: user, then one column an attribute, null where it is not given."""
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
