"""What people have on their lists (films, purchases), told so that it may be published: noise for items.

Words are many and each is a small share of what somebody writes; an item is on a list or it is not. So a person counts
for the items of their list with a length of one altogether: with 1 / sqrt(n) for each of n items. Whatever is on the
list, one person moves all sums together by at most one, and noise of :data:`BLUR_SUMS` hides that. With the counts of
people, which have noise of :data:`BLUR_PEOPLE`, somebody who knows everybody else's list, and that of the person, tells
whether the person is in the card with an advantage of at most 2 Phi(mu / 2) - 1, about 0.1, where
mu^2 = 1 / BLUR_SUMS^2 + 2 / BLUR_PEOPLE^2 (Gaussian differential privacy; Dong, Roth and Su 2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.cards.noise import UNIT, Blur, Noise, Private, above, library, shrunk
from incrowd.opendp_library import least_threshold

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BLUR_SUMS, BLUR_PEOPLE = 5.0, 10.0
"""Noise of the default: on everybody's parts of an item, and on counts of people."""
CLEAR = 2.5
"""An item is listed if its noisy sum is so many times the noise."""
SPENT_ON_LISTS = {"lengths": 0.1, "listed": 0.1}
"""Parts of the budget; the items themselves have the rest."""
LONGEST_LIST = 5_000
"""Of one person, so many items count at most."""
POSTS_PART = 0.5
"""In a private card of posts and items, so much of the budget is for what people write."""


def even_parts(lists: sp.csr_matrix, longest: int = LONGEST_LIST) -> sp.csr_matrix:
    """Return who has which item, each list with a length of one; what is beyond the longest list does not count.

    >>> even_parts(sp.csr_matrix([[1, 1, 1, 1], [0, 0, 0, 0]])).toarray().tolist()
    [[0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 0.0, 0.0]]
    """
    rows = sp.csr_matrix(lists, dtype=np.float64)
    place = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], np.diff(rows.indptr))
    rows.data = (place < longest).astype(np.float64)
    rows.eliminate_zeros()
    sizes = np.diff(rows.indptr)
    rows.data = np.repeat(1 / np.sqrt(np.maximum(sizes, 1)), sizes)
    return rows


@dataclass(frozen=True)
class BlurLists(Blur):
    """The default: an advantage of at most a tenth, if everything but the person is known."""

    def words(self, counts: sp.csr_matrix, names: tuple[str, ...], k: int) -> tuple[Ints, Floats]:
        """List items of at least `k` people whose noisy sum stands clear of the noise."""
        held = np.bincount(counts.indices, minlength=len(names))
        sums = np.asarray(even_parts(counts).sum(axis=0)).ravel()
        noisy = sums + BLUR_SUMS * self.rng.standard_normal(len(sums))
        listed = np.flatnonzero((held >= k) & (noisy >= self.line(k)))
        return listed, self.likely(noisy[listed], k)

    def likely(self, noisy: Floats, k: int) -> Floats:
        """Return what noisy sums are on average: the line of items is clear of the noise."""
        return shrunk(noisy, self.word_spread(noisy))

    def word_spread(self, sums: Floats) -> Floats:
        """Return how much noise there is on everybody's parts of an item."""
        return np.full(np.shape(sums), BLUR_SUMS)

    def line(self, k: int) -> float:
        """Return the noisy sum from which an item is listed."""
        return CLEAR * BLUR_SUMS

    def spread(self, what: str, reach: float) -> float:
        """Return how much noise there is on counts of people."""
        return BLUR_PEOPLE * reach


@dataclass
class PrivateLists(Private):
    """Differentially private for people, with their whole lists."""

    def words(self, counts: sp.csr_matrix, names: tuple[str, ...], k: int) -> tuple[Ints, Floats]:
        """List items whose noisy sum passes a threshold: one that hardly anybody has does not, and `k` people must."""
        whole = even_parts(counts)
        whole.data = np.floor(whole.data * UNIT)  # down, so that nobody counts for more than one
        sums = np.asarray(whole.sum(axis=0)).ravel().astype(np.int64)
        scale, threshold = self._scale, round(self.line(k) * UNIT)
        self.spent["words"] = library().threshold_loss(scale, threshold, _MOVED)[0]
        listed, noisy = above(sums, scale, threshold)
        return listed, shrunk(noisy, self.word_spread(noisy))

    @property
    def _scale(self) -> float:
        return UNIT / math.sqrt(2 * (1 - sum(SPENT_ON_LISTS.values())) * self.budget)

    def word_spread(self, sums: Floats) -> Floats:
        """Return how much noise there is on everybody's parts of an item."""
        return np.full(np.shape(sums), self._scale / UNIT)

    def line(self, k: int) -> float:
        """Return the noisy sum from which an item is listed; nobody counts for more than one, so `k` people have it."""

        def lost(least: int) -> float:
            return library().threshold_loss(self._scale, least, _MOVED)[1]

        return max(least_threshold(lost, self.part * self.delta / 2, above=UNIT) / UNIT, float(k))

    def spread(self, what: str, reach: float) -> float:
        """Return how much noise there is on counts of people."""
        return reach / math.sqrt(2 * SPENT_ON_LISTS[what] * self.budget)


_MOVED = (LONGEST_LIST, float(UNIT), float(UNIT))
"""What one person moves, in units: so many items at most, so far together, and so far each."""


def list_noise(epsilon: float | None, delta: float, part: float) -> Noise:
    """Return what makes counts of people's items safe; `part` is what they may spend of a private card's budget."""
    return BlurLists() if epsilon is None else PrivateLists(epsilon, delta, part=part)
