"""Made-up people as rivals: how far one person's posts come before them when somebody looks for their writer.

Posts and people are compared by their words, damped and weighed by how rare they are among people (TF-IDF); a word that
the card does not list matches nobody but the person. Among made-up rivals somebody soon comes first every time; how far
ahead they are then tells more. So above the thirtieth best rival ranks are carried on as the scores of the best thirty
fall off, to ranks far below one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.arrays import Floats
from incrowd.arrays import Ints as Rows
from incrowd.distances.profile_index import Keys
from incrowd.profiles.habits import grouping

TOP = 30
"""Ranks are carried on by the scores of so many best rivals."""
FARTHEST = 40.0
"""No further than so many powers of e below rank 1: there chance in the best thirty decides."""
DRAWS = 6


@dataclass(frozen=True, eq=False)
class CountedPosts:
    """One person's posts in order of time: how often each uses the card's words, and words that are not listed."""

    counts: sp.csr_matrix
    """Posts down; first the card's words in their order, then others."""
    listed: int
    """How many words the card lists."""
    cut: int
    """Where the later half begins."""
    places: NDArray[np.int64]
    """The column of each of the person's words."""

    @property
    def halves(self) -> tuple[Rows, Rows]:
        """The earlier and the later posts."""
        return np.arange(self.cut), np.arange(self.cut, self.counts.shape[0])


def counted_posts(matrix: sp.csr_matrix, keys: Keys, card: Keys, others: Keys, cut: int) -> CountedPosts:
    """Arrange counts by word: first the card's words, then others (sorted), among which all of the rest have to be."""
    order = np.argsort(card, kind="stable")
    at = np.minimum(np.searchsorted(card[order], keys), max(len(card) - 1, 0))
    known = card[order][at] == keys if len(card) else np.zeros(len(keys), bool)
    place = np.where(known, order[at] if len(card) else 0, len(card) + np.searchsorted(others, keys))
    entries = sp.csr_matrix(matrix, dtype=np.float64).tocoo()
    shape = (matrix.shape[0], len(card) + len(others) + 1)
    counts = sp.csr_matrix((entries.data, (entries.row, place[entries.col])), shape=shape)
    return CountedPosts(counts, len(card), cut, place.astype(np.int64))


@dataclass(frozen=True, eq=False)
class MadeUpRivals:
    """Made-up people, ready to be held against one person's posts."""

    weight: Floats
    """How rare each listed word is."""
    unlisted: float
    """The same for a word that is not listed."""
    profiles: sp.csr_matrix
    """Words down, people across: columns of length 1, but for unlisted words, which are left out."""
    draws: float
    """How many made-up people stand for one of the community."""

    @classmethod
    def of(cls, counts: sp.csr_matrix, rare: NDArray[np.int64], users: Floats, people: int) -> MadeUpRivals:
        """Weigh the words of made-up people; `users` is the share of people who use each listed word."""
        weight = np.log((1 + people) / (1 + users * people)) + 1
        unlisted = math.log(1 + people) + 1
        rows = _damped(counts, weight)
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel() + rare * unlisted**2
        unit = sp.diags(1 / np.sqrt(np.maximum(squares, 1e-12))) @ rows
        return cls(weight, unlisted, sp.csr_matrix(unit.T), counts.shape[0] / people)

    def log_rank(
        self, known: CountedPosts, profile: Rows, asked: CountedPosts, from_posts: Rows, n: int
    ) -> float:
        """Return the mean log rank of the person when n of some posts are read, and others make their profile."""
        if len(from_posts) < n or not len(profile):
            return math.nan
        groups = evenly(from_posts, n, DRAWS)
        said = self._unit(grouping(groups, asked.counts.shape[0]) @ asked.counts, known.listed)
        own = self._unit(grouping([profile], known.counts.shape[0]) @ known.counts, known.listed)
        mine = np.asarray((said @ own.T).todense()).ravel()
        theirs = np.asarray((said[:, : known.listed] @ self.profiles).todense())
        return float(log_ranks(mine, theirs).mean() - math.log(self.draws))

    def shared(self, one: sp.csr_matrix, other: sp.csr_matrix, listed: int) -> sp.csr_matrix:
        """Return each word's part of how like two sets of posts are; the parts add up to the cosine."""
        return sp.csr_matrix(self._unit(one, listed).multiply(self._unit(other, listed)))

    def common(self, posts: CountedPosts) -> Floats:
        """Return each word's part of how like both halves of a history are."""
        early, late = (sp.csr_matrix(posts.counts[half].sum(axis=0)) for half in posts.halves)
        return np.asarray(self.shared(early, late, posts.listed).todense()).ravel()

    def _unit(self, counts: sp.csr_matrix, listed: int) -> sp.csr_matrix:
        rest = np.full(counts.shape[1] - listed, self.unlisted)
        rows = _damped(counts, np.concatenate([self.weight, rest]))
        length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        return sp.csr_matrix(sp.diags(1 / np.where(length > 0, length, 1.0)) @ rows)


def evenly(posts: Rows, n: int, draws: int) -> list[Rows]:
    """Return n of some posts, several times, each time spread evenly over all of them.

    Nothing is left to chance, so that a browser that measures with the same card finds the same.

    >>> [group.tolist() for group in evenly(np.arange(6), 2, 3)]
    [[0, 3], [1, 4], [2, 5]]
    """
    at = (np.arange(n) + (np.arange(draws)[:, None] + 0.5) / draws) * len(posts) / n
    return list(posts[at.astype(np.int64)])


def log_ranks(mine: Floats, theirs: Floats) -> Floats:
    """Return, row by row, the logarithm of how manieth a score comes among others, carried on where few are above it.

    Above the :data:`TOP`-th best but one scores are taken to fall off exponentially, as the tails of most distributions
    do: as many powers of e as a score lies mean excesses above that line, it comes before the thirtieth.

    >>> others = np.arange(1000.0)[None, :]
    >>> log_ranks(np.array([499.5]), others).round(3).tolist() == [round(math.log(500), 3)]
    True
    >>> log_ranks(np.array([1500.0]), others).round(1).tolist()
    [-30.9]
    """
    top = min(TOP, theirs.shape[1] - 1)
    best = np.partition(theirs, -(top + 1), axis=1)[:, -(top + 1) :]
    line = best.min(axis=1)
    excess = (best - line[:, None]).sum(axis=1) / top
    ahead = np.where(mine > line, FARTHEST * 2, 0.0)  # nobody else is above the line
    np.divide(mine - line, excess, out=ahead, where=excess > 0)
    above = (theirs > mine[:, None]).sum(axis=1) + (theirs == mine[:, None]).sum(axis=1) / 2
    carried = np.maximum(math.log(top) - ahead, -FARTHEST)
    return np.where(mine > line, carried, np.log(np.maximum(above, top)))


def _damped(counts: sp.csr_matrix, weight: Floats) -> sp.csr_matrix:
    """Return damped counts, weighed."""
    rows = sp.csr_matrix(counts, dtype=np.float64)
    values = (1 + np.log(rows.data)) * weight[rows.indices]
    return sp.csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)
