"""Holder tables for query release: who names which favourites, where they live, where they belong.

People spell the same favourite in several ways. The spellings are the raw values, the favourite behind them
is the canonical one; the truth says which is which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from incrowd.crowd.schema import COLUMNS
from incrowd.crowd.synthetic.chance import Ints, integers, lookup_table, stream, zipf
from incrowd.crowd.synthetic.items import MadeUpItems
from incrowd.crowd.synthetic.table import CHUNK, SyntheticTable, require
from incrowd.crowd.synthetic.words import made_up_words, titles, user_names

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
    def choice(self) -> MadeUpItems:
        """Who names which canonical favourite."""
        return MadeUpItems(
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
