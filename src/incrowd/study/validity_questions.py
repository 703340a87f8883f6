"""Links and items, predicted from the first half of everybody's data and attacked in the second.

*Links.* The determined adversary's probability for two profiles of the earlier halves; then other attackers start from
somebody's later posts in one community and look for the same person's later posts in the other.

*Items.* How often three (or ten) of the earlier items would name somebody; then other attackers know as many of the
later items, each in a way of their own, and look for the person among everybody's later items. Each attacker also tries
the earlier half: how well its success there ranks people says what could have been known in advance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from incrowd.crowd import Crowd
from incrowd.measures.attackers import ATTACKERS
from incrowd.measures.linkability.determined import prepare
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.microdata.known_items import any_items, speaks_for
from incrowd.measures.microdata.set_sizes import Effort
from incrowd.measures.microdata.table import ItemTable, item_table
from incrowd.statistics import first_place
from incrowd.study.attacked import FEWEST, ValidityOptions, Verdicts, pooled

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_READ = 40
"""Posts of a profile that an attacker compares, the latest: packing more takes hours and tells no more."""
MIN_POSTS = 5
"""In both halves of both communities: links are told from ten posts on."""
ITEM_DRAWS, EARLIER_DRAWS = 10, 40
"""Choices of known items that are tried for each person, of the later and of the earlier half."""


# Links


def links(crowd: Crowd, o: ValidityOptions) -> list[Verdicts]:
    """Predict and attack the links between pairs of communities, those with the most people in both first."""
    posts = crowd.posts().select("user", "community", "time", "text").collect()
    halves = _halves(posts, ["user", "community"])
    found = [
        _pair(halves, source, target, o) for source, target in _largest_pairs(halves)[: o.pairs] if o.pairs
    ]
    told = [one for one in found if one is not None]
    # Few people are in both communities of a pair: all pairs together say more than any.
    return [pooled(told, f"all {len(told)} pairs"), *told] if len(told) > 1 else told


def _halves(rows: pl.DataFrame, of: list[str]) -> pl.DataFrame:
    """Mark each row as of the earlier or the later half, by time, within each group; the earlier is not smaller."""
    ordered = rows.sort([*of, "time"], nulls_last=True, maintain_order=True)
    place, size = pl.int_range(pl.len()).over(of), pl.len().over(of)
    return ordered.with_columns(later=place >= (size + 1) // 2)


def _largest_pairs(halves: pl.DataFrame, min_posts: int = MIN_POSTS) -> list[tuple[str, str]]:
    counts = halves.filter("later").group_by("user", "community").len().filter(pl.col("len") >= min_posts)
    both = counts.join(counts, on="user").filter(pl.col("community") < pl.col("community_right"))
    ordered = both.group_by("community", "community_right").len().sort("len", descending=True)
    return [(one, two) for one, two, _ in ordered.iter_rows()]


def _pair(halves: pl.DataFrame, source: str, target: str, o: ValidityOptions) -> Verdicts | None:
    earlier = Crowd.from_frame(halves.filter(~pl.col("later")).drop("later"))
    attack = prepare(
        earlier,
        LinkabilityOptions(
            source=source, target=target, min_posts=MIN_POSTS, adversary="determined", seed=o.seed
        ),
    )
    later = halves.filter("later")
    here, there = (_profiles(later, name) for name in (source, target))
    both = [
        (user, sure)
        for user, sure in zip(attack.people.tolist(), attack.certainty().sure, strict=True)
        if user in here and user in there
    ]
    rng = np.random.default_rng([o.seed, len(both)])
    chosen = [both[k] for k in rng.permutation(len(both))[: o.people]]
    if len(chosen) < FEWEST:
        return None
    people = [user for user, _ in chosen]
    others = sorted(set(there) - set(people))
    others = [others[k] for k in rng.permutation(len(others))[: max(o.rivals - len(people), 0)]]
    texts = [text for user in people for text in here[user]]
    texts += [text for user in [*people, *others] for text in there[user]]
    sizes = [len(here[user]) for user in people] + [len(there[user]) for user in [*people, *others]]
    ends = np.cumsum([0, *sizes])
    groups = [np.arange(a, b) for a, b in itertools.pairwise(ends.tolist())]
    asked, profiles = groups[: len(people)], groups[len(people) :]
    found = {
        name: _named_first(make(pl.Series(texts), profiles).resemblance(asked), np.arange(len(people)))
        for name, make in ATTACKERS.items()
    }
    predicted = np.array([sure for _, sure in chosen], np.float64)
    return Verdicts(f"{source} to {target}", "both profiles", predicted, found, question="links")


def _profiles(later: pl.DataFrame, community: str) -> dict[str, list[str]]:
    """Return everybody's latest posts in a community, of those who wrote enough."""
    there = later.filter(pl.col("community") == community).group_by("user", maintain_order=True).agg("text")
    return {user: texts[-MOST_READ:] for user, texts in there.iter_rows() if len(texts) >= MIN_POSTS}


def _named_first(scores: Floats, truth: Rows) -> Floats:
    own = scores[np.arange(len(truth)), truth][:, None]
    return first_place((scores > own).sum(axis=1), (scores == own).sum(axis=1) - 1)


# Items


@dataclass(frozen=True, eq=False)
class HalfOfItems:
    """Everybody's items of one half: what an attacker looks through."""

    table: ItemTable
    marks: sparse.csr_matrix
    """Ratings, where there are some; else ones."""

    @classmethod
    def of(cls, rows: pl.DataFrame) -> HalfOfItems:
        """Make the table of some rows."""
        table = item_table(rows)
        ratings = np.where(np.isnan(table.ratings), 1.0, table.ratings).astype(np.float64)
        marks = sparse.csr_matrix((ratings, table.matrix.indices, table.matrix.indptr), table.matrix.shape)
        return cls(table, marks)

    @cached_property
    def rarity(self) -> Floats:
        """How much an item tells: the logarithm of how few have it (Narayanan and Shmatikov's weight)."""
        return np.asarray(1 / np.log(1 + np.maximum(self.table.popularity, 1.5)), np.float64)

    @cached_property
    def weights_and_lengths(self) -> tuple[Floats, Floats]:
        """TF-IDF weights of items, and the lengths of everybody's rows of them."""
        people = self.table.matrix.shape[0]
        weights = np.log((1 + people) / (1 + self.table.popularity)) + 1
        lengths = np.sqrt(self.table.matrix.astype(np.float64) @ weights**2)
        return weights, np.maximum(lengths, 1e-12)


Known = NDArray[np.int64]
ItemAttacker = Callable[[HalfOfItems, int, Known, np.random.Generator], Floats]


def as_told(half: HalfOfItems, row: int, known: Known, rng: np.random.Generator) -> Floats:
    """Do as the prediction's own attacker does: whose list, by its length, accounts best for items of their rarity?"""
    return np.asarray(speaks_for(half.table.matrix, half.table, known).sum(axis=1), np.float64).ravel()


def by_ratings(half: HalfOfItems, row: int, known: Known, rng: np.random.Generator) -> Floats:
    """Add up rarity times how alike the ratings are (Narayanan and Shmatikov 2008)."""
    own = half.marks[row, known].toarray().ravel()
    theirs = half.marks[:, known].tocsc()
    score = np.zeros(half.marks.shape[0])
    for column, item in enumerate(known):
        part = slice(theirs.indptr[column], theirs.indptr[column + 1])
        alike = np.exp(-np.abs(theirs.data[part] - own[column]) / 1.5)
        score[theirs.indices[part]] += half.rarity[item] * alike
    return score


def by_cosine(half: HalfOfItems, row: int, known: Known, rng: np.random.Generator) -> Floats:
    """Compare the known items with whole lists by TF-IDF cosine: a short list that holds them looks best."""
    weights, lengths = half.weights_and_lengths
    return np.asarray(half.table.matrix[:, known] @ weights[known] ** 2 / lengths)


def misremembered(half: HalfOfItems, row: int, known: Known, rng: np.random.Generator) -> Floats:
    """Have one of the items wrong, and take whoever has the rarest of the rest."""
    wrong = known.copy()
    wrong[0] = rng.integers(0, half.table.matrix.shape[1])
    return np.asarray(half.table.matrix[:, wrong] @ half.rarity[wrong])


def by_shared_part(half: HalfOfItems, row: int, known: Known, rng: np.random.Generator) -> Floats:
    """Take whose list shares the largest part with what is known: items in both over items in either (Jaccard)."""
    shared = np.asarray(half.table.matrix[:, known].sum(axis=1), np.float64).ravel()
    return np.asarray(shared / (half.table.list_lengths + len(known) - shared), np.float64)


ITEM_ATTACKERS: Mapping[str, ItemAttacker] = {
    "as predicted": as_told,
    "weighted ratings": by_ratings,
    "cosine of lists": by_cosine,
    "shared part": by_shared_part,
    "one item wrong": misremembered,
}


def items(crowd: Crowd, o: ValidityOptions) -> list[Verdicts]:
    """Predict from the earlier half of everybody's items, attack the later half."""
    rows = crowd.items().collect()
    if rows.is_empty() or rows["time"].null_count() == rows.height:
        return []
    halves = _halves(rows, ["user"])
    before, after = (
        HalfOfItems.of(halves.filter(part).drop("later")) for part in (~pl.col("later"), "later")
    )
    found = [_items_known(before, after, known, o) for known in o.items_known]
    return [one for one in found if one is not None]


def _items_known(before: HalfOfItems, after: HalfOfItems, known: int, o: ValidityOptions) -> Verdicts | None:
    rng = np.random.default_rng([o.seed, known])
    enough = [
        user
        for user in sorted(set(before.table.users) & set(after.table.users))
        if min(len(half.table.profile(half.table.row_of(user))) for half in (before, after)) >= known
    ]
    chosen = [enough[k] for k in rng.permutation(len(enough))[: o.people]]
    if len(chosen) < FEWEST:
        return None
    return Verdicts(
        "everybody's items",
        f"{known} items",
        np.array([_named_by(before.table, before.table.row_of(user), known) for user in chosen]),
        {name: _tried(after, chosen, known, one, ITEM_DRAWS, rng) for name, one in ITEM_ATTACKERS.items()},
        question="items",
        found_before={
            name: _tried(before, chosen, known, one, EARLIER_DRAWS, rng)
            for name, one in ITEM_ATTACKERS.items()
        },
    )


def _named_by(table: ItemTable, row: int, known: int) -> float:
    return any_items(table, row, table.profile(row), Effort())(known).value


def _tried(
    half: HalfOfItems,
    users: list[str],
    known: int,
    attack: ItemAttacker,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Return how often an attacker who knows some items of each person names them."""
    found = []
    for user in users:
        row = half.table.row_of(user)
        own = half.table.profile(row).astype(np.int64)
        scores = [attack(half, row, rng.choice(own, known, replace=False), rng) for _ in range(draws)]
        found.append(float(_named_first(np.array(scores), np.full(draws, row)).mean()))
    return np.array(found)
