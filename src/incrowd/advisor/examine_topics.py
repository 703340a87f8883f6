"""Exposed: where you rank for sensitive topics in each community you write in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.advisor.answer import Changes, Judged, NotAssessed, ThemeName
from incrowd.advisor.examiner import Findings, Goal, Proposal
from incrowd.advisor.search import fewest
from incrowd.advisor.stored import remembered
from incrowd.measures.exposure.assess import (
    LASTING,
    LITTLE,
    NOTHING,
    ON_TOPIC,
    PROFESSIONAL,
    OwnPosts,
    assess_posts,
)
from incrowd.measures.exposure.scoring import Collector, Scored, people, post_periods, score
from incrowd.measures.exposure.space import BagOfWords, WordLists
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import starter_topics
from incrowd.result import say_count

if TYPE_CHECKING:
    from incrowd.advisor.person import Own
    from incrowd.advisor.spec import AdvisorOptions
    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import Kind
    from incrowd.result import Assessment


@dataclass(frozen=True, eq=False)
class TopicExaminer:
    """R-Susceptibility for every sensitive topic, in every community."""

    measure: ClassVar[str] = "exposure"
    reads: ClassVar[Kind] = "posts"

    scored: dict[str, Scored]
    topics: tuple[str, ...]
    places: dict[str, int]
    """The number of each word the adversary knows."""
    _known: dict[Hashable, list[Assessment]] = field(default_factory=dict, repr=False)

    @classmethod
    def prepare(cls, crowd: Crowd, communities: Iterable[str], options: AdvisorOptions) -> TopicExaminer:
        """Score everybody's posts in the communities once."""
        space = BagOfWords(starter_topics())
        topics = options.topics or space.topics.sensitive
        for topic in topics:
            space.topics.place(topic)
        scored = {}
        for name in communities:
            chosen = ExposureOptions(community=name, text=options.text, memory=options.memory)
            scored[name] = _everybody(crowd, space, chosen)
        return cls(scored, tuple(topics), {word: place for place, word in enumerate(space.words)})

    def examine(self, own: Own, *, explain: bool = True) -> Findings:
        """Rank the person for every topic in every community."""
        found: list[Assessment] = []
        missing = []
        for name in self.scored:
            assessed = self._ask(own, name, explain)
            found += assessed
            if not assessed:
                missing.append(_gone(name))
        return Findings(tuple(found), tuple(missing))

    def _ask(self, own: Own, name: str, explain: bool) -> list[Assessment]:
        key = name, own.state_in(name), explain
        if key not in self._known:
            posts = self._own_posts(own, name)
            known = self._assess(own, name, posts, self.topics, explain) if len(posts.periods) else []
            self._known[key] = known
        return self._known[key]

    def _assess(
        self, own: Own, name: str, posts: OwnPosts, topics: tuple[str, ...], explain: bool
    ) -> list[Assessment]:
        scored = self._placed(own.user, name, posts)
        assessed = assess_posts(posts, scored, own.user, topics, explain=explain)
        return [replace(one, advice=()) for one in assessed]

    def _own_posts(self, own: Own, name: str) -> OwnPosts:
        mine = own.posts.filter(own.rows_in(name))
        scored = self.scored[name]
        words = self._known_words(own, name)
        when = post_periods(mine["time"], scored.options.days)
        return OwnPosts(when, words, scored.space.similarities(words))

    def _known_words(self, own: Own, name: str) -> WordLists:
        """Return the words of each post that the adversary knows, as numbers of the space."""
        counts = own.words.matrix[own.rows_in(name)]
        place = np.array([self.places.get(word, -1) for word in own.words.vocabulary], np.int32)
        of_entry = place[counts.indices]
        times = np.where(of_entry >= 0, counts.data.astype(np.int64), 0)
        before = np.concatenate([[0], np.cumsum(times)])
        return WordLists(np.repeat(of_entry, times), before[counts.indptr].astype(np.int64))

    def _placed(self, user: str, name: str, posts: OwnPosts) -> Scored:
        """Return everybody's scores with the person's own row computed from these posts."""
        scored = self.scored[name]
        options = scored.options
        mine = Collector(1, len(scored.space.topics))
        mine.add(np.zeros(len(posts.periods), np.int64), posts.periods, posts.similarities)
        risks = scored.risks().copy()
        risks[scored.place(user)] = mine.finish().risks(scored.space.topics, options.dimension, options)[0]
        return replace(scored, _risks={options.dimension: risks})

    def propose(self, own: Own, finding: Judged, goal: Goal) -> Iterable[Proposal]:
        """Try leaving out the posts that stand out most, and writing all on the topic under another name."""
        name, topic = self._question(finding)
        scored = self.scored[name]
        posts, place = self._own_posts(own, name), scored.space.topics.place(topic)
        numbers = own.numbers[own.rows_in(name)]
        similar = posts.similarities[:, place]
        order = np.argsort(-similar, kind="stable")
        order = order[similar[order] > 0]

        def lack(count: int) -> float:
            keep = np.ones(len(numbers), bool)
            keep[order[:count]] = False
            return self._lack(own, name, topic, posts, keep, goal)

        count = fewest(min(len(order), int(goal.loss * len(numbers))), lack, goal.short(finding.assessment))
        if count is None:
            return
        gone = frozenset(numbers[order[:count]].tolist())
        which = f"in {name} that {'points' if count == 1 else 'point'} to {topic}"
        what = f"Delete or reword the {'post' if count == 1 else say_count(count, 'post')} {which}"
        loss = f"{count:,} of your {say_count(len(numbers), 'post')} in {name}"
        yield Proposal(what=what, loss=loss, changes=Changes(delete_posts=gone))
        on_topic = similar >= ON_TOPIC * similar.max()
        if not on_topic.all():
            so_far = say_count(int(on_topic.sum()), "post")
            yield Proposal(
                what=f"Write about {topic} under another name: {so_far} in {name} so far",
                loss="readers who know you by this name",
                changes=Changes(move_posts=frozenset(numbers[on_topic].tolist())),
            )

    def _lack(
        self, own: Own, name: str, topic: str, posts: OwnPosts, keep: NDArray[np.bool_], goal: Goal
    ) -> float:
        # Without an explanation nobody looks at the words.
        left = OwnPosts(posts.periods[keep], posts.words, posts.similarities[keep])
        return goal.short(_taken_personally(self._assess(own, name, left, (topic,), explain=False)[0]))

    def _question(self, finding: Judged) -> tuple[str, str]:
        about = finding.assessment.assumptions.parameters
        return str(about["community"]), str(about["topic"])


def _taken_personally(assessment: Assessment) -> Assessment:
    """Aim at a rank that says little, not at one that is only read more kindly."""
    about = assessment.assumptions
    if about.parameters.get("looks_like") in (None, LITTLE, NOTHING, PROFESSIONAL):
        return assessment
    strict = {**about.parameters, "looks_like": LASTING}
    return replace(assessment, assumptions=replace(about, parameters=strict))


def _everybody(crowd: Crowd, space: BagOfWords, options: ExposureOptions) -> Scored:
    """Return everybody's risks, computed once; peaks are not needed any more after that."""

    def measure() -> dict[str, NDArray[np.generic]]:
        return {"risks": score(crowd, space, options).risks()}

    risks = remembered(crowd, {"what": "exposure", "space": space.hash, **options.parameters()}, measure)
    users, posts = people(crowd, options)
    nobody = Collector(0, len(space.topics)).finish()
    return Scored(
        users,
        nobody,
        space,
        options,
        posts,
        crowd.data_hash,
        {options.dimension: np.asarray(risks["risks"], np.float64)},
    )


def _gone(community: str) -> NotAssessed:
    return NotAssessed(
        measure="exposure",
        why=f"you have no posts in {community}",
        remedy="nothing to do: there is nothing to read there",
        theme=ThemeName.EXPOSED,
    )
