"""Hand-made sentences: every attribute, third persons, negation, quotes, jokes, lists, typos, spelt-out addresses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from incrowd.measures.disclosures.find import read_text

ROWS = [
    line.split("\t")
    for line in Path(__file__).with_name("sentences.tsv").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def wanted(cell: str) -> set[str]:
    return set() if cell == "-" else set(cell.split("; "))


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


def test_the_finder_is_precise_and_misses_little() -> None:
    """Precision at least .97, recall at least .90, over all finds."""
    right = sum(len(found(text) & wanted(cell)) for text, cell in ROWS)
    made = sum(len(found(text)) for text, _ in ROWS)
    there = sum(len(wanted(cell)) for _, cell in ROWS)
    assert right / made >= 0.97
    assert right / there >= 0.90
