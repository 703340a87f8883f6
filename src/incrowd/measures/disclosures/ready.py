"""One person's posts, read as they are, after changes, and with a draft added; nothing of them is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from incrowd.measures.disclosures.assess import Disclosed, disclosed
from incrowd.measures.disclosures.facts import TOLD, Told
from incrowd.measures.disclosures.find import clean, read_text
from incrowd.measures.disclosures.language import load_language
from incrowd.measures.disclosures.normal import agrees, attribute_name
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
from incrowd.profiles.attributes import HIDDEN, AttributeTable, attribute_table
from incrowd.result import Assessment, say_count

ENGLISH_FROM = 0.12
"""In English texts every third word is one of the commonest twenty; below this share a text is in no known language."""
FEWEST_WORDS = 30
PROPOSED = 3


@dataclass(frozen=True, eq=False)
class ReadyDisclosures(Ready):
    """Reads the posts of whoever is asked about."""

    measure: Measure
    crowd: PreparedCrowd
    options: AdvisorOptions
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
        elif not told and not is_readable(person.posts["text"].head(200).to_list()):
            return Findings((), (self._cannot_read(),))
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
            rows = person.posts.select("number", "time", "text").iter_rows()
            self._read[key] = disclosed(rows, self._options)
        return self._read[key]

    def _cannot_read(self) -> NotAssessed:
        return self.measure.not_assessed(
            "your posts are in a language whose words are not here yet (only English is)",
            "add the language: docs/how-to/disclosures-language.md",
        )

    # Where the crowd itself has attributes

    @cached_property
    def _table(self) -> AttributeTable | None:
        crowd = self.crowd.crowd()
        return attribute_table(crowd) if crowd.attributes().head(1).collect().height else None

    def _in_crowd(self, found: Disclosed) -> Iterable[Assessment]:
        """Count who in the crowd fits what was told, where it knows people's attributes."""
        table = self._table
        fitting = None if table is None else rows_that_fit(table, found.told)
        if table is None or fitting is None:
            return ()
        people = int(fitting.sum())
        assessment = found.assessment(self.crowd.data_hash)
        return (
            replace(
                assessment,
                subject="what you have told, in this crowd",
                value=float(max(people, 1)),
                interval=None,
                meaning=f"{people:,} of {len(fitting):,} people here whose attributes are known fit what you told.",
                crowd_size=len(fitting),
                evidence=(),
                explained=None,
                advice=(),
            ),
        )


def rows_that_fit(table: AttributeTable, told: Sequence[Told]) -> np.ndarray | None:
    """Mark the people who may have all that was told; None: the table has none of these attributes.

    Somebody who gave no value may have any.
    """
    fits = np.ones(len(table.codes), dtype=bool)
    compared = False
    for place, name in enumerate(table.space.attributes):
        wanted = [fact for fact in told if fact.attribute == attribute_name(name)]
        if not wanted:
            continue
        compared = True
        values = table.space.values[place]
        agreeing = [
            code
            for code, value in enumerate(values)
            if any(agrees(fact.attribute, fact.value, str(value))[0] for fact in wanted)
        ]
        codes = table.codes[:, place]
        fits &= np.isin(codes, agreeing) | (codes == HIDDEN)
    return fits if compared else None


def told_values(person: Person, values: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return what somebody's posts tell of some attributes, each as one of the values it can have."""
    if not person.communities:
        return {}
    rows = person.posts.select("number", "time", "text").iter_rows()
    facts = [fact for fact in disclosed(rows).told if fact.certainty >= TOLD]
    found = {}
    for name, some in values.items():
        for fact in facts:
            if fact.attribute == attribute_name(name):
                fitting = [value for value in some if agrees(fact.attribute, fact.value, value)[0]]
                exact = [value for value in fitting if agrees(fact.attribute, fact.value, value)[1]]
                if len(exact) == 1 or len(fitting) == 1:
                    found[name] = (exact or fitting)[0]
                    break
    return found


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
