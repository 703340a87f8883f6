"""Other ways to decide what may leave, for comparison: counting holders alone, and k-anonymity.

Both are plain reimplementations of what people do today; neither is offered for use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import BudgetExceeded
from incrowd.measures.release import Budget, HolderIndex, measure_q

ASKED_VALUES = 8
"""Values of a small answer: few enough that q is always counted."""


@dataclass(frozen=True, kw_only=True)
class HoldersAlone:
    """What became of an answer that was released because every value has enough holders (LCV)."""

    values: int
    broken: bool
    """q was proved to be below the threshold."""
    kept: bool
    """q was proved to reach it. Neither: the budget ended first."""
    q: float
    """The proved upper end of q, as a share of the threshold."""


def by_holders_alone(index: HolderIndex, threshold: int, seconds: float) -> HoldersAlone | None:
    """Release every value with `threshold` holders, and measure what that did; None if there is none."""
    enough = [value for value, users in zip(index.values, index.supports, strict=True) if users >= threshold]
    if not enough:
        return None
    try:
        measured = measure_q(index.patterns(enough), budget=Budget(seconds=seconds), threshold=threshold)
    except BudgetExceeded:
        return HoldersAlone(values=len(enough), broken=False, kept=False, q=math.nan)
    low, high = measured.interval or (measured.q or 0, measured.q or 0)
    return HoldersAlone(
        values=len(enough), broken=high < threshold, kept=low >= threshold, q=float(high) / threshold
    )


def small_answers(
    index: HolderIndex, threshold: int, draws: int, seed: int, seconds: float
) -> list[HoldersAlone]:
    """Draw answers of a few values that all have enough holders; a recipient may look at any few."""
    enough = np.flatnonzero(index.supports >= threshold)
    if len(enough) < 2:
        return []
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        some = rng.choice(enough, size=min(ASKED_VALUES, len(enough)), replace=False)
        starts = np.concatenate([[0], np.cumsum(index.supports[some])])
        members = np.concatenate([index.holders(place) for place in some.tolist()])
        smaller = HolderIndex(tuple(index.values[place] for place in some), starts, members, index.users)
        one = by_holders_alone(smaller, threshold, seconds)
        if one is not None:
            found.append(one)
    return found


@dataclass(frozen=True, kw_only=True)
class Anonymised:
    """What k-anonymity leaves of a table in which every value may identify and every value is sensitive."""

    values: int
    mentions: int
    people: int


def by_columns(index: HolderIndex, k: int, people: int) -> Anonymised:
    """Blank whole values until every remaining row is shared by `k` people; common values are kept first.

    A value is kept if it splits no set of equal rows into a piece of fewer than `k` people.
    """
    group = np.zeros(people, dtype=np.int64)
    size = np.array([people], dtype=np.int64)
    kept = mentions = 0
    for place in np.argsort(-index.supports, kind="stable").tolist():
        holders = index.holders(place)
        if len(holders) < k:
            break
        split = np.bincount(group[holders], minlength=len(size))
        rest = size - split
        if ((split > 0) & (split < k)).any() or ((split > 0) & (rest > 0) & (rest < k)).any():
            continue
        group[holders] += len(size)
        group = _renumbered(group)
        size = np.bincount(group)
        kept, mentions = kept + 1, mentions + len(holders)
    return Anonymised(values=kept, mentions=mentions, people=people if kept else 0)


def _renumbered(group: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(group, return_inverse=True)[1].astype(np.int64).ravel()


def by_rows(index: HolderIndex, k: int, seed: int = 0) -> Anonymised:
    """Leave out every row that fewer than `k` people share; values and mentions of the other rows remain."""
    value = np.repeat(np.arange(len(index.values)), index.supports)
    words = np.random.default_rng(seed).integers(2**63, size=len(index.values), dtype=np.uint64)
    row = np.zeros(index.users, dtype=np.uint64)  # the sum of its values' words: equal rows, equal sums
    np.add.at(row, index.members, words[value])
    _, alike, sharing = np.unique(row, return_inverse=True, return_counts=True)
    safe = (sharing >= k)[alike]
    left = safe[index.members]
    return Anonymised(values=len(np.unique(value[left])), mentions=int(left.sum()), people=int(safe.sum()))
