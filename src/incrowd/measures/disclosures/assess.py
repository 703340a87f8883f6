"""A person's own posts in; what they have told, how many people it fits, and what to edit, out.

It answers about one person at a time. Nothing but numbers and dates of posts leaves it, unless the person asks to see
their own words (`quote`).
"""

from __future__ import annotations

import math
from calendar import month_name
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from incrowd.measures.disclosures.facts import DatedReading, Named, Told, gather
from incrowd.measures.disclosures.find import Reading, clean, read_text
from incrowd.measures.disclosures.language import Language, load_language
from incrowd.measures.disclosures.population import Together, coarser_wordings, together, two_digits
from incrowd.measures.disclosures.spec import ADVERSARIES, PROFILER, DisclosureOptions
from incrowd.result import (
    Advice,
    Assessment,
    Assumptions,
    Direction,
    Evidence,
    Result,
    Standing,
    Threat,
    say_count,
)
from incrowd.text.languages import is_readable

ADVISED = 5
INITIALS = frozenset(("hiv", "ptsd", "adhd", "ocd", "pcos", "ibs", "als", "copd"))
"""Conditions whose names are written in capitals."""
MANY_POSTS = 6
UNREADABLE = "your posts are in a language whose words are not here yet (only English is read)"
Post = tuple[int, int | None, str]
"""A post's number, its time in UTC seconds or None, and its text."""


@dataclass(frozen=True)
class Wording:
    """A coarser way to say one fact, and how many people it would leave."""

    attribute: str
    said: str
    instead: str
    people: Together

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            "attribute": self.attribute,
            "value": self.said,
            "instead": self.instead,
            "people": self.people.to_dict()["people"],
        }


@dataclass(frozen=True)
class Edit:
    """Posts to edit so that one fact is gone, and how many people it then fits."""

    attribute: str
    value: str
    posts: tuple[int, ...]
    after: Together

    def sentence(self) -> str:
        """Say it in words."""
        which = ", ".join(str(number) for number in self.posts[:MANY_POSTS])
        more = f" and {len(self.posts) - MANY_POSTS} more" if len(self.posts) > MANY_POSTS else ""
        this = "this post" if len(self.posts) == 1 else f"these {len(self.posts)} posts"
        return (
            f"Edit {this} ({which}{more}) and your {self.attribute} is gone: it then fits {self.after.words}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            "attribute": self.attribute,
            "value": self.value,
            "posts": list(self.posts),
            "people": self.after.to_dict()["people"],
            "sentence": self.sentence(),
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class Disclosed(Result):
    """What one person has told."""

    facts: tuple[Told, ...]
    """All that was found, told or not certain enough."""
    identifiers: tuple[Named, ...]
    others: int
    """Statements about other people; they are counted and not listed."""
    posts: int
    readable: bool = True
    """False: the posts are in a language the finder does not know."""
    options: DisclosureOptions = field(default_factory=DisclosureOptions)
    readings: tuple[DatedReading, ...] = field(default=(), repr=False)
    quotes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The person's own words by fact ("age: 31"), only where they asked for them."""

    def __repr__(self) -> str:
        said = say_count(len(self.told), "fact"), say_count(len(self.identifiers), "identifier")
        return f"<Disclosed: {said[0]}, {said[1]} in {say_count(self.posts, 'post')}>"

    @property
    def _language(self) -> Language:
        return load_language(self.options.language)

    @property
    def told(self) -> tuple[Told, ...]:
        """The facts that are certain enough."""
        return tuple(fact for fact in self.facts if fact.certainty >= self.options.told)

    @cached_property
    def together(self) -> Together:
        """How many people fit all that was told."""
        return together(self.told, self._language)

    @property
    def certainty(self) -> float:
        """How likely everything that narrows the crowd down was read rightly; 1 if a post names the person."""
        if self.identifiers:
            return 1.0
        narrows = {part.attribute for part in self.together.parts}
        return math.prod(fact.certainty for fact in self.told if fact.attribute in narrows)

    @cached_property
    def costs(self) -> dict[str, Together]:
        """By attribute, how many people it would fit without; what costs most comes first."""
        found = {fact.attribute: self.together.without(fact.attribute) for fact in self.told}
        return dict(sorted(found.items(), key=lambda part: -part[1].product))

    @cached_property
    def wordings(self) -> tuple[Wording, ...]:
        """Coarser ways to say what was told, each with the people it leaves."""
        found = []
        for fact in self.told:
            for words, value in coarser_wordings(fact, self._language):
                changed = [_replaced(one, fact, value) for one in self.told]
                found.append(Wording(fact.attribute, fact.value, words, together(changed, self._language)))
        return tuple(found)

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """What to edit, the most telling fact first; measured by reading the posts again without those."""
        found = []
        for attribute in list(self.costs)[:ADVISED]:
            fact = next(one for one in self.told if one.attribute == attribute)
            posts, left = self._without(attribute)
            found.append(Edit(attribute, fact.value, tuple(sorted(posts)), together(left, self._language)))
        return tuple(found)

    def _without(self, attribute: str) -> tuple[set[int], tuple[Told, ...]]:
        """Return the posts without which an attribute is told no more, and what the others tell.

        Without today's town, an earlier one may come to the fore: its posts go as well.
        """
        posts: set[int] = set()
        left = self.facts
        while more := {number for one in left if one.attribute == attribute for number in one.posts}:
            posts |= more
            left = gather([one for one in self.readings if one.number not in posts])[0]
        return posts, tuple(one for one in left if one.certainty >= self.options.told)

    @property
    def contradictions(self) -> tuple[Told, ...]:
        """Facts that other posts deny."""
        return tuple(fact for fact in self.facts if fact.against)

    @property
    def timeline(self) -> dict[int, list[str]]:
        """By year, what was told in it for the first time."""
        found: dict[int, list[str]] = defaultdict(list)
        for fact in self.told:
            if fact.years:
                found[fact.years[0]].append(f"{fact.attribute}: {fact.value}")
        return dict(sorted(found.items()))

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        if not self.identifiers and not self.readable:
            return f"Cannot tell: {UNREADABLE}."
        if not self.told and not self.identifiers:
            return f"In {say_count(self.posts, 'post')} nothing was found that tells who you are."
        named = (
            f"Your posts name you directly ({', '.join(one.kind for one in self.identifiers)}). "
            if self.identifiers
            else ""
        )
        if not self.told:
            return named.strip()
        values = list(dict.fromkeys(_said(fact) for fact in self.told))
        said = ", ".join(values[:8]) + (", …" if len(values) > 8 else "")
        return f"{named}Together, what you have told fits {self.together.words}: {said}."

    def to_dict(self) -> dict[str, Any]:
        """Return what other programs rely on; text of posts only where it was asked for."""
        facts = [
            one.to_dict() | ({"quotes": list(self.quotes[key])} if (key := _key(one)) in self.quotes else {})
            for one in self.facts
        ]
        return {
            "posts": self.posts,
            "identifiers": [
                one.to_dict() | ({"quotes": list(self.quotes[one.kind])} if one.kind in self.quotes else {})
                for one in self.identifiers
            ],
            "facts": facts,
            "told": len(self.told),
            "together": self.together.to_dict(),
            "costs": {name: part.to_dict()["people"] for name, part in self.costs.items()},
            "wordings": [one.to_dict() for one in self.wordings],
            "advice": [one.to_dict() for one in self.edits],
            "contradictions": [one.attribute for one in self.contradictions],
            "timeline": {str(year): facts for year, facts in self.timeline.items()},
            "about_others": self.others,
            "language": self.options.language,
            "sentence": self.sentence(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per fact."""
        return [
            {
                "attribute": one.attribute,
                "value": one.value,
                "certainty": one.certainty,
                "said": one.said,
                "posts": ", ".join(map(str, one.posts)),
            }
            for one in self.facts
        ]

    def bars(self) -> list[tuple[str, float]]:
        """Return how many people everything else would fit, by what is left out, in powers of ten."""
        return [(name, math.log10(max(part.product, 1.0))) for name, part in self.costs.items()]

    def _when(self, attribute: str) -> str:
        """Say in how many posts something was told, and since when."""
        some = [fact for fact in self.told if fact.attribute == attribute]
        posts = {number for fact in some for number in fact.posts}
        years = sorted({year for fact in some for year in fact.years})
        return f"told in {say_count(len(posts), 'post')}" + (f" since {years[0]}" if years else "")

    def assessment(self, data_hash: str | None = None) -> Assessment:
        """Return how many people fit as an assessment among others."""
        fits, named = self.together, bool(self.identifiers)
        costs = self.costs
        total = sum(part.product for part in costs.values()) or 1.0
        return Assessment(
            measure="disclosures",
            subject="what you have told",
            value=1.0 if named else two_digits(fits.people),
            unit="people",
            direction=Direction.HIGHER_IS_SAFER,
            meaning=self.sentence(),
            standing=Standing.HEURISTIC,
            assumptions=Assumptions(
                adversary=ADVERSARIES[PROFILER],
                parameters=self.options.parameters() | {"certainty": self.certainty},
                data_hash=data_hash,
            ),
            interval=(1.0, 1.0) if named else (two_digits(fits.low), two_digits(fits.high)),
            threats=(Threat.SINGLING_OUT,),
            evidence=tuple(
                Evidence(
                    what=f"your {name}",
                    contribution=part.product / total,
                    detail=f"{self._when(name)}; without it: {part.words}",
                )
                for name, part in costs.items()
            ),
            explained=1.0 if costs else None,
            advice=() if named else tuple(
                Advice(
                    what=f"edit {posts_that(len(one.posts), 'tell')} your {one.attribute}",
                    before=two_digits(fits.people),
                    after=two_digits(one.after.people),
                    loss=say_count(len(one.posts), "post"),
                )
                for one in self.edits[:3]
            ),
        )  # fmt: skip


def disclosed(posts: Iterable[Post], options: DisclosureOptions | None = None) -> Disclosed:
    """Read a person's posts and put together what they tell.

    >>> found = disclosed([(0, None, "I'm 31 and I live in Duluth."), (1, None, "My brother is 25.")])
    >>> [(fact.attribute, fact.value) for fact in found.told], found.others
    ([('age', '31'), ('location', 'Duluth, Minnesota')], 1)
    """
    options = options or DisclosureOptions()
    posts = list(posts)
    readings = [
        DatedReading(number, time, reading_of(text, options.language)) for number, time, text in posts
    ]
    readable = is_readable([text for _, _, text in posts], options.language)
    found = replace(put_together(readings, len(posts), options), readable=readable)
    return replace(found, quotes=_quotes(posts, found.facts, found.identifiers)) if options.quote else found


def put_together(readings: Iterable[DatedReading], posts: int, options: DisclosureOptions) -> Disclosed:
    """Put together what was read already; `posts` counts those that said nothing, too."""
    readings = tuple(readings)
    facts, named, others = gather(readings)
    return Disclosed(
        facts=facts, identifiers=named, others=others, posts=posts, options=options, readings=readings
    )


def _said(fact: Told) -> str:
    """Name what was told so that it can be read without its attribute: "yes" to children says nothing alone."""
    if fact.attribute == "birth date":
        month, day = map(int, fact.value.split("-"))
        return f"born on {day} {month_name[month]}"
    if fact.attribute == "birth year":
        return f"born in {fact.value}"
    if fact.attribute == "health" and fact.value in INITIALS:
        return fact.value.upper()
    if fact.attribute == "children":
        return {"yes": "children", "0": "no children", "1": "1 child"}.get(
            fact.value, f"{fact.value} children"
        )
    return fact.value


def posts_that(count: int, do: str) -> str:
    """Say how many posts do something.

    >>> posts_that(1, "tell"), posts_that(2, "tell")
    ('1 post that tells', '2 posts that tell')
    """
    return f"{say_count(count, 'post')} that {do}{'s' if count == 1 else ''}"


@lru_cache(maxsize=100_000)
def reading_of(text: str, language: str = "en") -> Reading:
    """Read one text; the same text is read once in a session."""
    return read_text(text, load_language(language))


def _quotes(
    posts: Sequence[Post], facts: Sequence[Told], named: Sequence[Named]
) -> dict[str, tuple[str, ...]]:
    texts = {number: clean(text) for number, _, text in posts}
    spans = {_key(fact): fact.spans for fact in facts} | {one.kind: one.spans for one in named}
    return {
        key: tuple(_around(texts[number], start, end) for number, start, end in some)
        for key, some in spans.items()
    }


def _around(text: str, start: int, end: int) -> str:
    first, last = max(0, start - 30), min(len(text), end + 20)
    if first and not text[first - 1].isspace():  # no half words
        first = text.find(" ", first, start) + 1 or start
    if last < len(text) and not text[last].isspace():
        last = max(text.rfind(" ", end, last), end)
    return " ".join(text[first:last].split())


def _key(fact: Told) -> str:
    return f"{fact.attribute}: {fact.value}"


def _replaced(one: Told, fact: Told, value: str) -> Told:
    if one is not fact:
        return one
    return Told(
        attribute=fact.attribute, value=value, certainty=fact.certainty, said=fact.said, posts=fact.posts
    )
