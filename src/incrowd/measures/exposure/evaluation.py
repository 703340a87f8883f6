"""How well a ranking finds the people whom judges found sensitive: the paper's figures of merit, ties and all.

`scores` order people, highest first; `votes` are the shares of judges who said yes, and a person is sensitive
if more than half did. Equal scores have no order: every figure is its expected value over all orders.

Settings are chosen on some people and judged on others (:func:`held_out`), so that no figure rests on a choice made
with it in sight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from incrowd.measures.exposure.definition import Floats, breadth
from incrowd.measures.exposure.scoring import Peaks
from incrowd.measures.exposure.spec import Dimension, method_name
from incrowd.measures.exposure.topics import TopicSet


@dataclass(frozen=True)
class _Groups:
    """People with equal scores, best group first: who, where the group starts, how large it is."""

    order: NDArray[np.int64]
    group: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]

    @classmethod
    def of(cls, scores: ArrayLike) -> _Groups:
        values = np.asarray(scores, np.float64)
        values = np.where(np.isnan(values), -np.inf, values)
        order = np.argsort(-values, kind="stable")
        ordered = values[order]
        group = np.cumsum(np.concatenate([[0], ordered[1:] != ordered[:-1]])).astype(np.int64)
        size = np.bincount(group)
        return cls(order, group, np.cumsum(size) - size, size)

    def sums(self, values: Floats) -> Floats:
        """Add up one value a person within each group."""
        return np.asarray(np.bincount(self.group, values[self.order], len(self.size)), np.float64)


def sensitive(votes: ArrayLike) -> NDArray[np.bool_]:
    """Say who counts as sensitive: more than half of the votes."""
    return np.asarray(np.asarray(votes, np.float64) > 0.5)


def chance_in_top(scores: ArrayLike, depth: int) -> Floats:
    """Return how probably each person is among the first `depth`.

    >>> chance_in_top([3, 1, 1, 0], 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    groups = _Groups.of(scores)
    chance = np.clip((depth - groups.start) / groups.size, 0.0, 1.0)
    placed = np.empty(len(groups.order))
    placed[groups.order] = chance[groups.group]
    return placed


def r_precision_hits(scores: ArrayLike, votes: ArrayLike) -> Floats:
    """Return, for each sensitive person, how probably they are among the first r; r is how many there are."""
    truth = sensitive(votes)
    return np.asarray(chance_in_top(scores, int(truth.sum()))[truth])


def precision_at(scores: ArrayLike, votes: ArrayLike, depth: int = 5) -> float:
    """Return the share of sensitive people among the first `depth`.

    >>> precision_at([4, 3, 2, 1], [1, 0, 1, 0], 2)
    0.5
    """
    return float(chance_in_top(scores, depth)[sensitive(votes)].sum() / depth)


def average_precision(scores: ArrayLike, votes: ArrayLike) -> float:
    """Return the mean, over sensitive people, of the precision at their place. NaN without any.

    Among n equals with r sensitive, after s people of whom R are sensitive, place s + j holds a sensitive
    person with probability r/n, and R + 1 + (j - 1)(r - 1)/(n - 1) are then expected up to it.

    >>> average_precision([3, 2, 1], [1, 0, 1]).__round__(4), average_precision([1, 1], [1, 0])
    (0.8333, 0.75)
    """
    truth = sensitive(votes).astype(np.float64)
    if not truth.sum():
        return float("nan")
    groups = _Groups.of(scores)
    inside = groups.sums(truth)
    before = np.cumsum(inside) - inside
    g = groups.group
    step = np.arange(len(g)) - groups.start[g]
    n, r = groups.size[g], inside[g]
    expected = before[g] + 1 + step * (r - 1) / np.maximum(n - 1, 1)
    return float((r / n * expected / (groups.start[g] + step + 1)).sum() / truth.sum())


def ndcg(scores: ArrayLike, votes: ArrayLike) -> float:
    """Return NDCG over the whole list: gain = share of votes, discount log2(place + 1). NaN without votes.

    >>> ndcg([2, 1], [1.0, 0.0]), ndcg([1, 1], [1.0, 0.0]).__round__(4)
    (1.0, 0.8155)
    """
    gains = np.asarray(votes, np.float64)
    if not gains.sum():
        return float("nan")
    groups = _Groups.of(scores)
    mean_gain = (groups.sums(gains) / groups.size)[groups.group]
    discount = np.log2(np.arange(len(gains)) + 2)
    return float((mean_gain / discount).sum() / (np.sort(gains)[::-1] / discount).sum())


@dataclass(frozen=True, kw_only=True)
class Merit:
    """How well one method ranks, over all topics. Every figure goes from 0 to 1; higher finds more."""

    r_precision_micro: float
    r_precision_macro: float
    p_at_5: float
    map: float
    ndcg: float
    per_topic: Mapping[str, float]
    """r-precision of each topic."""
    hits: Floats
    """For each sensitive (person, topic), how probably it is among the first r."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, without the hits of single people."""
        names = ("r_precision_micro", "r_precision_macro", "p_at_5", "map", "ndcg")
        plain: dict[str, Any] = {name: _plain(getattr(self, name)) for name in names}
        return plain | {"per_topic": {name: _plain(value) for name, value in self.per_topic.items()}}


def merit(topics: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Merit:
    """Judge a method from (scores, votes) of each topic; topics without a sensitive person are left out.

    >>> merit({"a": ([2, 1], [1, 0]), "b": ([1, 2, 3], [1, 1, 0])}).r_precision_micro.__round__(4)
    0.6667
    """
    judged = {name: pair for name, pair in topics.items() if sensitive(pair[1]).any()}
    hits = {name: r_precision_hits(*pair) for name, pair in judged.items()}
    together = np.concatenate(list(hits.values())) if hits else np.zeros(0)
    return Merit(
        r_precision_micro=_mean(together),
        r_precision_macro=_mean([one.mean() for one in hits.values()]),
        p_at_5=_mean([precision_at(*pair) for pair in judged.values()]),
        map=_mean([average_precision(*pair) for pair in judged.values()]),
        ndcg=_mean([ndcg(*pair) for pair in judged.values()]),
        per_topic={name: float(one.mean()) for name, one in hits.items()},
        hits=together,
    )


def paired_t_test(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p of a paired t-test on the hits of two methods; 1 if they never differ.

    >>> round(paired_t_test([1, 1, 1, 0], [0, 0, 1, 0]), 4)
    0.1817
    """
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    n = len(difference)
    if n < 2 or not difference.any():
        return 1.0
    spread = difference.std(ddof=1)
    if spread == 0:
        return 0.0
    return float(2 * stats.t.sf(abs(difference.mean()) / (spread / np.sqrt(n)), n - 1))


def mcnemar(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p of the exact McNemar test: are the hits of one a fair coin's share?

    Ties at the border count as a hit from one half on.

    >>> mcnemar([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0])
    0.0625
    """
    a, b = np.asarray(first, np.float64) >= 0.5, np.asarray(second, np.float64) >= 0.5
    only_first, only_second = int((a & ~b).sum()), int((b & ~a).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(stats.binomtest(only_first, only_first + only_second, 0.5).pvalue)


def sample_by_score(scores: ArrayLike, count: int, base: float, seed: int) -> NDArray[np.int64]:
    """Draw people without replacement, each with weight base^score: more from where the risk is.

    Adding Gumbel noise to the logarithm of the weights and taking the largest is such a draw.
    """
    values = np.asarray(scores, np.float64)
    noise = np.random.default_rng(seed).gumbel(size=len(values))
    keys = np.where(np.isnan(values), -np.inf, values * np.log(base) + noise)
    return np.sort(np.argsort(-keys, kind="stable")[:count])


def _mean(values: Sequence[float] | Floats) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value


WEEKS = (2, 3, 4, 5, 6, 8)
BREADTHS = (0.1, 0.3, 0.6)
SPLITS = 20


@dataclass(frozen=True, order=True)
class Setting:
    """The free choices of the measure; None where one plays no part."""

    space: str
    dimension: Dimension
    weeks: int | None = None
    breadth: float | None = None

    def __str__(self) -> str:
        weeks = "" if self.weeks is None else f", m = {self.weeks}"
        broad = "" if self.breadth is None else f", k = {self.breadth}"
        return method_name(self.space, self.dimension) + weeks + broad


def tried(space: str, peaks: Peaks, topics: TopicSet, topic: str) -> Iterator[tuple[Setting, Floats]]:
    """Yield everybody's risk for one topic under every setting."""
    place = topics.place(topic)
    columns = [place, *topics.siblings(place)]
    domain = replace(peaks, values=peaks.values[:, columns])
    yield from _broad(space, "", None, domain.strength)
    for m, lasting in zip(WEEKS, domain.lasting_over(WEEKS), strict=True):
        yield from _broad(space, "T", m, lasting)


def _broad(space: str, time: str, weeks: int | None, values: Floats) -> Iterator[tuple[Setting, Floats]]:
    """Yield the first column, then less what the others reach for every k."""
    own = np.asarray(values[:, 0], np.float64)
    with_breadth: Dimension = "DT" if time else "D"
    yield Setting(space, "T" if time else "", weeks), own
    for k in BREADTHS:
        yield Setting(space, with_breadth, weeks, k), own - breadth(values, range(1, values.shape[1]), k)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """One space over all splits: MAP on people who had no say in the choice."""

    maps: Floats
    """One a split."""
    chosen: Counter[str]


def held_out(
    risks: Mapping[str, Mapping[Any, Mapping[str, Floats]]],
    votes: Mapping[str, Floats],
    *,
    splits: int = SPLITS,
    seed: int = 0,
) -> dict[str, HeldOut]:
    """Choose every space's setting on half of each topic's people, judge it on the rest; many times over.

    `risks` maps a space to settings to topics to judged people's risks; a space with one setting has no choice.
    All spaces see the same halves.
    """
    rng = np.random.default_rng(seed)
    maps: dict[str, list[float]] = {space: [] for space in risks}
    chosen: dict[str, Counter[str]] = {space: Counter() for space in risks}
    for _ in range(splits):
        half = {topic: _half(one, rng) for topic, one in votes.items()}
        for space, settings in risks.items():
            best = max(settings, key=lambda setting: _map(settings[setting], votes, half))
            rest = {topic: ~one for topic, one in half.items()}
            maps[space].append(_map(settings[best], votes, rest))
            chosen[space][str(best)] += 1
    return {space: HeldOut(np.array(maps[space]), chosen[space]) for space in risks}


def _half(votes: Floats, rng: np.random.Generator) -> Any:
    """Mark half of the sensitive people and half of the others."""
    marked = np.zeros(len(votes), bool)
    for side in (True, False):
        members = rng.permutation(np.flatnonzero(sensitive(votes) == side))
        marked[members[: len(members) // 2]] = True
    return marked


def _map(risks: Mapping[str, Floats], votes: Mapping[str, Floats], some: Mapping[str, Any]) -> float:
    each = [
        average_precision(risks[topic][some[topic]], votes[topic][some[topic]])
        for topic in votes
        if sensitive(votes[topic][some[topic]]).any()
    ]
    return float(np.mean(each)) if each else float("nan")


def map_intervals(
    risks: Mapping[str, Mapping[str, Floats]],
    votes: Mapping[str, Floats],
    *,
    resamples: int = 200,
    seed: int = 0,
) -> dict[str, Floats]:
    """Return each method's MAP over the same bootstrap samples of people: intervals, also of differences and ratios.

    Samples in which a topic has nobody sensitive leave that topic out.
    """
    rng = np.random.default_rng(seed)
    drawn: dict[str, list[float]] = {method: [] for method in risks}
    for _ in range(resamples):
        some = {topic: rng.integers(0, len(one), len(one)) for topic, one in votes.items()}
        for method, by_topic in risks.items():
            drawn[method].append(_map(by_topic, votes, some))
    return {method: np.array(values) for method, values in drawn.items()}


def interval(drawn: Floats | Sequence[float]) -> tuple[float, float]:
    """Return the middle 95 % of what was drawn."""
    low, high = np.nanquantile(np.asarray(drawn, np.float64), [0.025, 0.975])
    return float(low), float(high)
