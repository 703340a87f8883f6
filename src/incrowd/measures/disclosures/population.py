"""How many people fit all that somebody told? An estimate from population tables, with an interval.

The people of the place somebody names (or of the world) times the share of people with each further fact, as if facts
were independent of each other. They are not, and tables are of one country and one year, so every share comes with a
factor by which it may be off; the interval puts the factors together as independent errors of a logarithm. It is a
heuristic: it says "about 40" where 4,000 or 4 would be another warning, not 40 where there are 41.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from incrowd.measures.disclosures.facts import Told
from incrowd.measures.disclosures.language import Language, load_language
from incrowd.measures.disclosures.places import Gazetteer, Place, table_rows
from incrowd.wording import say_many

WORLD_POPULATION_OF_SOURCE = 333_000
"""Thousands of people in the USA in 2022 (US Census Bureau), whose occupations were counted."""
GROWN_UP = 0.75
GROUPS = (*((first, first + 10) for first in range(0, 80, 10)), (80, 100))
"""The age groups of the table: each from one year to before another."""
DEPENDENT = 1.25
"""Facts go together (age and marriage, town and job): each one after the first may be off by this factor besides."""
A_PART = 3.0
"""A job that is counted with others is taken for this part of them, and may be all or a ninth."""
BANDS = ("early", "mid", "late")
# attribute: share of grown-ups with a value the tables do not know, and the factor by which that may be off
DEFAULTS = {
    "employer": (0.002, 6.0), "school": (0.002, 6.0), "field of study": (0.03, 3.0), "health": (0.01, 4.0),
    "religion": (0.02, 4.0), "politics": (0.2, 2.0), "sexuality": (0.02, 3.0), "origin": (0.02, 5.0),
    "language": (0.05, 3.0), "pet": (0.04, 3.0), "car": (0.02, 3.0), "income": (0.05, 2.5), "education": (0.1, 2.0),
    "occupation": (0.001, 5.0), "relationship": (0.2, 2.0), "children": (0.1, 2.0), "gender": (0.5, 1.1),
    "birthplace": (0.01, 5.0), "birth date": (1 / 365, 1.1), "age": (0.013, 1.5),
}  # fmt: skip
NARROWS_NOTHING = ("absence",)


@dataclass(frozen=True)
class FactEffect:
    """What one fact does to the number of people."""

    attribute: str
    value: str
    share: float
    """Of the people left, how many have it too."""
    off: float
    """The share may be off by this factor."""


@dataclass(frozen=True)
class Together:
    """How many people fit everything."""

    people: float
    low: float
    high: float
    where: str
    """The population that was started from."""
    parts: tuple[FactEffect, ...]
    product: float
    """The estimate itself, which may be below the one person there is."""

    @property
    def words(self) -> str:
        """Say how many: "about 40 people (8 to 200)"."""
        if self.high <= 1.5:
            return "you alone"
        low, high, people = (say_many(two_digits(number)) for number in (self.low, self.high, self.people))
        if self.people <= 1.5:
            return f"perhaps you alone (1 to {high} people)"
        return f"about {people} people ({low} to {high})"

    def without(self, attribute: str) -> Together:
        """Return the estimate if nothing of one attribute had been told."""
        everybody = self.product / math.prod(part.share for part in self.parts)
        kept = tuple(part for part in self.parts if part.attribute != attribute)
        return _estimate(everybody, self.where, kept)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            "people": two_digits(self.people),
            "interval": [two_digits(self.low), two_digits(self.high)],
            "standing": "heuristic",
            "from": self.where,
            "facts": [
                {"attribute": part.attribute, "value": part.value, "one_in": round(1 / part.share, 1)}
                for part in self.parts
            ],
        }


def together(facts: Sequence[Told], language: Language | None = None) -> Together:
    """Estimate how many people fit all the facts; the first value of an attribute counts, of traits all do.

    >>> fact = Told(attribute="location", value="Duluth, Minnesota", certainty=0.9, said=True, posts=(0,))
    >>> together([fact]).words
    'about 86,000 people (69,000 to 110,000)'
    """
    language = language or load_language()
    gazetteer = language.gazetteer
    place = next((_place(gazetteer, fact.value) for fact in facts if fact.attribute == "location"), None)
    country = place.country if place is not None else "*"
    start, where = _population(gazetteer, place)
    parts = []
    if place is not None:
        parts.append(FactEffect("location", gazetteer.name(place), start / gazetteer.countries["*"][1], 1.25))
    age = next((_age_range(fact.value)[0] for fact in facts if fact.attribute == "age"), None)
    for fact in facts:
        known = age is not None and fact.attribute == "age band"
        if known or fact.attribute == "location" or fact.attribute in NARROWS_NOTHING:
            continue
        share, off = share_of(fact.attribute, fact.value, language, place, country, age)
        parts.append(FactEffect(fact.attribute, fact.value, share, off))
    return _estimate(float(gazetteer.countries["*"][1]), where, tuple(parts))


def _estimate(start: float, where: str, parts: tuple[FactEffect, ...]) -> Together:
    product = start * math.prod(part.share for part in parts)
    spread = (
        sum(math.log(part.off) ** 2 for part in parts) + max(len(parts) - 1, 0) * math.log(DEPENDENT) ** 2
    )
    factor = math.exp(math.sqrt(spread))
    bounded = [max(1.0, number) for number in (product, product / factor, product * factor)]
    return Together(bounded[0], bounded[1], bounded[2], where, parts, product)


def share_of(
    attribute: str, value: str, language: Language, place: Place | None, country: str, age: int | None
) -> tuple[float, float]:
    """Return the share of people with one more fact, and by which factor it may be off."""
    grown = 1.0 if age is not None and age >= 18 else GROWN_UP
    if attribute in ("age", "age band"):
        return age_share(language.gazetteer, country, *_age_range(value)), 1.3
    if attribute == "occupation":
        row = language.counted_with.get(value, value)
        if row not in language.workers:
            return DEFAULTS["occupation"]
        thousands, off = language.workers[row]
        if (
            row != value
        ):  # a part of the row that nobody counted: a third of it, give or take a factor of three
            thousands, off = thousands / A_PART, off * A_PART
        return min(1.0, thousands / WORLD_POPULATION_OF_SOURCE / (GROWN_UP if grown == 1.0 else 1.0)), off
    if attribute == "birthplace":
        return _born_there(language.gazetteer, value, place)
    known = shares().get((attribute, value)) or shares().get((attribute, "*"))
    if known is None:
        known = DEFAULTS.get(attribute, (0.1, 4.0))
    scaled = known[0] * (grown if attribute not in ("gender", "birth date", "language") else 1.0)
    return scaled, known[1]


def age_share(gazetteer: Gazetteer, country: str, first: int, last: int) -> float:
    """Return the share of a country's people who are `first` to `last` years old, ages even within a group."""
    groups = gazetteer.countries.get(country, ("", 0, ()))[2] or gazetteer.countries["*"][2]
    share = 0.0
    for (begin, end), part in zip(GROUPS, groups, strict=True):
        years = max(0, min(end, last + 1) - max(begin, first))
        share += part * years / (end - begin)
    return max(share, 1e-5)


def coarser_wordings(fact: Told, language: Language) -> list[tuple[str, str]]:
    """Return what could be said in place of a fact: (the words, the value they stand for)."""
    attribute, value = fact.attribute, fact.value
    if attribute in ("location", "birthplace"):
        place = _place(language.gazetteer, value)
        found = []
        while place is not None and (place := language.gazetteer.coarser(place)) is not None:
            name = language.gazetteer.name(place)
            found.append((name, name))
        return found
    if attribute == "age" and value.isdigit() and int(value) >= 20:
        age = int(value)
        part, ten = BANDS[min(age % 10 // 4, 2)] if age % 10 != 3 else "early", age // 10 * 10
        first, last = {"early": (0, 3), "mid": (4, 6), "late": (7, 9)}[part]
        tens = language.words["number_words"]["tens"][age // 10]
        many = tens[:-1] + "ies"
        return [
            (f"in my {part} {many}", f"{ten + first}-{ten + last}"),
            (f"in my {many}", f"{ten}-{ten + 9}"),
        ]
    words = language.words["coarser"].get(attribute, {}).get(value)
    return [(str(words["say"]), str(words["value"]))] if words else []


@cache
def shares() -> dict[tuple[str, str], tuple[float, float]]:
    """Read the shares of grown-ups with one value, and how far each may be off."""
    return {
        (attribute, value): (float(percent) / 100, float(off))
        for attribute, value, percent, off, *_ in table_rows("shares.tsv")
    }


def _age_range(value: str) -> tuple[int, int]:
    first, _, last = value.partition("-")
    return int(first), int(last or first)


def _place(gazetteer: Gazetteer, name: str) -> Place | None:
    return gazetteer.read(name)


def _population(gazetteer: Gazetteer, place: Place | None) -> tuple[float, str]:
    if place is None:
        name, people, _ = gazetteer.countries["*"]
        return float(people), name
    return float(max(place.people, 1)), gazetteer.name(place)


def _born_there(gazetteer: Gazetteer, value: str, place: Place | None) -> tuple[float, float]:
    born = _place(gazetteer, value)
    if born is None:
        return DEFAULTS["birthplace"]
    if place is not None and (born.contains(place) or place.contains(born)):
        return (0.5, 1.6) if born.city or born.region else (0.85, 1.2)
    home = gazetteer.countries.get(born.country, ("", 0, ()))[1] or 1
    if place is not None and place.country == born.country:
        return min(0.5, max(1e-5, born.people / home)), 3.0
    if place is None:
        return max(1e-9, born.people / gazetteer.countries["*"][1]), 1.5
    return max(1e-6, 0.02 * born.people / home), 6.0


def two_digits(number: float) -> float:
    """Round an estimate to two digits; nobody is counted more exactly than that."""
    if number < 10:
        return float(max(1, round(number)))
    scale = 10 ** (math.floor(math.log10(number)) - 1)
    return float(round(number / scale) * scale)
