"""From what a rule caught to the values a find holds: numbers, birth years, degrees, animals, in their normal form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from incrowd.measures.disclosures.language import Language, Pair

_SLOT = re.compile(r"\{(\w+)\}")
_SLOT_OF = {"location": "place", "birthplace": "place", "employer": "org"}
"""The slot whose text is an attribute's value where a rule names no value."""
_MOST_CHILDREN = 12


def values_of(language: Language, attribute: str, template: str, caught: dict[str, str]) -> Iterator[Pair]:
    """Bring what a rule caught (slot: text) into its normal form; nothing if it says nothing."""
    grammar = language.grammar
    filled = _SLOT.sub(lambda found: caught.get(found.group(1), ""), template)
    if attribute == "age":
        if 10 <= (age := _number(language, caught["age"])) <= 99:
            yield "age", str(age)
    elif attribute == "age band":
        yield "age band", filled or _age_band(language, caught["tens"], caught.get("part", ""))
    elif attribute in ("birth date", "birth year"):
        yield from _born(language, caught)
    elif "demonym" in caught:
        yield attribute, _from_demonym(language, caught["demonym"])
    elif attribute == "gender" and filled not in ("male", "female"):
        if filled in grammar.genders:
            yield "gender", grammar.genders[filled]
    elif attribute == "education":
        yield from _education(language, *filled.split("|"))
    elif attribute == "field of study":
        if filled.strip():
            yield "field of study", grammar.field(filled.strip())
    elif attribute == "children" and template.startswith("{n}"):
        number = sum(_how_many(language, caught[slot]) for slot in ("n", "n2") if slot in caught)
        if number <= _MOST_CHILDREN:
            yield "children", str(number)
    elif attribute == "health":
        if filled:
            yield from _condition(language, filled)
    elif attribute == "origin" and "country" in caught:
        yield "origin", language.words["from_country"][filled]
    elif attribute in ("trait", "origin trait"):
        found = _trait(language, filled)
        yield from (pair for pair in found if attribute == "trait" or pair[0] == "origin")
    elif attribute == "pet":
        if filled:
            yield "pet", grammar.pet(filled)
    elif attribute == "car":
        if filled:
            yield "car", grammar.car(filled)
    elif attribute == "occupation" and filled in language.work:
        yield attribute, language.work[filled]
    elif "rite" in caught:
        yield attribute, grammar.rites[filled]
    else:
        value = (filled or caught.get(_SLOT_OF.get(attribute, attribute), "")).strip()
        if value:
            yield attribute, value


def _how_many(language: Language, text: str) -> int:
    return 1 if text in ("a", "an") else _number(language, text)


def _number(language: Language, text: str) -> int:
    digits = text.replace("-", "").replace("o", "0")  # "the big 4-0"
    return int(digits) if digits.isdigit() else language.numbers.get(text) or language.ordinals.get(text, 0)


def _age_band(language: Language, tens: str, part: str) -> str:
    word = tens.removesuffix("s").replace("tie", "ty").rstrip("'")
    ten = int(word) if word.isdigit() else language.numbers[word]
    first, last = {"early": (0, 3), "mid": (4, 6), "late": (7, 9)}.get(part.strip(" -"), (0, 9))
    return f"{ten + first}-{ten + last}"


def _born_in_numbers(said: str) -> Iterator[Pair]:
    """Read "03/14/1991" and "14.3.91"; where day and month cannot be told apart, the year alone."""
    parts = [int(part) for part in re.findall(r"\d+", said)]
    year, first, second = parts if parts[0] > 31 else (parts[2], parts[0], parts[1])
    if year < 100:
        year += 1900 if year > 20 else 2000
    month, day = (second, first) if first > 12 else (first, second)
    told_apart = parts[0] > 31 or first == second or first > 12 or second > 12
    if not (1 <= month <= 12 and 1 <= day <= 31 and 1900 < year < 2100):
        return
    if told_apart:
        yield "birth date", f"{month:02}-{day:02}"
    yield "birth year", str(year)


def _born(language: Language, caught: dict[str, str]) -> Iterator[Pair]:
    if "ndate" in caught:
        yield from _born_in_numbers(caught["ndate"])
        return
    months = [name[:3] for name in language.words["months"]["names"]]
    year = caught.get("year", "")
    if year.startswith("'"):
        year = ("20" if int(year[1:]) < 20 else "19") + year[1:]
    if "month" in caught and "day" in caught and 1 <= int(caught["day"]) <= 31:
        month = months.index(caught["month"][:3]) + 1
        yield "birth date", f"{month:02}-{int(caught['day']):02}"
    if year and "age" in caught:  # "I was 12 in 2003"
        yield "birth year", str(int(year) - _number(language, caught["age"]))
    elif year:
        yield "birth year", year


def _from_demonym(language: Language, said: str) -> str:
    city = language.grammar.demonyms.get(said.rstrip("s"), said)
    place = language.gazetteer.read(city)
    return city if place is None else language.gazetteer.name(place)


def _education(language: Language, level: str, rest: str = "") -> Iterator[Pair]:
    grammar = language.grammar
    plain, rest = level.replace(".", "").replace("'s", "").replace("'", "").strip(), rest.strip()
    if plain == "done":
        yield "education", grammar.finished.get(rest, "degree")
        return
    if plain == "pursues":
        yield "education", "college student"
    elif plain == "studies":
        if rest:
            yield "education", "school" if rest == "high school" else "college student"
    else:
        yield "education", grammar.levels.get(plain, "degree")
    named = rest in grammar.schools or rest == "high school"
    if rest and (not named or grammar.field(rest) != rest):  # med school teaches medicine
        yield "field of study", grammar.field(rest)


def _condition(language: Language, said: str) -> Iterator[Pair]:
    condition = language.health.get(said) or language.medication.get(said) or said
    yield "health", condition
    if condition == "pregnancy":
        yield "gender", "female"


def _may_follow(language: Language, phrase: str, following: str) -> bool:
    """Say whether a trait can end before a word: "single for two years", not "engaged for the part"."""
    if following in language.grammar.after_trait:
        return True
    attribute, _ = language.traits.get(phrase, ("", ""))
    return following in {"relationship": ("for", "to", "over"), "politics": ("on",)}.get(attribute, ())


def _trait(language: Language, said: str) -> Iterator[Pair]:
    """Read what somebody identifies as, or was brought up as."""
    words = said.split()
    for size in range(min(4, len(words)), 0, -1):
        phrase, following = " ".join(words[:size]), words[size : size + 1]
        if following and not _may_follow(language, phrase, following[0]):
            continue
        if phrase in language.traits:
            yield language.traits[phrase]
            return
        if phrase in language.nouns:
            yield from (pair for pair in language.nouns[phrase] if pair[0] != "occupation")
            return
