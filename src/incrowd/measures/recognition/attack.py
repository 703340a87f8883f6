"""The attack: whose posts are these? Several views of everybody's habits, corrected for hubs.

Posts are rows; a person's profile and a handful of posts are sums of rows. Each view weighs habits by rarity among
the candidates and compares by cosine. Talkative candidates resemble everybody (they are *hubs*), so from every score
goes how like a candidate is to the posts of others they resemble most (CSLS; Conneau et al. 2018). What is left is
scaled, and the views are added with the weights of the determined adversary who links profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.measures.recognition.definition import expected_rank, first_place, unseen_above
from incrowd.profiles.habits import PostHabits

WEIGHTS = {"words": 1.3, "vocabulary": 0.65, "phrases": 1.05, "style": 1.2}
"""The determined adversary's, rounded (NOTES.md of linkability)."""
NEIGHBOURS = 10
TAIL = 30
"""So many of the best rivals show how scores fall off."""

Rows = NDArray[np.int64]
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class _View:
    """Candidates under one view: rarity of each habit, and profiles of length 1 as columns."""

    name: str
    weight: float
    rarity: Singles
    candidates: sp.csr_matrix

    def rarity_with(self, profile: sp.csr_matrix, people: int) -> Singles:
        """Return the rarity of habits when one more has this profile; what only they do is as rare as can be."""
        rarity = self.rarity.copy()
        alone = profile.indices[rarity[profile.indices] == 0]
        rarity[alone] = _rarity(1, people)
        return rarity

    def cosines(self, groups: sp.csr_matrix, posts: PostHabits) -> Singles:
        asked = _unit_rows(groups @ posts.rows[self.name], self.rarity)
        return np.asarray((asked @ self.candidates).toarray(), np.float32)


@dataclass(frozen=True, eq=False)
class Hubs:
    """How much each candidate attracts posts of this many at a time, under each view, and the scale of what is left."""

    pull: tuple[Singles, ...]
    scale: tuple[float, ...]


@dataclass(frozen=True)
class Outcome:
    """What the adversary made of some groups of posts, one value a group."""

    first: NDArray[np.float64]
    """The probability that the true author was named."""
    rank: NDArray[np.float64]
    """The true author's expected rank among all candidates."""


class Attack:
    """Everybody's profile, ready to be asked whose some posts are."""

    def __init__(
        self, posts: PostHabits, profiles: Sequence[Rows], *, outside: int = 0, memory: int = 2**28
    ) -> None:
        self.posts, self.people, self.outside = posts, len(profiles), outside
        groups = grouping(profiles, posts.count)
        self._views = [_view(name, weight, groups @ posts.rows[name]) for name, weight in WEIGHTS.items()]
        self._block = int(max(16, memory // (16 * max(self.people, 1))))

    def hubs(self, groups: Sequence[Rows]) -> Hubs:
        """Learn from some people's posts how much each candidate attracts."""
        chosen = grouping(groups, self.posts.count)
        k = min(NEIGHBOURS, len(groups))
        pull, scale = [], []
        for view in self._views:
            cosines = view.cosines(chosen, self.posts)
            strongest = np.partition(cosines, len(groups) - k, axis=0)[-k:].mean(axis=0)
            pull.append(strongest)
            scale.append(float((2 * cosines - strongest).std()) or 1.0)
        return Hubs(tuple(pull), tuple(scale))

    def outcomes_of_one_more(
        self, posts: PostHabits, known: Rows, groups: Sequence[Rows], hubs: Hubs, sample: Sequence[Rows]
    ) -> Outcome:
        """Name an author for groups of posts by somebody who is not among the profiles, but is added as one.

        `known` are the posts that make their profile; `sample` are the posts that showed the hubs.
        """
        asked, mine = grouping(groups, posts.count), grouping([known], posts.count)
        scores = np.zeros((len(groups), self.people + 1), np.float32)
        for view, pull, scale in zip(self._views, hubs.pull, hubs.scale, strict=True):
            rows, weight = posts.rows[view.name], view.weight / scale
            profile = mine @ rows
            rarity = view.rarity_with(profile, self.people)
            own, said = _unit_rows(profile, rarity).T, _unit_rows(asked @ rows, rarity)
            attracted = (
                _unit_rows(grouping(sample, self.posts.count) @ self.posts.rows[view.name], rarity) @ own
            )
            own_pull = np.sort(attracted.toarray().ravel())[-min(NEIGHBOURS, len(sample)) :].mean()
            scores[:, :-1] += weight * (2 * (said @ view.candidates).toarray() - pull)
            scores[:, -1] += weight * (2 * (said @ own).toarray().ravel() - own_pull)
        return Outcome(*self._judged(scores, np.full(len(groups), self.people)))

    def outcomes(self, groups: Sequence[Rows], authors: Rows, hubs: Hubs) -> Outcome:
        """Name an author for each group of posts; `authors` are the true ones, as places among the profiles."""
        first, rank = np.zeros(len(groups)), np.zeros(len(groups))
        for part, scores in self._scores(groups, hubs):
            first[part], rank[part] = self._judged(scores, authors[part])
        return Outcome(first, rank)

    def _scores(self, groups: Sequence[Rows], hubs: Hubs) -> Iterator[tuple[slice, Singles]]:
        for start in range(0, len(groups), self._block):
            part = slice(start, min(start + self._block, len(groups)))
            chosen = grouping(groups[part], self.posts.count)
            total = np.zeros((part.stop - part.start, self.people), np.float32)
            for view, pull, scale in zip(self._views, hubs.pull, hubs.scale, strict=True):
                total += (view.weight / scale) * (2 * view.cosines(chosen, self.posts) - pull)
            yield part, total

    def _judged(self, scores: Singles, authors: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = np.arange(len(scores))
        own = scores[rows, authors].copy()
        scores[rows, authors] = -np.inf
        above, ties = (scores > own[:, None]).sum(axis=1), (scores == own[:, None]).sum(axis=1)
        unseen = np.zeros(len(own))
        if self.outside:
            rivals = scores.shape[1] - 1
            tail = min(TAIL, rivals)
            best = np.sort(np.partition(scores, rivals + 1 - tail, axis=1)[:, -tail:], axis=1)
            unseen = unseen_above(own.astype(np.float64), best.astype(np.float64), rivals, self.outside)
            seen = above * self.outside / max(rivals, 1)
            unseen = np.where(above >= tail, seen, unseen)
        return first_place(above, ties, unseen), expected_rank(above, ties, unseen)


def grouping(groups: Sequence[Rows], posts: int) -> sp.csr_matrix:
    """Return the matrix that sums the rows of each group of posts."""
    sizes = [len(group) for group in groups]
    places = (
        np.concatenate([np.asarray(group, np.int64) for group in groups]) if groups else np.zeros(0, np.int64)
    )
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ones = np.ones(len(places), np.float32)
    return sp.csr_matrix((ones, places, starts), shape=(len(sizes), posts))


def _view(name: str, weight: float, profiles: sp.csr_matrix) -> _View:
    holders = np.bincount(profiles.indices, minlength=profiles.shape[1])
    # What no candidate does tells nobody apart.
    rarity = np.where(holders > 0, _rarity(holders, profiles.shape[0]), 0.0).astype(np.float32)
    return _View(name, weight, rarity, _unit_rows(profiles, rarity).T.tocsr())


def _rarity(holders: Any, people: int) -> Any:
    return np.log((1 + people) / (1 + holders)) + 1


def _unit_rows(counts: sp.csr_matrix, rarity: Singles) -> sp.csr_matrix:
    """Damp repetition, weigh by rarity, scale rows to length 1."""
    rows = sp.csr_matrix(counts, dtype=np.float32)
    data = (1 + np.log(rows.data)) * rarity[rows.indices]
    sizes = np.diff(rows.indptr)
    squares = np.bincount(np.repeat(np.arange(len(sizes)), sizes), weights=data**2, minlength=len(sizes))
    length = np.sqrt(np.where(squares > 0, squares, 1.0))
    return sp.csr_matrix(
        ((data / np.repeat(length, sizes)).astype(np.float32), rows.indices, rows.indptr), shape=rows.shape
    )
