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
    hashes = [blake2b(word, key=key[:64]).digest() for word in words]
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

    def over_users(self, index: HolderIndex, eligible: Places) -> Certificate:
        """Thin thousands of values at once, a row a user; the proof is users with one value each."""
        values = np.repeat(np.arange(len(eligible)), index.supports[eligible])
        rows = np.concatenate([index.holders(place) for place in eligible.tolist()]).astype(np.int64)
        order = np.lexsort([values, rows])
        labels = [index.values[place] for place in eligible.tolist()]
        weights = np.ones(index.users, dtype=np.int64)
        kept = self._thin(rows[order], values[order], weights, labels, index.supports[eligible])
        self._in_time()
        names = tuple(labels[place] for place in kept.tolist())
        proof = PartCertificate(values=names, at_least=Fraction(self.threshold), solver="local")
        return Certificate(threshold=self.threshold, parts=(proof,) if names else ())

    def _keep(self, part: PatternCounts) -> Places:
        """Return the positions of the values of one connected part to release."""
        everything = np.arange(len(part.values))
        if bounds.local_bound(part, self.deadline) >= self.threshold:
            return everything
        if len(part.values) <= self.options.exact_values:
            return self._best_subset(part)
        if self._affordable(part) and self._passes(part):
            return everything
        rows, values = np.nonzero(part.table)
        thinned = self._thin(rows, values, part.weights, part.values, part.supports)
        return self._take_back_exactly(part, self._take_back_locally(part, thinned))

    def _best_subset(self, part: PatternCounts) -> Places:
        """Try every subset, larger ones first; among equals more holders, then the keyed order."""
        rank = keyed_order(part.values, self.options.key)
        for size in range(len(part.values), 0, -1):
            subsets = [list(some) for some in combinations(range(len(part.values)), size)]
            subsets.sort(key=lambda some: (-int(part.supports[some].sum()), sorted(rank[some].tolist())))
            for some in subsets:
                if self._passes(part.select(some)):
                    return np.array(some)
        return np.array([], dtype=np.int64)

    def _thin(
        self, rows: Places, values: Places, weights: Places, labels: Sequence[Hashable], supports: Places
    ) -> Places:
        from incrowd.measures.release.thin import compile_thin, lists_from_pairs, thin

        with self.deadline.not_counting():
            compile_thin()
        # Rare values are withheld last; the keyed order decides among equally rare ones.
        order = np.lexsort([keyed_order(labels, self.options.key), supports])
        rank = np.argsort(order)
        lists = lists_from_pairs(rows, values, weights, len(labels))
        with self.deadline.watch(float("inf")) as stop:
            kept = thin(lists, self.threshold, rank, self.options.rounds, self.options.effort, stop)
        return np.flatnonzero(kept)

    def _take_back_locally(self, part: PatternCounts, kept: Places) -> Places:
        """Add withheld values as long as the local bound carries them, e.g. tags that come in pairs."""
        if len(part.weights) > LOCAL_PATTERNS:
            return kept
        for place in self._withheld(part, kept):
            wider = np.append(kept, place)
            alone = bounds.only_value(part.select(wider))
            # Somebody who lists one value only has no other local count to lean on.
            if not ((alone > 0) & (alone < self.threshold)).any():
                self._in_time()
                if bounds.local_bound(part.select(wider), self.deadline) >= self.threshold:
                    kept = wider
        return kept

    def _take_back_exactly(self, part: PatternCounts, kept: Places) -> Places:
        """Add withheld values where the connected piece they join is small enough to be counted."""
        for place in self._withheld(part, kept):
            wider = np.append(kept, place)
            together = part.select(wider)
            part_of = connected(together)
            piece = together.select(np.flatnonzero(part_of == part_of[-1]))
            if self._affordable(piece) and self._passes(piece):
                kept = wider
        return kept

    def _withheld(self, part: PatternCounts, kept: Places) -> list[int]:
        rank = keyed_order(part.values, self.options.key)
        left = np.setdiff1d(np.arange(len(part.values)), kept)
        return [int(place) for place in left[np.lexsort([rank[left], -part.supports[left]])]]

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
        if bounds.local_bound(patterns, self.deadline) >= self.threshold:
            return True
        if bounds.least_common(absorb(patterns)) < self.threshold:
            return False
        if self._q(patterns)[0] < self.threshold:
            return False
        return all(self._q(rest)[0] >= self.threshold for rest in _without_each(patterns))

    def _prove(self, piece: PatternCounts) -> PartCertificate:
        bound = bounds.local_bound(piece, self.deadline)
        if bound >= self.threshold:
            return PartCertificate(values=piece.values, at_least=Fraction(bound), solver="local")
        q, solver = self._q(piece)
        without = tuple(self._q(rest)[0] for rest in _without_each(piece))
        return PartCertificate(values=piece.values, at_least=q, solver=solver, without=without)

    def _q(self, patterns: PatternCounts) -> tuple[Fraction, str]:
        """Count q, or fail closed."""
        found: list[tuple[Fraction, str]] = []
        for part in parts(absorb(patterns)):
            piece, memory = Part(part), self.options.budget.memory
            count = count_with("products", piece, self.deadline, memory) or count_with(
                "sum", piece, self.deadline, memory
            )
            if count is None:
                raise BudgetExceeded("suppression: a part could not be counted within the budget")
            found.append((Fraction(count.groups, max(count.each)), count.solver))
        return min(q for q, _ in found), "+".join(sorted({solver for _, solver in found}))

    def _in_time(self) -> None:
        if self.deadline.passed:
            raise BudgetExceeded("suppression passed its time budget")


def _without_each(patterns: PatternCounts) -> list[PatternCounts]:
    places = np.arange(len(patterns.values))
    return [patterns.select(np.delete(places, i)) for i in places] if len(places) > 1 else []
