"""Who has what: users with profiles of given sizes choose items by popularity and by taste.

Items are numbered by popularity, 0 the most popular. Every item belongs to one cluster of taste and every
user to one; a user's choices lean towards the items of their cluster. Clusters get users in proportion to
their items' weight, so the clusters do not distort popularity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from incrowd.crowd.synthetic.chance import (
    Floats,
    Ints,
    apportion,
    integers,
    lookup_table,
    normal,
    stream,
    zipf,
)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A user-by-item table, made as it is read."""

    users: int
    items: int
    entries: int
    fewest: int
    most: int
    size_tail: float
    popularity_tail: float
    clusters: int
    taste: float
    known_sizes: tuple[int, ...]
    """The profile sizes of users 0, 1, ..., where they are given."""
    seed: int

    @cached_property
    def sizes(self) -> Ints:
        """How many items each user has."""
        rest = np.arange(len(self.known_sizes), self.users)
        weights = np.exp(self.size_tail * normal(stream(self.seed, "profile size"), rest))
        known = np.array(self.known_sizes, dtype=np.int64)
        drawn = apportion(weights, self.entries - int(known.sum()), low=self.fewest, high=self.most)
        return np.concatenate([known, drawn])

    @cached_property
    def bounds(self) -> Ints:
        """User *u* owns the entries from bound *u* up to bound *u* + 1."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def popularity(self) -> Floats:
        """The weight of each item, most popular first."""
        return zipf(self.items, self.popularity_tail, shift=self.items**0.5 / 4)

    @cached_property
    def item_cluster(self) -> Ints:
        """The cluster of taste each item belongs to; none is empty."""
        drawn = integers(stream(self.seed, "cluster of item"), np.arange(self.items), self.clusters)
        drawn[: self.clusters] = np.arange(self.clusters)
        return drawn

    @cached_property
    def user_cluster(self) -> Ints:
        """The cluster of taste each user belongs to."""
        weight = np.bincount(self.item_cluster, weights=self.popularity, minlength=self.clusters)
        table = lookup_table(weight.astype(np.float64))
        return table[
            integers(stream(self.seed, "cluster of user"), np.arange(self.users), len(table))
        ].astype(np.int64)

    @cached_property
    def _cluster_tables(self) -> tuple[npt.NDArray[np.int32], Ints]:
        """The clusters' lookup tables one after another, and where each begins."""
        tables = []
        for cluster in range(self.clusters):
            own = np.flatnonzero(self.item_cluster == cluster)
            tables.append(own[lookup_table(self.popularity[own])].astype(np.int32))
        return np.concatenate(tables), np.concatenate([[0], np.cumsum([len(table) for table in tables])])

    @cached_property
    def _popular(self) -> npt.NDArray[np.int32]:
        return lookup_table(self.popularity)

    def blocks(self, entries: int) -> list[tuple[int, int]]:
        """Cut the users into ranges with about so many entries each."""
        ends = np.searchsorted(self.bounds, np.arange(entries, self.entries + entries, entries), side="left")
        cuts = np.unique(np.concatenate([[0], np.minimum(ends, self.users)]))
        return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))

    def chosen(self, first: int, last: int) -> npt.NDArray[np.int32]:
        """Return the items of users `first` to `last` - 1, one user after another, each in rising order."""
        from incrowd.crowd.synthetic.item_kernel import choose_items

        bounds = self.bounds[first : last + 1] - self.bounds[first]
        items = np.empty(bounds[-1], dtype=np.int32)
        of_cluster, cluster_bounds = self._cluster_tables
        choose_items(
            stream(self.seed, "items"),
            first,
            bounds,
            self.user_cluster[first:last],
            self.taste,
            self._popular,
            of_cluster,
            cluster_bounds,
            self.items,
            items,
        )
        return items
