"""Recognised by how you write: how few of your posts, read elsewhere, it takes to find you in a community."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.crowd.array_cache import set_aside
from incrowd.measures.protocol import (
    CARD_OF_THERE,
    OTHER_CARD,
    AdvisorOptions,
    Finding,
    Findings,
    GivesAway,
    Goal,
    Measure,
    NotAssessed,
    Person,
    PreparedCrowd,
    Proposal,
    Ready,
    Role,
    ThemeName,
    largest_communities,
)
from incrowd.measures.recognition.definition import halves, pick
from incrowd.measures.recognition.spec import (
    ADVERSARIES,
    DEFAULT_KNOWN,
    EVERYBODY,
    FEATURES,
    RIDGE,
    RecognitionOptions,
)
from incrowd.measures.search import delete_first, first_to_reach, start_over, steps, take_out
from incrowd.result import Evidence, Standing, say_count
from incrowd.text.mentions import word_evidence

if TYPE_CHECKING:
    import polars as pl

    from incrowd.crowd import Crowd
    from incrowd.distances.profile_index import Keys
    from incrowd.measures.attackers import Lineup
    from incrowd.measures.made_up_rivals import CountedPosts, MadeUpRivals
    from incrowd.measures.recognition.assess import CommunityRecognition, MemberRecognition
    from incrowd.measures.recognition.history import Histories, OwnHistory, Rivals
    from incrowd.measures.telling import Habit
    from incrowd.result import Assessment
    from incrowd.statistics import Logistic

JUDGED, DRAWS, CANDIDATES = 150, 4, 1_500
"""Enough to learn from for one person's answer; `incrowd recognition` takes more time and tries more."""
WORDS = (12, 24)
"""So many words are tried to be taken out."""
RECHECKED = 8
"""So many times posts of either half are drawn for the attacker who is asked once more."""


class Recognition(Measure):
    """How soon a person is recognised in each community they write in."""

    name = "recognition"
    about = "how few posts it takes to recognise you"
    question = "How few of your posts, read elsewhere, does it take to recognise you in a community?"
    theme = ThemeName.SINGLED_OUT
    reads = "posts"
    adversaries = ADVERSARIES

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Look at communities as people are asked about."""
        return ReadyRecognition(self, crowd, options)

    def role(self, assessment: Assessment) -> Role:
        """Let whoever has read three posts decide (or fewer, if that is all that could be tried).

        Among people who write in another language nothing is decided.
        """
        about = assessment.assumptions.parameters
        decides = about["posts_known"] <= DEFAULT_KNOWN and not about.get("another_language")
        return Role.DECIDES if decides else Role.STRONGER

    def is_exact_after_changes(self, assessment: Assessment) -> bool:
        """Say no: what was learnt from others stays as it was before the change."""
        return False


@dataclass(frozen=True, eq=False)
class ReadyRecognition(Ready):
    """Communities whose past was looked at, each when the first of its people is asked about."""

    measure: Recognition
    crowd: PreparedCrowd
    options: AdvisorOptions
    _known: dict[Hashable, MemberRecognition] = field(default_factory=dict, repr=False)
    _histories: dict[Hashable, OwnHistory] = field(default_factory=dict, repr=False)
    _lineups: dict[str, Lineup] = field(default_factory=dict, repr=False)
    _made: dict[str, MadeUpRivals] = field(default_factory=dict, repr=False)
    _asked_in: dict[str, set[str]] = field(default_factory=dict, repr=False)
    """Who was asked about, by community."""
    _communities: dict[str, tuple[Histories, list[str], int]] = field(default_factory=dict, repr=False)
    _taught: dict[tuple[str, str], tuple[Rivals, Mapping[int, Logistic], int]] = field(
        default_factory=dict, repr=False
    )

    def assess(self, person: Person, *, explain: bool = True, community: str | None = None) -> Findings:
        """Say nothing yet: a whole community's past has to be read first."""
        return Findings()

    def assess_thorough(self, person: Person, *, explain: bool = True) -> Findings:
        """Say, for each community, how likely the plausible adversary finds the person, and how few posts it takes."""
        if not self.measure.asked(self.options):
            return Findings()
        names, missing = largest_communities(self.measure, person, self.options)
        enough = [name for name in names if person.communities.get(name, 0) >= self._chosen(name).min_posts]
        missing += [self._too_few(person, name) for name in names if name not in enough]
        if enough and not self.options.thorough:
            why = "holding everybody's later posts against earlier ones takes long and was left out"
            return Findings((), (*missing, self.measure.not_assessed(why, "incrowd assess --thorough")))
        missing += [
            NotAssessed(
                measure=f"{self.measure.name} (your language)",
                why=doubt,
                remedy=OTHER_CARD,
                theme=self.measure.theme,
            )
            for name in names
            if (doubt := self.crowd.doubt(name))
        ]
        missing += [
            NotAssessed(measure=f"{self.measure.name} (where you write)", why=why, remedy=CARD_OF_THERE)
            for name in names
            if (why := self.crowd.elsewhere(name))
        ]
        found = []
        for name in enough:
            asked = self._ask(person, name)
            if asked.reason:
                why = asked.reason.partition(": ")[2]
                missing.append(self.measure.not_assessed(why, "nothing to do"))
            because = self._because(person, name) if explain and asked.probability else ()
            found += [
                replace(
                    self._assessment(asked, name, n),
                    evidence=because,
                    explained=sum(part.contribution for part in because) if because else None,
                )
                for n in self._tried_with(asked)
            ]
        return Findings(tuple(found), tuple(missing))

    def _too_few(self, person: Person, name: str) -> NotAssessed:
        posts = say_count(person.communities.get(name, 0), "post")
        why = f"{posts} of yours in {name}; it takes {self._chosen(name).min_posts} to be recognised by them"
        return self.measure.not_assessed(why, "nothing to do: there is too little to go by")

    def _tried_with(self, found: MemberRecognition) -> list[int]:
        """Return how many posts the adversaries asked about have read; one post only where three were not asked."""
        asked = [n for n in found.probability if self.options.asked(f"read-{n}")]
        return [n for n in asked if n >= DEFAULT_KNOWN] or asked

    def assess_again(self, person: Person, finding: Finding) -> Assessment | None:
        """Look at the finding's community alone."""
        about = finding.assessment.assumptions.parameters
        name, n = str(about["community"]), int(about["posts_known"])
        found = self._ask(person, name)
        return self._assessment(found, name, n) if n in found.probability else None

    def _assessment(self, found: MemberRecognition, name: str, n: int) -> Assessment:
        from incrowd.measures.recognition.assess import recognition_assessment

        told = recognition_assessment(found, self._chosen(name), self.crowd.data_hash, n)
        if not self.crowd.is_made_up:
            return told
        foreign = bool(self.crowd.doubt(name))
        about = {**told.assumptions.parameters, **({"another_language": True} if foreign else {})}
        return replace(
            told,
            subject=self.crowd.whom(name),
            standing=Standing.ESTIMATED,
            meaning=told.meaning + _reservations(found, n),
            assumptions=replace(told.assumptions, parameters=about),
        )

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterator[Proposal]:
        """Try to do without the posts and words that are most one's own, and a new name."""
        about = finding.assessment.assumptions.parameters
        name, n = str(about["community"]), int(about["posts_known"])
        order, words = self._most_telling(person, name)
        where = self.crowd.where(name)
        ways = [
            [delete_first(order, count, where) for count in steps(int(goal.loss * len(order)))],
            [take_out(person, words[:count], where) for count in WORDS if words],
            start_over(person, where, person.rows_in(name)),
        ]

        def lack(proposal: Proposal) -> float:
            found = self._tried(person.after(proposal.changes), name)
            return goal.short(self._assessment(found, name, n)) if n in found.probability else math.inf

        for way in ways:
            tried: list[tuple[Proposal, float]] = []
            for one in way:
                tried.append((one, lack(one)))
                if tried[-1][1] <= 0:
                    break
            best = first_to_reach(tried, goal.short(finding.assessment))
            if best is not None:
                yield best

    def recheck(self, person: Person, finding: Finding) -> float:
        """Let somebody who compares runs of characters look for the author of posts read elsewhere.

        They go by the same rules: one half of the history, as it was, is held against the other, as it would be.
        """
        if self.crowd.is_made_up:  # made-up people have no posts in which somebody could look for characters
            return math.nan
        about = finding.assessment.assumptions.parameters
        name, n = str(about["community"]), int(about["posts_known"])
        before, now = (one.posts.filter(one.rows_in(name)) for one in (person.before, person))
        early = before["number"].head(halves(before.height)[0]).implode()
        rng, found = np.random.default_rng(self.options.seed), []
        for late in (True, False):
            asked = before.filter(before["number"].is_in(early) ^ late)
            known = now.filter(now["number"].is_in(early) ^ (not late))
            if asked.height >= n and known.height:
                drawn = pick(np.arange(asked.height), n, RECHECKED, rng)
                found += [self._named(person, name, known["text"], asked["text"][some]) for some in drawn]
        return float(np.mean(found)) if found else math.nan

    def _named(self, person: Person, name: str, known: pl.Series, asked: pl.Series) -> float:
        """Return how likely the other attacker names the person."""
        from incrowd.measures.attackers import Lineup
        from incrowd.measures.recognition.attack import TAIL
        from incrowd.statistics import first_place, unseen_above

        if name not in self._lineups:
            there = self.crowd.crowd().posts(community=name)
            self._lineups[name] = Lineup.of(there, person.user, self.options.seed)
        lineup = self._lineups[name]
        own, others = lineup.resemblance(known, asked)
        best = np.sort(others)[-TAIL:]
        unseen = unseen_above(np.array([own]), best[None], lineup.sampled, lineup.people - lineup.sampled)
        return float(first_place((others > own).sum(), (others == own).sum(), unseen[0]))

    def gives_away(self, person: Person, finding: Finding) -> Sequence[GivesAway]:
        """Say which kinds of habits the earlier and the later posts have in common."""
        from incrowd.measures.telling import by_kind

        if self.crowd.is_made_up:  # of made-up people only words are known
            return ()
        return by_kind(self._habits(person, str(finding.assessment.assumptions.parameters["community"])))

    def _because(self, person: Person, name: str) -> tuple[Evidence, ...]:
        from incrowd.measures.telling import evidence

        if self.crowd.is_made_up:
            return self._shared_words(person, name)
        return evidence(self._habits(person, name))

    def _habits(self, person: Person, name: str) -> tuple[Habit, ...]:
        from incrowd.measures.telling import kept_habits

        question = {
            "what": "kinds of habits 3",
            "posts": person.digest(name),
            **self._chosen(name).parameters(),
        }
        return kept_habits(self.crowd, question, lambda: self._telling(person, name).habits)

    def _shared_words(self, person: Person, name: str) -> tuple[Evidence, ...]:
        """Return the words that both halves of the history share; they add up to how like the halves are."""
        counted = self._counted(person, name)
        shares = self._made_up(name).common(counted)[counted.places]
        order = np.argsort(-shares, kind="stable")[: int((shares > 0).sum())].tolist()
        words = person.words.vocabulary
        return word_evidence(((words[at], float(shares[at])) for at in order), person.mentioned)

    def _most_telling(self, person: Person, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return the person's posts (by number) and words, those first that give most away."""
        if not self.crowd.is_made_up:
            telling = self._telling(person, name)
            return telling.order, telling.words(person)
        counted = self._counted(person, name)
        weight = self._made_up(name).common(counted)
        posts = np.argsort(-np.asarray((counted.counts > 0) @ weight), kind="stable")
        own = weight[counted.places]
        vocabulary = person.words.vocabulary
        words = [vocabulary[int(at)] for at in np.argsort(-own, kind="stable")[: max(WORDS)] if own[at] > 0]
        return person.numbers[person.rows_in(name)][posts], words

    def _telling(self, person: Person, name: str) -> TellingHistory:
        """Say what the person's earlier and later posts have in common."""
        rivals, _, _ = self._rivals(person, name)
        mine = person.posts.filter(person.rows_in(name))
        return TellingHistory.of(mine["number"], mine["text"], self._own(person, name), rivals.rarity)

    def _chosen(self, name: str) -> RecognitionOptions:
        o = self.options
        return RecognitionOptions(
            community=name,
            draws=DRAWS,
            judged=JUDGED,
            candidates=EVERYBODY if o.exact else CANDIDATES,
            seed=o.seed,
            memory=o.memory,
        )

    def _ask(self, person: Person, name: str) -> MemberRecognition:
        key = person.user, name, person.state_in(name)
        if key not in self._known:
            self._known[key] = self._kept(person, name)
        return self._known[key]

    def _kept(self, person: Person, name: str) -> MemberRecognition:
        """Return the answer for a person as they are or would be, found out once."""
        from incrowd.measures.recognition.assess import MemberRecognition

        made: list[MemberRecognition] = []

        def find() -> dict[str, NDArray[Any]]:
            made.append(self._tried(person, name))
            return made[0].arrays()

        said = person.digest(name) if person.changes else ""
        question = {
            "what": "recognition",
            "by": FEATURES,
            "ridge": RIDGE,
            "user": person.user,
            "said": said,
            **self._chosen(name).parameters(),
        }
        arrays = self.crowd.answer(question, find)
        return made[0] if made else MemberRecognition.from_arrays(name, arrays)

    def _tried(self, person: Person, name: str) -> MemberRecognition:
        from incrowd.measures.recognition.assess import predicted

        if self.crowd.is_made_up:
            return self._tried_by_card(person, name)
        rivals, models, members = self._rivals(person, name)
        own, before = self._own(person, name), self._own(person.before, name)
        return predicted(own, before, rivals, models, self._chosen(name), members)

    def _tried_by_card(self, person: Person, name: str) -> MemberRecognition:
        """Try the person among people made up from a card."""
        from incrowd.measures.recognition.assess import MemberRecognition, too_little
        from incrowd.measures.recognition.from_card import probabilities, rehearsed

        members = self.crowd.members(name) + 1
        others = np.union1d(person.keys, person.before.keys)
        known, asked = (self._counted(one, name, others) for one in (person, person.before))
        posts = known.counts.shape[0]
        if reason := too_little(self._chosen(name), posts, taught=True):
            return MemberRecognition(name, members, posts, {}, {}, reason)
        ranks = rehearsed(self._made_up(name), known, asked)
        return MemberRecognition(name, members, posts, *probabilities(ranks, known.counts.sum()))

    def _made_up(self, name: str) -> MadeUpRivals:
        from incrowd.measures.made_up_rivals import MadeUpRivals

        if name not in self._made:
            made, users = self.crowd.made_up(name)
            self._made[name] = MadeUpRivals.of(made.counts, made.rare, users, self.crowd.members(name))
        return self._made[name]

    def _counted(self, person: Person, name: str, others: Keys | None = None) -> CountedPosts:
        """Count a person's posts by word; those to be compared take the same words beside the card's (`others`)."""
        from incrowd.measures.made_up_rivals import counted_posts

        made, _ = self.crowd.made_up(name)
        others = np.unique(person.keys) if others is None else others
        rows = person.rows_in(name)
        return counted_posts(
            person.words.matrix[rows], person.keys, made.keys, others, self._cut(person, name)
        )

    def _cut(self, person: Person, name: str) -> int:
        """Return how many of the person's posts are from the earlier half of their history as it is."""
        # Posts are numbered by time; what a change adds comes last.
        mine, before = (one.posts.filter(one.rows_in(name)) for one in (person, person.before))
        early = before["number"].head(halves(before.height)[0])
        return int(mine["number"].is_in(early.implode()).sum())

    def _own(self, person: Person, name: str) -> OwnHistory:
        from incrowd.measures.recognition.assess import own_history

        key = person.user, name, person.state_in(name)
        if key not in self._histories:
            mine = person.posts.filter(person.rows_in(name))
            self._histories[key] = own_history(mine["text"], mine["time"], self._cut(person, name))
        return self._histories[key]

    def _rivals(self, person: Person, name: str) -> tuple[Rivals, Mapping[int, Logistic], int]:
        """Return everybody else in a community, what its past taught, and how many people it has."""
        from incrowd.measures.recognition.assess import taught
        from incrowd.measures.recognition.history import Rivals

        key = person.user, name
        if key not in self._taught:
            # Everybody else differs from person to person; a crowd report goes through many of them.
            for other in [one for one in self._taught if one[0] != person.user]:
                del self._taught[other]
            o = self._chosen(name)
            histories, users, members = self._read(person, name)
            models = taught(self.crowd, histories, o)
            others = histories.without(users.index(person.user))
            del histories
            rivals = set_aside(Rivals(others, o.how), self.crowd.cache)
            self._taught[key] = rivals, models, members
        return self._taught[key]

    def _read(self, person: Person, name: str) -> tuple[Histories, list[str], int]:
        """Return a community's histories, with the person's: whose they are, and how many people it has.

        Read once for all people in them, from the second one who is asked about on: one alone needs no more room.
        """
        from incrowd.measures.recognition.assess import community_histories

        if name in self._communities and person.user in self._communities[name][1]:
            return self._communities[name]
        histories, _, users, members = community_histories(
            self.crowd.crowd(), self._chosen(name), keep=person.user
        )
        others = self._asked_in.setdefault(name, set())
        # A sample that somebody was added to is not that of others.
        if others - {person.user} and len(users) == min(members, self._chosen(name).candidates):
            histories = set_aside(histories, self.crowd.cache)
            self._communities[name] = histories, users, members
        others.add(person.user)
        return histories, users, members


def _reservations(found: MemberRecognition, n: int) -> str:
    """Say so where so many posts could not be tried; empty elsewhere."""
    from incrowd.measures.recognition.from_card import CARRIED_ON

    return "" if n <= halves(found.posts)[0] else CARRIED_ON.format(posts=f"{found.posts:,}")


@dataclass(frozen=True, eq=False)
class TellingHistory:
    """What the earlier and the later posts of one person have in common, and which posts and words show it."""

    order: NDArray[np.int64]
    """The numbers of the posts, those first that give most away."""
    habits: tuple[Habit, ...]

    @classmethod
    def of(
        cls, numbers: pl.Series, texts: pl.Series, own: OwnHistory, rarity: Mapping[str, NDArray[Any]]
    ) -> TellingHistory:
        """Hold both halves of a history against each other."""
        from incrowd.measures.recognition.attack import WEIGHTS
        from incrowd.measures.telling import Telling

        ways = Telling.of(own.earlier, own.later, rarity), Telling.of(own.later, own.earlier, rarity)
        weights = np.concatenate([way.posts(WEIGHTS) for way in ways])
        order = numbers.to_numpy()[np.argsort(-weights, kind="stable")]
        return cls(np.asarray(order, np.int64), tuple(ways[0].named(texts.to_list(), WEIGHTS)))

    def words(self, person: Person) -> list[str]:
        """Return the words that could be taken out, the strongest first."""
        known = set(person.words.vocabulary.to_list())
        return [word for one in self.habits if (word := one.word) in known]


def measure(crowd: Crowd, options: RecognitionOptions) -> CommunityRecognition:
    """Try out how soon the members of a community are recognised."""
    from incrowd.measures.recognition.assess import community_recognition

    return community_recognition(crowd, options)


def assess(crowd: Crowd, user: str, options: RecognitionOptions) -> Assessment:
    """Say how soon one member (by name) is recognised by somebody who has read three of their posts."""
    from incrowd.measures.recognition.assess import (
        community_recognition,
        member_recognition,
        recognition_assessment,
    )

    person = crowd.user(user)
    result = community_recognition(crowd, options, keep=person)
    return recognition_assessment(member_recognition(result, person), options, crowd.data_hash)
