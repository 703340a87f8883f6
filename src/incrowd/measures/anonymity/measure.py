"""Singled out by how you write: how many others in a community write as you do."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.distances.profile_index import Profile, divergence_terms, word_keys
from incrowd.measures.anonymity.explain import crowd_assessment, unknown_crowd
from incrowd.measures.anonymity.spec import ADVERSARIES, AnonymityOptions
from incrowd.measures.crowd_rates import (
    CommunityRisk,
    CrowdOptions,
    CrowdRates,
    People,
    smallest_by_person,
    spread,
    told_share,
)
from incrowd.measures.following import Follower, GrowingCrowd, Line, LineReading, Neighbours, neighbours_of
from incrowd.measures.protocol import (
    AdvisorOptions,
    Finding,
    Findings,
    Goal,
    Measure,
    Person,
    PreparedCrowd,
    Proposal,
    Ready,
    Role,
    ThemeName,
    WordShare,
    largest_communities,
)
from incrowd.measures.sampling import SampledRank
from incrowd.measures.search import fewer_posts, fewer_words, post_order
from incrowd.result import Assessment, Evidence, Standing, Threat
from incrowd.text.mentions import word_evidence
from incrowd.text.reference import tokenise

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.measures.anonymity.assess import CommunityAnonymity


class Anonymity(Measure):
    """(k, d)-anonymity in each community a person writes in."""

    name = "anonymity"
    about = "how you write"
    question = "How many people in a community write as you do?"
    theme = ThemeName.SINGLED_OUT
    reads = "posts"
    adversaries = ADVERSARIES

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Look at communities as people are asked about."""
        return ReadyAnonymity(self, crowd, options)

    def role(self, assessment: Assessment) -> Role:
        """Keep it as the paper's: it measures how little somebody wrote, and an attack finds the others first."""
        return Role.PAPER

    def everybody(self, crowd: PreparedCrowd, options: CrowdOptions) -> CrowdRates:
        """Size everybody's crowd in every community; for people in several the smallest counts."""
        found = {name: crowd.sizes(name, options.radius) for name in crowd.population.communities}
        found = {name: sizes for name, sizes in found.items() if len(sizes)}
        if not found:
            return CrowdRates(not_measured=(f"{self.name}: no post in this crowd has a word",))
        people = np.concatenate([crowd.words(name).names for name in found])
        by_name = np.concatenate([sizes[crowd.words(name).rows] for name, sizes in found.items()])
        meaning = (
            f"people of the same community, oneself included, who write alike within distance "
            f"{options.radius:g}; for people in several communities the smallest counts"
        )
        everybody = spread(
            smallest_by_person(people, by_name.astype(np.float64)),
            options.smallest,
            name="anonymity in communities",
            threat=Threat.SINGLING_OUT,
            meaning=meaning,
            adversary=ADVERSARIES["reader"],
            standing=Standing.PROVED,
            who="people with posts",
        )
        named = [
            _community(name, sizes, options)
            for name, sizes in found.items()
            if len(sizes) >= options.smallest
        ]
        named.sort(key=lambda one: (-told_share(one.small), one.median, one.community))
        return CrowdRates(
            spreads=(everybody,),
            communities=tuple(named[: options.worst]),
            unnamed_communities=len(found) - len(named),
        )

    # Lines to watch

    line_keys = ("community", "below")

    def follow(self, crowd: GrowingCrowd, lines: Sequence[Line], options: AdvisorOptions) -> Follower:
        """Follow who is within the radius."""

        def neighbours(crowd: GrowingCrowd, line: Line) -> Neighbours:
            own = crowd.words(str(line.community))

            def limit() -> float:
                return math.nan if own.profile(crowd.user).empty else options.radius

            return Neighbours(own, own, crowd.user, limit, 1)

        return neighbours_of(crowd, lines, neighbours)

    def say_reading(self, line: Line, reading: LineReading) -> str:
        """Say how many people write alike."""
        there = f"{int(reading.value):,} of {reading.of:,} people"
        return f"In {line.community}, {there} write as you do, you included"


@dataclass(frozen=True, eq=False)
class ReadyAnonymity(Ready):
    """Everybody's crowd in every community, found when the first of its people is asked about."""

    measure: Anonymity
    crowd: PreparedCrowd
    options: AdvisorOptions
    _known: dict[Hashable, Assessment] = field(default_factory=dict, repr=False)
    _others: dict[Hashable, tuple[NDArray[np.int64], NDArray[np.int64]]] = field(
        default_factory=dict, repr=False
    )

    def assess(self, person: Person, *, explain: bool = True, community: str | None = None) -> Findings:
        """Count, in each community, who is within the radius."""
        if community is not None:
            return Findings((self._ask(person, community, explain),))
        names, missing = largest_communities(self.measure, person, self.options)
        found = {name: self._ask(person, name, explain) for name in names}
        gone = [
            self.measure.not_assessed(
                f"you have no words in {name}", "nothing to do: there is no profile there to single out"
            )
            for name, one in found.items()
            if not one.defined
        ]
        return Findings(tuple(one for one in found.values() if one.defined), (*missing, *gone))

    def _ask(self, person: Person, name: str, explain: bool) -> Assessment:
        key = person.user, name, person.state_in(name), explain
        if key not in self._known:
            self._known[key] = self._assess(person, name, explain)
        return self._known[key]

    def _assess(self, person: Person, name: str, explain: bool) -> Assessment:
        profile, chosen = person.profile(name), self._chosen(name)
        members = self._others_there(person, name)
        if profile.empty:
            return unknown_crowd(chosen, members, self.crowd.data_hash)
        near = self._near(person, name)
        size = 1 + self.crowd.count(name, near)
        evidence = self._evidence(person, name, profile) if explain else ((), None)
        rank = self._rank(person, name, near, size)
        assessed = crowd_assessment(chosen, size, rank, members + 1, self.crowd.data_hash, *evidence)
        return self.crowd.told(assessed, name)

    def _others_there(self, person: Person, name: str) -> int:
        everybody = np.ones(len(self.crowd.words(name)), bool)
        row = person.row(name)
        if row is not None:
            everybody[row] = False
        return self.crowd.count(name, everybody)

    def _rank(self, person: Person, name: str, near: NDArray[np.bool_], size: int) -> SampledRank | None:
        """Count who has a smaller crowd; None: not told of made-up people, who would all have to be compared."""
        if self.crowd.is_made_up:
            return None
        rows, sizes = self._sizes_without(person.before, name)
        smaller = int((sizes + near[rows] < size).sum())
        return SampledRank.of(smaller, len(rows), self._others_there(person, name))

    def _sizes_without(self, person: Person, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return others' crowds, the person not counted, with their rows: everybody's, or a sample's."""
        key = person.user, name
        if key not in self._others:
            rows, sizes = self.crowd.some_sizes(name, self.options.radius)
            others = rows != person.row(name)
            rows = rows[others]
            self._others[key] = rows, sizes[others] - self._near(person, name)[rows]
        return self._others[key]

    def _chosen(self, name: str) -> AnonymityOptions:
        o = self.options
        return AnonymityOptions(community=name, radius=o.radius, text=o.text, memory=o.memory)

    def _near(self, person: Person, name: str) -> NDArray[np.bool_]:
        """Mark who else is within the radius."""
        near = self.crowd.within(name, person.squares(name, name), self.options.radius)
        row = person.row(name)
        if row is not None:
            near[row] = False
        return near

    def _evidence(self, person: Person, name: str, profile: Profile) -> tuple[tuple[Evidence, ...], float]:
        """Say which words make the person stand out from the average of all others."""
        index = self.crowd.words(name)
        counts = person.counts(name)
        used = np.flatnonzero(counts > 0)
        p, q = counts[used] / profile.total, index.average(person.keys[used], person.row(name))
        terms = divergence_terms(p, q)
        words = person.words.vocabulary.gather(used.tolist()).to_list()
        order = np.argsort(-terms, kind="stable").tolist()
        parts = [*word_evidence(((words[k], float(terms[k])) for k in order), person.mentioned)]
        # A word that only others use adds half of its share; all shares of others add up to 1.
        rest = max(1.0 - float(q.sum()), 0.0) / 2
        parts.append(Evidence(what="words others use and you do not", contribution=rest))
        return tuple(parts), float(terms.sum()) + rest

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Try deleting the posts, or taking out the words, that stand out most."""
        name = str(finding.assessment.assumptions.parameters["community"])
        counts, index = person.counts(name), self.crowd.words(name)
        average = index.average(person.keys, person.row(name))
        shares = np.where(counts > 0, divergence_terms(counts / counts.sum(), average), 0.0)
        per_use = np.divide(shares, counts, out=np.zeros_like(shares), where=counts > 0)

        def lack(changed: Person) -> float:
            assessed = self._assess(changed, name, explain=False)
            return goal.short(assessed) if assessed.defined else math.inf

        yield from fewer_posts(
            person, post_order(person, person.rows_in(name), per_use), lack, name, goal.loss
        )
        yield from fewer_words(person, shares, lack, name)

    def word_shares(self, person: Person, community: str, text: str) -> Mapping[str, WordShare]:
        """Say how much each word adds to how the person differs from the average of the others."""
        said = tokenise(text, person.text)
        words = sorted(set(said))
        keys = word_keys(words)
        now = person.profile(community)
        then = now.plus(Profile.of_words(said))
        index, row = self.crowd.words(community), person.row(community)
        average, users = index.average(keys, row), index.users(keys, row)
        adds = divergence_terms(then.shares_at(keys), average) - divergence_terms(
            now.shares_at(keys), average
        )
        return {
            word: WordShare(
                weight=float(one),
                facts={"others": int(count), "stands_out": float(one)},
                columns={"others there use it": f"{int(count):,}"},
                says=_users(int(count)),
            )
            for word, one, count in zip(words, adds, users, strict=True)
        }


def _community(name: str, sizes: NDArray[np.int64], options: CrowdOptions) -> CommunityRisk:
    alone, small = (
        People.told(int((sizes < line).sum()), len(sizes), options.smallest) for line in (2, options.wanted)
    )
    return CommunityRisk(
        community=name, members=len(sizes), alone=alone, small=small, median=float(np.median(sizes))
    )


def _users(others: int) -> str:
    if not others:
        return "nobody else there uses it"
    return "one other there uses it" if others == 1 else f"{others:,} others there use it"


# For Python: the same two names in every measure. What compares everybody is imported when it is asked for.


def measure(crowd: Crowd, options: AnonymityOptions) -> CommunityAnonymity:
    """Measure everybody's crowd in one community."""
    from incrowd.measures.anonymity.assess import community_anonymity

    return community_anonymity(crowd, options)


def assess(crowd: Crowd, user: str, options: AnonymityOptions) -> Assessment:
    """Say one member's crowd (by name) in words, with what makes them stand out."""
    from incrowd.measures.anonymity.assess import member_anonymity, mentioned_by

    person = crowd.user(user)
    return member_anonymity(measure(crowd, options), person, mentioned_by(crowd, options, person))
