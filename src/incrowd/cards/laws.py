"""What a card says about how people of a community write: how much, which words, how repetitively.

- *Lengths.* How many people wrote so many posts and so many words: counts over ranges with enough people in each.
- *Listed words.* Only words of many people are listed, with their mean share of what people write. Of a person's words,
  the share that is listed has a mean that depends on how much they wrote.
- *Rare words* are the rest. Nobody knows which they are: made-up people share them with nobody.
- *Repetition.* A Pólya urn with the listed words as base shares p and concentration a: small, and a person writes few
  words again and again; endless, and every word is drawn anew. Whoever wrote n listed words does not use a word with
  probability ``G(a(1-p) + n) G(a) / (G(a(1-p)) G(a + n))`` (G: the gamma function), which tells how many people use it.
- *Correction.* Made-up people are a little farther away than real ones, by how much depends on who asks: real people
  have interests in common. Measured on people held out while the card is made, see :class:`Correction`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import gammaln

from incrowd.cards.card import Card
from incrowd.distances.profile_index import Keys, word_keys
from incrowd.errors import UnreadableSource

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

POST_STEPS = np.array([1, 2, 3, 5, 10, 20, 40, 80, 160], np.int64)
"""Where steps of posts begin; 10 and 20, below which measures leave people out, are among them."""
WORD_STEPS = np.unique(np.round(2 ** np.arange(0, 17.5, 0.5)).astype(np.int64))
"""Where steps of words begin: 1, 2, 3, 4, 6, 8, … up to 131,072."""
MOST_WORDS = 1_000_000
MUCH = 300
"""Words from which on what people write counts in full."""
ENDLESS = 1e9
"""A concentration beyond which nothing changes."""


def step_of(values: Any, steps: Ints) -> Ints:
    """Return the step each value lies in.

    >>> step_of([1, 4, 9, 10], POST_STEPS).tolist()
    [0, 2, 3, 4]
    """
    return np.asarray(np.searchsorted(steps, np.asarray(values), side="right") - 1, np.int64)


@dataclass(frozen=True)
class Correction:
    """From distances to made-up people to distances to real ones, for each profile that asks.

    A real person is as far away as a made-up one at distance y is by ``w · (1, y, m, s, d, yd, l)``: m and s are the
    mean and the spread of all the profile's distances to made-up people, d is the logarithm of how many different words
    it has, l the share of its words that is listed. It is fitted so that as many made-up people as real ones are within
    any distance.
    """

    weights: tuple[float, ...]

    def terms(self, made_up: Floats, mean: Any, spread: Any, different: Any, listed: Any) -> Floats:
        """Return what the weights are for, in a last axis; one profile's or, all as columns, several profiles'."""
        several = np.log(np.maximum(different, 1))
        parts = (1.0, made_up, mean, spread, several, made_up * several, listed)
        return np.stack([np.broadcast_to(part, np.shape(made_up)) for part in parts], axis=-1)

    def made_up_limit(self, limit: Any, mean: Any, spread: Any, different: Any, listed: Any) -> Floats:
        """Return within which distance of made-up people as many are as real ones are within `limit`."""
        at_zero = self.terms(np.zeros(np.shape(limit)), mean, spread, different, listed) @ self.weights
        at_one = self.terms(np.ones(np.shape(limit)), mean, spread, different, listed) @ self.weights
        return np.asarray((np.asarray(limit) - at_zero) / np.maximum(at_one - at_zero, FLATTEST))


AS_IT_IS = Correction((0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
"""Made-up people are as far away as real ones: where nobody was held out."""
FLATTEST = 0.2
"""Real distances grow at least so fast with made-up ones; less would be chance in few people."""


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
    correction: Correction = field(default_factory=lambda: AS_IT_IS)
    """How far away real people are, if made-up ones are so far."""

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
                correction=Correction(tuple(map(float, facts.get("correction") or AS_IT_IS.weights))),
            )
        except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
            raise UnreadableSource(
                f"the card does not say about '{community}' what cards of this version say: tables words, lengths, "
                "listed and hours, and the facts people, spread and concentration."
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
            "correction": None if self.correction == AS_IT_IS else list(self.correction.weights),
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
            and len(self.correction.weights) == len(AS_IT_IS.weights)
            and bool(np.isfinite(self.correction.weights).all())
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
        means = self.listed["mean"].to_numpy()
        return np.asarray(np.interp(np.log(np.maximum(words, 1)), self.listed_at, means))

    @property
    def listed_at(self) -> Floats:
        """The logarithm of how many words each row of `listed` is about."""
        return np.asarray(np.log(WORD_STEPS[self.listed["words_step"].to_numpy()]) + np.log(2))

    @cached_property
    def keys(self) -> Keys:
        """The numbers of its words, as profiles have them."""
        return word_keys(self.words)

    def places(self, keys: Keys) -> Ints:
        """Return where in `keys` words stand that have these numbers; -1: none."""
        order = np.argsort(self.keys)
        ordered = self.keys[order]
        at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
        return np.where(ordered[at] == keys, order[at], -1)

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


def rooted_sums(shares: Any, community: Community) -> Floats:
    """Return what people add to words of such shares on average, by the lengths: roots of counts over those of lengths.

    Whoever writes n words uses a word of share p about as often as a Poisson law of mean np says; less than
    :data:`MUCH` is taken for as much.
    """
    table = community.lengths
    length = np.sqrt(table["words_from"].to_numpy() * table["words_to"].to_numpy())
    weight = table["people"].to_numpy() / float(table["people"].sum())
    mean = np.asarray(shares, float)[..., None] * length
    uses = np.arange(1, 60)
    logs = uses * np.log(np.maximum(mean, 1e-12))[..., None] - mean[..., None] - gammaln(uses + 1)
    few = np.exp(logs) @ np.sqrt(uses)
    # A root of many is the root of the mean, less by an eighth of its variance.
    root = np.where(mean < 30, few, np.sqrt(np.maximum(mean - 0.25, 1e-12)))
    return np.asarray((root / np.sqrt(np.maximum(length, MUCH))) @ weight)


def shares_of_rooted(sums: Floats, community: Community) -> Floats:
    """Return the shares that have such mean roots: :func:`rooted_sums` read the other way round."""
    grid = np.exp(np.linspace(math.log(1e-8), 0.0, 500))
    rising = np.maximum.accumulate(rooted_sums(grid, community)) * (1 + np.arange(len(grid)) * 1e-12)
    return np.asarray(np.exp(np.interp(np.log(np.maximum(sums, 1e-12)), np.log(rising), np.log(grid))))
