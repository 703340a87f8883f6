"""Releasing as much as is safe: which values to withhold so that q reaches a threshold.

A recipient may ignore a value, and q can fall when one is left out, so the released set has to pass the
threshold itself and without any single value. The outcome depends on the data, the options and the key
alone; over its budget nothing is released.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from itertools import combinations
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import BudgetExceeded, InputError
from incrowd.measures.release.definition import Component, count_with
from incrowd.measures.release.patterns import HolderIndex, Holders, PatternCounts, absorb, connected, parts
from incrowd.measures.release.solve import least_common, local_bound
from incrowd.measures.release.spec import (
    Budget,
    Certificate,
    Deadline,
    Method,
    PartCertificate,
    SuppressOptions,
)
from incrowd.result import Result

MASKED_VALUES = 1024
"""Up to this many values users are grouped by pattern first; beyond, each user is a row."""
GROUPING_SECONDS = 20e-9
"""What grouping users by pattern takes a cell of the table, users by values; a rough figure."""
READING_SECONDS = 15e-9
"""What going once over a table of patterns takes a cell."""
COUNTING_SHARE = 0.03
"""Part of the time budget that exact counts may be expected to take while larger parts are thinned."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Suppression(Result):
    """What may leave, what is withheld, and why the former is safe."""

    released: tuple[Hashable, ...]
    """In an order that the key decides, so that it says nothing about the data."""
    withheld: tuple[Hashable, ...]
    threshold: int
    q: Fraction | None
    """q of the released set where the method is exact; a proved lower bound where it is certified."""
    method: Method
    certificate: Certificate
    reason: str
    """Why nothing is released; empty otherwise."""
    seconds: float

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        together = len(self.released) + len(self.withheld)
        if self.reason:
            return f"None of {together:,} values may leave: {self.reason}."
        return (
            f"{len(self.released):,} of {together:,} values may leave; q stays at {self.threshold} or more."
        )

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each value."""
        told = [(True, value) for value in self.released] + [(False, value) for value in self.withheld]
        return [{"value": str(value), "released": released} for released, value in told]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return how many values leave, and how many do not."""
        return [("released", float(len(self.released))), ("withheld", float(len(self.withheld)))]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {
            "released": list(self.released),
            "withheld": list(self.withheld),
            "threshold": self.threshold,
            "q": None if self.q is None else float(self.q),
            "method": str(self.method),
            "reason": self.reason,
            "seconds": round(self.seconds, 6),
        }


def suppress(
    holders: Holders | PatternCounts | HolderIndex,
    threshold: int = 10,
    *,
    options: SuppressOptions = SuppressOptions(),  # noqa: B008  a frozen value
) -> Suppression:
    """Choose the values that may leave so that nobody is tied to them with a probability above 1/threshold.

    Parameters
    ----------
    holders
        Value -> the users who list it; or these users already grouped (`PatternCounts`) or indexed.
    threshold
        The least q of the released set, and of the released set without any single value.
    options
        Key, class size, budget and effort.

    Examples
    --------
    >>> result = suppress({"rare": [1], "common": list(range(20))}, threshold=10)
    >>> result.released, result.withheld, str(result.method)
    (('common',), ('rare',), 'certified')
    """
    started = monotonic()
    if threshold < 1:
        raise InputError(f"threshold: expected 1 or more, got {threshold}")
    source = (
        holders if isinstance(holders, PatternCounts | HolderIndex) else HolderIndex.from_holders(holders)
    )
    try:
        certificate, reason = _certified(source, threshold, options), ""
    except BudgetExceeded:
        certificate, reason = None, "over_budget: no proof within the time and memory given"
    if certificate is None or not certificate.parts:
        reason = reason or "nothing_fits: no value reaches the threshold"
        certificate = Certificate(threshold=threshold, parts=())
    released = certificate.released
    in_order = [value for value in source.values if value in released]
    in_order = [in_order[place] for place in np.argsort(keyed_order(in_order, options.key))]
    return Suppression(
        released=tuple(in_order),
        withheld=tuple(value for value in source.values if value not in released),
        threshold=threshold,
        q=min((part.at_least for part in certificate.parts), default=None),
        method=_method(certificate),
        certificate=certificate,
        reason=reason if not certificate.parts else "",
        seconds=monotonic() - started,
    )


def _method(certificate: Certificate) -> Method:
    if not certificate.parts:
        return Method.NOTHING
    return Method.EXACT if all(part.exact for part in certificate.parts) else Method.CERTIFIED


def _too_large_to_group(cells: int, budget: Budget) -> bool:
    """Decide by the expected cost whether each user stays a row of their own; the clock has no say."""
    return cells > budget.memory or cells * GROUPING_SECONDS > budget.seconds / 4


def _certified(
    source: PatternCounts | HolderIndex, threshold: int, options: SuppressOptions
) -> Certificate | None:
    deadline = Deadline.within(options.budget.seconds)
    if options.class_size is not None and options.class_size < threshold:
        return None
    # q is at most the number of holders of any released value.
    eligible = np.flatnonzero(source.supports >= threshold)
    allowance = [options.budget.seconds * COUNTING_SHARE]
    search = Search(threshold=threshold, options=options, deadline=deadline, allowance=allowance)
    rows = source.users if isinstance(source, HolderIndex) else len(source.weights)
    if isinstance(source, PatternCounts) and rows * len(eligible) * READING_SECONDS > options.budget.seconds:
        raise BudgetExceeded("suppression: the table of patterns is too large for the time given")
    if len(eligible) > MASKED_VALUES or _too_large_to_group(rows * len(eligible), options.budget):
        return search.over_users(source, eligible)
    if isinstance(source, HolderIndex):
        patterns = source.patterns([source.values[i] for i in eligible])
    else:
        patterns = source.select(eligible)
    return search.over_patterns(patterns)


COUNTED_VALUES = 12
"""Parts above this many values are never counted during a search, whatever the budget."""
LOCAL_PATTERNS = 4000
"""Up to this many patterns values are taken back by the local bound; it takes patterns squared in time."""
Places = NDArray[np.int64]


def keyed_order(values: Sequence[Hashable], key: bytes) -> Places:
    """Rank values by a keyed hash: a fixed order that nobody without the key can foresee."""
    words = [f"{type(value).__name__}:{value}".encode("utf-8", "replace") for value in values]
    hashes = [blake2b(word, key=key[:64], digest_size=16).digest() for word in words]
    order = sorted(range(len(values)), key=hashes.__getitem__)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    return rank


@dataclass(frozen=True, kw_only=True)
class Search:
    """One suppression under way."""

    threshold: int
    options: SuppressOptions
    deadline: Deadline
    allowance: list[float]
    """Expected seconds that counting may still take, one number."""

    def over_patterns(self, patterns: PatternCounts) -> Certificate:
        """Thin each connected part by itself: what is best for one does not touch another."""
        proved: list[PartCertificate] = []
        for part in parts(patterns):
            kept = part.select(self._keep(part))
            proved += [self._prove(piece) for piece in parts(kept)]
            self._in_time()
        return Certificate(threshold=self.threshold, parts=tuple(proved))

    def over_users(self, source: HolderIndex | PatternCounts, eligible: Places) -> Certificate:
        """Thin thousands of values at once, one row per user (or pattern); the proof is users with one value each."""
        if isinstance(source, HolderIndex):
            values = np.repeat(np.arange(len(eligible)), source.supports[eligible])
            rows = np.concatenate([source.holders(place) for place in eligible.tolist()]).astype(np.int64)
            order = np.lexsort([values, rows])
            rows, values, weights = rows[order], values[order], np.ones(source.users, dtype=np.int64)
        else:
            rows, values = np.nonzero(source.table[:, eligible])
            weights = source.weights
        self._in_time()
        labels = [source.values[place] for place in eligible.tolist()]
        kept = self._greedy_release(rows, values, weights, self._rank(labels), source.supports[eligible])
        self._in_time()
        names = tuple(labels[place] for place in kept.tolist())
        proof = PartCertificate(values=names, at_least=Fraction(self.threshold), exact=False)
        return Certificate(threshold=self.threshold, parts=(proof,) if names else ())

    def _keep(self, part: PatternCounts) -> Places:
        """Return the positions of the values of one connected part to release."""
        everything = np.arange(len(part.values))
        if local_bound(part, self.deadline) >= self.threshold:
            return everything
        rank = self._rank(part.values)
        if len(part.values) <= self.options.exact_values:
            return self._best_subset(part, rank)
        if self._affordable(part) and self._passes(part):
            return everything
        rows, values = np.nonzero(part.table)
        kept = self._greedy_release(rows, values, part.weights, rank, part.supports)
        kept = self._take_back_locally(part, kept, rank)
        return self._take_back_exactly(part, kept, rank)

    def _best_subset(self, part: PatternCounts, rank: Places) -> Places:
        """Try every subset, larger ones first; among equals more holders (unless blind), then the keyed order."""
        holders = self._worth(part.supports)
        for size in range(len(part.values), 0, -1):
            subsets = [list(some) for some in combinations(range(len(part.values)), size)]
            subsets.sort(key=lambda some: (-int(holders[some].sum()), sorted(rank[some].tolist())))
            for some in subsets:
                if self._passes(part.select(some)):
                    return np.array(some)
        return np.array([], dtype=np.int64)

    def _greedy_release(
        self, rows: Places, values: Places, weights: Places, rank: Places, supports: Places
    ) -> Places:
        from incrowd.measures.release.kernels import compile_greedy_release, greedy_release, lists_from_pairs

        with self.deadline.not_counting():
            compile_greedy_release()
        # Rare values are withheld last; the keyed order decides among equally rare ones.
        rare_first = np.argsort(np.lexsort([rank, self._worth(supports)]))
        lists = lists_from_pairs(rows, values, weights, len(rank))
        with self.deadline.watch(float("inf")) as stop:
            kept = greedy_release(
                lists, self.threshold, rare_first, self.options.rounds, self.options.effort, stop
            )
        return np.flatnonzero(kept)

    def _take_back_locally(self, part: PatternCounts, kept: Places, rank: Places) -> Places:
        """Add withheld values as long as the local bound carries them, e.g. tags that come in pairs."""
        if len(part.weights) > LOCAL_PATTERNS:
            return kept
        tried: list[int] = []
        while True:
            candidates = [v for v in self._withheld(part, kept, rank) if v not in tried]
            value = next((v for v in candidates if self._may_fit(part, kept, v)), None)
            if value is None:
                return kept
            tried.append(value)
            wider = np.append(kept, value)
            if local_bound(part.select(wider), self.deadline) >= self.threshold:
                kept = wider

    def _may_fit(self, part: PatternCounts, kept: Places, value: int) -> bool:
        self._in_time()
        return enough_holders_left(part, kept, value, self.threshold)

    def _take_back_exactly(self, part: PatternCounts, kept: Places, rank: Places) -> Places:
        """Add withheld values where the connected piece they join is small enough to be counted."""
        piece_of = connected(part.select(kept)) if len(kept) else np.array([], dtype=np.int64)
        effort = self.options.effort
        for value in self._withheld(part, kept, rank):
            met = part.table[part.table[:, value]][:, kept].any(axis=0)
            joined = np.append(kept[np.isin(piece_of, piece_of[met])], value)
            if len(joined) > COUNTED_VALUES:
                continue
            self._in_time()
            effort -= len(part.weights)
            if effort < 0:
                break
            piece = part.select(joined)
            if self._affordable(piece) and self._passes(piece):
                kept = np.append(kept, value)
                piece_of = connected(part.select(kept))
        return kept

    def _withheld(self, part: PatternCounts, kept: Places, rank: Places) -> list[int]:
        """Return the positions of the other values, common ones first (unless blind)."""
        left = np.setdiff1d(np.arange(len(part.values)), kept)
        return [int(place) for place in left[np.lexsort([rank[left], -self._worth(part.supports)[left]])]]

    def _worth(self, supports: Places) -> Places:
        """What a value is worth in a choice: its holders, or nothing if the choice is blind."""
        return np.zeros_like(supports) if self.options.blind else supports

    def _rank(self, labels: Sequence[Hashable]) -> Places:
        return keyed_order(labels, self.options.key)

    def _affordable(self, patterns: PatternCounts) -> bool:
        """Decide by the expected cost, not by the clock, so that the outcome is always the same."""
        if len(patterns.values) > COUNTED_VALUES:
            return False
        cost = Component(patterns).sum_seconds * (len(patterns.values) + 1)
        if cost > self.allowance[0]:
            return False
        self.allowance[0] -= cost
        return True

    def _passes(self, patterns: PatternCounts) -> bool:
        """Reach the threshold, also without any single value."""
        self._in_time()
        if local_bound(patterns, self.deadline) >= self.threshold:
            return True
        if least_common(absorb(patterns)) < self.threshold:
            return False
        if self._q(patterns) < self.threshold:
            return False
        return all(self._q(rest) >= self.threshold for rest in _without_each(patterns))

    def _prove(self, piece: PatternCounts) -> PartCertificate:
        bound = local_bound(piece, self.deadline)
        if bound >= self.threshold:
            return PartCertificate(values=piece.values, at_least=Fraction(bound), exact=False)
        without = tuple(self._q(rest) for rest in _without_each(piece))
        return PartCertificate(values=piece.values, at_least=self._q(piece), exact=True, without=without)

    def _q(self, patterns: PatternCounts) -> Fraction:
        """Count q, or fail closed."""
        found = []
        for part in map(Component, parts(absorb(patterns))):
            memory = self.options.budget.memory
            count = count_with("products", part, self.deadline, memory)
            count = count or count_with("sum", part, self.deadline, memory)
            if count is None:
                raise BudgetExceeded("suppression: a part could not be counted within the budget")
            found.append(Fraction(count.groups, max(count.each)))
        return min(found)

    def _in_time(self) -> None:
        if self.deadline.passed:
            raise BudgetExceeded("suppression passed its time budget")


def enough_holders_left(part: PatternCounts, kept: Places, value: int, threshold: int) -> bool:
    """Check quickly whether releasing one more value leaves some value with a few users of its own.

    Such users have no companions but each other, so the local bound would be below the threshold.
    """
    held = part.table[:, kept]
    listed, has = held.sum(axis=1), part.table[:, value]
    alone = part.weights[(listed == 1) & ~has] @ held[(listed == 1) & ~has]
    own = part.weights[(listed == 0) & has].sum()
    counts = np.append(alone, own)
    return not ((counts > 0) & (counts < threshold)).any()


def _without_each(patterns: PatternCounts) -> list[PatternCounts]:
    places = np.arange(len(patterns.values))
    return [patterns.select(np.delete(places, i)) for i in places] if len(places) > 1 else []
