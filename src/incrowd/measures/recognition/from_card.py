"""How few posts find somebody among people who are known by a card only.

The rehearsal is that of :mod:`incrowd.measures.recognition.history`: n posts of one half of the person's history are
held against the other half, and against rivals. Here the rivals are made up: they use the words that the card says
people use, as often. Posts and people are compared by their words, damped and weighed by how rare they are among
people (TF-IDF); a word that the card does not list matches nobody but the person.

Real rivals share topics and phrases, and a real adversary looks at more than words. So what was rehearsed among made-up
rivals is turned into a probability by :data:`LEARNT`, which was fitted on another crowd (NOTES.md).
"""

from __future__ import annotations

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
from incrowd.result import say_percent

Floats = NDArray[np.float64]

LEARNT: Mapping[int, tuple[float, float]] = {
    1: (-0.27, -0.47),
    3: (-0.08, -0.34),
    10: (0.57, -0.26),
    30: (1.97, -0.19),
}
"""For n posts: the log odds of being found by somebody who also looks at style and phrases, among real people, at
rank 1 among made-up ones; and how they fall with the logarithm of that rank. Fitted on 500 people of reddit_college."""
DOUBT = 0.8
"""Half the width of an interval, in log odds: crowds differ by up to 0.65 in what :data:`LEARNT` would be there."""
TRIED: Mapping[int, tuple[float, float]] = {
    1: (0.05, 0.19),
    3: (-0.34, 0.25),
    10: (-0.88, 0.31),
    30: (-2.10, 0.39),
}
"""The same where nothing is rehearsed because the very posts are at hand: ``log(-log(probability))`` at rank 1 among
made-up people, and how it grows with the logarithm of the rank. Fitted on the same people."""
TRIED_DOUBT = 0.5
"""Half the width of an interval on that scale; crowds differ by up to 0.32."""
DRAWS = 6
MOST_TOLD = (
    " That is the most that can be told from a card, and may be {low} to {high}: among made-up people you came first "
    "whenever it was tried, or nearly so."
)
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
        above = (theirs > mine[:, None]).sum(axis=1) + (theirs == mine[:, None]).sum(axis=1) / 2
        return float(np.log1p(above / self.draws).mean())

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


def gone_on(log_ranks: Sequence[float]) -> Floats:
    """Fill in numbers of posts that nobody has to spare: log ranks go on falling with the logarithm of the number.

    >>> gone_on([6.0, 4.0, float("nan"), float("nan")]).round(2).tolist()
    [6.0, 4.0, 1.81, 0.0]
    """
    filled = np.array(log_ranks, float)
    for k in range(1, len(filled)):
        if math.isnan(filled[k]):
            ends = np.log([KNOWN[max(k - 2, 0)], KNOWN[k - 1], KNOWN[k]])
            slope = (filled[k - 1] - filled[k - 2]) / (ends[1] - ends[0]) if k > 1 else 0.0
            filled[k] = max(0.0, filled[k - 1] + min(slope, 0.0) * (ends[2] - ends[1]))
    return filled


def probabilities(log_ranks: Floats) -> tuple[dict[int, float], dict[int, tuple[float, float]]]:
    """Return how likely somebody is found by each number of posts, and between which ends that lies.

    Who reads more finds no less; empty if nothing could be rehearsed. Where nothing higher can be told, it may be
    anything higher.
    """
    known = [(n, LEARNT[n][0] + LEARNT[n][1] * rank) for n, rank in zip(KNOWN, log_ranks, strict=True)]
    told = [(n, odds) for n, odds in known if not math.isnan(odds)]
    rising = np.maximum.accumulate([odds for _, odds in told]) if told else np.zeros(0)
    numbers = [n for n, _ in told]
    chances = expit(rising).tolist()
    ends = [
        (float(expit(odds - DOUBT)), 1.0 if is_most(n, chance) else float(expit(odds + DOUBT)))
        for n, odds, chance in zip(numbers, rising, chances, strict=True)
    ]
    return dict(zip(numbers, chances, strict=True)), dict(zip(numbers, ends, strict=True))


def is_most(n: int, probability: float) -> bool:
    """Say whether n posts find somebody as often as :func:`probabilities` can tell, as far as anybody sees.

    Who comes first among made-up people whenever it is rehearsed cannot do so more clearly; real people differ there.
    """
    return _is_at(probability, float(expit(LEARNT[n][0])))


def _is_at(probability: float, most: float) -> bool:
    return probability > most or say_percent(probability) == say_percent(most)


def probabilities_tried(log_ranks: Floats) -> tuple[dict[int, float], dict[int, tuple[float, float]]]:
    """Return the same where the very posts were compared that the adversary has read."""
    known = [(n, TRIED[n][0] + TRIED[n][1] * rank) for n, rank in zip(KNOWN, log_ranks, strict=True)]
    told = [(n, grows) for n, grows in known if not math.isnan(grows)]
    falling = np.minimum.accumulate([grows for _, grows in told]) if told else np.zeros(0)
    numbers = [n for n, _ in told]
    chances = [_unless(grows) for grows in falling.tolist()]
    ends = [
        (
            _unless(grows + TRIED_DOUBT),
            1.0 if _is_at(chance, _unless(TRIED[n][0])) else _unless(grows - TRIED_DOUBT),
        )
        for n, grows, chance in zip(numbers, falling.tolist(), chances, strict=True)
    ]
    return dict(zip(numbers, chances, strict=True)), dict(zip(numbers, ends, strict=True))


def _unless(grows: float) -> float:
    return math.exp(-math.exp(grows))


def _damped(counts: sp.csr_matrix, weight: Floats) -> sp.csr_matrix:
    """Return damped counts, weighed."""
    rows = sp.csr_matrix(counts, dtype=np.float64)
    values = (1 + np.log(rows.data)) * weight[rows.indices]
    return sp.csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)
