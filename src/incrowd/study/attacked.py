"""Predicted and happened: what the validity study is asked, what it finds for some people, and two of its questions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit

from incrowd.arrays import Floats
from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.measures.attackers import ATTACKERS
from incrowd.measures.exposure.evaluation import auc_interval
from incrowd.measures.linkability.determined import prepare
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.microdata.known_items import any_items, speaks_for
from incrowd.measures.microdata.set_sizes import Effort
from incrowd.measures.microdata.table import ItemTable, item_table
from incrowd.measures.recognition.spec import KNOWN
from incrowd.statistics import auc, auc_of_rates, first_place

QUESTIONS = ("posts", "links", "items")
BINS = 5
Z = 1.96
FEWEST = 40
"""Fewer people judged say nothing."""
FEWEST_FOUND = 10
"""Fewer people found, or not found, cannot be told from the others with any certainty."""


@dataclass(frozen=True, kw_only=True)
class ValidityOptions:
    """Which communities, and how much work."""

    communities: tuple[str, ...] = ()
    """Empty: the three largest."""
    known: tuple[int, ...] = (3, 10)
    people: int = 400
    """Attacked for each number of posts, at most."""
    rivals: int = 600
    """Among whom they are looked for, at most, themselves included."""
    draws: int = 4
    questions: tuple[str, ...] = ("posts", "links", "items")
    pairs: int = 5
    """Of communities, for links: those with the most people in both."""
    items_known: tuple[int, ...] = (3, 10)
    seed: int = 0
    memory: int = 2**30

    def __post_init__(self) -> None:
        if not self.known or set(self.known) - set(KNOWN):
            raise InputError(f"known must be some of {', '.join(map(str, KNOWN))}; got {self.known}")
        if self.people < FEWEST or self.rivals < FEWEST or self.draws < 1:
            raise InputError(f"people and rivals must be at least {FEWEST}, draws at least 1")
        if not self.questions or set(self.questions) - set(QUESTIONS):
            raise InputError(f"questions must be some of {', '.join(QUESTIONS)}; got {self.questions}")


@dataclass(frozen=True)
class Verdicts:
    """What was predicted for some people, and how often each attacker found them."""

    about: str
    """A community, a pair of communities, or everybody's items."""
    known: str
    """What the attackers know: "3 posts"."""
    predicted: Floats
    found: dict[str, Floats]
    question: str = "posts"
    found_before: Mapping[str, Floats] = field(default_factory=dict)
    """How often each attacker finds them in the earlier half, where that was tried."""
    within: NDArray[np.int64] | None = None
    """Only people of one group are compared with each other; None: all of them."""

    def found_often(self, attacker: str) -> int:
        """How many people the attacker finds at least half of the time."""
        return int((self.found[attacker] >= 0.5).sum())

    def too_few(self, attacker: str) -> str:
        """Say why an AUC would be noise; empty if it is not."""
        people, often = len(self.predicted), self.found_often(attacker)
        if often < FEWEST_FOUND:
            return f"too few found to tell: {often} of {people}"
        if people - often < FEWEST_FOUND:
            return f"too few not found to tell: {people - often} of {people}"
        return ""

    def auc(self, attacker: str) -> tuple[float, float, float]:
        """How well the prediction tells those found at least half of the time from the rest, with a 95 % interval."""
        often = self.found[attacker] >= 0.5
        found = [int(often[group].sum()) for group in self._groups]
        others = [int((~often[group]).sum()) for group in self._groups]
        compared = np.multiply(found, others)
        if not compared.sum():
            return math.nan, math.nan, math.nan
        each = [
            auc(often[group], self.predicted[group]) if pairs else 0.0
            for group, pairs in zip(self._groups, compared, strict=True)
        ]
        value = float(np.average(each, weights=compared))
        # As wide as if each of those found had been compared with so many others.
        return value, *auc_interval(value, sum(found), int(compared.sum()) / sum(found))

    def auc_of_attempts(self, attacker: str) -> tuple[float, float, float]:
        """Of an attempt that succeeded and one that failed: how often the first had the higher prediction.

        With a 95 % interval.
        """
        return self._ranked(self.found[attacker], self.predicted)

    @property
    def _groups(self) -> list[NDArray[np.bool_]]:
        """Who is compared with whom."""
        if self.within is None:
            return [np.ones(len(self.predicted), bool)]
        return [self.within == group for group in np.unique(self.within)]

    def auc_of_itself(self, attacker: str) -> tuple[float, float, float]:
        """The same for the attacker's own success in the earlier half: what could have been known in advance."""
        if attacker not in self.found_before:
            return math.nan, math.nan, math.nan
        return self._ranked(self.found[attacker], self.found_before[attacker])

    def _ranked(self, won: Floats, score: Floats) -> tuple[float, float, float]:
        """Compare attempts within groups; people are left out whole, since one person's attempts are alike."""
        groups = np.zeros(len(won), np.int64) if self.within is None else self.within
        return ranked_within(won, score, groups)

    def curve(self, attacker: str) -> tuple[Floats, Floats]:
        """Return predicted and found, in bins of equally many people."""
        parts = np.array_split(np.argsort(self.predicted, kind="stable"), BINS)
        return tuple(  # type: ignore[return-value]
            np.array([values[part].mean() for part in parts])
            for values in (self.predicted, self.found[attacker])
        )


def ranked_within(won: Floats, score: Floats, groups: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return the AUC of attempts within groups, with a 95 % interval: each person is left out once (jackknife).

    The spread is taken of the log odds, which keeps the ends between 0 and 1. Where everything is in order (or
    nothing), leaving somebody out changes nothing: there it is as wide as if each person had tried once.
    """
    value = _auc_within(won, score, groups)
    others = np.arange(len(won))
    kept = (others[others != one] for one in others)
    each = np.array([_auc_within(won[rows], score[rows], groups[rows]) for rows in kept])
    if not 0 < value < 1 or not ((each > 0) & (each < 1)).all():
        return value, *auc_interval(value, max(won.sum(), 1), max((1 - won).sum(), 1))
    odds = logit(each)
    spread = math.sqrt((len(each) - 1) * float(np.mean((odds - odds.mean()) ** 2)))
    low, high = expit(logit(value) + Z * spread * np.array([-1, 1]))
    return value, float(low), float(high)


def _auc_within(won: Floats, score: Floats, groups: NDArray[np.int64]) -> float:
    """Average the AUC of each group by how many comparisons it holds."""
    parts = [groups == group for group in np.unique(groups)]
    compared = [float(won[part].sum() * (1 - won[part]).sum()) for part in parts]
    if not sum(compared):
        return math.nan
    each = [
        auc_of_rates(won[part], score[part]) if pairs else 0.0
        for part, pairs in zip(parts, compared, strict=True)
    ]
    return float(np.average(each, weights=compared))


def pooled(some: Sequence[Verdicts], about: str) -> Verdicts:
    """Put the people of several verdicts into one, in which only those who were together are compared."""
    first = some[0]
    return Verdicts(
        about,
        first.known,
        np.concatenate([one.predicted for one in some]),
        {name: np.concatenate([one.found[name] for one in some]) for name in first.found},
        question=first.question,
        within=np.repeat(np.arange(len(some)), [len(one.predicted) for one in some]),
    )


# Links and items, predicted from the first half of everybody's data and attacked in the second.
#
# *Links.* The determined adversary's probability for two profiles of the earlier halves; then other attackers start
# from somebody's later posts in one community and look for the same person's later posts in the other.
#
# *Items.* How often three (or ten) of the earlier items would name somebody; then other attackers know as many of the
# later items, each in a way of their own, and look for the person among everybody's later items. Each attacker also
# tries the earlier half: how well its success there ranks people says what could have been known in advance.

Rows = NDArray[np.int64]

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


def _largest_pairs(halves: pl.DataFrame) -> list[tuple[str, str]]:
    counts = halves.filter("later").group_by("user", "community").len().filter(pl.col("len") >= MIN_POSTS)
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
