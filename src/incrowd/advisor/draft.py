"""Before posting: what would this text in this community change, and what should be left out?"""

from __future__ import annotations

import math
import re
import time as clock
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.advisor.advice import LEAST_GAIN
from incrowd.advisor.assessor import among, unless_only_a_card
from incrowd.advisor.draft_answer import DraftCheck, DraftWord, Suggestion
from incrowd.errors import InputError
from incrowd.measures.person import without_words
from incrowd.measures.protocol import (
    SEEN,
    SMALLEST_CROWD,
    AdvisorOptions,
    Assessment,
    Changes,
    DraftNote,
    Effect,
    Finding,
    Findings,
    Measure,
    NewPost,
    Person,
    PreparedCrowd,
    Ready,
    given_or,
    moved_by_posts,
)
from incrowd.result import say_count
from incrowd.text.languages import UNREADABLE_DRAFT
from incrowd.text.languages import unread as unreadable
from incrowd.text.mentions import SOMEBODY, mentioned_words, shown_words
from incrowd.text.reference import tokenise

if TYPE_CHECKING:
    from incrowd.cards.card import Card
    from incrowd.crowd import Crowd
    from incrowd.crowd.sources import Paths

LONGEST_TEXT = 128 * 2**10
"""Bytes; an import sets longer posts aside."""
SINGLE_WORDS = 3
"""Words tried out one by one; each trial is a comparison with the whole crowd."""
WORDS_TOGETHER = 8
MOST_SUGGESTIONS = 5
NOT_ASKED = (
    "whether you would be recognised or linked, which takes seconds to measure (incrowd draft --thorough)"
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*\s*")


def draft(
    crowd: Crowd | PreparedCrowd | Paths,
    user: str | None,
    community: str,
    text: str,
    *,
    card: Card | str | Path | None = None,
    options: AdvisorOptions | None = None,
    space: Any = None,
    time: int | None = None,
    thorough: bool = False,
) -> DraftCheck:
    """Say what posting a text would change for a person (by name), in numbers that the measures would give.

    Parameters
    ----------
    crowd, user, community
        Who would post where; they need not have posted there before. The files of their own export will do, as in
        :func:`incrowd.assess`.
    text
        The draft. It is read and forgotten: nothing of it is stored.
    space
        How an adversary recognises topics; None: by the words that come with incrowd.
    time
        When it would be posted, in UTC seconds; None: now.
    thorough
        True: also ask those who take seconds, whether they would recognise or link the person.
    """
    chosen = given_or(options, AdvisorOptions)
    chosen = chosen if space is None else replace(chosen, space=space)
    prepared, name, chosen = among(crowd, user, card, chosen)
    return check(prepared, name, community, text, options=chosen, time=time, thorough=thorough)


def draft_in(
    folder: Path, user: str, community: str, text: str, *, options: AdvisorOptions, thorough: bool = False
) -> DraftCheck:
    """Do the same for a crowd's folder, without opening the crowd if everything is prepared."""
    prepared = PreparedCrowd.in_folder(folder, options.text, options.memory)
    return check(prepared, user, community, text, options=options, thorough=thorough)


def check(
    crowd: PreparedCrowd,
    user: str,
    community: str,
    text: str,
    *,
    options: AdvisorOptions,
    time: int | None = None,
    thorough: bool = False,
) -> DraftCheck:
    """Measure now, after the post, and after each shorter version of it; versions by what is quickly measured."""
    text = _usable(text)
    person = Person(crowd.user_id(user), crowd)
    # Beside posts without a time the draft has none, either: alone in its week it would hide what they say.
    undated = crowd.is_made_up and person.posts["time"].is_null().all()
    when = (None if undated else int(clock.time())) if time is None else time
    crowd.require(community)
    drafted = _Draft(person, community, text, when, _ready(crowd, options))
    after = drafted.findings(text)  # first: it gathers who uses the draft's words, for all that follows
    before = drafted.findings(None)
    return DraftCheck(
        community=community,
        changes=drafted.effects(before, after) + (drafted.slow_effects() if thorough else ()),
        words=drafted.words,
        notes=drafted.notes,
        unread=UNREADABLE_DRAFT if any(unreadable([text])) else "",
        suggestions=_suggestions(drafted, before, after),
        not_compared=drafted.not_compared + (() if thorough else (NOT_ASKED,)),
        assumptions=options.parameters()
        | {"time": when, "data_hash": crowd.data_hash}
        | {name: value for _, ready in drafted.ready for name, value in ready.assumptions().items()},
    )


def _ready(crowd: PreparedCrowd, options: AdvisorOptions) -> list[tuple[Measure, Ready]]:
    """Make every measure ready that a post can move."""
    return [(one, one.prepare(crowd, options)) for one in moved_by_posts() if one.asked(options)]


def _usable(text: str) -> str:
    """Return the text as an import would store it, or say why it would not."""
    if not isinstance(text, str):
        raise InputError(f"the draft: expected its text, got {type(text).__name__}")
    text = (
        text.encode("utf-8", "surrogateescape")
        .decode("utf-8", "replace")
        .replace("\0", "\N{REPLACEMENT CHARACTER}")
    )
    if not text.strip():
        raise InputError(
            "the draft is empty; give the text as an argument, with --file, or on standard input"
        )
    if len(text.encode()) > LONGEST_TEXT:
        raise InputError(
            f"the draft has more than {LONGEST_TEXT:,} bytes, longer than any post; check a shorter one"
        )
    return text


@dataclass(frozen=True, eq=False)
class _Draft:
    """One draft, and everything it is measured with."""

    person: Person
    community: str
    text: str
    time: int | None
    ready: list[tuple[Measure, Ready]]

    def findings(self, text: str | None) -> list[tuple[Measure, Finding]]:
        """Measure the person after posting a text in the community; None: as they are."""
        person = self._after(text)
        return [
            (one, one.finding(_in_a_crowd(one, about)))
            for one, found in self._asked(person)
            for about in found.assessments
        ]

    def slow_effects(self) -> tuple[Effect, ...]:
        """Ask those who take seconds, before and after the whole draft."""
        then = self._after(self.text)
        asked = [
            (one, unless_only_a_card(one, partial(ready.assess_thorough, self.person, explain=False)), ready)
            for one, ready in self.ready
        ]
        return tuple(
            one.effect(one.finding(about), None if after is None else one.finding(after))
            for one, found, ready in asked
            for about in found.assessments
            for after in [ready.assess_again(then, one.finding(about))]
        )

    def _after(self, text: str | None) -> Person:
        if text is None:
            return self.person
        post = NewPost(community=self.community, time=self.time, text=text)
        return self.person.after(Changes(add_posts=frozenset({post})))

    def effects(
        self, before: list[tuple[Measure, Finding]], after: list[tuple[Measure, Finding]]
    ) -> tuple[Effect, ...]:
        """Put the same numbers of two states side by side."""
        old = {finding.key: finding for _, finding in before}
        return tuple(
            replace(one.effect(old.get(finding.key), finding), subject=one.subject_of(finding.assessment))
            for one, finding in after
        )

    @cached_property
    def not_compared(self) -> tuple[str, ...]:
        """What could not be looked at, and why."""
        asked = self._asked(self._after(self.text))
        return tuple(about.why for _, part in asked for about in part.not_assessed)

    def _asked(self, person: Person) -> list[tuple[Measure, Findings]]:
        return [
            (
                one,
                unless_only_a_card(
                    one, partial(ready.assess, person, explain=False, community=self.community)
                ),
            )
            for one, ready in self.ready
        ]

    @cached_property
    def notes(self) -> tuple[DraftNote, ...]:
        """What has to be said first, the worst on top."""
        return self.notes_about(self.text)

    def notes_about(self, text: str) -> tuple[DraftNote, ...]:
        """Return what has to be said first about the draft, or about another version of it."""
        found = [
            note for _, ready in self.ready for note in ready.draft_notes(self.person, self.community, text)
        ]
        return tuple(sorted(found, key=lambda note: not note.red))

    @cached_property
    def words(self) -> tuple[DraftWord, ...]:
        """The draft's words with what each gives away, the strongest first."""
        shares = [ready.word_shares(self.person, self.community, self.text) for _, ready in self.ready]
        said = sorted(set(tokenise(self.text, self.person.text)) - self.mentioned)
        words = [
            DraftWord(word=word, shares=tuple(part[word] for part in shares if word in part)) for word in said
        ]
        return tuple(sorted(words, key=lambda one: (-one.weight, one.word)))

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """The draft's words that only name somebody else: they are measured, and never shown."""
        return mentioned_words([self.text], self.person.text)

    def reworded(self) -> Iterator[tuple[str, str]]:
        """Yield other ways to say what the draft says: what is different, and the text."""
        for _, ready in self.ready:
            yield from ready.rewordings(self.person, self.community, self.text)

    def shorter(self) -> Iterator[tuple[str, str]]:
        """Yield shorter versions of the draft to try out: what is left out, and the rest."""
        telling = [one for one in self.words if one.weight > 0]
        groups = [[one.word] for one in telling[:SINGLE_WORDS]]
        groups.append([one.word for one in telling[:WORDS_TOGETHER]])
        groups.append([one.word for one in self.words if one.points_to])
        for group in groups:
            if group:
                named = ", ".join(f"“{word}”" for word in group)
                yield f"leave out {named}", without_words(self.text, frozenset(group), self.person.text)
        if self.mentioned:
            yield f"leave out {SOMEBODY}", without_words(self.text, self.mentioned, self.person.text)
        sentences = _SENTENCE.findall(self.text)
        if len(sentences) > 1:
            weight = {one.word: one.weight for one in self.words}
            told = [
                sum(weight.get(word, 0.0) for word in set(tokenise(one, self.person.text)))
                for one in sentences
            ]
            worst = told.index(max(told))
            yield f"leave out sentence {worst + 1}", "".join(sentences[:worst] + sentences[worst + 1 :])


def _in_a_crowd(one: Measure, about: Assessment) -> Assessment:
    """Say nothing where hardly anybody is: whom would one hide among?"""
    people = one.crowd_behind(about)
    if people is None or math.isnan(people) or people >= SMALLEST_CROWD or about.reason:
        return about
    there = say_count(round(people), "person is", "people are")
    reason = f"small_crowd: {there} there, you included; fewer than {SMALLEST_CROWD} are no crowd"
    return replace(about, value=math.nan, crowd_rank=None, reason=reason)


def _suggestions(
    drafted: _Draft, before: list[tuple[Measure, Finding]], after: list[tuple[Measure, Finding]]
) -> tuple[Suggestion, ...]:
    """Measure other versions of the draft and return those that help.

    What the draft says comes first, said otherwise: by the levels that reaches, then as its measure orders it, or by
    the gain where no level changes. Single words come after that: by what they give away if the draft says nothing
    that could be said otherwise, else only if without them a level is better than with every other wording.
    """
    posted = drafted.effects(before, after)
    whole, people = _severity(posted), _people(posted)
    offered = _tried(drafted, before, after, drafted.reworded())
    wordings = _no_more_than_needed(
        sorted(
            _useful(offered, people),
            key=lambda one: (one.named, one.severity, 0 if one.severity < whole else -one.suggestion.gain),
        )
    )
    left_out = _worth_it(_useful(_tried(drafted, before, after, drafted.shorter()), people), people)
    if offered:
        reached = min([whole, *(one.severity for one in wordings)])
        left_out = [one for one in left_out if one.severity < reached]
    left_out.sort(key=lambda one: (-one.suggestion.gain, len(one.suggestion.left_out)))
    room = MOST_SUGGESTIONS - min(1, len(left_out))
    return tuple(one.suggestion for one in [*wordings[:room], *left_out][:MOST_SUGGESTIONS])


@dataclass(frozen=True)
class _Tried:
    """Another version of the draft, measured."""

    suggestion: Suggestion
    named: int
    """How many red notes stay."""
    severity: int
    """Of all levels that decide, together."""
    people: float
    """To hide among, at the least."""


def _tried(
    drafted: _Draft,
    before: list[tuple[Measure, Finding]],
    after: list[tuple[Measure, Finding]],
    versions: Iterable[tuple[str, str]],
) -> list[_Tried]:
    """Measure each version, one after the other: each is done before a second thread would have got going."""
    texts: dict[str, str] = {}
    for what, rest in versions:
        if rest != drafted.text and rest.strip():
            texts.setdefault(rest, what)
    tried, options = [], drafted.person.text
    for rest, what in texts.items():
        measured = drafted.findings(rest)
        changes = drafted.effects(before, measured)
        named = sum(note.red for note in drafted.notes_about(rest))
        spared = sum(
            one.exposure[1] - one.exposure[0] for one in drafted.effects(measured, after) if one.decides
        )
        gone = set(tokenise(drafted.text, options)) - set(tokenise(rest, options))
        suggestion = Suggestion(
            what=what,
            left_out=tuple(shown_words(sorted(gone), drafted.mentioned)),
            text=rest,
            changes=changes,
            gain=spared + sum(note.red for note in drafted.notes) - named,
        )
        tried.append(_Tried(suggestion, named, _severity(changes), _people(changes)))
    return tried


def _useful(tried: Iterable[_Tried], people: float) -> list[_Tried]:
    """Keep versions by which somebody is right less often, or which leave twice as many people as the whole post."""
    return [one for one in tried if one.suggestion.gain > SEEN or one.people >= 2 * people]


def _worth_it(useful: Sequence[_Tried], people: float) -> list[_Tried]:
    """Leave out versions that gain next to nothing beside the best, or leave out more than another and gain no more."""
    most = max((one.suggestion.gain for one in useful), default=0.0)
    kept = [one for one in useful if one.suggestion.gain >= LEAST_GAIN * most or one.people >= 2 * people]
    return [
        one
        for one in kept
        if not any(
            set(other.suggestion.left_out) < set(one.suggestion.left_out)
            and other.suggestion.gain >= one.suggestion.gain - SEEN
            and not one.people >= 2 * other.people
            for other in kept
        )
    ]


def _people(changes: Iterable[Effect]) -> float:
    counted = (one.after for one in changes if one.decides and one.unit == "people")
    return min((count for count in counted if not math.isnan(count)), default=math.nan)


def _severity(changes: Iterable[Effect]) -> int:
    return sum(one.level_after.severity for one in changes if one.decides)


def _no_more_than_needed(ordered: Sequence[_Tried]) -> list[_Tried]:
    """Leave out versions that give up more than an earlier one, reach no better level and leave no larger crowd."""
    kept: list[_Tried] = []
    for one in ordered:
        gone = set(one.suggestion.left_out)
        if not any(
            gone > set(other.suggestion.left_out)
            and (one.named, one.severity) >= (other.named, other.severity)
            and not one.people >= 2 * other.people
            for other in kept
        ):
            kept.append(one)
    return kept
