"""Names as they are written: of places, employers, schools and people, read from a place in a text on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from incrowd.measures.disclosures.language import Language

MOST_INITIALS = 4
Named = tuple[str, int]
"""A name in its normal form, and where it ends in the text."""
_CAPITALS = re.compile(r"[A-Z][\w&'.-]*(?: (?:(?:of|the|and|&|at|for|in) )?[A-Z][\w&'.-]*){0,4}")
_BIG, _SMALL = "A-Z\u00c0-\u00d6\u00d8-\u00de", "a-z\u00df-\u00f6\u00f8-\u017f"
_PERSON_NAME = re.compile(rf"[{_BIG}][{_SMALL}'-]+(?: (?:[{_BIG}]\.|[{_BIG}][{_BIG}{_SMALL}'-]+)){{0,2}}")
_FULL_NAME = re.compile(rf"[{_BIG}][{_SMALL}'-]+(?: [{_BIG}]\.)? [{_BIG}][{_SMALL}][{_BIG}{_SMALL}'-]*\b")
_TITLE = re.compile(r"(?:Dr|Mrs?|Ms|Prof|Rev|Fr|Sr|Sir|Miss)\b\.? (?=[A-Z])")
_WORD = re.compile(r"[^\W\d_]+")


def _place(text: str, low: str, start: int, language: Language) -> Named | None:
    found = language.gazetteer.find(text[start : start + 90])
    if (
        found is None or low[start : start + found[1]].rstrip(".") in language.words["months"]["names"]
    ):  # "in March"
        return None
    return language.gazetteer.name(found[0]), start + found[1]


def _organisation(text: str, low: str, start: int, language: Language) -> Named | None:
    end = _known(low, start, language.words["employers"]["names"])
    if end is None:
        return _capitals(text, start, language)
    said = text[start:end]  # "IBM" stays as it is; "walmart" and "WALMART" are one
    initials = said.isupper() and len(said) <= MOST_INITIALS
    return said if initials else " ".join(map(str.capitalize, said.split())), end


def _known(low: str, start: int, names: Sequence[str]) -> int | None:
    """Return where the longest of some names ends that begins here; none if there is none."""
    known = [
        len(name)
        for name in names
        if low.startswith(name, start) and not low[start + len(name) : start + len(name) + 1].isalnum()
    ]
    return start + max(known) if known else None


def _school(text: str, low: str, start: int, language: Language) -> Named | None:
    found = _capitals(text, start, language)
    if found is not None and language.grammar.school.search(found[0]):
        return found
    known = _known(low, start, language.words["schools"]["names"])
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
    found = _WORD.match(low, start)
    if found is None or found.group() not in language.first_names:
        return None
    if text[start].islower() and found.group() in language.first_words:  # "im christian"
        return None
    whole = _PERSON_NAME.match(text, start)
    return (whole.group(), whole.end()) if whole else (found.group().capitalize(), found.end())


def _full_name(text: str, low: str, start: int, language: Language) -> Named | None:
    """Read a first and a last name, neither a word for a person nor a place: "I am Alex Miller"."""
    found = _FULL_NAME.match(text, start)
    if found is None or language.gazetteer.find(found.group()) is not None:
        return None
    words, grammar = found.group().lower().split(), language.grammar
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
