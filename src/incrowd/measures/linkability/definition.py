"""The mathematics of linking: matching sets, precision and recall, intervals and baselines.

Paper 003 with the corrections of NOTES.md. A *true pair* is one person's source and target identity; `nearer`
counts the targets strictly nearer to the source than the true one, `tied` those at exactly its distance (the
true one not counted).
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import betaincinv

from incrowd.distances.choice import Rule, linkage_bound, printed_bound

Array = NDArray[np.floating[Any]]
Counts = NDArray[np.integer[Any]]

DEFAULT_KS = (1, 5, 10, 20)
SEEN_ENOUGH = 10
"""People who were hit that weigh as much as the assumption that a person's pairs share one fate."""
RADII = np.arange(1_001) / 1_000
"""The thresholds of paper 003: 0, 0.001, ..., 1."""


def hits_at(nearer: ArrayLike, k: int, tied: ArrayLike = 0) -> Array:
    """Return for each pair how probably the true target is among the k nearest, ties broken by lot.

    >>> hits_at([0, 3, 1], 2, tied=[0, 0, 1]).tolist()
    [1.0, 0.0, 0.5]
    """
    room = k - np.asarray(nearer, dtype=np.float64)
    return np.asarray(np.clip(room / (np.asarray(tied) + 1.0), 0.0, 1.0))


def guess_at(k: int, targets: int) -> float:
    """Return the chance that somebody who guesses k of the targets has the true one among them."""
    return min(k / targets, 1.0) if targets else float("nan")


@dataclass(frozen=True)
class Interval:
    """A mean with an interval that respects that one person's pairs belong together."""

    mean: float
    low: float
    high: float
    pairs: int
    people: int


def clustered_mean(values: ArrayLike, people: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the mean over pairs with a confidence interval that holds at small rates, too.

    The interval of Clopper and Pearson (1934) for as many independent pairs as the data are worth (Korn and
    Graubard 1998): a person's pairs resemble each other, so n pairs of g people are worth ``n / deff``, where
    `deff` is the cluster-robust variance of the mean over that of n independent pairs, at least 1, and more
    where few were hit (`_worth`). With one pair for each person it is exact: it covers the true rate at least as
    often as it says, for every n and rate. With one person the interval is all of [0, 1].
    """
    x = np.asarray(values, dtype=np.float64)
    n = x.size
    if n == 0:
        return Interval(float("nan"), float("nan"), float("nan"), 0, 0)
    mean = float(x.mean())
    _, cluster = np.unique(np.asarray(people), return_inverse=True)
    g = int(cluster.max()) + 1
    if g == 1:
        return Interval(mean, 0.0, 1.0, n, 1)
    worth = _worth(x, mean, cluster, g)
    tail = (1 - level) / 2
    hits, misses = worth * mean, worth * (1 - mean)
    low = float(betaincinv(hits, misses + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, misses, 1 - tail)) if misses > 0 else 1.0
    return Interval(mean, low, high, n, g)


def _worth(x: Array, mean: float, cluster: Counts, g: int) -> float:
    """Return as how many independent pairs those of g people count.

    Whether a person's pairs share their fate is learned from people who were hit (or missed, if these are
    fewer). As long as they are few, part of the answer is the worst case: one person, one fate.
    """
    n = x.size
    if g == n:
        return float(n)
    sizes, sums = np.bincount(cluster), np.bincount(cluster, weights=x)
    robust = float(((sums - mean * sizes) ** 2).sum()) * g / (g - 1) / n**2
    independent = mean * (1 - mean) / (n - 1)
    one_fate = float((sizes.astype(np.float64) ** 2).sum()) / n
    estimate = min(max(1.0, robust / independent), one_fate) if independent else one_fate
    seen = min(int((sums > 0).sum()), int((sums < sizes).sum()))
    return n / float((SEEN_ENOUGH * one_fate + seen * estimate) / (SEEN_ENOUGH + seen))


@dataclass(frozen=True)
class PrecisionRecall:
    """What linking everything within each threshold would give; NaN where nothing is linked."""

    thresholds: Array
    precision: Array
    recall: Array
    predicted: Counts


def precision_recall(true_distances: ArrayLike, linked: ArrayLike, thresholds: ArrayLike) -> PrecisionRecall:
    """Return pooled precision and recall for each threshold.

    Parameters
    ----------
    true_distances
        The distance of each true pair.
    linked
        For each threshold, how many (source, target) pairs lie within it: over sources with a match
        (*closed*), or over all sources (*open*, which lowers precision).
    """
    thresholds = np.asarray(thresholds, dtype=np.float64)
    ordered = np.sort(np.asarray(true_distances, dtype=np.float64))
    found = np.searchsorted(ordered, thresholds, side="right")
    predicted = np.asarray(linked, dtype=np.int64)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(predicted > 0, found / predicted, np.nan)
        recall = found / ordered.size if ordered.size else np.full(thresholds.shape, np.nan)
    return PrecisionRecall(thresholds, precision, np.asarray(recall), predicted)


def best_threshold(curve: PrecisionRecall) -> float:
    """Return the threshold with the highest F1, the smallest of equals; NaN if nothing is ever found."""
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = 2 * curve.precision * curve.recall / (curve.precision + curve.recall)
    if not np.isfinite(f1).any():
        return float("nan")
    return float(curve.thresholds[int(np.nanargmax(f1))])


def best_bound(c: float, around: ArrayLike, rule: Rule) -> dict[str, float]:
    """Bound how probably an adversary who sees only distances links a true pair: theorem 2 of paper 000.

    `c` is the distance of the pair, `around` holds the distances from its target to all targets (0 to itself).
    The target is (k, d)-anonymous for every d with k targets within it; each gives a bound, the smallest is
    returned with its k and d, and what the paper prints for them.

    >>> round(best_bound(0.5, [0.0, 0.1, 0.1, 0.9], "inverse")["bound"], 3)
    0.375
    """
    d = np.unique(np.round(np.asarray(around, np.float64), 12))
    k = np.searchsorted(np.sort(np.asarray(around)), d + 1e-12, side="right")
    bounds = linkage_bound(c, d, k, rule)
    best = int(np.argmin(bounds))
    return {
        "bound": float(bounds[best]),
        "crowd": int(k[best]),
        "radius": float(d[best]),
        "as_printed": float(printed_bound(c, d[best], k[best])),
    }


def conformity(local: ArrayLike, matching: ArrayLike) -> Array:
    """Return ``|mu| / |M(d)|``: how much of the matching set also looks like the target; at most 1."""
    return np.asarray(np.asarray(local, dtype=np.float64) / np.asarray(matching, dtype=np.float64))


def shuffled_pairs(targets: ArrayLike, seed: int) -> Counts:
    """Return the targets with every person moved to another's place: the control without true pairs.

    A random cyclic shift of a random order moves everybody (a derangement) when there are at least two.
    """
    array = np.asarray(targets)
    generator = np.random.default_rng(seed)
    order = generator.permutation(array.size)
    moved = array.copy()
    moved[order] = array[np.roll(order, 1)]
    return np.asarray(moved)


# The relative measure of paper 003: one consistent ranking out of many.
#
# For each radius d the identities are ranked by the size of their anonymity set, rank 1 = smallest set = most
# linkable. Tied identities receive the *set* of ranks they could occupy. The final ranking is the assignment of
# identities to ranks that agrees with as many of these rankings as possible: a maximum-weight perfect matching.
#
# The matching is not unique by itself (NOTES.md), so two further objectives settle it: closeness to the order
# of mean set sizes, and, through the canonical order in which identities enter, a hash of who they are. The
# result does not depend on the order of the input.

MATCHING_LIMIT = 5_000
"""Above this many identities the matching (cubic time) gives way to the mean of the rank sets."""

Method = Literal["matching", "mean-rank"]
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Ranking:
    """The ranks, 1 = most linkable, and how they were found."""

    ranks: Ranks
    method: Method
    agreement: float
    """Share of the rankings that allow an identity the rank it got, averaged over identities."""


def rank_sets(sizes: ArrayLike) -> tuple[Ranks, Ranks]:
    """Return the first and last rank each identity could occupy; ties share the range.

    >>> first, last = rank_sets([4, 2, 4])
    >>> first.tolist(), last.tolist()
    ([2, 1, 2], [3, 1, 3])
    """
    array = np.asarray(sizes)
    ordered = np.sort(array)
    first = np.searchsorted(ordered, array, side="left") + 1
    return first, np.searchsorted(ordered, array, side="right").astype(np.int64)


def rank_weights(sizes: ArrayLike, *, share_ties: bool = False) -> NDArray[np.float64]:
    """Count how often each rank was in an identity's rank set: ``w[identity, rank - 1]``.

    Parameters
    ----------
    sizes
        Anonymity-set sizes, one row per identity, one column per radius.
    share_ties
        Add 1/|set| instead of 1 to each rank of a set (not the paper's reading).
    """
    table = np.atleast_2d(np.asarray(sizes))
    n, radii = table.shape
    # A rank set is a range, so each radius adds to two cells of a difference array.
    steps = np.zeros((n, n + 1))
    rows = np.arange(n)
    for column in range(radii):
        first, last = rank_sets(table[:, column])
        weight = 1.0 / (last - first + 1) if share_ties else np.ones(n)
        np.add.at(steps, (rows, first - 1), weight)
        np.add.at(steps, (rows, last), -weight)
    return np.asarray(np.cumsum(steps, axis=1)[:, :n])


def consistent_ranking(
    sizes: ArrayLike,
    identities: ArrayLike | None = None,
    *,
    share_ties: bool = False,
    matching_limit: int = MATCHING_LIMIT,
) -> Ranking:
    """Rank identities over all radii at once, 1 = most linkable.

    Parameters
    ----------
    sizes
        One row per identity, one column per radius (set sizes), or the negated radii an identity needs
        for each wanted set size: the largest required radius is the most linkable.
    identities
        Names that settle what the sizes leave open; the row itself is hashed when absent.

    >>> consistent_ranking([[1, 2], [3, 9], [2, 2]]).ranks.tolist()
    [1, 3, 2]
    """
    table = np.atleast_2d(np.asarray(sizes))
    n = table.shape[0]
    if n == 0:
        return Ranking(np.zeros(0, np.int64), "matching", float("nan"))
    order = _canonical_order(table, identities)
    table = table[order]
    first, last = _mean_rank_range(table)
    if n > matching_limit:
        local = _ordinal((first + last) / 2)
        method: Method = "mean-rank"
    else:
        local = _matched(rank_weights(table, share_ties=share_ties), _ordinal(table.mean(axis=1)))
        method = "matching"
    ranks = np.empty(n, np.int64)
    ranks[order] = local
    return Ranking(ranks, method, _agreement(table, local))


def _canonical_order(table: NDArray[Any], identities: ArrayLike | None) -> NDArray[np.intp]:
    names = [row.tobytes() for row in table] if identities is None else [str(x).encode() for x in identities]  # type: ignore[union-attr]
    keys = np.array([blake2b(name, digest_size=16).hexdigest() for name in names])
    return np.lexsort((keys, table.mean(axis=1)))


def _mean_rank_range(table: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first = np.zeros(table.shape[0])
    last = np.zeros(table.shape[0])
    for column in range(table.shape[1]):
        low, high = rank_sets(table[:, column])
        first += low
        last += high
    return first / table.shape[1], last / table.shape[1]


def _ordinal(values: NDArray[Any]) -> Ranks:
    ranks = np.empty(values.size, np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(1, values.size + 1)
    return ranks


def _matched(weights: NDArray[np.float64], wanted: Ranks) -> Ranks:
    n = weights.shape[0]
    # One unit of agreement outweighs every possible sum of rank differences; with n <= 5,000 and 1,001 radii
    # the entries stay far below 2**53, where doubles are exact integers.
    unit = float(n * n + 1)
    distance = np.abs(np.arange(1, n + 1)[None, :] - wanted[:, None])
    _, columns = linear_sum_assignment(distance - weights * unit)
    return np.asarray(columns + 1, np.int64)


def _agreement(table: NDArray[Any], ranks: Ranks) -> float:
    hits = 0
    for column in range(table.shape[1]):
        first, last = rank_sets(table[:, column])
        hits += int(((first <= ranks) & (ranks <= last)).sum())
    return hits / table.size
