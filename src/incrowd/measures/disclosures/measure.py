"""Told: what you have said about yourself in your posts, and how many people all of it fits.

Posts are read as they are, after changes, and with a draft added; nothing of them is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NoReturn

from incrowd.errors import InputError
from incrowd.measures.disclosures.assess import (
    Disclosed,
    Post,
    disclosed,
    posts_that,
    put_together,
    reading_of,
)
from incrowd.measures.disclosures.facts import DatedReading, Told
from incrowd.measures.disclosures.find import NOTHING, Reading, clean
from incrowd.measures.disclosures.identifiers import Identifier
from incrowd.measures.disclosures.language import Language, load_language
from incrowd.measures.disclosures.population import coarser_wordings
from incrowd.measures.disclosures.spec import ADVERSARIES, DisclosureOptions
from incrowd.measures.disclosures.statements import Find
from incrowd.measures.person import own_posts
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
    Role,
    ThemeName,
    level_of,
)
from incrowd.result import Assessment, say_count, say_percent
from incrowd.text.languages import is_readable, say_unread, unread

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.measures.disclosures.assess import Disclosed


class Disclosures(Measure):
    """All posts of one person are read, and what they say about their writer is put together."""

    name = "disclosures"
    about = "what you have told"
    question = "What have you told about yourself, and how many people does it fit?"
    theme = ThemeName.TOLD
    reads = "posts"
    adversaries = dict(ADVERSARIES)  # noqa: RUF012  # a fact of the class

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Read nobody's posts before they are asked about."""
        # Not at the top: what is never asked need not be loaded.

        return ReadyDisclosures(self, crowd, options)

    def crowd_behind(self, assessment: Assessment) -> float | None:
        """Return None: the estimate is about the population, however small the crowd at hand."""
        return None

    def risk(self, assessment: Assessment) -> float:
        """Return how often naming one of the people who fit would be right: all has to be true that was read."""
        certainty = float(assessment.assumptions.parameters.get("certainty", 1.0))
        return certainty * super().risk(assessment)

    def remark(self, finding: Finding) -> str:
        """Say why so few people are a better level than their number alone."""
        if finding.level is level_of(super().risk(finding.assessment)):
            return ""
        sure = say_percent(float(finding.assessment.assumptions.parameters.get("certainty", 1.0)))
        return (
            f" It counts as “{finding.level}” because all of it is right only {sure} of the time: what was read may "
            "have been meant otherwise."
        )

    def role(self, assessment: Assessment) -> Role:
        """Let whoever knows nothing but the posts decide; who also knows everybody's attributes here knows more."""
        return Role.DECIDES if assessment.crowd_size is None else Role.STRONGER

    def is_exact_after_changes(self, assessment: Assessment) -> bool:
        """Say yes: changed posts are read again like any others."""
        return True

    def told_attributes(self, person: Person, values: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return what the person's posts tell of some attributes, as one of the values a table has for each."""
        from incrowd.measures.disclosures.normal import told_values

        return told_values(person, values)


# For Python: the same two names in every measure.


def assess(crowd: Crowd, user: str, options: DisclosureOptions | None = None) -> Disclosed:
    """Say what a person (by name) has told about themselves in their posts, and how many people it fits."""
    return disclosed(own_posts(crowd, user).select("number", "time", "text").iter_rows(), options)


def measure(crowd: Crowd, options: DisclosureOptions | None = None) -> NoReturn:
    """Refuse: what people have told is put together for themselves alone, one person at a time."""
    raise InputError("disclosures: nobody but the person is told; assess one person, by name")


PROPOSED = 3
MOST_FACTS = 6
"""Reworded one after the other; each step is measured."""
GAP = "…"
VERSION = 9
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
        return cls.of_rows(list(person.posts.select("number", "time", "text").iter_rows()))

    @classmethod
    def of_rows(cls, rows: Sequence[Post]) -> StoredReadings:
        """Read some posts."""
        texts = [text for _, _, text in rows]
        foreign = unread(texts)
        read = [
            DatedReading(number, time, _named_only(reading_of(text)) if left else reading_of(text))
            for (number, time, text), left in zip(rows, foreign, strict=True)
        ]
        why = ""
        if not any(letter.isalpha() for text in texts for letter in text):
            why = "your posts hold no words"
        elif any(foreign):
            why = say_unread(foreign.count(False), len(rows))
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
        added = [post.text for post in person.changes.add_posts]
        why = _unreadable_draft(added) if added else self._stored(person.before).unreadable
        unread = (self._cannot_read(why),) if why else ()
        if found.identifiers or found.told:
            self._telling.add(person.user)
        elif why:
            return Findings((), unread)
        elif community is not None and person.user not in self._telling:
            return Findings()  # a draft that tells nothing moves nothing here
        assessment = found.assessment(self.crowd.data_hash)
        if found.told and why and not added:
            said = f"{assessment.meaning} {why[0].upper()}{why[1:]}."
            assessment = replace(assessment, meaning=said)
        if not explain:
            assessment = replace(assessment, evidence=(), explained=None, advice=())
        return Findings((assessment, *(self._in_crowd(found) if community is None else ())), unread)

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Propose to edit or delete the posts that tell the most telling facts, one fact at a time."""
        found = self._disclosed(person)
        affordable = int(goal.loss * max(found.posts, 1))
        named = frozenset(number for one in found.identifiers for number in one.posts)
        if named and len(named) <= affordable:
            yield Proposal(
                what=f"Delete {posts_that(len(named), 'name')} you directly, or take the name out",
                loss=say_count(len(named), "post"),
                changes=Changes(delete_posts=named),
            )
        for edit in found.edits[:PROPOSED]:
            both = frozenset(edit.posts) | named  # as long as a post names them, nothing else matters
            if edit.posts and len(both) <= affordable:
                also = f", and {posts_that(len(named), 'name')} you directly" if named else ""
                yield Proposal(
                    what=f"Edit or delete {posts_that(len(edit.posts), 'tell')} your {edit.attribute}{also}",
                    loss=say_count(len(both), "post"),
                    changes=Changes(delete_posts=both),
                )

    def draft_notes(self, person: Person, community: str, text: str) -> tuple[DraftNote, ...]:
        """Say what names the person in a draft, and what the draft tells that they had not told before."""
        before = {(fact.attribute, fact.value) for fact in self._disclosed(person).told}
        alone = disclosed([(0, None, text)], self._options)
        notes = [
            DraftNote(red=True, text=f"This text gives away a direct identifier: {one.kind}. Take it out.")
            for one in alone.identifiers
        ]
        if why := _unreadable_draft([text]):
            notes.append(DraftNote(red=False, text=f"Cannot tell what it tells about you: {why}."))
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
        """Return the draft without what names the person, and with coarser facts, the dearest first."""
        language = load_language(self._options.language)
        reading = reading_of(text, self._options.language)
        readings, posts = self._readings(person)
        told = put_together([*readings, DatedReading(posts, None, reading)], posts + 1, self._options)
        return reworded(clean(text), reading, told, language)

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
        changes, stored = person.changes, self._stored(person.before)
        if changes.edit_words:
            return self._reworded(person, stored), person.posts.height
        kept = [one for one in stored.readings if one.number not in changes.gone_posts]
        added = sorted(changes.add_posts, key=lambda one: (one.community, one.time or 0, one.text))
        kept += [
            DatedReading(stored.posts + place, one.time, reading_of(one.text))
            for place, one in enumerate(added)
        ]
        return kept, stored.posts - len(changes.gone_posts) + len(added)

    def _reworded(self, person: Person, stored: StoredReadings) -> list[DatedReading]:
        """Read the posts that were reworded; that, too, is kept: getting ready to read takes longer than all else."""
        as_it_was = dict(person.before.posts.select("number", "text").iter_rows())
        rows = list(person.posts.select("number", "time", "text").iter_rows())
        new = [row for row in rows if as_it_was.get(row[0]) != row[2]]
        said = blake2b(repr(new).encode(), digest_size=16).hexdigest()
        question = {"what": "reworded", "user": person.user, "said": said, "version": VERSION}
        _, plain = self.crowd.arrays("told", question, lambda: ({}, StoredReadings.of_rows(new).to_plain()))
        unchanged = {number for number, _, _ in rows} - {number for number, _, _ in new}
        kept = [one for one in stored.readings if one.number in unchanged]
        return sorted([*kept, *StoredReadings.from_plain(plain).readings], key=lambda one: one.number)

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
        from incrowd.measures.disclosures.normal import count_in_crowd

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


def _named_only(reading: Reading) -> Reading:
    """Keep what names a person in any language: other patterns find in a foreign text what it does not say."""
    return Reading((), reading.identifiers, 0) if reading.identifiers else NOTHING


def _unreadable_draft(texts: Sequence[str]) -> str:
    """Say why nothing can be told about texts to be posted; empty: it can."""
    return (
        ""
        if is_readable(texts)
        else "this text is in a language whose words are not here yet (only English is read)"
    )


# Other ways to write a text: without what names its writer, with coarser facts, the dearest fact first


@dataclass(frozen=True)
class TextEdit:
    """Other words in one place of a text."""

    start: int
    end: int
    words: str
    says: str
    """What is done: "say “Minnesota” in place of “Duluth”"."""


def reworded(text: str, reading: Reading, told: Disclosed, language: Language) -> Iterator[tuple[str, str]]:
    """Yield other ways to write a text: what is different, and the text.

    Parameters
    ----------
    text, reading
        The text, cleaned, and what was read in it.
    told
        What its writer will have told with it: the fact that costs most of their crowd is reworded first.
    """
    named = [(one.start, one.end) for one in reading.identifiers]
    named += [(find.start, find.end) for find in reading.finds if find.attribute == "name"]
    nameless = [TextEdit(start, end, GAP, "leave out what names you") for start, end in named]
    if nameless:
        yield _said(nameless), _written(text, nameless)
    facts = _edits_of_facts(text, reading, told, language)
    if not nameless:  # with a name in it, no wording of a fact helps by itself
        for edit in facts:
            yield _said([edit]), _written(text, [edit])
    for many in range(1 if nameless else 2, len(facts) + 1):
        yield _said([*nameless, *facts[:many]]), _written(text, [*nameless, *facts[:many]])


def _edits_of_facts(text: str, reading: Reading, told: Disclosed, language: Language) -> list[TextEdit]:
    """Return one edit for each fact, the one that costs most of the crowd first; no two of them in the same place."""
    dearest = [attribute for attribute in told.costs if attribute != "name"]
    finds = [find for find in reading.finds if find.attribute in dearest]
    found: list[TextEdit] = []
    for find in sorted(finds, key=lambda find: dearest.index(find.attribute)):
        edit = _edit(text, find, language)
        if not any(edit.start < other.end and other.start < edit.end for other in found):
            found.append(edit)
    return found[:MOST_FACTS]


def _edit(text: str, find: Find, language: Language) -> TextEdit:
    """Return the next coarser wording of a fact, or the text without it."""
    fact = Told(attribute=find.attribute, value=find.value, certainty=1.0, said=True, posts=(0,))
    place = _value_in(text, find)
    if place is None:
        start = find.start + len(text[find.start : find.end]) - len(text[find.start : find.end].lstrip())
        return TextEdit(start, find.end, GAP, f"leave out “{text[start : find.end].strip()}”")
    start, end = place
    for words, _ in coarser_wordings(fact, language)[:1]:
        return TextEdit(start, end, words, f"say “{words}” in place of “{text[start:end]}”")
    return TextEdit(start, end, GAP, f"leave out “{text[start:end]}”")


def _value_in(text: str, find: Find) -> tuple[int, int] | None:
    """Return where a value itself is written, in full or without what follows its comma; None: in other words."""
    for written in (find.value, find.value.split(",", maxsplit=1)[0]):
        pattern = rf"(?<!\w){re.escape(written)}(?!\w)"
        if places := list(re.finditer(pattern, text[find.start : find.end], re.IGNORECASE)):
            return find.start + places[-1].start(), find.start + places[-1].end()
    return None


def _written(text: str, edits: Sequence[TextEdit]) -> str:
    """Put the other words in; of edits in the same place the first is made."""
    made: list[TextEdit] = []
    for edit in edits:
        if not any(edit.start < other.end and other.start < edit.end for other in made):
            made.append(edit)
    for edit in sorted(made, key=lambda edit: -edit.start):
        text = text[: edit.start] + edit.words + text[edit.end :]
    return text


def _said(edits: Sequence[TextEdit]) -> str:
    says = list(dict.fromkeys(edit.says for edit in edits))
    return says[0] if len(says) == 1 else f"{', '.join(says[:-1])} and {says[-1]}"
