"""The search behind suppression: what to keep of each connected part, and the proof that it may be kept."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import BudgetExceeded
from incrowd.measures.release import bounds
from incrowd.measures.release.certificate import Certificate, PartCertificate
from incrowd.measures.release.clock import Deadline
from incrowd.measures.release.count import Part, count_with
from incrowd.measures.release.patterns import HolderIndex, PatternCounts
from incrowd.measures.release.reductions import absorb, connected, parts
from incrowd.measures.release.spec import SuppressOptions

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
        """Thin thousands of values at once, a row a user (or pattern); the proof is users with one value each."""
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
        kept = self._thin(rows, values, weights, self._rank(labels), source.supports[eligible])
        self._in_time()
        names = tuple(labels[place] for place in kept.tolist())
        proof = PartCertificate(values=names, at_least=Fraction(self.threshold), exact=False)
        return Certificate(threshold=self.threshold, parts=(proof,) if names else ())

    def _keep(self, part: PatternCounts) -> Places:
        """Return the positions of the values of one connected part to release."""
        everything = np.arange(len(part.values))
        if bounds.local_bound(part, self.deadline) >= self.threshold:
            return everything
        rank = self._rank(part.values)
        if len(part.values) <= self.options.exact_values:
            return self._best_subset(part, rank)
        if self._affordable(part) and self._passes(part):
            return everything
        rows, values = np.nonzero(part.table)
        kept = self._thin(rows, values, part.weights, rank, part.supports)
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

    def _thin(self, rows: Places, values: Places, weights: Places, rank: Places, supports: Places) -> Places:
        from incrowd.measures.release.thin import compile_thin, lists_from_pairs, thin

        with self.deadline.not_counting():
            compile_thin()
        # Rare values are withheld last; the keyed order decides among equally rare ones.
        rare_first = np.argsort(np.lexsort([rank, self._worth(supports)]))
        lists = lists_from_pairs(rows, values, weights, len(rank))
        with self.deadline.watch(float("inf")) as stop:
            kept = thin(lists, self.threshold, rare_first, self.options.rounds, self.options.effort, stop)
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
            if bounds.local_bound(part.select(wider), self.deadline) >= self.threshold:
                kept = wider

    def _may_fit(self, part: PatternCounts, kept: Places, value: int) -> bool:
        self._in_time()
        return leaves_no_few(part, kept, value, self.threshold)

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
        cost = Part(patterns).sum_seconds * (len(patterns.values) + 1)
        if cost > self.allowance[0]:
            return False
        self.allowance[0] -= cost
        return True

    def _passes(self, patterns: PatternCounts) -> bool:
        """Reach the threshold, also without any single value."""
        self._in_time()
        if bounds.local_bound(patterns, self.deadline) >= self.threshold:
            return True
        if bounds.least_common(absorb(patterns)) < self.threshold:
            return False
        if self._q(patterns) < self.threshold:
            return False
        return all(self._q(rest) >= self.threshold for rest in _without_each(patterns))

    def _prove(self, piece: PatternCounts) -> PartCertificate:
        bound = bounds.local_bound(piece, self.deadline)
        if bound >= self.threshold:
            return PartCertificate(values=piece.values, at_least=Fraction(bound), exact=False)
        without = tuple(self._q(rest) for rest in _without_each(piece))
        return PartCertificate(values=piece.values, at_least=self._q(piece), exact=True, without=without)

    def _q(self, patterns: PatternCounts) -> Fraction:
        """Count q, or fail closed."""
        found = []
        for part in map(Part, parts(absorb(patterns))):
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


def leaves_no_few(part: PatternCounts, kept: Places, value: int, threshold: int) -> bool:
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
