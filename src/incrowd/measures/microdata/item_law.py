"""What a card tells of people's lists, and people made up from it.

Listed are items that many people have, with about how many do. Of the lists there is how many people have how many
items, and which share of these is listed. People are made up from that:

- *How much* somebody has is drawn from the lengths of lists; those with long lists take every item more readily
  (the logistic model of :mod:`.expected_crowd`, with one class for each range of lengths).
- *Taste.* Real people who share one item with somebody share others, too. Everybody made up has a liking for what the
  person asked about has, on the logistic scale normal with standard deviation `taste`; popularities stay as they are.
- *Unlisted items.* It is as if there were so many of them, all equally common.

Only the items of one person matter to questions about that person, so made-up people are drawn for these alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse
from scipy.special import expit

from incrowd.arrays import Floats, Ints
from incrowd.errors import UnreadableSource
from incrowd.measures.microdata.expected_crowd import ActivityGroups, class_probabilities, fit_levels
from incrowd.measures.microdata.table import ItemTable

POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
"""Likings of made-up people, in standard deviations, and how frequent each is."""
MOST_PEOPLE = 250_000
"""So many people are made up at most."""
FEW = 2_000
"""Up to so many people it is asked of each whether they have an item."""
MOST_UNLISTED = 0.5
"""The share of a class that has an unlisted item, at most."""
NEVER, ODDLY = 0.005, 1.005
"""Chances are compared by the logarithm of (chance + 0.005) / (1.005 - chance): defined at 0 and 1, too."""
REACH_OF_CHANCES, REACH_OF_PEOPLE = 3.8, 2.3
"""Half the widths of intervals where nobody was held out: docs/explanation/cards.md says how they were chosen."""
REACH_OF = {"ten-items": 8.0, "three-rarest": 11.0}
"""The same where tables differ too much: then it tells nothing."""
TELLS_NOTHING = 5.0
"""Half the width of an interval, in log odds, from which on it holds nearly every probability."""
FOUND = "paper, one guess"
"""What the accuracy of the paper's adversary who guesses among those who fit is called."""
MOST_NAME, MOST_ITEMS = 10_000, 1_000_000


@dataclass(frozen=True, eq=False)
class ItemLaw:
    """People's lists as a card describes them."""

    items: tuple[str, ...]
    holders: Floats
    """About how many people have each listed item."""
    lengths: pl.DataFrame
    """items_from, items_to, people, listed: so many people have from so many to less than so many items, of which this
    share is listed."""
    unlisted_items: int
    """As if there were so many other items, all equally common."""
    taste: float
    accuracy: Mapping[str, Mapping[str, float]]
    """By adversary: how far off it was for people held out; `reach` is half the width of the interval."""

    @classmethod
    def of(cls, tables: Mapping[str, pl.DataFrame], facts: Mapping[str, Any]) -> ItemLaw:
        """Read the section of a card; tables that do not fit are refused."""
        try:
            found = cls(
                items=tuple(tables["items"]["item"].cast(pl.String).to_list()),
                holders=tables["items"]["people"].cast(pl.Float64).to_numpy(),
                lengths=tables["lengths"].select(
                    pl.col("items_from", "items_to", "people").cast(pl.Int64),
                    pl.col("listed").cast(pl.Float64),
                ),
                unlisted_items=int(facts["unlisted_items"]),
                taste=float(facts["taste"]),
                accuracy={
                    str(name): {"reach": float(one["reach"])}
                    for name, one in (facts.get("accuracy") or {}).items()
                },
            )
        except (KeyError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError):
            raise UnreadableSource(
                "the card does not say about items what cards of this version say: tables items and lengths, and the "
                "facts unlisted_items and taste."
            ) from None
        if not found._fits():
            raise UnreadableSource("the card's numbers about items cannot be true: it is damaged.")
        return found

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return it as the tables of a card."""
        order = np.argsort(-self.holders, kind="stable")
        names = [self.items[place] for place in order.tolist()]
        return {
            # Kinds are said, because noise may leave no item to list.
            "items": pl.DataFrame(
                {"item": names, "people": self.holders[order].astype(np.int32)},
                schema={"item": pl.String, "people": pl.Int32},
            ),
            "lengths": self.lengths.cast(
                {"items_from": pl.Int32, "items_to": pl.Int32, "people": pl.Int32, "listed": pl.Float32}
            ),
        }

    def _fits(self) -> bool:
        lengths, people = self.lengths, self.people
        reaches = [one["reach"] for one in self.accuracy.values()]
        return (
            lengths.height > 0
            and people > 0
            and lengths.null_count().sum_horizontal().item() == 0
            and bool((lengths["people"] > 0).all())
            and bool((lengths["items_from"] >= 1).all())
            and bool((lengths["items_to"] > lengths["items_from"]).all())
            and bool((lengths["items_to"] <= MOST_ITEMS).all())
            and bool(lengths["listed"].is_between(0, 1).all())
            and len(set(self.items)) == len(self.items)
            and all(isinstance(name, str) and len(name) <= MOST_NAME for name in self.items)
            and bool(np.isfinite(self.holders).all())
            and bool((self.holders >= 1).all())
            and bool((self.holders <= 2 * people).all())
            and self.unlisted_items >= 1
            and 0 <= self.taste <= 5
            and all(math.isfinite(reach) and 0 <= reach <= 100 for reach in reaches)
        )

    @property
    def people(self) -> int:
        """About how many people have items."""
        return int(self.lengths["people"].sum())

    @cached_property
    def typical(self) -> Floats:
        """About how many items people of each range have."""
        first, end = (self.lengths[name].to_numpy() for name in ("items_from", "items_to"))
        return np.asarray(np.sqrt(first * np.maximum(end - 1.0, first)))

    @cached_property
    def shares(self) -> Floats:
        """The share of people in each range."""
        return np.asarray(self.lengths["people"].to_numpy() / self.people)

    @cached_property
    def activity(self) -> ActivityGroups:
        """How readily people of each range take an item."""
        listed = np.maximum(self.typical * self.lengths["listed"].to_numpy(), 1e-3)
        if not len(self.items):
            return ActivityGroups(self.shares, np.zeros(len(self.shares)))
        return fit_levels(self.shares, np.minimum(listed, 0.95 * len(self.items)), self.holders / self.people)

    @cached_property
    def unlisted(self) -> Floats:
        """The share of people of each range who have some unlisted item."""
        share = self.typical * (1 - self.lengths["listed"].to_numpy()) / self.unlisted_items
        return np.asarray(np.minimum(share, MOST_UNLISTED))

    def chances(self, items: list[str], taste: float | None = None) -> Floats:
        """Return how probably made-up people have each item: by range and, within it, by liking."""
        taste = self.taste if taste is None else taste
        place_of = {name: place for place, name in enumerate(self.items)}
        place = np.array([place_of.get(item, -1) for item in items], np.int64)
        liking = np.tile(POINTS, len(self.shares)) * taste
        shares = np.repeat(self.shares, len(POINTS)) * np.tile(WEIGHTS / WEIGHTS.sum(), len(self.shares))
        levels = np.repeat(self.activity.levels, len(POINTS)) + liking
        known = place >= 0
        chances = np.empty((len(liking), len(items)))
        chances[:, known] = class_probabilities(
            self.holders[place[known]] / self.people, ActivityGroups(shares, levels)
        )
        rare = np.repeat(self.unlisted, len(POINTS)) * np.exp(liking - taste**2 / 2)
        chances[:, ~known] = np.minimum(rare, MOST_UNLISTED)[:, None]
        return chances

    def made_up(
        self, items: Iterable[str], user: str, seed: int = 0, taste: float | None = None
    ) -> ItemTable:
        """Make up people and put somebody with these items among them, in the last row."""
        names = sorted(items)
        chances = self.chances(names, taste)
        people = min(self.people, MOST_PEOPLE)
        rng = np.random.default_rng([seed, 29])
        shares = np.repeat(self.shares, len(POINTS)) * np.tile(WEIGHTS, len(self.shares))
        counted = rng.multinomial(people, shares / shares.sum())
        starts = np.concatenate([[0], np.cumsum(counted)])
        rows, columns = [np.full(len(names), people)], [np.arange(len(names))]
        for kind, (first, size) in enumerate(zip(starts.tolist(), counted.tolist(), strict=False)):
            row, column = drawn(size, chances[kind], rng)
            rows.append(first + row)
            columns.append(column)
        there = np.concatenate(rows), np.concatenate(columns)
        matrix = sparse.csr_matrix((np.ones(len(there[0]), np.int8), there), shape=(people + 1, len(names)))
        matrix.sort_indices()
        lengths = np.append(self._drawn_lengths(counted, rng), len(names))
        nothing = np.full(matrix.nnz, np.nan, np.float32)
        return ItemTable(
            matrix,
            pl.Series([*map(str, range(people)), user]),
            pl.Series(names, dtype=pl.String),
            nothing,
            nothing,
            None,
            np.maximum(lengths, np.diff(matrix.indptr)),
        )

    def _drawn_lengths(self, counted: Ints, rng: np.random.Generator) -> Ints:
        """Draw how many items everybody has: evenly by logarithm within their range."""
        first, end = (
            np.repeat(np.repeat(self.lengths[name].to_numpy(), len(POINTS)), counted)
            for name in ("items_from", "items_to")
        )
        ratio = np.log(end / first)
        return np.asarray(np.floor(first * np.exp(ratio * rng.random(len(first))) + 1e-9), np.int64)

    # How sure it is

    def interval_of_people(self, others: float, name: str) -> tuple[float, float]:
        """Return between which numbers of others the truth lies, if so many made-up ones fit."""
        reach = self._reach(name, REACH_OF_PEOPLE)
        low, high = math.expm1(math.log1p(others) - reach), math.expm1(math.log1p(others) + reach)
        more = self.people / min(self.people, MOST_PEOPLE)
        return max(low, 0.0), min(high * more, float(self.people))

    def tells(self, name: str) -> bool:
        """Say whether it tells anything about an adversary: an interval from next to 0 to next to 1 does not."""
        return self._reach(name, REACH_OF.get(name, 0.0)) < TELLS_NOTHING

    def interval_of_chance(self, chance: float, name: str) -> tuple[float, float]:
        """Return between which probabilities the truth lies."""
        reach = self._reach(name, REACH_OF.get(name, REACH_OF_CHANCES))
        low, high = (_chance(log_odds(chance) + way * reach) for way in (-1, 1))
        if self.people > MOST_PEOPLE:  # among fewer rivals than there are, somebody is found more easily
            low *= MOST_PEOPLE / self.people
        return min(low, chance), max(high, chance)

    def _reach(self, name: str, unknown: float) -> float:
        return float(self.accuracy[name]["reach"]) if name in self.accuracy else unknown


def drawn(people: int, chances: Floats, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw who of so many people has which items, each item with its chance: rows and columns."""
    if people <= FEW:
        row, column = np.nonzero(rng.random((people, len(chances))) < chances)
        return row, column
    found = [holders(people, chance, rng) for chance in chances.tolist()]
    return np.concatenate(found), np.repeat(np.arange(len(found)), [len(one) for one in found])


def holders(people: int, chance: float, rng: np.random.Generator) -> Ints:
    """Draw who of so many people has an item: from one to the next, so that it takes no longer than they are many."""
    found, last = [np.zeros(0, np.int64)], -1
    while chance > 0 and last < people:
        gaps = rng.geometric(chance, int(people * chance + 4 * math.sqrt(people * chance)) + 8)
        found.append(last + np.cumsum(gaps))
        last = int(found[-1][-1])
    together = np.concatenate(found)
    return together[together < people]


def log_odds(chance: Any) -> Any:
    """Return by what chances are compared."""
    return np.log((np.asarray(chance, float) + NEVER) / (ODDLY - np.asarray(chance, float)))


def _chance(odds: float) -> float:
    """Return the chance that has these odds, see :func:`log_odds`."""
    return float(np.clip((ODDLY + NEVER) * expit(odds) - NEVER, 0.0, 1.0))
