"""How few posts find somebody among people who are known by a card only.

The rehearsal is that of :mod:`incrowd.measures.recognition.history`: n posts of one half of the person's history are
held against the other half, and against rivals. Here the rivals are made up: they use the words that the card says
people use, as often. Posts and people are compared by their words, damped and weighed by how rare they are among
people (TF-IDF); a word that the card does not list matches nobody but the person.

Among made-up rivals somebody soon comes first every time; how far ahead they are then tells more. So above the
thirtieth best rival ranks are carried on as the scores of the best thirty fall off, to ranks far below one. Real
rivals share topics and phrases, and a real adversary looks at more than words. So rank, and how much there is to go by,
become a probability by :data:`LEARNT`, which was fitted on other crowds (NOTES.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from incrowd.distances.profile_index import Keys
from incrowd.measures.recognition.attack import Rows
from incrowd.measures.recognition.spec import KNOWN
from incrowd.profiles.habits import grouping

Floats = NDArray[np.float64]
Learnt = Mapping[int, tuple[float, float, float]]

LEARNT: Learnt = {
    1: (-2.304, -0.098, -0.062),
    3: (-2.445, -0.048, 0.150),
    10: (-4.545, -0.036, 0.726),
    30: (-4.192, -0.016, 0.855),
}
"""For n posts: the log odds of being found by somebody who also looks at style and phrases, among real people, at rank
1 among made-up ones and with one word; how they fall with the logarithm of that rank; and how they grow with that of
the words there are. `python -m benchmarks.card_learnt` prints them and says how they do where they were not fitted."""
TRIED: Learnt = {
    1: (-2.234, -0.144, -0.088),
    3: (-2.655, -0.090, 0.133),
    10: (-4.455, -0.063, 0.643),
    30: (-3.919, -0.033, 0.769),
}
"""The same where nothing is rehearsed because the very posts are at hand."""
DOUBT, DRIFT = 1.0, 0.05
"""Half the width of an interval, in log odds; and what is added for each power of e that somebody comes before rank 1.
By so much crowds differ in what these numbers, and their slopes, would be there."""
TOP = 30
"""Ranks are carried on by the scores of so many best rivals."""
FARTHEST = 40.0
"""No further than so many powers of e below rank 1: there chance in the best thirty decides."""
DRAWS = 6
CARRIED_ON = (
    " So many could not be tried, as one half of your {posts} posts is held against the other: this is carried on from "
    "fewer."
)


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


def rehearsed(rivals: MadeUpRivals, known: CountedPosts, asked: CountedPosts) -> Floats:
    """Return the mean log rank for each number of posts: either half is asked about, the other one is known.

    `known` is the history as it is or would be, `asked` what may have been read elsewhere: as it is.
    """
    there, back = known.halves, asked.halves
    ways = ((there[0], back[1]), (there[1], back[0]))
    found = np.array([[rivals.log_rank(known, one, asked, other, n) for one, other in ways] for n in KNOWN])
    return gone_on(
        [float(row[np.isfinite(row)].mean()) if np.isfinite(row).any() else math.nan for row in found]
    )


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


def gone_on(log_ranks: Sequence[float]) -> Floats:
    """Fill in numbers of posts that nobody has to spare: log ranks go on falling with the logarithm of the number.

    >>> gone_on([6.0, 4.0, float("nan"), float("nan")]).round(2).tolist()
    [6.0, 4.0, 1.81, -0.19]
    """
    filled = np.array(log_ranks, float)
    for k in range(1, len(filled)):
        if math.isnan(filled[k]):
            ends = np.log([KNOWN[max(k - 2, 0)], KNOWN[k - 1], KNOWN[k]])
            slope = (filled[k - 1] - filled[k - 2]) / (ends[1] - ends[0]) if k > 1 else 0.0
            filled[k] = max(-FARTHEST, filled[k - 1] + min(slope, 0.0) * (ends[2] - ends[1]))
    return filled


def probabilities(
    log_ranks: Floats, words: float, learnt: Learnt = LEARNT
) -> tuple[dict[int, float], dict[int, tuple[float, float]]]:
    """Return how likely somebody is found by each number of posts, and between which ends that lies.

    Who reads more finds no less; empty if nothing could be rehearsed. `words` is how many of the person's there are.
    The ends are as far apart as crowds differ (:data:`DOUBT`).
    """
    much = math.log(max(words, 1.0))
    told = [(n, rank) for n, rank in zip(KNOWN, log_ranks.tolist(), strict=True) if not math.isnan(rank)]
    rising = list(
        itertools.accumulate(
            (learnt[n][0] + learnt[n][1] * rank + learnt[n][2] * much for n, rank in told), max
        )
    )
    chances, ends = {}, {}
    for (n, rank), odds in zip(told, rising, strict=True):
        off = DOUBT + DRIFT * max(0.0, -rank)
        chances[n] = float(expit(odds))
        # Whoever comes before all made-up people may be found every time by somebody who sees more than words.
        ends[n] = float(expit(odds - off)), 1.0 if rank <= 0 else float(expit(odds + off))
    return chances, ends


def _damped(counts: sp.csr_matrix, weight: Floats) -> sp.csr_matrix:
    """Return damped counts, weighed."""
    rows = sp.csr_matrix(counts, dtype=np.float64)
    values = (1 + np.log(rows.data)) * weight[rows.indices]
    return sp.csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)
