"""How sure the determined adversary would be of one's two profiles, where everybody else is known by a card only.

All posts of one profile are held against the other profile and against people made up from the card, by words weighed
by how rare they are (:mod:`incrowd.measures.made_up_rivals`). The real adversary looks at phrases, style and hours as
well, and at real people. So the rank among made-up people, and how many words there are, become a probability by
:data:`LEARNT`, which was fitted on what the real adversary reaches elsewhere (NOTES.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from incrowd.arrays import Floats, Ints
from incrowd.measures.linkability.in_words import card_assessment
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.made_up_rivals import CountedPosts, MadeUpRivals, counted_posts
from incrowd.measures.protocol import Finding, Goal, Person, PreparedCrowd, Proposal
from incrowd.measures.search import alternating, delete_first, first_to_reach, start_over, steps, take_out
from incrowd.result import Assessment, Evidence
from incrowd.text.mentions import word_evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEARNT = (-5.421, -0.179, 1.117)
"""The log odds that the determined adversary takes the right profile, at rank 1 among made-up people and with one word;
how they fall with the logarithm of that rank; and how they grow with that of the words in the shorter profile.
`python -m benchmarks.card_links` prints them and says how they do where they were not fitted."""
DOUBT, DRIFT = 1.0, 0.05
"""Half the width of an interval, in log odds; and what is added for each power of e that somebody is before rank 1."""
MOST = 4.0
"""Log odds, at most: 98 %. Of those it was fitted on, the 64 who came furthest before rank 1 were all found, and from
so few no more can be told."""
LEAST_LEFT = 4
"""A profile that a change leaves with fewer posts is none."""
WORDS = (12, 24)
"""So many words are tried to be taken out."""


@dataclass(frozen=True)
class Places:
    """Two places where the owner of an export writes; the second one's people are known by a card."""

    source: str
    target: str
    community: str
    """Of the card: who could be mistaken for the second profile."""


def places_of(person: Person, min_posts: int) -> Places | None:
    """Return the two places where the smaller profile has the most posts; None: there are none."""
    there: Mapping[str, str] = person.crowd.places
    counted = {place: int(_in(person, place).sum()) for place in there}
    able = [place for place, posts in counted.items() if posts >= min_posts]
    pairs = [Places(one, two, there[two]) for one, two in permutations(able, 2) if there[two]]

    def to_go_by(pair: Places) -> tuple[int, int]:
        return min(counted[pair.source], counted[pair.target]), -person.crowd.members(pair.community)

    return max(pairs, key=to_go_by, default=None)


def _in(person: Person, place: str) -> NDArray[np.bool_]:
    """Mark a person's posts in a place."""
    where = person.crowd.own_places(person.user)
    return np.array([where.get(number) == place for number in person.numbers.tolist()], bool)


@dataclass(frozen=True, eq=False)
class PairFromCard:
    """One person's profiles in two places, among people made up from a card."""

    crowd: PreparedCrowd
    places: Places
    min_posts: int
    seed: int
    _rivals: dict[Hashable, MadeUpRivals] = field(default_factory=dict, repr=False)

    @property
    def _both(self) -> tuple[str, str]:
        return self.places.source, self.places.target

    def rivals(self) -> MadeUpRivals:
        """Return the made-up people of the second place."""
        name = self.places.community
        if name not in self._rivals:
            made, users = self.crowd.made_up(name)
            self._rivals[name] = MadeUpRivals.of(made.counts, made.rare, users, self.crowd.members(name))
        return self._rivals[name]

    def assess(self, person: Person, *, explain: bool = True) -> Assessment | None:
        """Return how probably the determined adversary is right about the two profiles; None: there is too little."""
        rows = [np.flatnonzero(_in(person, place)) for place in self._both]
        least = LEAST_LEFT if person.changes else self.min_posts
        counted = self._counted(person)
        words = [float(counted.counts[some].sum()) for some in rows]
        if min(map(len, rows)) < least or min(words) < 1:
            return None
        source, target = rows
        rank = self.rivals().log_rank(counted, target, counted, source, len(source))
        value, ends = probability(rank, min(words))
        shared = self._shared(counted, source, target) if explain else np.zeros(0)
        return card_assessment(
            LinkabilityOptions(
                source=self.places.source,
                target=self.places.target,
                min_posts=self.min_posts,
                adversary="determined",
                text=person.text,
                seed=self.seed,
            ),
            value,
            interval=ends,
            community=self.places.community,
            people=self.crowd.members(self.places.community) + 1,
            facts={"log_rank": rank, "words": int(min(words)), "posts": [len(source), len(target)]},
            data_hash=self.crowd.data_hash,
            evidence=_evidence(person, shared[counted.places]) if explain else (),
            explained=float(shared.sum()) if explain else None,
        )

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterator[Proposal]:
        """Try to do without the posts and words that both profiles share, and a new name for either."""
        counted, inside = self._counted(person), [_in(person, place) for place in self._both]
        weight = self._shared(counted, *map(np.flatnonzero, inside))
        telling = np.asarray((counted.counts > 0) @ weight)
        orders = [
            person.numbers[rows][np.argsort(-telling[rows], kind="stable")]
            for rows in map(np.flatnonzero, inside)
        ]
        places = zip(self._both, orders, strict=True)
        both = " and ".join(self._both)
        own = weight[counted.places]
        vocabulary = person.words.vocabulary
        words = [
            vocabulary[at] for at in np.argsort(-own, kind="stable")[: max(WORDS)].tolist() if own[at] > 0
        ]
        ways = [
            [delete_first(order, count, where) for count in steps(int(goal.loss * len(order)))]
            for where, order in (*places, (both, alternating(*orders)))
        ]
        ways.append([take_out(person, words[:count], both) for count in WORDS if words])
        ways += [start_over(person, place, some) for place, some in zip(self._both, inside, strict=True)]

        def lack(proposal: Proposal) -> float:
            found = self.assess(person.after(proposal.changes), explain=False)
            return math.inf if found is None else goal.short(found)

        now = goal.short(finding.assessment)
        for way in ways:
            tried: list[tuple[Proposal, float]] = []
            for one in way:
                tried.append((one, lack(one)))
                if tried[-1][1] <= 0:
                    break
            best = first_to_reach(tried, now)
            if best is not None and lack(best) < math.inf:
                yield best

    def _counted(self, person: Person) -> CountedPosts:
        made, _ = self.crowd.made_up(self.places.community)
        return counted_posts(person.words.matrix, person.keys, made.keys, np.unique(person.keys), 0)

    def _shared(self, counted: CountedPosts, source: Ints, target: Ints) -> Floats:
        """Return each word's part of how like the two profiles are."""
        one, two = (sp.csr_matrix(counted.counts[rows].sum(axis=0)) for rows in (source, target))
        return np.asarray(self.rivals().shared(one, two, counted.listed).todense()).ravel()


def probability(log_rank: float, words: float) -> tuple[float, tuple[float, float]]:
    """Return how probably the determined adversary is right, and between which ends that lies.

    >>> value, (low, high) = probability(0.0, 500.0)
    >>> round(low, 2), round(value, 2), round(high, 2)
    (0.62, 0.82, 0.93)
    """
    odds = min(LEARNT[0] + LEARNT[1] * log_rank + LEARNT[2] * math.log(max(words, 1.0)), MOST)
    off = DOUBT + DRIFT * max(0.0, -log_rank)
    return float(expit(odds)), (float(expit(odds - off)), float(expit(odds + off)))


def _evidence(person: Person, shares: Floats) -> tuple[Evidence, ...]:
    """Return the words that both profiles share, the strongest first."""
    order = np.argsort(-shares, kind="stable")[: int((shares > 0).sum())].tolist()
    return word_evidence(((person.words.vocabulary[at], float(shares[at])) for at in order), person.mentioned)
