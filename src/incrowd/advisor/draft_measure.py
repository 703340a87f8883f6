"""Measures one person in one community with and without one more post, by the arithmetic of the measures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.advisor.community_topics import CommunityTopics, PostScorer, Weeks, rank
from incrowd.advisor.community_words import CommunityWords, Floats, Meeting, Nearness
from incrowd.advisor.draft_answer import Change
from incrowd.advisor.prepare import Shelf
from incrowd.distances.profile_index import Profile, distance
from incrowd.measures.anonymity.spec import ADVERSARY as NEIGHBOUR
from incrowd.measures.exposure.spec import ADVERSARIES as READERS
from incrowd.measures.linkability.spec import ADVERSARIES as LINKERS
from incrowd.measures.protocol import SMALLEST_CROWD, AdvisorOptions
from incrowd.result import say_count
from incrowd.text.reference import tokenise


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One number in one state; `Change` puts two of them side by side."""

    measure: str
    subject: str
    adversary: str
    unit: str
    value: float
    of: int
    rank: int | None = None
    score: float = math.nan
    reason: str = ""


def _in_a_crowd(finding: Finding) -> Finding:
    """Say nothing where hardly anybody is: whom would one hide among?"""
    if finding.of >= SMALLEST_CROWD or finding.reason:
        return finding
    people = say_count(finding.of, "person is", "people are")
    reason = f"small_crowd: {people} there, you included; fewer than {SMALLEST_CROWD} are no crowd"
    return replace(finding, value=math.nan, rank=None, reason=reason)


def compare(before: Finding, after: Finding) -> Change:
    """Put the same number of two states side by side."""
    return Change(
        measure=after.measure,
        subject=after.subject,
        adversary=after.adversary,
        unit=after.unit,
        before=before.value,
        after=after.value,
        of_before=before.of,
        of_after=after.of,
        rank_before=before.rank,
        rank_after=after.rank,
        score_before=before.score,
        score_after=after.score,
        reason=after.reason or before.reason,
    )


@dataclass(frozen=True, eq=False)
class State:
    """The person in the community as they would be: words, number of posts, weeks."""

    profile: Profile
    posts: int
    weeks: Weeks


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """One of the person's other profiles, and everybody around it."""

    community: str
    words: CommunityWords
    row: int

    @cached_property
    def profile(self) -> Profile:
        """The person's words there."""
        return self.words.profile(self.row)


class Bench:
    """Everything a draft is measured against, looked up once; each text is then a matter of milliseconds."""

    def __init__(
        self, shelf: Shelf, user: str, community: str, text: str, scorer: PostScorer, options: AdvisorOptions
    ) -> None:
        self.shelf, self.user, self.community, self.options = shelf, user, community, options
        self.scorer = scorer
        self.words = shelf.words(community)
        self.sizes = shelf.sizes(community, options.radius)
        self.topics: CommunityTopics = shelf.topics(scorer.space, scorer.options)
        self.row = self.words.row_of(user)
        self.own_topics = self.topics.row_of(user)
        posts = shelf.population.of(user)
        self.now = State(
            self.words.profile(self.row), posts.get(community, 0), self.topics.weeks(self.own_topics)
        )
        self.elsewhere, self.not_compared = self._elsewhere(posts)
        self._all = self.now.profile.plus(Profile.of_words(tokenise(text, options.text)))

    def _elsewhere(self, posts: dict[str, int]) -> tuple[list[Elsewhere], list[str]]:
        others = {name: count for name, count in posts.items() if name != self.community}
        found: list[Elsewhere] = []
        left_out: list[str] = []
        for name, count in others.items():
            if count < self.options.min_posts:
                left_out.append(
                    f"{name}: {count} of your posts are fewer than the {self.options.min_posts} it takes"
                )
            elif len(found) == self.options.most_communities:
                left_out.append(
                    f"{name}: only your {self.options.most_communities} largest others are compared"
                )
            else:
                words = self.shelf.words(name)
                row = words.row_of(self.user)
                if row is None:
                    left_out.append(f"{name}: no words of yours are left there without stop words")
                else:
                    found.append(Elsewhere(name, words, row))
        if not others:
            left_out.append(
                "your profiles elsewhere: you have none in this crowd, so there is nothing to link"
            )
        return found, left_out

    def after(self, text: str, time: int | None) -> State:
        """Return the person after posting a text."""
        words = tokenise(text, self.options.text)
        similar = self.scorer.similar(text)
        return State(
            self.now.profile.plus(Profile.of_words(words)),
            self.now.posts + 1,
            self.now.weeks.plus(self.scorer.period(time), similar),
        )

    def findings(self, state: State) -> list[Finding]:
        """Measure a state by every number there is."""
        links = (one for other in self.elsewhere for one in self._links(state, other))
        return [_in_a_crowd(one) for one in (self._anonymity(state), *links, *self._exposures(state))]

    # Anonymity

    @cached_property
    def here(self) -> Meeting:
        """Who in the community uses the words of the person or of the draft."""
        return self.words.meeting(self._all.keys)

    @cached_property
    def _inside_now(self) -> NDArray[np.bool_]:
        return self._inside(self.now.profile)

    def _inside(self, profile: Profile) -> NDArray[np.bool_]:
        inside = self.here.nearness(profile).within(self.options.radius)
        if self.row is not None:
            inside[self.row] = False
        return inside

    def _anonymity(self, state: State) -> Finding:
        known: dict[str, Any] = {
            "measure": "anonymity",
            "subject": f"you in {self.community}",
            "adversary": NEIGHBOUR,
            "unit": "people",
        }
        members = len(self.words) - (self.row is not None)
        if state.profile.empty:
            reason = f"empty_profile: no words of yours are in {self.community}"
            return Finding(**known, value=math.nan, of=members, reason=reason)
        inside = self._inside_now if state is self.now else self._inside(state.profile)
        mine = 1 + int(inside.sum())
        others = self.sizes - self._inside_now.astype(np.int64) + inside
        if self.row is not None:
            others = np.delete(others, self.row)
        return Finding(**known, value=mine, of=members + 1, rank=1 + int((others < mine).sum()))

    # Linkability

    @cached_property
    def _there(self) -> dict[str, Meeting]:
        return {other.community: other.words.meeting(self._all.keys) for other in self.elsewhere}

    @cached_property
    def _from_there(self) -> dict[str, Nearness]:
        """How near everybody in this community is to the person's profiles elsewhere; no draft changes that."""
        return {
            other.community: self.shelf.across(self.user, other.community, self.community)
            for other in self.elsewhere
        }

    def _links(self, state: State, other: Elsewhere) -> Iterator[Finding]:
        limit = distance(state.profile, other.profile)
        few = state.posts < self.options.min_posts
        for source, target in ((self.community, other.community), (other.community, self.community)):
            eligible = self._eligible(target, other)
            known: dict[str, Any] = {
                "measure": "linkability",
                "subject": f"from {source} to {target}",
                "adversary": LINKERS["unigram"],
                "unit": "people",
            }
            if few or math.isnan(limit):
                count = (
                    f"{state.posts} of your posts in {self.community} are fewer than {self.options.min_posts}"
                )
                reason = f"too_few_posts: {count}" if few else f"empty_profile: no words in {self.community}"
                yield Finding(**known, value=math.nan, of=int(eligible.sum()), reason=reason)
            else:
                inside = self._matching(state.profile, other, target, limit) & eligible
                yield Finding(**known, value=1 + int(inside.sum()), of=1 + int(eligible.sum()))

    def _eligible(self, target: str, other: Elsewhere) -> NDArray[np.bool_]:
        """Mark everybody else the adversary would search there."""
        words, row = (other.words, other.row) if target == other.community else (self.words, self.row)
        eligible = np.asarray(words.posts >= self.options.min_posts)
        if row is not None:
            eligible[row] = False
        return eligible

    def _matching(self, profile: Profile, other: Elsewhere, target: str, limit: float) -> NDArray[np.bool_]:
        if target == other.community:
            return self._there[other.community].nearness(profile).within(limit)
        return self._from_there[other.community].within(limit)

    # Exposure

    @cached_property
    def _other_risks(self) -> Floats:
        risks = np.asarray(self.topics.risks)
        return np.asarray(risks if self.own_topics is None else np.delete(risks, self.own_topics, axis=0))

    def _exposures(self, state: State) -> Iterator[Finding]:
        topics = self.scorer.space.topics
        wrote = len(state.weeks.periods) > 0
        risks = (
            state.weeks.risks(self.scorer.space, self.scorer.options)
            if wrote
            else np.full(len(topics), np.nan)
        )
        wanted = self.options.topics or topics.sensitive
        for name in wanted:
            at = topics.place(name)
            mine, others = float(risks[at]), self._other_risks[:, at]
            defined = not math.isnan(mine)
            yield Finding(
                measure="exposure",
                subject=f"topic {name} in {self.community}",
                adversary=READERS[self.scorer.space.name],
                unit="rank",
                value=float(rank(mine, others)) if defined else math.nan,
                of=len(others) + wrote,
                score=mine,
                reason="" if defined else f"no dated posts of yours are in {self.community}",
            )
