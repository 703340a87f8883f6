"""One person's posts, read as they are, after changes, and with a draft added; nothing of them is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from typing import Any

from incrowd.measures.disclosures.assess import Disclosed, disclosed, put_together, reading_of
from incrowd.measures.disclosures.facts import DatedReading, Told
from incrowd.measures.disclosures.find import NOTHING, Find, Reading, clean, read_text
from incrowd.measures.disclosures.identifiers import Identifier
from incrowd.measures.disclosures.language import load_language
from incrowd.measures.disclosures.population import coarser_wordings
from incrowd.measures.disclosures.spec import DisclosureOptions
from incrowd.measures.protocol import (
    AdvisorOptions,
    Changes,
    DraftNote,
    Finding,
    Findings,
    Goal,
    Measure,
    NotAssessed,
    Person,
    PreparedCrowd,
    Proposal,
    Ready,
)
from incrowd.result import Assessment, say_count

ENGLISH_FROM = 0.12
"""In English texts every third word is one of the commonest twenty; below this share a text is in no known language."""
FEWEST_WORDS = 30
PROPOSED = 3
VERSION = 2
"""Of the patterns and of what is kept: larger, and posts are read again."""


@dataclass(frozen=True)
class StoredReadings:
    """What a person's posts in the store say: places and values, no text."""

    readings: tuple[DatedReading, ...]
    """Of the posts that say anything."""
    posts: int
    unreadable: str
    """Why nothing can be told, if nothing can."""

    @classmethod
    def of(cls, person: Person) -> StoredReadings:
        """Read all posts."""
        rows = list(person.posts.select("number", "time", "text").iter_rows())
        read = [DatedReading(number, time, reading_of(text)) for number, time, text in rows]
        texts = [text for _, _, text in rows]
        why = ""
        if not any(letter.isalpha() for text in texts for letter in text):
            why = "your posts hold no words"
        elif not is_readable(texts[:200]):
            why = "your posts are in a language whose words are not here yet (only English is)"
        return cls(tuple(one for one in read if one.reading is not NOTHING), len(rows), why)

    def to_plain(self) -> dict[str, Any]:
        """Return what the cache can hold."""
        return {
            "posts": self.posts,
            "unreadable": self.unreadable,
            "readings": [
                [
                    one.number,
                    one.time,
                    [list(astuple(find)) for find in one.reading.finds],
                    [list(astuple(named)) for named in one.reading.identifiers],
                    one.reading.others,
                ]
                for one in self.readings
            ],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> StoredReadings:
        """Read what :meth:`to_plain` wrote."""
        readings = tuple(
            DatedReading(
                number,
                time,
                Reading(
                    tuple(Find(*find) for find in finds), tuple(Identifier(*one) for one in named), others
                ),
            )
            for number, time, finds, named, others in plain["readings"]
        )
        return cls(readings, plain["posts"], plain["unreadable"])


@dataclass(frozen=True, eq=False)
class ReadyDisclosures(Ready):
    """Reads the posts of whoever is asked about."""

    measure: Measure
    crowd: PreparedCrowd
    options: AdvisorOptions
    _known: dict[str, StoredReadings] = field(default_factory=dict, repr=False)
    _read: dict[object, Disclosed] = field(default_factory=dict, repr=False)
    _telling: set[str] = field(default_factory=set, repr=False)
    """People who have told something, now or with a draft."""

    def assess(self, person: Person, *, explain: bool = True, community: str | None = None) -> Findings:
        """Estimate how many people fit what the person has told."""
        found = self._disclosed(person)
        told = bool(found.told or found.identifiers)
        if told:
            self._telling.add(person.user)
        elif community is not None and person.user not in self._telling:
            return Findings()  # a draft that tells nothing moves nothing here
        elif why := self._stored(person.before).unreadable:
            return Findings((), (self._cannot_read(why),))
        assessment = found.assessment(self.crowd.data_hash)
        if not explain:
            assessment = replace(assessment, evidence=(), explained=None, advice=())
        return Findings((assessment, *(self._in_crowd(found) if community is None else ())))

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Propose to edit or delete the posts that tell the most telling facts, one fact at a time."""
        found = self._disclosed(person)
        affordable = int(goal.loss * max(found.posts, 1))
        named = frozenset(number for one in found.identifiers for number in one.posts)
        if named and len(named) <= affordable:
            yield Proposal(
                what=f"Delete {say_count(len(named), 'post')} that name you directly, or take the name out",
                loss=say_count(len(named), "post"),
                changes=Changes(delete_posts=named),
            )
        for edit in found.edits[:PROPOSED]:
            if 0 < len(edit.posts) <= affordable:
                yield Proposal(
                    what=f"Edit or delete {say_count(len(edit.posts), 'post')} that tell your {edit.attribute}",
                    loss=say_count(len(edit.posts), "post"),
                    changes=Changes(delete_posts=frozenset(edit.posts) | named),
                )

    def draft_notes(self, person: Person, community: str, text: str) -> tuple[DraftNote, ...]:
        """Say what names the person in a draft, and what the draft tells that they had not told before."""
        before = {(fact.attribute, fact.value) for fact in self._disclosed(person).told}
        alone = disclosed([(0, None, text)], self._options)
        notes = [
            DraftNote(red=True, text=f"This text gives away a direct identifier: {one.kind}. Take it out.")
            for one in alone.identifiers
        ]
        home = {fact.value for fact in alone.told if fact.attribute == "location"}
        new = [
            fact
            for fact in alone.told
            if (fact.attribute, fact.value) not in before
            and not (fact.attribute == "birthplace" and fact.value in home)
        ]
        if new:
            said = ", ".join(f"{fact.attribute} ({fact.value})" for fact in new)
            first = "It tells for the first time" if before else "It tells about you"
            notes.append(DraftNote(red=False, text=f"{first}: {said}."))
        return tuple(notes)

    def rewordings(self, person: Person, community: str, text: str) -> Iterable[tuple[str, str]]:
        """Return coarser wordings of a draft: what is said instead, and the text."""
        language, plain = load_language(self._options.language), clean(text)
        reading = read_text(text, language)
        named = [(one.start, one.end) for one in reading.identifiers]
        named += [(find.start, find.end) for find in reading.finds if find.attribute == "name"]
        if named:
            yield "leave out what names you", _without(plain, named)
        for find in reading.finds:
            fact = Told(attribute=find.attribute, value=find.value, certainty=1.0, said=True, posts=(0,))
            for words, _ in coarser_wordings(fact, language)[:1]:
                changed = _reworded(plain[find.start : find.end], find.value, words)
                if changed is not None:
                    yield (
                        f"say “{words}” in place of “{find.value}”",
                        plain[: find.start] + changed + plain[find.end :],
                    )

    @cached_property
    def _options(self) -> DisclosureOptions:
        return DisclosureOptions(quote=False)

    def _disclosed(self, person: Person) -> Disclosed:
        key = person.user, person.state("posts")
        if key not in self._read:
            readings, posts = self._readings(person)
            self._read[key] = put_together(readings, posts, self._options)
        return self._read[key]

    def _readings(self, person: Person) -> tuple[list[DatedReading], int]:
        """Return what each post says; what was read once of posts in the store is kept in the crowd's cache."""
        changes = person.changes
        if changes.edit_words:
            rows = list(person.posts.select("number", "time", "text").iter_rows())
            return [DatedReading(number, time, reading_of(text)) for number, time, text in rows], len(rows)
        stored = self._stored(person.before)
        kept = [one for one in stored.readings if one.number not in changes.gone_posts]
        added = sorted(changes.add_posts, key=lambda one: (one.community, one.time or 0, one.text))
        kept += [
            DatedReading(stored.posts + place, one.time, reading_of(one.text))
            for place, one in enumerate(added)
        ]
        return kept, stored.posts - len(changes.gone_posts) + len(added)

    def _stored(self, person: Person) -> StoredReadings:
        if person.user not in self._known:
            question = {"what": "disclosures", "user": person.user, "version": VERSION}
            _, plain = self.crowd.arrays("told", question, lambda: ({}, StoredReadings.of(person).to_plain()))
            self._known[person.user] = StoredReadings.from_plain(plain)
        return self._known[person.user]

    def _cannot_read(self, why: str) -> NotAssessed:
        return self.measure.not_assessed(why, "add the language: docs/how-to/disclosures-language.md")

    def _in_crowd(self, found: Disclosed) -> Iterable[Assessment]:
        """Count who in the crowd fits what was told, where it knows people's attributes."""
        if self.crowd.is_made_up:
            return ()
        # Not at the top: a draft asks for none of it, and need not load tables.
        from incrowd.measures.disclosures.in_crowd import count_in_crowd

        counted = count_in_crowd(self.crowd.crowd(), found.told)
        if counted is None:
            return ()
        people, known = counted
        return (
            replace(
                found.assessment(self.crowd.data_hash),
                subject="what you have told, in this crowd",
                value=float(max(people, 1)),
                interval=None,
                meaning=f"{people:,} of {known:,} people here whose attributes are known fit what you told.",
                crowd_size=known,
                evidence=(),
                explained=None,
                advice=(),
            ),
        )


def is_readable(texts: Sequence[str], language: str = "en") -> bool:
    """Say whether texts are in a language the finder knows, by its commonest words; of a few words, yes."""
    common = frozenset(load_language(language).words["grammar"]["common"])
    words = [word for text in texts for word in text.lower().split()[:200]]
    if len(words) < FEWEST_WORDS:
        return True
    return sum(word.strip(".,!?;:'\"()") in common for word in words) / len(words) >= ENGLISH_FROM


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Put an ellipsis in place of some parts of a text."""
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + "…" + text[end:]
    return text


def _reworded(said: str, value: str, words: str) -> str | None:
    """Put coarser words in place of a value inside what was said; None if the value is not written there."""
    short = value.split(",", maxsplit=1)[0]
    place = said.lower().rfind(short.lower())
    if place < 0:
        return None
    rest = said[place + len(short) :]
    tail = value[len(short) :]
    if tail and rest.lower().startswith(tail.lower()):
        rest = rest[len(tail) :]
    return said[:place] + words + rest
