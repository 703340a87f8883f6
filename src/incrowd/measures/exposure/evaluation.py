"""How well a ranking finds the people whom judges found sensitive: the paper's figures of merit, ties and all.

`scores` order people, highest first; `votes` are the shares of judges who said yes, and a person is sensitive
if more than half did. Equal scores have no order: every figure is its expected value over all orders.

Settings are chosen on some people and judged on others (:func:`held_out`), so that no figure rests on a choice made
with it in sight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

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
        """Add up one value per person within each group."""
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


def auc(scores: ArrayLike, votes: ArrayLike) -> float:
    """Return how often a sensitive person comes before another one, equals counting half; undefined come last.

    NaN if nobody has a score, or only one kind of people was judged.

    >>> auc([3, 1, 1, 0], [1, 1, 0, 0]), auc([1.0, float("nan")], [0, 1])
    (0.875, 0.0)
    """
    values, truth = np.asarray(scores, np.float64), sensitive(votes)
    found, others = int(truth.sum()), int((~truth).sum())
    if not found or not others or np.isnan(values).all():
        return float("nan")
    ranks = stats.rankdata(np.where(np.isnan(values), -np.inf, values))
    return float((ranks[truth].sum() - found * (found + 1) / 2) / (found * others))


def auc_interval(value: float, found: float, others: float) -> tuple[float, float]:
    """Return the 95 % interval of an AUC from how many people were judged sensitive and how many not.

    Newcombe's method 5 (2006): all values that lie within 1.96 of their own standard errors (Hanley and McNeil), which
    holds near 1 too, where an error estimated from the sample would be 0.

    >>> [round(end, 3) for end in auc_interval(0.8, 30, 70)], [round(end, 3) for end in auc_interval(1.0, 30, 70)]
    ([0.687, 0.876], [0.948, 1.0])
    """
    if np.isnan(value):
        return float("nan"), float("nan")
    half = (found + others) / 2 - 1

    def beyond(other: float) -> float:
        spread = other * (1 - other) * (1 + half * ((1 - other) / (2 - other) + other / (1 + other)))
        return abs(value - other) - Z * float(np.sqrt(spread / (found * others)))

    low = 0.0 if value <= 0 or beyond(0.0) <= 0 else float(optimize.brentq(beyond, 0.0, min(value, 1 - 1e-9)))
    high = 1.0 if value >= 1 or beyond(1.0) <= 0 else float(optimize.brentq(beyond, max(value, 1e-9), 1.0))
    return low, high


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
    """For each sensitive (person, topic), how probably it is among the first r; NaN where nothing is ranked."""
    reason: str = ""
    """Why the figures are undefined; empty where they are not."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, without the hits of single people."""
        names = ("r_precision_micro", "r_precision_macro", "p_at_5", "map", "ndcg")
        plain: dict[str, Any] = {name: _plain(getattr(self, name)) for name in names}
        plain["per_topic"] = {name: _plain(value) for name, value in self.per_topic.items()}
        return plain | ({"reason": self.reason} if self.reason else {})


def merit(topics: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Merit:
    """Judge a method from (scores, votes) of each topic; topics without a sensitive person are left out.

    Where nobody has a score for a topic, nothing is ranked: that topic and all means over topics are undefined.

    >>> merit({"a": ([2, 1], [1, 0]), "b": ([1, 2, 3], [1, 1, 0])}).r_precision_micro.__round__(4)
    0.6667
    """
    judged = {name: pair for name, pair in topics.items() if sensitive(pair[1]).any()}
    unknown = [name for name, (scores, _) in judged.items() if np.isnan(np.asarray(scores, np.float64)).all()]

    def each(figure: Callable[[ArrayLike, ArrayLike], Any]) -> dict[str, Any]:
        return {
            name: np.full(int(sensitive(pair[1]).sum()), np.nan) if name in unknown else figure(*pair)
            for name, pair in judged.items()
        }

    hits = each(r_precision_hits)
    together = np.concatenate(list(hits.values())) if hits else np.zeros(0)
    return Merit(
        r_precision_micro=_mean(together),
        r_precision_macro=_mean([one.mean() for one in hits.values()]),
        p_at_5=_mean([np.mean(one) for one in each(precision_at).values()]),
        map=_mean([np.mean(one) for one in each(average_precision).values()]),
        ndcg=_mean([np.mean(one) for one in each(ndcg).values()]),
        per_topic={name: float(one.mean()) for name, one in hits.items()},
        hits=together,
        reason=f"nobody who was judged has a score for {', '.join(unknown)}" if unknown else "",
    )


def paired_t_test(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p of a paired t-test on the hits of two methods; 1 if they never differ, NaN if undefined.

    >>> round(paired_t_test([1, 1, 1, 0], [0, 0, 1, 0]), 4)
    0.1817
    """
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    n = len(difference)
    if np.isnan(difference).any():
        return float("nan")
    if n < 2 or not difference.any():
        return 1.0
    spread = difference.std(ddof=1)
    if spread == 0:
        return 0.0
    return float(2 * stats.t.sf(abs(difference.mean()) / (spread / np.sqrt(n)), n - 1))


def mcnemar(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p of the exact McNemar test: are the hits of one a fair coin's share? NaN if undefined.

    A tie at the border is a hit in part. The test therefore asks how often the sum of all differences would lie as far
    from 0 if every difference had its sign from a fair coin; where every hit is 0 or 1, that is McNemar's exact test.

    >>> round(mcnemar([1] * 5 + [0], [0] * 6), 4), round(mcnemar([0.6] * 60, [1] * 39 + [0] * 21), 2)
    (0.0625, 0.45)
    """
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    if np.isnan(difference).any():
        return float("nan")
    sizes, times = np.unique(np.round(np.abs(difference[difference != 0]), 12), return_counts=True)
    if not len(sizes):
        return 1.0
    # The distribution of the sum, from one size of difference to the next; sums that meet are put together.
    sums: Floats = np.zeros(1)
    chances: Floats = np.ones(1)
    for size, n in zip(sizes, times, strict=True):
        steps = size * (2.0 * np.arange(n + 1) - n)
        sums, place = np.unique(np.round(np.add.outer(sums, steps).ravel(), 9), return_inverse=True)
        together = np.outer(chances, stats.binom.pmf(np.arange(n + 1), n, 0.5)).ravel()
        sums, chances = _thinned(sums, np.asarray(np.bincount(place, together), np.float64))
    far = np.abs(sums) >= abs(difference.sum()) - 1e-6 * np.abs(difference).sum()
    return float(min(1.0, chances[far].sum()))


def _thinned(sums: Floats, chances: Floats) -> tuple[Floats, Floats]:
    """Put sums on a fine grid where there are too many to keep; a ten-thousandth of the range moves no p value."""
    if len(sums) <= MOST_SUMS:
        return sums, chances
    step = float(sums[-1] - sums[0]) / MOST_SUMS
    grid, place = np.unique(np.round(sums / step), return_inverse=True)
    return grid * step, np.asarray(np.bincount(place, chances), np.float64)


def sample_by_score(
    scores: ArrayLike, count: int, base: float, seed: int | Sequence[int]
) -> NDArray[np.int64]:
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


MOST_SUMS = 20_000
Z = float(stats.norm.ppf(0.975))
GROUPS = 200
"""People are left out one by one, or in so many groups where there are more."""
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
    """Yield everybody's risk for one topic under every setting; NaN for those who wrote too little to be told of."""
    place = topics.place(topic)
    columns = [place, *topics.siblings(place)]
    means = None if peaks.means is None else peaks.means[:, columns]
    domain = replace(peaks, values=peaks.values[:, columns], means=means)
    yield from _broad(space, "", None, domain.where_told(domain.pooled))
    for m, lasting in zip(WEEKS, domain.lasting_over(WEEKS), strict=True):
        yield from _broad(space, "T", m, domain.where_told(lasting))


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
    """One for each split; NaN where no topic could be split."""
    chosen: Counter[str]
    reason: str = ""
    """Why there is no figure, or which topics are not in it."""


def held_out(
    risks: Mapping[str, Mapping[Any, Mapping[str, Floats]]],
    votes: Mapping[str, Floats],
    *,
    splits: int = SPLITS,
    seed: int = 0,
) -> dict[str, HeldOut]:
    """Choose every space's setting on half of each topic's people, judge it on the rest; many times over.

    `risks` maps a space to settings to topics to judged people's risks; a space with one setting has no choice.
    All spaces see the same halves. A topic with fewer than two people on either side cannot be split and is left out.
    """
    rng = np.random.default_rng(seed)
    kept = {topic: one for topic, one in votes.items() if _can_be_split(one)}
    left_out = [topic for topic in votes if topic not in kept]
    reason = f"too few people to be split: {', '.join(left_out)}" if left_out else ""
    maps: dict[str, list[float]] = {space: [] for space in risks}
    chosen: dict[str, Counter[str]] = {space: Counter() for space in risks}
    for _ in range(splits):
        half = {topic: _half(one, rng) for topic, one in kept.items()}
        rest = {topic: ~one for topic, one in half.items()}
        for space, settings in risks.items():
            merits = {setting: _map(settings[setting], kept, half) for setting in settings}
            known = {setting: value for setting, value in merits.items() if not np.isnan(value)}
            if not known:
                maps[space].append(float("nan"))
                continue
            best = max(known, key=known.__getitem__)
            maps[space].append(_map(settings[best], kept, rest))
            chosen[space][str(best)] += 1
    found = {}
    for space in risks:
        why = reason if chosen[space] or not kept else "nobody who was judged has a score"
        found[space] = HeldOut(np.array(maps[space]), chosen[space], why)
    return found


def _can_be_split(votes: Floats) -> bool:
    truth = sensitive(votes)
    return bool(truth.sum() >= 2 and (~truth).sum() >= 2)


def _half(votes: Floats, rng: np.random.Generator) -> Any:
    """Mark half of the sensitive people and half of the others."""
    marked = np.zeros(len(votes), bool)
    for side in (True, False):
        members = rng.permutation(np.flatnonzero(sensitive(votes) == side))
        marked[members[: len(members) // 2]] = True
    return marked


def _map(risks: Mapping[str, Floats], votes: Mapping[str, Floats], some: Mapping[str, Any]) -> float:
    """Return the mean over topics of average precision on some people; NaN if a topic has no scores at all."""
    if any(np.isnan(risks[topic]).all() for topic in votes):
        return float("nan")
    each = [
        average_precision(risks[topic][some[topic]], votes[topic][some[topic]])
        for topic in votes
        if sensitive(votes[topic][some[topic]]).any()
    ]
    return float(np.mean(each)) if each else float("nan")


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A method's MAP, and what it is without each of some groups of people: how sure the figure is."""

    value: float
    without: Floats
    freedom: float
    """Degrees of freedom: a topic's sensitive people on average, less one."""

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval, on the scale of log-odds, with the bias of small samples taken off.

        Where everybody sensitive comes first whoever is left out, the jackknife sees no doubt. Of r precisions, each
        at most 1 and m on average, all are 1 with a chance of at most m^r: from where that is 2.5 % up to 1.
        """
        if np.isnan(self.value):
            return float("nan"), float("nan")
        if min(self.value, self.without.min()) > 1 - 1e-9:
            return float(0.025 ** (1 / (self.freedom + 1))), 1.0
        low, high = _around(_log_odds(self.value), _log_odds(self.without), self.freedom)
        return float(special.expit(low)), float(special.expit(high))

    def difference(self, other: LeftOut) -> tuple[float, float]:
        """Return the 95 % interval of this MAP less another on the same people."""
        return _around(self.value - other.value, self.without - other.without, self.freedom)

    def ratio(self, other: LeftOut) -> tuple[float, float]:
        """Return the 95 % interval of this MAP as a share of another on the same people."""
        if not (self.value > 0 and other.value > 0):
            return float("nan"), float("nan")
        low, high = _around(
            np.log(self.value / other.value), np.log(self.without / other.without), self.freedom
        )
        return float(np.exp(low)), float(np.exp(high))


def _log_odds(share: Any) -> Any:
    return special.logit(np.clip(share, 1e-3, 1 - 1e-3))


def _around(value: float, without: Floats, freedom: float) -> tuple[float, float]:
    """Return a jackknife interval: the value less its bias, give or take its standard error times Student's t."""
    groups = len(without)
    mean = float(without.mean())
    error = np.sqrt((groups - 1) / groups * ((without - mean) ** 2).sum())
    middle = value - (groups - 1) * (mean - value)
    reach = stats.t.ppf(0.975, max(2.0, freedom)) * error
    return float(middle - reach), float(middle + reach)


def leave_people_out(
    risks: Mapping[str, Mapping[str, Floats]],
    votes: Mapping[str, Floats],
    people: Mapping[str, ArrayLike],
    *,
    seed: int = 0,
) -> dict[str, LeftOut]:
    """Return each method's MAP with and without some of the people, the same for all methods.

    `people` says who the judged of each topic are (any numbers): somebody judged for several topics is left out of all
    of them at once, because what their posts are like they are like for every topic.
    """
    everybody = np.unique(np.concatenate([np.asarray(one) for one in people.values()]))
    groups = min(GROUPS, len(everybody))
    group = np.random.default_rng(seed).permutation(np.arange(len(everybody)) % groups)
    of = {topic: group[np.searchsorted(everybody, np.asarray(one))] for topic, one in people.items()}
    whole = {topic: np.ones(len(one), bool) for topic, one in votes.items()}
    freedom = float(np.mean([sensitive(one).sum() for one in votes.values() if sensitive(one).any()])) - 1
    return {
        method: LeftOut(
            _map(by_topic, votes, whole),
            np.array(
                [_map(by_topic, votes, {t: one != out for t, one in of.items()}) for out in range(groups)]
            ),
            freedom,
        )
        for method, by_topic in risks.items()
    }


def middle(values: Floats | Sequence[float]) -> tuple[float, float]:
    """Return the middle 95 % of some values; NaN if none is defined."""
    known = np.asarray(values, np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)
