"""Everybody else in a community, ready to be compared with one person's changing profile.

Trying out advice asks the same question hundreds of times: who is within d of this profile? Only words that the
person uses matter for the answer, because for the Jensen-Shannon distance d of p and q

    1 - d**2 = sum over shared words of ((p + q) log2(p + q) - p log2 p - q log2 q) / 2,

so the others' rows are cut down to these words once. Whatever comes close to the line is settled by the distances
that the measures themselves use: the answer is theirs, to the last person.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.distances import Compute, pair_distances
from incrowd.distances.reductions import rounded

if TYPE_CHECKING:
    import polars as pl
    import scipy.sparse as sp

DOUBTFUL = 1e-6
FEW = 8
MOST_RECENT = 12
"""Profiles whose distances are kept: those of a person as they are, and as they are just tried out."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Others:
    """Rows of word shares of other people, over a vocabulary, and a cut of them to the person's words."""

    matrix: sp.csr_matrix
    vocabulary: pl.Series
    """Sorted; a word's place is its column."""
    compute: Compute
    used: NDArray[np.int64]
    """Columns of the words the person uses, sorted."""
    _recent: dict[int, tuple[NDArray[np.generic], Floats]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def some(self, rows: NDArray[np.int64]) -> SomeOthers:
        """Return some of them; whoever is compared with several parts is compared once."""
        return SomeOthers(self, rows)

    @cached_property
    def _cut(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats]:
        """Row, place among the used words, share q and q log2 q of every entry that can be shared."""
        # Columns beyond the others' are words of the person's smaller communities; sorted, they come last.
        part = self.matrix[:, self.used[self.used < self.matrix.shape[1]]].tocoo()
        q = part.data.astype(np.float64)
        return part.row.astype(np.int64), part.col.astype(np.int64), q, q * np.log2(q)

    def distances(self, profile: sp.csr_matrix) -> Floats:
        """Return the distance of each other to a profile, up to rounding."""
        known = self._recent.get(id(profile.data))
        if known is None:
            # The shares are kept along, so that no others can come to lie at their place.
            known = self._recent[id(profile.data)] = profile.data, self._distances(profile)
            while len(self._recent) > MOST_RECENT:
                self._recent.pop(next(iter(self._recent)))
        return known[1]

    def _distances(self, profile: sp.csr_matrix) -> Floats:
        p = np.zeros(len(self.used))
        place = np.searchsorted(self.used, profile.indices)
        inside = place < len(self.used)
        inside[inside] = self.used[place[inside]] == profile.indices[inside]
        p[place[inside]] = profile.data[inside]
        row, column, q, q_log_q = self._cut
        p_log_p = p * np.log2(np.where(p > 0, p, 1.0))
        shared = p[column]
        both = shared + q
        terms = both * np.log2(both) - p_log_p[column] - q_log_q
        terms *= shared > 0
        alike = np.bincount(row, weights=terms, minlength=len(self)) / 2
        return np.asarray(np.sqrt(np.maximum(1.0 - alike, 0.0)))

    def within(self, profile: sp.csr_matrix, limit: float | Floats) -> NDArray[np.bool_]:
        """Say who is at most `limit` away (one number, or one for each), as the measures would."""
        return self.some(np.arange(len(self))).within(profile, limit)

    def row(self, counts: Any, columns: NDArray[np.int64]) -> sp.csr_matrix:
        """Return the shares of a profile given by word counts at some columns; columns may lie beyond ours."""
        import scipy.sparse as sp

        counts = np.asarray(counts, np.float64)
        kept = counts > 0
        order = np.argsort(columns[kept], kind="stable")
        data, at = counts[kept][order] / counts.sum(), columns[kept][order]
        width = max(self.matrix.shape[1], int(at.max(initial=-1)) + 1)
        return sp.csr_matrix((data, at, [0, len(at)]), shape=(1, width))


@dataclass(frozen=True, eq=False)
class SomeOthers:
    """Some of the others."""

    of: Others
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def within(self, profile: sp.csr_matrix, limit: float | Floats) -> NDArray[np.bool_]:
        """Say who is at most `limit` away (one number, or one for each), as the measures would."""
        distances = self.of.distances(profile)[self.rows]
        limits = np.broadcast_to(np.asarray(limit, np.float64), distances.shape)
        inside = distances <= limits
        # Near 0 the square root blows rounding up, so the doubt is judged by the squares, too.
        near = np.abs(distances**2 - limits**2) <= DOUBTFUL * np.maximum(limits, DOUBTFUL)
        doubtful = np.flatnonzero(near)
        if doubtful.size:
            exact = self._exact(profile, doubtful)
            inside[doubtful] = rounded(exact) <= rounded(limits[doubtful])
        return np.asarray(inside)

    def _exact(self, profile: sp.csr_matrix, rows: NDArray[np.int64]) -> Floats:
        others = self.of.matrix[self.rows[rows]]
        width = max(others.shape[1], profile.shape[1])
        return distances_to(widened(profile, width), widened(others, width), self.of.compute)


def distances_to(profile: sp.csr_matrix, others: sp.csr_matrix, compute: Compute) -> Floats:
    """Return the exact distances of some rows to one profile."""
    if others.shape[0] <= FEW:  # not worth setting the fast kernel up
        compute = replace(compute, kernel="reference")
    pairs = np.column_stack([np.zeros(others.shape[0], np.int64), np.arange(others.shape[0])])
    return np.asarray(pair_distances(profile, others, pairs, compute=compute))


def widened(rows: sp.csr_matrix, width: int) -> sp.csr_matrix:
    """Return rows with more columns, all empty."""
    import scipy.sparse as sp

    return sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))


def columns_of(words: pl.Series, vocabulary: pl.Series) -> NDArray[np.int64]:
    """Return each word's place in a sorted vocabulary; unknown words get places after its end."""
    if not len(words):
        return np.zeros(0, np.int64)
    if not len(vocabulary):
        return np.arange(len(words))
    place = np.asarray(vocabulary.search_sorted(words), np.int64)
    there = np.minimum(place, len(vocabulary) - 1)
    unknown = (vocabulary.gather(there) != words).to_numpy()
    place[unknown] = len(vocabulary) + np.arange(int(unknown.sum()))
    return place
