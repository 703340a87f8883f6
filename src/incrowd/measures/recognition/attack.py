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

from incrowd.profiles.habits import HabitLists, PostHabits, only_used, summed
from incrowd.statistics import expected_rank, first_place, unseen_above

WEIGHTS = {"words": 1.3, "vocabulary": 0.65, "phrases": 1.05, "style": 1.2}
"""The determined adversary's, rounded (NOTES.md of linkability)."""
NEIGHBOURS = 10
TAIL = 30
"""So many of the best rivals show how scores fall off."""

Rows = NDArray[np.int64]
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class _View:
    """Candidates under one view: profiles of length 1 as columns, and how rare each habit is among them."""

    name: str
    weight: float
    candidates: HabitLists
    known_rarity: Singles
    """Of the habits that candidates have, in the order of their places; 0 in the end for all others."""

    def rarity(self, habits: NDArray[np.int32]) -> Singles:
        """Return how rare some habits are; 0: no candidate has it, so it tells nobody apart."""
        return np.asarray(self.known_rarity[self.candidates.slot[habits]])

    def cosines(self, groups: Sequence[Rows], posts: PostHabits) -> Singles:
        return self.candidates.products(_unit_rows(_damped(summed(groups, posts.rows[self.name])), self))


@dataclass(frozen=True, eq=False)
class _Asked:
    """Some people's posts under one view, against which one more candidate can be held quickly."""

    damped: sp.csc_matrix
    """How much each group of posts has of each of the habits that any of them has, before rarity."""
    habits: NDArray[np.int32]
    """Those habits: next to all that there could be, few."""
    squares: Singles
    """The squared lengths of the groups, by the habits that candidates have."""

    @classmethod
    def of(cls, damped: sp.csr_matrix, view: _View) -> _Asked:
        squares = _row_sums(damped, (damped.data * view.rarity(damped.indices)) ** 2)
        habits, few = only_used(damped)
        return cls(few.tocsc(), habits, squares)

    def attracted(self, profile: sp.csr_matrix, rarity: Singles, alone: NDArray[Any]) -> Singles:
        """Return the cosine of each group with a candidate's profile (one row of length 1).

        `rarity` is that of the profile's habits, and `alone` marks those that no other candidate has.
        """
        place = np.searchsorted(self.habits, profile.indices)
        meets = np.append(self.habits, np.int32(-1))[place] == profile.indices
        shared, rarity, alone = self.damped[:, place[meets]], rarity[meets], alone[meets]
        extra = np.asarray(shared[:, alone].power(2) @ np.square(rarity[alone])).ravel()
        length = np.sqrt(np.maximum(self.squares + extra, 1e-12))
        return np.asarray(np.asarray(shared @ (rarity * profile.data[meets])).ravel() / length, np.float32)


@dataclass(frozen=True, eq=False)
class Hubs:
    """How much each candidate attracts posts of this many at a time, under each view, and the scale of what is left."""

    pull: tuple[Singles, ...]
    scale: tuple[float, ...]
    asked: tuple[_Asked, ...]
    """The posts that showed it, where somebody is to be added to the candidates; else empty."""


@dataclass(frozen=True)
class Outcome:
    """What the adversary made of some groups of posts, one value per group."""

    first: NDArray[np.float64]
    """The probability that the true author was named."""
    rank: NDArray[np.float64]
    """The true author's expected rank among all candidates."""
    likeness: NDArray[np.float64]
    """The true author's score, in units of the spread of everybody's."""

    def part(self, which: Any) -> Outcome:
        """Return the outcomes of some of the groups."""
        return Outcome(self.first[which], self.rank[which], self.likeness[which])


class Attack:
    """Everybody's profile, ready to be asked whose some posts are."""

    def __init__(
        self, posts: PostHabits, profiles: Sequence[Rows], *, outside: int = 0, memory: int = 2**28
    ) -> None:
        self.people, self.outside = len(profiles), outside
        self._views = [
            _view(name, weight, summed(profiles, posts.rows[name])) for name, weight in WEIGHTS.items()
        ]
        self._block = int(max(16, memory // (16 * max(self.people, 1))))

    @property
    def rarity(self) -> dict[str, Singles]:
        """How rare each habit is, by family; what nobody else does is as rare as can be."""
        alone = np.float32(_rarity(1, self.people))
        found = {view.name: view.known_rarity[view.candidates.slot] for view in self._views}
        return {name: np.where(rarity > 0, rarity, alone) for name, rarity in found.items()}

    def hubs(self, posts: PostHabits, groups: Sequence[Rows], *, one_more: bool = False) -> Hubs:
        """Learn from some people's posts how much each candidate attracts; `one_more`: somebody is to be added."""
        from incrowd.profiles.kernels import pull_and_scale  # Numba takes long to load

        k = min(NEIGHBOURS, len(groups))
        pull, scale, asked = [], [], []
        for view in self._views:
            damped = _damped(summed(groups, posts.rows[view.name]))
            strongest, spread = pull_and_scale(view.candidates.products(_unit_rows(damped, view)), k)
            pull.append(strongest)
            scale.append(spread or 1.0)
            if one_more:
                asked.append(_Asked.of(damped, view))
        return Hubs(tuple(pull), tuple(scale), tuple(asked))

    def outcomes_of_one_more(
        self, known: PostHabits, posts: PostHabits, groups: Sequence[Sequence[Rows]], hubs: Sequence[Hubs]
    ) -> list[Outcome]:
        """Name authors for posts by somebody who is not among the profiles, but is added as one.

        `known` are the posts that make their profile; of the others, there are groups of several sizes, with the hubs
        for each size.
        """
        asked = [group for same in groups for group in same]
        size = np.repeat(np.arange(len(groups)), [len(same) for same in groups])
        mine = [np.arange(known.count)]
        alone_rarity = np.float32(_rarity(1, self.people))
        scores = np.zeros((len(size), self.people + 1), np.float32)
        for place, view in enumerate(self._views):
            # What only they do is as rare as can be.
            profile = summed(mine, known.rows[view.name])
            rarity = view.rarity(profile.indices)
            alone = rarity == 0
            rarity = np.where(alone, alone_rarity, rarity)
            profile = _scaled_to_one(_damped(profile), rarity)
            said = _damped(summed(asked, posts.rows[view.name]))
            only_theirs = np.isin(said.indices, profile.indices[alone])
            said = _scaled_to_one(said, np.where(only_theirs, alone_rarity, view.rarity(said.indices)))
            pull = np.empty((len(hubs), self.people + 1), np.float32)
            scale = np.empty(len(hubs), np.float32)
            for n, one in enumerate(hubs):
                attracted = one.asked[place].attracted(profile, rarity, alone)
                pull[n, :-1] = one.pull[place]
                pull[n, -1] = np.sort(attracted)[-min(NEIGHBOURS, len(attracted)) :].mean()
                scale[n] = view.weight / one.scale[place]
            cosines = np.column_stack([view.candidates.products(said), (said @ profile.T).toarray().ravel()])
            scores += scale[size, None] * (2 * cosines - pull[size])
        found = self._judged(scores, np.full(len(size), self.people))
        return [found.part(size == n) for n in range(len(groups))]

    def outcomes(self, posts: PostHabits, groups: Sequence[Rows], authors: Rows, hubs: Hubs) -> Outcome:
        """Name an author for each group of posts; `authors` are the true ones, as places among the profiles."""
        parts = [self._judged(scores, authors[part]) for part, scores in self._scores(posts, groups, hubs)]
        named = ("first", "rank", "likeness")
        return Outcome(
            *(np.concatenate([np.zeros(0), *(getattr(one, name) for one in parts)]) for name in named)
        )

    def _scores(
        self, posts: PostHabits, groups: Sequence[Rows], hubs: Hubs
    ) -> Iterator[tuple[slice, Singles]]:
        for start in range(0, len(groups), self._block):
            part = slice(start, min(start + self._block, len(groups)))
            total = np.zeros((part.stop - part.start, self.people), np.float32)
            for view, pull, scale in zip(self._views, hubs.pull, hubs.scale, strict=True):
                cosines = view.cosines(groups[part], posts)
                cosines *= 2
                cosines -= pull
                cosines *= np.float32(view.weight / scale)
                total += cosines
            yield part, total

    def _judged(self, scores: Singles, authors: Rows) -> Outcome:
        rows = np.arange(len(scores))
        own = scores[rows, authors].copy()
        likeness = own / np.maximum(scores.std(axis=1), 1e-6)
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
        return Outcome(
            first_place(above, ties, unseen), expected_rank(above, ties, unseen), likeness.astype(np.float64)
        )


def _view(name: str, weight: float, profiles: sp.csr_matrix) -> _View:
    habits, rows = only_used(_damped(profiles))
    holders = np.bincount(rows.indices, minlength=len(habits))
    rarity = _rarity(holders, profiles.shape[0]).astype(np.float32)
    lists = _scaled_to_one(rows, rarity[rows.indices]).T.tocsr()
    candidates = HabitLists.of(lists, habits, profiles.shape[1])
    known = np.zeros(len(habits) + 1, np.float32)  # -1 finds the last one
    known[candidates.slot[habits]] = rarity
    return _View(name, weight, candidates, known)


def _rarity(holders: Any, people: int) -> Any:
    return np.log((1 + people) / (1 + holders)) + 1


def _unit_rows(damped: sp.csr_matrix, view: _View) -> sp.csr_matrix:
    return _scaled_to_one(damped, view.rarity(damped.indices))


def _damped(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Return how much of each habit, when doing it twice is not twice as telling."""
    rows = sp.csr_matrix(counts, dtype=np.float32)
    return sp.csr_matrix((1 + np.log(rows.data), rows.indices, rows.indptr), shape=rows.shape)


def _scaled_to_one(rows: sp.csr_matrix, rarity: Singles) -> sp.csr_matrix:
    """Weigh each entry by its rarity, and scale rows to length 1."""
    from incrowd.profiles.kernels import scale_to_one  # Numba takes long to load

    unit = scale_to_one(rows.indptr, rows.data, rarity)
    return sp.csr_matrix((unit, rows.indices, rows.indptr), shape=rows.shape)


def _row_sums(rows: sp.csr_matrix, values: NDArray[Any]) -> Singles:
    sizes = np.diff(rows.indptr)
    places = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(places, weights=values, minlength=len(sizes)).astype(np.float32)
