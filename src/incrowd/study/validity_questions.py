"""Links and items, predicted from the first half of everybody's data and attacked in the second.

*Links.* The determined adversary's probability for two profiles of the earlier halves; then other attackers start from
somebody's later posts in one community and look for the same person's later posts in the other.

*Items.* How often three (or ten) of the earlier items would name somebody; then other attackers know as many of the
later items, each in a way of their own, and look for the person among everybody's later items.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from incrowd.crowd import Crowd
from incrowd.measures.attackers import ATTACKERS
from incrowd.measures.linkability.determined import prepare
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.microdata.known_items import known_items
from incrowd.measures.microdata.table import ItemTable, item_table
from incrowd.statistics import first_place
from incrowd.study.attacked import FEWEST, ValidityOptions, Verdicts

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_READ = 40
"""Posts of a profile that an attacker compares, the latest: packing more takes hours and tells no more."""
MIN_POSTS = 10
"""In both halves of both communities."""
ITEM_DRAWS = 10


# Links


def links(crowd: Crowd, o: ValidityOptions) -> list[Verdicts]:
    """Predict and attack the links between pairs of communities, those with the most people in both first."""
    posts = crowd.posts().select("user", "community", "time", "text").collect()
    halves = _halves(posts, ["user", "community"])
    found = [
        _pair(halves, source, target, o) for source, target in _largest_pairs(halves)[: o.pairs] if o.pairs
    ]
    return [one for one in found if one is not None]


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
class LaterItems:
    """Everybody's later items: what an attacker looks through."""

    table: ItemTable
    marks: sparse.csr_matrix
    """Ratings, where there are some; else ones."""

    @property
    def rarity(self) -> Floats:
        """How much an item tells: the logarithm of how few have it (Narayanan and Shmatikov's weight)."""
        return np.asarray(1 / np.log(1 + np.maximum(self.table.popularity, 1.5)), np.float64)


Known = NDArray[np.int64]
ItemAttacker = Callable[[LaterItems, int, Known, np.random.Generator], Floats]


def by_ratings(later: LaterItems, row: int, known: Known, rng: np.random.Generator) -> Floats:
    """Add up rarity times how alike the ratings are (Narayanan and Shmatikov 2008)."""
    own = later.marks[row, known].toarray().ravel()
    theirs = later.marks[:, known].tocsc()
    score = np.zeros(later.marks.shape[0])
    for column, item in enumerate(known):
        part = slice(theirs.indptr[column], theirs.indptr[column + 1])
        alike = np.exp(-np.abs(theirs.data[part] - own[column]) / 1.5)
        score[theirs.indices[part]] += later.rarity[item] * alike
    return score


def by_cosine(later: LaterItems, row: int, known: Known, rng: np.random.Generator) -> Floats:
    """Compare the known items with whole lists by TF-IDF cosine: a short list that holds them looks best."""
    weights = np.log((1 + later.table.matrix.shape[0]) / (1 + later.table.popularity)) + 1
    asked = np.zeros(later.table.matrix.shape[1])
    asked[known] = weights[known]
    lengths = np.sqrt(later.table.matrix.astype(np.float64) @ weights**2)
    return np.asarray(later.table.matrix @ (asked * weights) / np.maximum(lengths, 1e-12))


def misremembered(later: LaterItems, row: int, known: Known, rng: np.random.Generator) -> Floats:
    """Have one of the items wrong, and take whoever has the rarest of the rest."""
    wrong = known.copy()
    wrong[0] = rng.integers(0, later.table.matrix.shape[1])
    return np.asarray(later.table.matrix[:, wrong] @ later.rarity[wrong])


ITEM_ATTACKERS: Mapping[str, ItemAttacker] = {
    "weighted ratings": by_ratings,
    "cosine of lists": by_cosine,
    "one item wrong": misremembered,
}


def items(crowd: Crowd, o: ValidityOptions) -> list[Verdicts]:
    """Predict from the earlier half of everybody's items, attack the later half."""
    rows = crowd.items().collect()
    if rows.is_empty() or rows["time"].null_count() == rows.height:
        return []
    halves = _halves(rows, ["user"])
    before, after = (item_table(halves.filter(later).drop("later")) for later in (~pl.col("later"), "later"))
    ratings = np.where(np.isnan(after.ratings), 1.0, after.ratings).astype(np.float64)
    marks = sparse.csr_matrix((ratings, after.matrix.indices, after.matrix.indptr), after.matrix.shape)
    found = [_items_known(before, LaterItems(after, marks), known, o) for known in o.items_known]
    return [one for one in found if one is not None]


def _named_by(table: ItemTable, row: int, known: int) -> float:
    return known_items(table.only_items(table.profile(row)), row).probability["random"][known].value


def _items_known(before: ItemTable, later: LaterItems, known: int, o: ValidityOptions) -> Verdicts | None:
    rng = np.random.default_rng([o.seed, known])
    enough = [
        user
        for user in sorted(set(before.users) & set(later.table.users))
        if min(len(table.profile(table.row_of(user))) for table in (before, later.table)) >= known
    ]
    chosen = [enough[k] for k in rng.permutation(len(enough))[: o.people]]
    if len(chosen) < FEWEST:
        return None
    predicted = np.array([_named_by(before, before.row_of(user), known) for user in chosen])
    found: dict[str, list[float]] = {name: [] for name in ITEM_ATTACKERS}
    for user in chosen:
        row = later.table.row_of(user)
        own = later.table.profile(row).astype(np.int64)
        for name, attack in ITEM_ATTACKERS.items():
            tried = [
                attack(later, row, rng.choice(own, known, replace=False), rng) for _ in range(ITEM_DRAWS)
            ]
            first = _named_first(np.array(tried), np.full(ITEM_DRAWS, row))
            found[name].append(float(first.mean()))
    happened = {name: np.array(shares) for name, shares in found.items()}
    return Verdicts("everybody's items", f"{known} items", predicted, happened, question="items")
