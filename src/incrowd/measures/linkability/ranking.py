"""The relative measure of paper 003: one consistent ranking out of many.

For each radius d the identities are ranked by the size of their anonymity set, rank 1 = smallest set = most
linkable. Tied identities receive the *set* of ranks they could occupy. The final ranking is the assignment of
identities to ranks that agrees with as many of these rankings as possible: a maximum-weight perfect matching.

The matching is not unique by itself (NOTES.md), so two further objectives settle it: closeness to the order
of mean set sizes, and, through the canonical order in which identities enter, a hash of who they are. The
result does not depend on the order of the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        Anonymity-set sizes, one row an identity, one column a radius.
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
        One row an identity, one column a radius (set sizes), or the negated radii an identity needs
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
    from scipy.optimize import linear_sum_assignment

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
