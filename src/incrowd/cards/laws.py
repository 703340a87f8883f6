"""What a card says about how people of a community write: how much, which words, how repetitively.

- *Lengths.* How many people wrote so many posts and so many words: counts over ranges with enough people in each.
- *Listed words.* Only words of many people are listed, with their mean share of what people write. Of a person's words,
  the share that is listed has a mean that depends on how much they wrote.
- *Rare words* are the rest. Nobody knows which they are, but people share some of them: it is as if there were so many
  rare words, all equally common. Somebody's own rare words are put in the place of these by lot (a hash).
- *Repetition.* A Pólya urn with the listed words as base shares p and concentration a: small, and a person writes few
  words again and again; endless, and every word is drawn anew. Whoever wrote n listed words does not use a word with
  probability ``G(a(1-p) + n) G(a) / (G(a(1-p)) G(a + n))`` (G: the gamma function), which tells how many people use it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import gammaln

from incrowd.cards.card import Card
from incrowd.distances.profile_index import Keys, Profile, word_keys
from incrowd.errors import UnreadableSource

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

POST_STEPS = np.array([1, 2, 3, 5, 10, 20, 40, 80, 160], np.int64)
"""Where steps of posts begin; 10 and 20, below which measures leave people out, are among them."""
WORD_STEPS = np.unique(np.round(2 ** np.arange(0, 17.5, 0.5)).astype(np.int64))
"""Where steps of words begin: 1, 2, 3, 4, 6, 8, … up to 131,072."""
MOST_WORDS = 1_000_000
ENDLESS = 1e9
"""A concentration beyond which nothing changes."""


def step_of(values: Any, steps: Ints) -> Ints:
    """Return the step each value lies in.

    >>> step_of([1, 4, 9, 10], POST_STEPS).tolist()
    [0, 2, 3, 4]
    """
    return np.asarray(np.searchsorted(steps, np.asarray(values), side="right") - 1, np.int64)


@dataclass(frozen=True, eq=False)
class Community:
    """One community as a card describes it."""

    people: int
    words: tuple[str, ...]
    shares: Floats
    """The mean share of each word among everything people write."""
    lengths: pl.DataFrame
    """posts_step, words_from, words_to, people: how many people wrote from so much to less than so much."""
    listed: pl.DataFrame
    """words_step, mean: which share of their words is listed, of people who wrote so much."""
    spread: float
    """How far people differ from that mean (standard deviation)."""
    hours: Floats
    """The share of posts in each hour of the day (UTC)."""
    concentration: float
    rare_words: int = 0
    """As if there were so many words that are not listed, all equally common; 0: nobody shares any."""

    @classmethod
    def of(cls, card: Card, community: str) -> Community:
        """Read one community of a card; tables that do not fit are refused."""
        facts, tables = card.facts(community), card.tables(community)
        try:
            found = cls(
                people=int(facts["people"]),
                words=tuple(tables["words"]["word"].to_list()),
                shares=tables["words"]["share"].cast(pl.Float64).to_numpy(),
                lengths=tables["lengths"]
                .select("posts_step", "words_from", "words_to", "people")
                .cast(pl.Int64),
                listed=tables["listed"].select(
                    pl.col("words_step").cast(pl.Int64), pl.col("mean").cast(pl.Float64)
                ),
                spread=float(facts["spread"]),
                hours=tables["hours"]["share"].cast(pl.Float64).to_numpy(),
                concentration=float(facts["concentration"]),
                rare_words=int(facts["rare_words"]),
            )
        except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
            raise UnreadableSource(
                f"the card does not say about '{community}' what cards of this version say: tables words, lengths, "
                "listed and hours, and the facts people, spread, concentration and rare_words."
            ) from None
        found._check(community)
        return found

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return it as the tables of a card."""
        return {
            "words": pl.DataFrame({"word": list(self.words), "share": self.shares.astype(np.float32)}),
            "lengths": self.lengths.cast(pl.Int32),
            "listed": self.listed.cast({"words_step": pl.Int32, "mean": pl.Float32}),
            "hours": pl.DataFrame(
                {"hour": np.arange(24, dtype=np.int32), "share": self.hours.astype(np.float32)}
            ),
        }

    def facts(self) -> dict[str, Any]:
        """Return what the head says about it."""
        return {
            "people": self.people,
            "words": len(self.words),
            "spread": self.spread,
            "concentration": self.concentration,
            "rare_words": self.rare_words,
        }

    def _check(self, name: str) -> None:
        steps, counts = self.lengths, self.lengths["people"].to_numpy()
        fine = (
            len(self.hours) == 24
            and self.people >= 1
            and len(counts) > 0
            and bool((counts >= 0).all())
            and int(counts.sum()) > 0
            and bool(steps["posts_step"].is_between(0, len(POST_STEPS) - 1).all())
            and bool(steps["words_from"].is_between(1, MOST_WORDS).all())
            and bool((steps["words_to"] > steps["words_from"]).all())
            and bool(steps["words_to"].is_between(1, MOST_WORDS).all())
            and np.isfinite(self.shares).all()
            and bool(((self.shares > 0) & (self.shares <= 1)).all())
            and 0 < len(set(self.words)) == len(self.words)
            and self.concentration > 0
            and self.listed.height > 0
            and bool(self.listed["mean"].is_between(0, 1).all())
            and 0 <= self.spread <= 1
            and 0 <= self.rare_words <= MOST_WORDS
            and bool(self.listed["words_step"].is_between(0, len(WORD_STEPS) - 1).all())
        )
        if not fine:
            raise UnreadableSource(f"the card's numbers about '{name}' cannot be true: it is damaged.")

    def how_many(self, min_posts: int = 1) -> int:
        """Return how many of its people wrote at least so many posts."""
        weight = self.weights(min_posts)
        return round(self.people * float(weight.sum() / self.lengths["people"].sum()))

    def weights(self, min_posts: int = 1) -> Floats:
        """Return how many people of each row of `lengths` wrote so many posts; within a step, evenly by logarithm."""
        step = self.lengths["posts_step"].to_numpy()
        low, high = np.log(POST_STEPS[step]), np.log(ends(POST_STEPS)[step])
        share = np.clip((high - math.log(max(min_posts, 1))) / (high - low), 0.0, 1.0)
        return np.asarray(self.lengths["people"].to_numpy() * share)

    def listed_share(self, words: Any) -> Floats:
        """Return the mean listed share of people who wrote so many words."""
        at = np.log(WORD_STEPS[self.listed["words_step"].to_numpy()]) + np.log(2)
        return np.asarray(np.interp(np.log(np.maximum(words, 1)), at, self.listed["mean"].to_numpy()))

    @cached_property
    def keys(self) -> Keys:
        """The numbers of its words, as profiles have them: listed ones, then rare ones."""
        return np.concatenate(
            [word_keys(self.words), word_keys(f"rare word {n}" for n in range(self.rare_words))]
        )

    def places(self, keys: Keys) -> Ints:
        """Return where in `keys` words stand that have these numbers; a rare one takes a place by lot, -1: none."""
        order = np.argsort(self.keys[: len(self.words)])
        ordered = self.keys[order]
        at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
        by_lot = len(self.words) + (keys % np.uint64(max(self.rare_words, 1))).astype(np.int64)
        unlisted = by_lot if self.rare_words else np.full(len(keys), -1)
        return np.where(ordered[at] == keys, order[at], unlisted)

    def profile(self, profile: Profile) -> Profile:
        """Return somebody's words as made-up people of this community have them: rare words in their places by lot."""
        place = self.places(profile.keys)
        keys = np.where(place >= 0, self.keys[np.maximum(place, 0)], profile.keys)
        return Profile.of_counts(keys, profile.counts)

    @cached_property
    def base(self) -> Floats:
        """How often each word is written among listed words: adds up to 1."""
        return np.asarray(self.shares / self.shares.sum())

    @cached_property
    def users(self) -> Floats:
        """The share of people who use each word at all, by the laws above: what TF-IDF weighs words by."""
        table = self.lengths
        length = np.sqrt(table["words_from"].to_numpy() * table["words_to"].to_numpy())
        written = np.maximum(length * self.listed_share(length), 1.0)
        weight = table["people"].to_numpy() / float(table["people"].sum())
        return np.asarray((1 - unused(self.base[:, None], written[None, :], self.concentration)) @ weight)


def ends(steps: Ints) -> Ints:
    """Return where steps end; the last is as wide as that before it."""
    return np.append(steps[1:], steps[-1] ** 2 // steps[-2])


def unused(base: Any, written: Any, concentration: float) -> Floats:
    """Return how probably somebody who wrote so many words does not use a word, under the Pólya urn.

    >>> float(unused(0.5, 2, ENDLESS).round(6)), float(unused(0.5, 2, 1.0).round(6))
    (0.25, 0.375)
    """
    p, n = np.asarray(base, float), np.asarray(written, float)
    if concentration >= ENDLESS / 10:
        return np.asarray((1 - p) ** n)
    rest = concentration * (1 - p)
    logs = gammaln(rest + n) - gammaln(rest) + gammaln(concentration) - gammaln(concentration + n)
    return np.asarray(np.exp(logs))
