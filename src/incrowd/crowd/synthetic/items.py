"""People who rate (popularity, clusters of taste), and holder tables for query release: who names which favourites.

People spell the same favourite in several ways. The spellings are the raw values, the favourite behind them
is the canonical one; the truth says which is which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.arrays import Floats, Ints
from incrowd.crowd.schema import COLUMNS
from incrowd.crowd.synthetic.chance import apportion, integers, lookup_table, normal, stream, uniform, zipf
from incrowd.crowd.synthetic.table import CHUNK, SyntheticTable, require
from incrowd.crowd.synthetic.words import made_up_words, titles, user_names

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, kw_only=True)
class _MadeUpItems:
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
        from incrowd.crowd.synthetic.kernels import choose_items

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


LOWEST, HIGHEST = 1, 5
YEAR = 365 * 86_400


@dataclass(frozen=True, kw_only=True)
class SyntheticItems(SyntheticTable):
    """A crowd that rates items. Rows come user by user; only sizes and popularities are kept in memory.

    Examples
    --------
    >>> SyntheticItems(users=100, items=50, entries=900).to_csr().nnz
    900
    """

    kind = "items"

    users: int = 1_000
    items: int = 500
    entries: int | None = None
    """How many (user, item) pairs; thirty a user unless stated, as far as there are items."""
    fewest: int = 1
    """The smallest profile."""
    most: int | None = None
    size_tail: float = 1.1
    """Spread of the logarithm of items per user."""
    popularity_tail: float = 1.0
    """Exponent of the popularity of items by rank (Zipf)."""
    clusters: int = 8
    taste: float = 0.5
    """The share of choices made within one's own cluster of taste."""
    ratings: bool = True
    dates: bool = True
    start: int = 946_684_800
    """UTC seconds; the default is 1 January 2000."""
    years: float = 6.0
    cast: tuple[tuple[str, int], ...] = ()
    """Names and profile sizes of users 0, 1, ..., where they are given."""
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.users >= 1, "users", "at least 1", self.users)
        require(self.items >= 1, "items", "at least 1", self.items)
        require(self.clusters >= 1, "clusters", "at least 1", self.clusters)
        require(0 <= self.taste <= 1, "taste", "a share from 0 to 1", self.taste)
        known = [size for _, size in self.cast]
        others, entries = self.users - len(known), self.rows - sum(known)
        require(others >= 1, "users", f"more than the cast of {len(known)}", self.users)
        require(max(known, default=0) <= self.items, "cast", f"at most {self.items} items each", known)
        least, largest = others * self.fewest, others * self._most
        require(least <= entries <= largest, "entries", f"{least} to {largest} beside the cast's", entries)

    @property
    def _most(self) -> int:
        return self.items if self.most is None else min(self.most, self.items)

    @property
    def rows(self) -> int:
        """How many (user, item) pairs there are."""
        return self.users * min(30, self.items) if self.entries is None else self.entries

    @cached_property
    def choice(self) -> _MadeUpItems:
        """The truth: profile sizes, popularity weights, clusters of items and users."""
        return _MadeUpItems(
            users=self.users,
            items=self.items,
            entries=self.rows,
            fewest=self.fewest,
            most=self._most,
            size_tail=self.size_tail,
            popularity_tail=self.popularity_tail,
            clusters=min(self.clusters, self.items),
            taste=self.taste,
            known_sizes=tuple(size for _, size in self.cast),
            seed=self.seed,
        )

    @cached_property
    def user_names(self) -> pl.Series:
        """The name of every user."""
        return user_names(self.users, tuple(name for name, _ in self.cast))

    @cached_property
    def item_names(self) -> pl.Series:
        """The name of every item, most popular first."""
        return titles(self.items)

    def frames(self, chunk: int = CHUNK) -> Iterator[pl.DataFrame]:
        """Yield the rows user by user, about `chunk` at a time; a user is never cut."""
        require(chunk >= 1, "chunk", "at least 1 row", chunk)
        for first, last in self.choice.blocks(chunk):
            user = np.repeat(np.arange(first, last), self.choice.sizes[first:last])
            item = self.choice.chosen(first, last).astype(np.int64)
            columns = {
                "user": self.user_names.gather(user),
                "item": self.item_names.gather(item),
                "value": self._ratings(user, item) if self.ratings else None,
                "time": self._dates(user, item) if self.dates else None,
            }
            yield pl.DataFrame(columns, schema=COLUMNS["items"])

    def to_csr(self, *, values: bool = False) -> csr_array:
        """Return the table as a sparse matrix, users by items: ones (int8), or ratings with `values`."""
        from scipy.sparse import csr_array

        columns = np.empty(self.rows, dtype=np.int32)
        data = np.ones(self.rows, dtype=np.int8)
        for first, last in self.choice.blocks(16 * CHUNK):
            part = slice(self.choice.bounds[first], self.choice.bounds[last])
            columns[part] = self.choice.chosen(first, last)
            if values:
                user = np.repeat(np.arange(first, last), self.choice.sizes[first:last])
                data[part] = self._ratings(user, columns[part].astype(np.int64))
        wide = self.rows > np.iinfo(np.int32).max
        bounds = self.choice.bounds.astype(np.int64 if wide else np.int32)
        return csr_array((data, columns, bounds), shape=(self.users, self.items))

    def _ratings(self, user: Ints, item: Ints) -> Floats:
        """Return 1 to 5 stars: the item's quality, the user's mood, half a star more for one's own taste."""
        pair = user * self.items + item
        own = self.choice.user_cluster[user] == self.choice.item_cluster[item]
        liking = 3.4 + 0.5 * self._qualities[item] + 0.4 * self._moods[user] + 0.5 * own
        liking += 0.8 * normal(stream(self.seed, "rating"), pair)
        return np.asarray(np.clip(np.rint(liking), LOWEST, HIGHEST))

    @cached_property
    def _qualities(self) -> Floats:
        return normal(stream(self.seed, "quality"), np.arange(self.items))

    @cached_property
    def _moods(self) -> Floats:
        return normal(stream(self.seed, "mood"), np.arange(self.users))

    def _dates(self, user: Ints, item: Ints) -> Ints:
        """Return UTC seconds between the day the user joined and the end."""
        joined = 0.8 * uniform(stream(self.seed, "joined"), user)
        passed = joined + (1 - joined) * uniform(stream(self.seed, "date"), user * self.items + item)
        return np.asarray(self.start + (passed * self.years * YEAR).astype(np.int64))


SPELLINGS = ("{}", "the {}", "{}!", "{} (all of it)", "{}s", "old {}", "{} 2", "{} <3", "my {}", "{} etc")
SPELLING_TAIL = 0.3
CLASS_ATTRIBUTES = ("location", "affiliation")


@dataclass(frozen=True, kw_only=True)
class SyntheticHolders(SyntheticTable):
    """People and their favourites; a value's holders are those who name it.

    Examples
    --------
    >>> table = SyntheticHolders(users=20, values=10, favourites=3.0)
    >>> sorted(table.classes.columns)
    ['affiliation', 'location', 'user']
    """

    kind = "attributes"

    users: int = 700
    values: int = 2_000
    favourites: float = 8.0
    """The mean number of favourites of a person."""
    popularity_tail: float = 1.0
    spellings: int = 1
    """In how many ways a favourite may be spelt; 1: everybody spells alike."""
    locations: int = 60
    affiliations: int = 120
    class_tail: float = 1.1
    """Exponent of class sizes by rank: with the default, a few classes hold half of the people."""
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.users >= 1, "users", "at least 1", self.users)
        require(1 <= self.spellings <= len(SPELLINGS), "spellings", f"1 to {len(SPELLINGS)}", self.spellings)
        require(1 <= self.favourites <= self.values, "favourites", f"1 to {self.values}", self.favourites)

    @property
    def rows(self) -> int:
        """How many rows there are: favourites, and one location and affiliation a person."""
        return self.choice.entries + len(CLASS_ATTRIBUTES) * self.users

    @cached_property
    def choice(self) -> _MadeUpItems:
        """Who names which canonical favourite."""
        return _MadeUpItems(
            users=self.users,
            items=self.values,
            entries=round(self.users * self.favourites),
            fewest=1,
            most=self.values,
            size_tail=0.7,
            popularity_tail=self.popularity_tail,
            clusters=1,
            taste=0.0,
            known_sizes=(),
            seed=self.seed,
        )

    @cached_property
    def user_names(self) -> pl.Series:
        """The name of every user."""
        return user_names(self.users)

    @cached_property
    def truth(self) -> pl.DataFrame:
        """Columns value, canonical: what each raw value means. Raw values are numbered by row."""
        names = titles(self.values).alias("canonical")
        patterns = pl.DataFrame({"pattern": SPELLINGS[: self.spellings]})
        spelt = pl.DataFrame({"canonical": names}).join(patterns, how="cross")
        value = pl.col("pattern").str.replace("{}", pl.col("canonical"), literal=True)
        return spelt.select(value.alias("value"), "canonical")

    @cached_property
    def classes(self) -> pl.DataFrame:
        """Columns user, location, affiliation: the attributes that select an equivalence class."""
        sizes = dict(zip(CLASS_ATTRIBUTES, (self.locations, self.affiliations), strict=True))
        columns = {name: self._class(name, count) for name, count in sizes.items()}
        return pl.DataFrame({"user": self.user_names, **columns})

    def _class(self, name: str, count: int) -> pl.Series:
        table = lookup_table(zipf(count, self.class_tail))
        drawn = table[integers(stream(self.seed, name), np.arange(self.users), len(table))]
        return (
            made_up_words(count, start=1_000 * (1 + CLASS_ATTRIBUTES.index(name)))
            .str.to_titlecase()
            .gather(drawn)
        )

    def entries(self, chunk: int = CHUNK) -> Iterator[tuple[Ints, Ints]]:
        """Yield (user, raw value) numbers, user by user, about `chunk` at a time."""
        require(chunk >= 1, "chunk", "at least 1 row", chunk)
        table = lookup_table(zipf(self.spellings, SPELLING_TAIL))
        for first, last in self.choice.blocks(chunk):
            user = np.repeat(np.arange(first, last), self.choice.sizes[first:last])
            favourite = self.choice.chosen(first, last).astype(np.int64)
            pair = user * self.values + favourite
            yield (
                user,
                favourite * self.spellings + table[integers(stream(self.seed, "spelling"), pair, len(table))],
            )

    def frames(self, chunk: int = CHUNK) -> Iterator[pl.DataFrame]:
        """Yield rows (user, attribute, value): every location and affiliation, then every favourite."""
        for name in CLASS_ATTRIBUTES:
            rows = self.classes.select("user", pl.lit(name).alias("attribute"), pl.col(name).alias("value"))
            yield from rows.iter_slices(chunk)
        for user, value in self.entries(chunk):
            columns = {
                "user": self.user_names.gather(user),
                "attribute": pl.repeat("favourite", len(user), eager=True),
                "value": self.truth["value"].gather(value),
            }
            yield pl.DataFrame(columns, schema=COLUMNS["attributes"])

    def lists(self) -> Iterator[pl.DataFrame]:
        """Yield every value with those who hold it."""
        yield from self.grouped().iter_slices(1_000)

    def holders(self, *, canonical: bool = False, **selection: str) -> dict[str, list[str]]:
        """Return ``{value: [user, ...]}`` of a class, e.g. ``holders(location="Bazu")``, or of everybody."""
        grouped = self.grouped(canonical=canonical, **selection)
        return dict(zip(grouped["value"].to_list(), grouped["user"].to_list(), strict=True))

    def grouped(self, *, canonical: bool = False, **selection: str) -> pl.DataFrame:
        """Return :meth:`holders` as a frame: value, and the list of its users."""
        members = self.classes
        for attribute, wanted in selection.items():
            require(attribute in CLASS_ATTRIBUTES, "selection", f"some of {CLASS_ATTRIBUTES}", attribute)
            members = members.filter(pl.col(attribute) == wanted)
        named = (
            pl.concat(self.frames())
            .filter(attribute="favourite")
            .join(members, on="user", how="semi", maintain_order="left")
        )
        if canonical:
            named = named.join(self.truth, on="value", maintain_order="left").select(
                "user", value="canonical"
            )
        return named.group_by("value", maintain_order=True).agg("user")
