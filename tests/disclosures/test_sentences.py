"""Hand-made sentences: every attribute, third persons, negation, quotes, jokes, lists, typos, spelt-out addresses."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from incrowd.errors import InputError
from incrowd.measures.disclosures.find import read_text
from incrowd.measures.disclosures.language import SEEN, beginnings, load_language


def rows(name: str) -> list[list[str]]:
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


ROWS = rows("sentences.tsv")


def wanted(cell: str) -> set[str]:
    return set() if cell == "-" else {one for one in cell.split("; ") if not one.startswith("?")}


def allowed(cell: str) -> set[str]:
    """What is neither asked for nor held against the finder."""
    return {one[1:] for one in cell.split("; ") if one.startswith("?")} - wanted(cell)


def found(text: str) -> set[str]:
    reading = read_text(text)
    return {f"{find.attribute}={find.value}" for find in reading.finds} | {
        f"!{one.kind}" for one in reading.identifiers
    }


def test_there_are_enough_sentences_of_every_kind() -> None:
    assert len(ROWS) >= 400
    attributes = Counter(one.split("=")[0] for _, cell in ROWS for one in wanted(cell))
    assert min(attributes.values()) >= 2, attributes
    assert sum(cell == "-" for _, cell in ROWS) >= 150


@pytest.mark.parametrize(
    ("name", "recall"),
    [
        ("sentences.tsv", 0.9),
        ("fresh_sentences.tsv", 0.9),
        ("held_back_sentences.tsv", 0.9),
        ("second_sentences.tsv", 0.9),
        ("third_sentences.tsv", 0.8),  # the hardest: rants, profiles, second-language English
        ("fourth_sentences.tsv", 0.9),
    ],
)
def test_the_finder_is_precise_and_misses_little(name: str, recall: float) -> None:
    """Precision at least .97, recall at least .90, over all finds; the hardest set is not there yet.

    The finder was mended by each of these sets but the last. What it did with them before: NOTES.md.
    """
    said = rows(name)
    right = sum(len(found(text) & wanted(cell)) for text, cell in said)
    made = sum(len(found(text) - allowed(cell)) for text, cell in said)
    there = sum(len(wanted(cell)) for _, cell in said)
    assert right / made >= 0.97
    assert right / there >= recall


def test_whatever_a_rule_matches_begins_with_one_of_its_beginnings() -> None:
    """What is passed over by its first letters could not have matched: every rule, at every place of every sentence."""
    language = load_language()
    for rule in {rule.pattern: rule for rules in language.rules.values() for rule in rules}.values():
        first = beginnings(rule.pattern, SEEN)
        for text, _ in ROWS:
            low = text.lower()
            for place in range(len(low)):
                match = rule.match.match(low, place)
                if match is not None:
                    assert match.group().startswith(tuple(first)), (rule.kind, text)


def test_a_rule_that_can_begin_with_anything_must_say_what_it_needs() -> None:
    language = load_language()
    bare = {**language.patterns["rule"][0], "start": "any", "match": r"\w+ years old", "needs": []}
    broken = replace(language, patterns={**language.patterns, "rule": [bare]})
    with pytest.raises(InputError, match="needs"):
        _ = broken.anywhere
