"""Other ways to write a text: without what names its writer, with coarser facts, the dearest fact first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from incrowd.measures.disclosures.assess import Disclosed
from incrowd.measures.disclosures.facts import Told
from incrowd.measures.disclosures.find import Find, Reading
from incrowd.measures.disclosures.language import Language
from incrowd.measures.disclosures.population import coarser_wordings

MOST_FACTS = 6
"""Reworded one after the other; each step is measured."""
GAP = "…"


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
    """Return one edit a fact, the one that costs most of the crowd first; no two of them in the same place."""
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
