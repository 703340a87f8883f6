"""Exposed: where you rank for sensitive topics in each community you write in."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import OnlyACard
from incrowd.measures.crowd_rates import CrowdOptions, CrowdRates, People, TopicRisk, told_share
from incrowd.measures.exposure.assess import (
    LASTING,
    LITTLE,
    NOTHING,
    ON_TOPIC,
    PASSING,
    PROFESSIONAL,
    UNDATED_INTEREST,
    OwnPosts,
    assess_posts,
    assess_topics,
    most_exposed_first,
    points_nowhere,
    rest_together,
)
from incrowd.measures.exposure.definition import Floats, alert_ranks
from incrowd.measures.exposure.prepared import (
    MOST_SCORED,
    NO_WORDS,
    CommunityScores,
    PostScorer,
    TopicFollower,
    kept_words,
    made_up_scores,
    rank_between,
    topic_table,
)
from incrowd.measures.exposure.scoring import PeakCollector, Scored, post_periods, score
from incrowd.measures.exposure.space import BagOfWords, Space, WordLists, default_space
from incrowd.measures.exposure.spec import ADVERSARIES, LINES, ExposureOptions
from incrowd.measures.exposure.topics import starter_topics
from incrowd.measures.following import Follower, GrowingCrowd, Line, LineReading
from incrowd.measures.protocol import (
    AT_RISK_ABOVE,
    LINE,
    SMALLEST_CROWD,
    AdvisorOptions,
    CardSection,
    Changes,
    Finding,
    Findings,
    Goal,
    Level,
    Measure,
    NotAssessed,
    Person,
    PreparedCrowd,
    Proposal,
    Ready,
    Role,
    Targets,
    ThemeName,
    WordShare,
    largest_communities,
    level_of,
)
from incrowd.measures.search import fewest, in_place
from incrowd.result import Assessment, Standing, say_count, say_percent
from incrowd.text.languages import OTHER_LANGUAGE, REMEDY, UNREADABLE_DRAFT, say_unread, unread
from incrowd.text.reference import tokenise

if TYPE_CHECKING:
    import polars as pl

    from incrowd.cards.make import CardOptions
    from incrowd.cards.noise import Noise
    from incrowd.crowd import Crowd

SMALL_RANK = 10
"""A reader wonders why anybody up to here should be well hidden."""
LEAST_SHARE = 0.01
"""A word that makes a topic more likely by less than this does not point to it."""
SWEPT = ("WORDS", "BOW")
"""The adversaries that need no learning; the first is the default."""


class Exposure(Measure):
    """R-Susceptibility for every sensitive topic, in every community."""

    name = "exposure"
    about = "sensitive topics"
    question = "Where do you rank in a community for a sensitive topic?"
    theme = ThemeName.EXPOSED
    reads = "posts"
    adversaries = {name: ADVERSARIES[name] for name in SWEPT}  # noqa: RUF012  # a fact of the class

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Score communities as people are asked about."""
        return ReadyExposure(self, crowd, options, _space(options))

    def risk(self, assessment: Assessment) -> float:
        """Return the share of the doubt that is gone: how much likelier the person is concerned than anybody here.

        Only what looks personal and goes beyond single words counts; a passing interest is never worse than "watch".
        """
        about = assessment.assumptions.parameters
        chance, prior = float(about.get("probability", math.nan)), float(about.get("prior", math.nan))
        if not assessment.defined or math.isnan(chance) or (assessment.crowd_size or 0) < SMALLEST_CROWD:
            return math.nan
        if not looks_personal(assessment):
            return 0.0
        gain = max(0.0, (chance - prior) / (1 - prior))
        return min(gain, AT_RISK_ABOVE) if _looks(assessment) == PASSING else gain

    def success(self, assessment: Assessment) -> float:
        """Return how often somebody would be right who takes the person for concerned."""
        return float(assessment.assumptions.parameters.get("probability", math.nan))

    def role(self, assessment: Assessment) -> Role:
        """Let a rank decide where it was calibrated how often people with such scores are concerned."""
        calibrated = not math.isnan(float(assessment.assumptions.parameters.get("probability", math.nan)))
        return Role.DECIDES if calibrated or not assessment.defined else Role.PAPER

    def shortfall(self, assessment: Assessment, targets: Targets) -> float:
        """Return how far somebody who looks personally interested is from the target."""
        if not assessment.defined:
            return math.inf
        return targets.exposed - _share(assessment) - LINE if looks_personal(assessment) else -1.0

    def is_silent(self, assessment: Assessment) -> bool:
        """Say whether no post points to the topic."""
        return points_nowhere(assessment)

    def say_silent(self, silent: Sequence[Assessment]) -> str:
        """Say so for all topics at once: to name one would only puzzle."""
        topics = {one.assumptions.parameters["topic"] for one in silent}
        looked = say_count(len(topics), "sensitive topic that was", "sensitive topics that were")
        return (
            f"Nothing you wrote points to {'the' if len(topics) == 1 else 'any of the'} {looked} looked for."
        )

    def remark(self, finding: Finding) -> str:
        """Say why a place among the first is well hidden; to be told both without a reason would be no answer."""
        if looks_personal(finding.assessment):
            return self._why_this_level(finding)
        looks = finding.assessment.assumptions.parameters.get("looks_like", NOTHING)
        silent = looks in (NOTHING, LITTLE)
        if finding.level is not Level.WELL_HIDDEN or silent:
            return ""
        return " It does not count as exposed because it does not look like a personal interest so far."

    def _why_this_level(self, finding: Finding) -> str:
        """Say what the level goes by where it is not that of how often somebody would be right."""
        if math.isnan(finding.risk) or not self._level_seems_wrong(finding):
            return ""
        if _looks(finding.assessment) == PASSING and finding.risk >= AT_RISK_ABOVE - LINE:
            return f" Because the interest is a passing one, it counts as “{finding.level}” and no worse."
        gone = say_percent(finding.risk)
        return (
            f" It counts as “{finding.level}” because that takes away {gone} of the doubt about anybody here."
        )

    def note(self, before: Finding, after: Finding) -> str:
        """Say why the level is another one, where that does not follow from how often somebody would be right."""
        looked, looks = looks_personal(before.assessment), looks_personal(after.assessment)
        if after.level.severity < before.level.severity and not looks:
            told = after.assessment.value <= SMALL_RANK or self._level_seems_wrong(after)
            return "what is left is too faint to look personal" if told else ""
        if after.level.severity > before.level.severity and looks and not looked:
            return f"it then looks like {_looks(after.assessment)}"
        if after.level is not before.level and looks and self._level_seems_wrong(after):
            return f"only {say_percent(after.risk)} of the doubt about anybody here is gone"
        return ""

    def _level_seems_wrong(self, finding: Finding) -> bool:
        """Say whether the level is not that of how often somebody would be right, which a reader sees."""
        often = self.success(finding.assessment)
        return not math.isnan(often) and level_of(often) is not finding.level

    def subject_of(self, assessment: Assessment) -> str:
        """Name the topic first: there are many."""
        about = assessment.assumptions.parameters
        return f"topic {about['topic']} in {about['community'] or 'this crowd'}"

    def everybody(self, crowd: PreparedCrowd, options: CrowdOptions) -> CrowdRates:
        """Count, for each sensitive topic over the whole crowd, who shows it and who is among the first."""
        space = options.space or default_space()
        chosen = ExposureOptions(text=options.text, memory=options.memory)
        everybody = CommunityScores.of(crowd, space, chosen).risks
        people = len(everybody)
        if people < options.smallest:
            few = f"fewer than {options.smallest} people, too few to tell anything"
            return CrowdRates(not_measured=(f"{self.name}: {few}",))
        first = np.zeros(people, bool)
        found = []
        for name in space.topics.sensitive:
            risks = np.nan_to_num(everybody[:, space.topics.place(name)], nan=0.0)
            shown = risks > LINES[space.name].nothing_up_to
            ranks = alert_ranks(everybody[:, space.topics.place(name)])
            first |= shown & (ranks <= max(1, int(options.exposed * people)))
            enough = int(shown.sum()) >= options.smallest
            found.append(
                TopicRisk(
                    topic=name,
                    shown=People.told(int(shown.sum()), people, options.smallest),
                    highest_tenth=float(np.quantile(risks[shown], 0.9)) if enough else math.nan,
                )
            )
        found.sort(key=lambda one: (-told_share(one.shown), one.topic))
        return CrowdRates(
            topics=tuple(found),
            exposed=People.told(int(first.sum()), people, options.smallest),
            not_measured=() if first.any() else (f"{self.name}: no post points to a sensitive topic",),
        )

    def card(
        self, crowd: PreparedCrowd, community: str | None, options: CardOptions, noise: Noise
    ) -> CardSection | None:
        """Tell how many people show each sensitive topic how strongly."""
        chosen = ExposureOptions(community=community, text=options.text, memory=options.memory)
        scores = CommunityScores.of(crowd, default_space(), chosen)
        return CardSection(tables={"topics": topic_table(scores.risks, default_space(), noise)})

    # Lines to watch

    line_keys = ("community", "topic", "rank")
    optional_line_keys = ("community",)

    def follow(self, crowd: GrowingCrowd, lines: Sequence[Line], options: AdvisorOptions) -> Follower:
        """Follow everybody's scores."""
        return TopicFollower(crowd, lines, options, _space(options))

    def is_crossed(self, line: Line, reading: LineReading) -> bool:
        """Say whether the rank is at the line or before it; a rank without a score behind it crosses nothing."""
        return reading.defined and not reading.silent and reading.value <= line.at

    def say_reading(self, line: Line, reading: LineReading) -> str:
        """Say the rank, and what it looks like."""
        rank = f"number {int(reading.value):,} of {reading.of:,} (1 is the most exposed)"
        told = f"For {line.topic} in {line.community or 'this crowd'} you are {rank}"
        return told + (f", which looks like {reading.looks}" if reading.looks else "")


def _space(options: AdvisorOptions) -> Space:
    """Return the space asked for, the hand-made lists if it is their adversary alone, else the default."""
    asked = set(options.adversaries) & set(SWEPT)
    return options.space or (BagOfWords(starter_topics()) if asked == {"BOW"} else default_space())


def looks_personal(assessment: Assessment) -> bool:
    """Say whether a rank for a topic comes from what looks like a personal interest."""
    return _looks(assessment) in (LASTING, PASSING, UNDATED_INTEREST)


def _looks(assessment: Assessment) -> Any:
    return assessment.assumptions.parameters.get("looks_like", "")


def _share(assessment: Assessment) -> float:
    return (assessment.value - 1) / (assessment.crowd_size or 1)


@dataclass(frozen=True, eq=False)
class _OneAmongAll(Scored):
    """Everybody's scores with one person's own row put in; only that person is asked about."""

    row: int = 0

    def place(self, user: str) -> int:
        return self.row


@dataclass(frozen=True, eq=False)
class ReadyExposure(Ready):
    """Everybody's scores in every community, made when the first of its people is asked about."""

    measure: Exposure
    crowd: PreparedCrowd
    options: AdvisorOptions
    space: Space
    _known: dict[Hashable, list[Assessment]] = field(default_factory=dict, repr=False)
    _scores: dict[str, CommunityScores] = field(default_factory=dict, repr=False)
    _languages: dict[Hashable, frozenset[int]] = field(default_factory=dict, repr=False)

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """The topics that are looked at."""
        for topic in self.options.topics:
            self.space.topics.place(topic)
        return self.options.topics or self.space.topics.sensitive

    @cached_property
    def _scorer(self) -> PostScorer:
        return PostScorer(self.space, self._chosen(""))

    def _chosen(self, community: str) -> ExposureOptions:
        return ExposureOptions(community=community, text=self.options.text, memory=self.options.memory)

    def _community(self, name: str) -> CommunityScores:
        if name not in self._scores:
            most = None if self.crowd.exact else MOST_SCORED
            self._scores[name] = (
                self._made_up(name)
                if self.crowd.is_made_up
                else CommunityScores.of(self.crowd, self.space, self._chosen(name), most)
            )
        return self._scores[name]

    def _made_up(self, name: str) -> CommunityScores:
        return made_up_scores(self._table(name), self.space, self.crowd.members(name))

    def _table(self, name: str) -> pl.DataFrame:
        """Return what the card tells about topics in a community."""
        there = self.crowd.section(self.measure.name, name)
        if "topics" not in there:
            raise OnlyACard("this card does not say how many people write about sensitive topics")
        if self.space.name != SWEPT[0]:
            raise OnlyACard(
                "the card counts people by the default words, and other words or a model were asked for"
            )
        return there["topics"]

    def assess(self, person: Person, *, explain: bool = True, community: str | None = None) -> Findings:
        """Rank the person for every topic in every community."""
        if community is not None:
            added = [post.text for post in person.changes.add_posts]
            foreign = self._reads_english and any(unread(added))
            silent = [self.measure.not_assessed(UNREADABLE_DRAFT, REMEDY)] if foreign else []
            return Findings(tuple(self._ask(person, community, explain)), tuple(silent))
        names, missing = largest_communities(self.measure, person, self.options)
        found: list[Assessment] = []
        for name in names:
            assessed = self._ask(person, name, explain)
            if reason := next((one.reason for one in assessed if one.reason.startswith(OTHER_LANGUAGE)), ""):
                missing.append(self.measure.not_assessed(reason.partition(": ")[2], REMEDY))
                found += most_exposed_first([one for one in assessed if one.defined])
            elif person.communities.get(name, 0):
                found += most_exposed_first(assessed)
            else:
                missing.append(
                    self.measure.not_assessed(
                        f"you have no posts in {name}", "nothing to do: there is nothing to read there"
                    )
                )
        return Findings(tuple(found), (*missing, *self._beyond()))

    def _beyond(self) -> list[NotAssessed]:
        """Name what no advisor can see from here."""
        if self.options.adversaries or self.options.space is not None:
            return []
        return [
            NotAssessed(
                measure=f"{self.measure.name} (LDA, W2V)",
                why="somebody with a model of what people say about a topic may see more than words and pairs",
                remedy="incrowd exposure train, then incrowd exposure rank --model MODEL --user U",
            )
        ]

    def _ask(self, person: Person, name: str, explain: bool) -> list[Assessment]:
        key = person.user, name, person.state_in(name), explain
        if key not in self._known:
            posts = self._own_posts(person, name, explain)
            self._known[key] = self._assess(person, name, posts, self.topics, explain)
        return self._known[key]

    def _assess(
        self, person: Person, name: str, posts: OwnPosts, topics: Iterable[str], explain: bool
    ) -> list[Assessment]:
        scored = self._placed(person, name, posts)
        found = [assess_posts(posts, scored, person.user, (topic,), explain=explain)[0] for topic in topics]
        if self.crowd.is_made_up:
            found = [self._estimated(one, name) for one in found]
        if not len(posts.periods):
            others = scored.people - 1
            reason = self._unread_in(person, name) or f"no dated posts of yours are in {name}"
            return [replace(one, reason=reason, crowd_size=others) for one in found]
        found = [replace(one, advice=()) for one in found]
        reason = self._unread_in(person, name)
        return [self._partly_read(one, reason) for one in found] if reason else found

    def _unread_in(self, person: Person, name: str) -> str:
        """Say why not all posts in a community could be read; empty: they could."""
        if not self._unread(person):
            return ""
        there, read = int(person.rows_in(name).sum()), int(self._read_in(person, name).sum())
        return f"{OTHER_LANGUAGE}: {say_unread(read, there)}" if read < there else ""

    def _partly_read(self, one: Assessment, reason: str) -> Assessment:
        """Say that posts were not read; where the others point to little, nobody knows whether these do."""
        if self.measure.finding(one).level is Level.WELL_HIDDEN:
            return replace(
                one,
                value=math.nan,
                interval=None,
                crowd_rank=None,
                evidence=(),
                explained=None,
                reason=reason,
            )
        said = reason.partition(": ")[2]
        return replace(one, meaning=f"{one.meaning} {said[0].upper()}{said[1:]}.")

    def _read_in(self, person: Person, name: str) -> NDArray[np.bool_]:
        """Mark the posts in a community that are in a language that is read."""
        foreign = self._unread(person)
        there = person.rows_in(name)
        return there & ~np.isin(person.numbers, list(foreign)) if foreign else there

    @property
    def _reads_english(self) -> bool:
        """Say whether people are compared by English words: the card's, not those of a crowd or a model at hand."""
        return self.crowd.is_made_up and self.options.space is None

    def _unread(self, person: Person) -> frozenset[int]:
        """Return the numbers of posts that cannot be read."""
        if not self._reads_english:
            return frozenset()
        # Whether single posts are read hangs on all of them; only new ones are worth looking at all anew.
        asked = person if person.changes.add_posts else person.before
        key = asked.state(self.measure.reads)
        if key not in self._languages:
            foreign = np.array(unread(asked.posts["text"].to_list()), bool)
            self._languages[key] = frozenset(asked.numbers[foreign].tolist())
        return self._languages[key]

    def _estimated(self, one: Assessment, name: str) -> Assessment:
        """Say that a rank was read off a card, and how far off it may be."""
        if not one.defined:
            return replace(one, standing=Standing.ESTIMATED)
        about = one.assumptions.parameters
        low, high = rank_between(self._table(name), str(about["topic"]), float(about["score"]))
        ends = min(low, one.value), max(min(high, float(one.crowd_size or math.inf)), one.value)
        return replace(one, standing=Standing.ESTIMATED, interval=ends)

    def _own_posts(self, person: Person, name: str, explain: bool) -> OwnPosts:
        """Score the person's own posts; without an explanation their best of each period says as much."""
        there = self._community(name)
        row = there.row_of(person.user)
        if explain or not person.only_adds or (row is None and there.is_sample) or self.crowd.is_made_up:
            return self._posts_with_words(person, name)
        weeks, held = there.weeks(row), 0 if row is None else int(there.held[row])
        for one in person.added_in(name):
            lists = self._scorer.lists(one.text)
            held += len(lists.words)
            weeks = weeks.plus(self._scorer.period(one.time), self.space.similarities(lists)[0])
        resting = partial(self._rests_on, person, name)
        return OwnPosts(weeks.periods, NO_WORDS, weeks.values, held, resting)

    def _rests_on(self, person: Person, name: str, topic: int) -> str | None:
        """Say what a topic rests on without reading old posts again: that is kept, only new ones are looked at."""
        old = None
        if self._community(name).row_of(person.user) is not None:
            posts = partial(self._posts_with_words, person.before, name)
            old = kept_words(self.crowd, self.space, person.user, name, posts)[topic]
        return rest_together(old, self._scorer.new_posts(person.added_in(name)).rests_on(self.space, topic))

    def _posts_with_words(self, person: Person, name: str) -> OwnPosts:
        mine = person.posts.filter(self._read_in(person, name))
        words = self._known_words(person, name)
        when = post_periods(mine["time"], self._scorer.options.days)
        return OwnPosts(when, words, self.space.similarities(words))

    def _known_words(self, person: Person, name: str) -> WordLists:
        """Return the words of each post that the adversary knows, as numbers of the space."""
        known = self._scorer.many(person.posts.filter(self._read_in(person, name))["text"])
        if person.uncounted:
            said = self.space.words
            gone = np.array([not person.uncounted.isdisjoint(word.split(" ")) for word in said], bool)
            known = [words[~gone[words]] for words in known]
        bounds = np.cumsum([0, *map(len, known)])
        return WordLists(np.concatenate([np.zeros(0, np.int32), *known]), bounds.astype(np.int64))

    def _placed(self, person: Person, name: str, posts: OwnPosts) -> Scored:
        """Return everybody's scores with the person's own row computed from these posts."""
        there, options = self._community(name), self._chosen(name)
        row = there.row_of(person.user)
        risks = np.array(there.risks) if row is not None else np.append(there.risks, there.risks[:1], axis=0)
        row = len(risks) - 1 if row is None else row
        risks[row] = math.nan
        if len(posts.periods):
            mine = PeakCollector(1, len(self.space.topics), space=self.space)
            held = np.zeros(len(posts.periods), np.int64)
            held[0] = posts.known_words
            mine.add(np.zeros(len(posts.periods), np.int64), posts.periods, posts.similarities, held)
            risks[row] = mine.finish().risks(self.space.topics, options.dimension, options)[0]
        nobody = PeakCollector(0, len(self.space.topics)).finish()
        known: dict[str, Floats] = {options.dimension: risks}
        users: Any = range(len(risks))
        # Somebody who writes there already is one of the members, drawn or not.
        members = max(there.members + (person.before.communities.get(name, 0) == 0), len(risks))
        return _OneAmongAll(users, nobody, self.space, options, 0, self.crowd.data_hash, known, members, row)

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Try leaving out the posts that stand out most, and writing all on the topic under another name."""
        about = finding.assessment.assumptions.parameters
        name, topic = str(about["community"]), str(about["topic"])
        posts, place = self._own_posts(person, name, explain=True), self.space.topics.place(topic)
        numbers = person.numbers[self._read_in(person, name)]
        similar = posts.similarities[:, place]
        order = np.argsort(-similar, kind="stable")
        order = order[similar[order] > 0]

        def lack(count: int) -> float:
            keep = np.ones(len(numbers), bool)
            keep[order[:count]] = False
            # Without an explanation nobody looks at the words.
            held = int(np.diff(posts.words.bounds)[keep].sum())
            left = OwnPosts(posts.periods[keep], NO_WORDS, posts.similarities[keep], held)
            assessed = self._assess(person, name, left, (topic,), explain=False)[0]
            return goal.short(_taken_personally(assessed))

        count = fewest(min(len(order), int(goal.loss * len(numbers))), lack, goal.short(finding.assessment))
        if count is None:
            return
        gone = frozenset(numbers[order[:count]].tolist())
        where = in_place(self.crowd.where(name))
        which = f"that {'points' if count == 1 else 'point'} to {topic}"
        what = f"Delete or reword the {'post' if count == 1 else say_count(count, 'post')}{where} {which}"
        loss = f"{count:,} of your {say_count(len(numbers), 'post')}{where}"
        yield Proposal(what=what, loss=loss, changes=Changes(delete_posts=gone))
        on_topic = similar >= ON_TOPIC * similar.max()
        moved = frozenset(numbers[on_topic].tolist())
        if not on_topic.all() and not moved <= gone:
            which = "post" if len(moved) == 1 else say_count(len(moved), "post")
            yield Proposal(
                what=f"Move the {which}{where} about {topic} to another account, and write about it there",
                loss="readers who know you by this name",
                changes=Changes(move_posts=moved),
            )

    def assumptions(self) -> Mapping[str, Any]:
        """Name the words or the model by which topics were recognised."""
        return {"space": self.space.hash}

    def word_shares(self, person: Person, community: str, text: str) -> Mapping[str, WordShare]:
        """Say, of each word that points to a sensitive topic, to which it points most and by how much."""
        words, places = self._scorer.words(text), self._scorer.lists(text).words
        found: dict[str, tuple[str, float]] = {}
        for name in self.topics:
            shares: dict[str, float] = defaultdict(float)
            for word, share in zip(
                words, self.space.shares(places, self.space.topics.place(name)), strict=False
            ):
                parts = word.split(" ")
                for part in parts:
                    shares[part] += float(share) / len(parts)
            for word, share in shares.items():
                if share > found.get(word, ("", LEAST_SHARE))[1]:
                    found[word] = (name, share)
        silent = WordShare(weight=0.0, facts={"topic": "", "topic_share": 0.0}, columns={"points to": "–"})
        told = {
            word: WordShare(
                weight=share,
                facts={"topic": topic, "topic_share": share},
                columns={"points to": topic},
                says=f"points to {topic}",
                points_to={f"topic {topic} in {community}": topic},
            )
            for word, (topic, share) in found.items()
        }
        return {word: told.get(word, silent) for word in set(tokenise(text, person.text))}


def _taken_personally(assessment: Assessment) -> Assessment:
    """Aim at a rank that says little, not at one that is only read more kindly."""
    about = assessment.assumptions
    if about.parameters.get("looks_like") in (None, LITTLE, NOTHING, PROFESSIONAL):
        return assessment
    strict = {**about.parameters, "looks_like": LASTING}
    return replace(assessment, assumptions=replace(about, parameters=strict))


# For Python: the same two names in every measure.


def measure(crowd: Crowd, options: ExposureOptions | None = None, *, space: Space | None = None) -> Scored:
    """Return how similar everybody's posts are to each topic, at their peaks; `space`: None for the default."""
    return score(crowd, space or default_space(), options or ExposureOptions())


def assess(
    crowd: Crowd,
    user: str,
    options: ExposureOptions | None = None,
    *,
    topics: Sequence[str] = (),
    space: Space | None = None,
) -> list[Assessment]:
    """Return where a person (by name) ranks for some topics, most exposed first; no topics: all sensitive ones."""
    person = crowd.user(user)
    scored = measure(crowd, options, space=space)
    return assess_topics(crowd, scored, person, topics or scored.space.topics.sensitive)
