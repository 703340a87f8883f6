"""How alike two communities' members are, from several views at once.

Each view (a family of habits) gives a cosine for every (source, target) pair. Raw cosines favour *hubs*:
talkative members who resemble everybody. Cross-domain similarity local scaling (CSLS; Conneau et al. 2018)
subtracts how alike each side is to its own k nearest on the other side. What is left is standardised, so that
views can be weighed against each other. Pairs are handled in blocks of sources: memory grows with the
targets, not with all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.profiles.habits import TIME_FAMILIES

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.profiles.habits import Habits

NEIGHBOURS = 10
BLOCK_BYTES = 128 * 2**20
COMMON_HABITS = 2_048

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class _Rows:
    """Rows of unit length: the habits most people share as a dense block, the rest sparse.

    The few common habits make up most of a product's work, and a dense product does it many times faster.
    """

    common: Scores
    rest: sp.csr_matrix

    @classmethod
    def of(cls, rows: sp.csr_matrix, common: NDArray[np.bool_]) -> _Rows:
        return cls(rows[:, common].toarray(), rows[:, ~common])

    def only(self, which: Any) -> _Rows:
        return _Rows(self.common[which], self.rest[which])

    def cosines(self, targets: _Rows) -> Scores:
        return np.asarray(self.common @ targets.common.T + (self.rest @ targets.rest.T).toarray())


@dataclass(frozen=True)
class _View:
    """One family of habits, and what turns its cosines into standard scores."""

    sources: _Rows
    targets: _Rows
    source_hub: Scores
    target_hub: Scores
    mean: float
    deviation: float

    def scores(self, which: Any) -> Scores:
        cosines = self.sources.only(which).cosines(self.targets)
        corrected = 2 * cosines - self.source_hub[which, None] - self.target_hub[None, :]
        return np.asarray((corrected - self.mean) / self.deviation, np.float32)


class Resemblance:
    """Standard scores of all (source, target) pairs under each view, in blocks of sources."""

    def __init__(self, sources: Habits, targets: Habits, views: tuple[str, ...]) -> None:
        self.shape = (len(sources), len(targets))
        self.views = views
        self._rows = max(1, BLOCK_BYTES // (4 * max(self.shape[1], 1) * len(views)))
        self._views = [self._view(sources.rows[name], targets.rows[name], name) for name in views]

    def scores(self, which: Any) -> Scores:
        """Return the scores of some sources: (sources, targets, views)."""
        return np.stack([view.scores(which) for view in self._views], axis=2)

    def slices(self) -> Iterator[slice]:
        """Cut the sources into blocks whose scores fit the memory set aside for them."""
        for start in range(0, self.shape[0], self._rows):
            yield slice(start, min(start + self._rows, self.shape[0]))

    def _view(self, sources: sp.csr_matrix, targets: sp.csr_matrix, name: str) -> _View:
        if name not in TIME_FAMILIES:  # those are shares already
            sources, targets = _tf_idf(sources, targets)
        common = _common_columns(sources, targets)
        return self._measure_hubs(_Rows.of(sources, common), _Rows.of(targets, common))

    def _measure_hubs(self, sources: _Rows, targets: _Rows) -> _View:
        n, m = self.shape
        k = min(NEIGHBOURS, n, m)
        source_hub, source_sum = np.zeros(n), np.zeros(n)
        target_sum, squares = np.zeros(m), 0.0
        best = np.full((k, m), -np.inf, np.float32)
        for rows in self.slices():
            cosines = sources.only(rows).cosines(targets)
            source_hub[rows] = np.partition(cosines, m - k, axis=1)[:, m - k :].mean(axis=1)
            source_sum[rows] = cosines.sum(axis=1)
            target_sum += cosines.sum(axis=0)
            squares += float((cosines.astype(np.float64) ** 2).sum())
            stacked = np.concatenate([best, cosines])
            best = np.partition(stacked, stacked.shape[0] - k, axis=0)[-k:]
        target_hub = best.mean(axis=0)
        mean, deviation = _corrected_moments(source_hub, source_sum, target_hub, target_sum, squares)
        return _View(
            sources, targets, source_hub.astype(np.float32), target_hub.astype(np.float32), mean, deviation
        )


def _corrected_moments(
    source_hub: Any, source_sum: Any, target_hub: Any, target_sum: Any, squares: float
) -> tuple[float, float]:
    """Return mean and deviation of ``2 s_ij - a_i - b_j`` from sums alone, without a pass over all pairs."""
    n, m = source_hub.size, target_hub.size
    total = n * m
    a, b = source_hub.astype(np.float64), target_hub.astype(np.float64)
    first = (2 * source_sum.sum() - m * a.sum() - n * b.sum()) / total
    second = (
        4 * squares
        + m * (a**2).sum()
        + n * (b**2).sum()
        - 4 * (a @ source_sum)
        - 4 * (b @ target_sum)
        + 2 * a.sum() * b.sum()
    ) / total
    variance = max(second - first**2, 0.0)
    # A view that tells nobody apart (no times, say) has no spread: its scores are all 0.
    return float(first), float(np.sqrt(variance)) if variance > 1e-12 else 1.0


def _common_columns(sources: sp.csr_matrix, targets: sp.csr_matrix) -> NDArray[np.bool_]:
    width = sources.shape[1]
    holders = np.bincount(sources.indices, minlength=width) + np.bincount(targets.indices, minlength=width)
    common = np.zeros(width, bool)
    common[np.argsort(-holders, kind="stable")[:COMMON_HABITS]] = True
    return common


def _tf_idf(sources: sp.csr_matrix, targets: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Weigh habits by rarity over both communities, damp repetition, scale rows to length 1.

    A habit that one identity alone has cannot link anybody and is left out.
    """
    import scipy.sparse as sp

    both = sp.vstack([sources, targets]).tocsr()
    holders = np.bincount(both.indices, minlength=both.shape[1])
    kept = np.flatnonzero(holders > 1)
    both = both[:, kept]
    rarity = np.log((1 + both.shape[0]) / (1 + holders[kept])) + 1
    both.data = ((1 + np.log(both.data)) * rarity[both.indices]).astype(np.float32)
    lengths = np.sqrt(np.asarray(both.multiply(both).sum(axis=1)).ravel())
    both = sp.csr_matrix(sp.diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ both, dtype=np.float32)
    n = sources.shape[0]
    return both[:n], both[n:]
