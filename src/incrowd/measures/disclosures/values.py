"""From what a rule caught to the values a find holds: numbers, dates, degrees, animals, and names as written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from incrowd.measures.disclosures.language import BEGINNING, Language, Pair

_SLOT = re.compile(r"\{(\w+)\}")
_SLOT_OF = {"location": "place", "birthplace": "place", "employer": "org"}
"""The slot whose text is an attribute's value where a rule names no value."""
_MOST_CHILDREN = 12
_UNITS = {"hr": "hour", "h": "hour", "yr": "year"}
_UNIT = re.compile(r"((?:an?|per) )(hr|h|yr)\b")


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
    elif attribute == "income":
        said = (filled or caught.get("money", "")).strip()
        if said:
            yield attribute, _UNIT.sub(lambda found: f"{found[1]}{_UNITS[found[2]]}", said)
    elif attribute == "occupation":
        told = next((slot for slot in caught if slot in language.work), None)
        yield attribute, language.work[told][filled] if told else language.occupations.get(filled, filled)
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


# Names of places, employers, schools and people, read from a place in a text on

MOST_INITIALS = 4
Named = tuple[str, int]
"""A name in its normal form, and where it ends in the text."""
_CAPITAL = r"[A-Z](?:[\w&'-]|\.(?!\s|$)|(?<=\b\w)\.|(?<=\b[SM]t)\.)*"
_CAPITALS = re.compile(rf"{_CAPITAL}(?: (?:(?:of|the|and|&|at|for|in) )?{_CAPITAL}){{0,4}}")
_BIG, _SMALL = "A-Z\u00c0-\u00d6\u00d8-\u00de", "a-z\u00df-\u00f6\u00f8-\u017f"
_PERSON_NAME = re.compile(rf"[{_BIG}][{_SMALL}'-]+(?: (?:[{_BIG}]\.|[{_BIG}][{_BIG}{_SMALL}'-]+)){{0,2}}")
_FULL_NAME = re.compile(rf"[{_BIG}][{_SMALL}'-]+(?: [{_BIG}]\.)? [{_BIG}][{_SMALL}][{_BIG}{_SMALL}'-]*\b")
_TITLE = re.compile(r"(?:Dr|Mrs?|Ms|Prof|Rev|Fr|Sr|Sir|Miss)\b\.? (?=[A-Z])")
_LETTERS = re.compile(r"[^\W\d_]+")


def _place(text: str, low: str, start: int, language: Language) -> Named | None:
    found = language.gazetteer.find(text[start : start + 90])
    if (
        found is None or low[start : start + found[1]].rstrip(".") in language.words["months"]["names"]
    ):  # "in March"
        return None
    return language.gazetteer.name(found[0]), start + found[1]


def _organisation(text: str, low: str, start: int, language: Language) -> Named | None:
    end = _known(low, start, language.by_beginning["employers"])
    if end is None:
        return _capitals(text, start, language)
    said = language.spelling.get(low[start:end], text[start:end])
    # "IBM" stays as it is; "walmart" and "WALMART" are one.
    initials = said.isupper() and len(said) <= MOST_INITIALS
    return said if initials else " ".join(map(str.capitalize, said.split())), end


def _known(low: str, start: int, names: Mapping[str, Sequence[str]]) -> int | None:
    """Return where the longest of some names ends that begins here; none if there is none."""
    known = [
        len(name)
        for name in names.get(low[start : start + BEGINNING], ())
        if low.startswith(name, start) and not low[start + len(name) : start + len(name) + 1].isalnum()
    ]
    return start + max(known) if known else None


def _school(text: str, low: str, start: int, language: Language) -> Named | None:
    found = _capitals(text, start, language)
    known = _known(low, start, language.by_beginning["schools"])
    rest = (
        found[0]
        if found is not None and known is None
        else text[known or start : found[1] if found else start]
    )
    if found is not None and language.grammar.school.search(rest):
        return found
    if known is None:
        return None
    said = text[start:known]
    if said == said.lower():
        said = said.upper() if len(said) <= MOST_INITIALS else said.title()
    return said, known


def _name(text: str, low: str, start: int, language: Language) -> Named | None:
    title = _TITLE.match(text, start)
    found = _PERSON_NAME.match(text, title.end() if title else start)
    if found is None:
        return _first_name(text, low, start, language)
    if found.group().split()[0].lower() in language.grammar.no_names:
        return None
    return found.group(), found.end()


def _first_name(text: str, low: str, start: int, language: Language) -> Named | None:
    """Read a first name that many people have, whatever its case."""
    found = _LETTERS.match(low, start)
    if found is None or found.group() not in language.first_names:
        return None
    if text[start].islower() and found.group() in language.first_words:  # "im christian"
        return None
    whole = _PERSON_NAME.match(text, start)
    return (whole.group(), whole.end()) if whole else (found.group().capitalize(), found.end())


def _full_name(text: str, low: str, start: int, language: Language) -> Named | None:
    """Read a first name that many people have and a last name, neither a word for a person nor a place."""
    found = _FULL_NAME.match(text, start)
    if found is None or language.gazetteer.find(found.group()) is not None:
        return None
    words, grammar = found.group().lower().split(), language.grammar
    if words[0] not in language.first_names:  # "I am Jane Doe" may be one, "I am Pure Maths" is none
        return None
    if any(word in language.first_words or word in grammar.no_names for word in words):
        return None
    return found.group(), found.end()


def _capitals(text: str, start: int, language: Language) -> Named | None:
    found = _CAPITALS.match(text, start)
    if found is None or language.grammar.no_organisation.fullmatch(found.group()):
        return None
    return found.group().rstrip("."), found.end()


READERS: dict[str, Callable[[str, str, int, Language], Named | None]] = {
    "place": _place,
    "org": _organisation,
    "school": _school,
    "name": _name,
    "firstname": _first_name,
    "fullname": _full_name,
}
"""How the names in a rule's slots are read: from the text, the same in lower case, where it starts, the language."""
