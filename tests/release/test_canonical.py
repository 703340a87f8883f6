"""Spellings of one thing come together; what only looks alike waits for a person."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.release.assess import releasable
from incrowd.measures.release.canonical import (
    canonicalise,
    folded,
    propose,
    read_aliases,
    read_review,
    uncounted_names,
    write_review,
)

FILMS = {
    "The Lord of the Rings": ["a", "b", "c"],
    "lord of the rings!": ["d"],
    "LOTR": ["e", "a"],
    "Lord of the Ringz": ["f"],
    "Alien": ["g", "h"],
    "Alien 3": ["i"],
}


@pytest.mark.parametrize(
    ("spelling", "same"),
    [
        ("The Matrix", "the  MATRIX!"),
        ("ＡＢＣ", "abc"),
        ("Amélie", "AMÉLIE"),
        ("A Bug's Life", "a bug s life"),
    ],
)
def test_case_punctuation_width_and_articles_do_not_matter(spelling, same):
    assert folded(spelling) == folded(same)


APART = """HIV+ HIV- HIV|C C++ C#|A+ A- A A*|x² x2 x|9/11 911 9-11|3.5 35|1,000 1000|-5 5 +5|½ 1/2 12|not_happy happy|
♀ ♂|Rh+ Rh− Rh|<18 >18 18|$5 5 5% 5°|!= =|non-smoker smoker|@home home|10:30 1030|F# F|~2 2|
HIV_- HIV|Rh_(+) Rh_(-) Rh|Rh(+) Rh(-) Rh()|-_5 5|.5 5 ,5|5' 5" 5|5'3" 53|!gay gay|A_-_ A"""


@pytest.mark.parametrize("group", [line.split() for line in APART.replace("\n", "").split("|")])
def test_what_a_sign_a_digit_or_a_negation_tells_apart_never_merges(group):
    spellings = [one.replace("_", " ") for one in group]
    assert len({folded(one) for one in spellings}) == len(spellings)
    assert len(canonicalise({one: [k] for k, one in enumerate(spellings)})) == len(spellings)
    assert len(set(uncounted_names(spellings, {}).values())) == len(spellings)
    assert propose({one: [k] for k, one in enumerate(spellings)}, likeness=1) == []


@pytest.mark.parametrize(
    ("letter", "alone"), [("A/B", "B"), ("A & B", "B"), ("A 1", "1"), ("A. level", "Level")]
)
def test_a_letter_at_the_beginning_is_no_article(letter, alone):
    assert folded(letter) != folded(alone)
    assert len(canonicalise({letter: [1], alone: [2]})) == 2


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12))
def test_folding_keeps_every_letter_digit_and_symbol(text):
    kept = [
        c
        for c in unicodedata.normalize("NFC", text).casefold()
        if unicodedata.category(c) in ("Nd", "Nl", "No", "Sc")
    ]
    small = folded(text)
    assert [c for c in small if unicodedata.category(c) in ("Nd", "Nl", "No", "Sc")] == kept or max(
        text
    ) >= "\uff01"
    assert folded(small) == small or small.startswith(("the ", "a ", "an "))


@pytest.mark.parametrize("spelling", ["!!!", "The", "  ", "a", "+"])
def test_a_spelling_is_never_folded_away(spelling):
    assert folded(spelling) != "" or not spelling.strip()


def test_spellings_merge_under_the_one_most_users_chose():
    merged = canonicalise(FILMS)
    assert sorted(merged["The Lord of the Rings"]) == ["a", "b", "c", "d"]
    assert merged["LOTR"] == ["e", "a"]


def test_an_alias_table_brings_the_rest_together_and_counts_everybody_once():
    merged = canonicalise(FILMS, {"LOTR": "The Lord of the Rings"})
    assert sorted(merged["The Lord of the Rings"]) == ["a", "b", "c", "d", "e"]
    assert "LOTR" not in merged


def test_aliases_of_aliases_are_followed_and_circles_refused():
    merged = canonicalise({"x": [1], "y": [2], "z": [3]}, {"x": "y", "y": "z"})
    assert merged == {"z": [1, 2, 3]}
    with pytest.raises(InputError, match="lead to each other"):
        canonicalise({"x": [1]}, {"x": "y", "y": "x"})


def test_look_alikes_are_proposed_towards_the_commoner_spelling_and_sequels_never():
    proposals = propose(FILMS)
    assert [(p.value, p.canonical) for p in proposals] == [("Lord of the Ringz", "The Lord of the Rings")]
    assert 90 <= proposals[0].likeness <= 100
    assert proposals[0].holders == 1


def test_proposals_do_not_depend_on_the_memory():
    many = {f"title number {word}": list(range(i)) for i, word in enumerate("abcdefghij", start=1)}
    assert propose(many, likeness=80) == propose(many, likeness=80, memory=1)


def test_only_accepted_rows_of_a_review_are_applied(tmp_path):
    review = tmp_path / "review.csv"
    assert write_review(review, propose(FILMS)) == 1
    assert read_review(review) == {}
    review.write_text(review.read_text("utf-8").replace(",1,", ",1,yes"), "utf-8")
    assert read_review(review) == {"Lord of the Ringz": "The Lord of the Rings"}


@pytest.mark.parametrize("answer", ["yes please", "ja", '"yes, please"', "yes,please"])
def test_an_answer_in_a_review_that_is_neither_yes_nor_no_is_refused(tmp_path, answer):
    review = tmp_path / "review.csv"
    write_review(review, propose(FILMS))
    review.write_text(review.read_text("utf-8").replace(",1,", f",1,{answer}"), "utf-8")
    with pytest.raises(InputError, match=r"review.csv, row 2: expected yes, no or nothing"):
        read_review(review)
    review.write_text(review.read_text("utf-8").replace(answer, "No"), "utf-8")
    assert read_review(review) == {}


def test_a_review_file_runs_no_formula_in_a_spreadsheet(tmp_path):
    answer = {"=SUM(A1) the film": ["a", "b"], "=SUM(A1) the filmm": ["c"]}
    review = tmp_path / "review.csv"
    write_review(review, propose(answer))
    row = review.read_text("utf-8").splitlines()[1]
    assert row.startswith("'=SUM")
    review.write_text(review.read_text("utf-8").replace(",1,", ",1,x"), "utf-8")
    assert read_review(review) == {"=SUM(A1) the filmm": "=SUM(A1) the film"}


def test_unreadable_files_are_refused_with_a_reason(tmp_path):
    broken = tmp_path / "broken"
    broken.write_bytes(b"\xff\xfe{")
    with pytest.raises(UnreadableSource, match="JSON file of aliases"):
        read_aliases(broken)
    with pytest.raises(UnreadableSource, match="review file"):
        read_review(broken)
    broken.write_text('{"a": 3}', "utf-8")
    with pytest.raises(InputError, match="expected"):
        read_aliases(broken)
    with pytest.raises(InputError, match="expected the columns value, canonical"):
        read_review(broken)
    broken.write_text('{"LOTR": "The Lord of the Rings"}', "utf-8")
    assert read_aliases(broken) == {"LOTR": "The Lord of the Rings"}


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=8), st.sets(st.integers(0, 9), min_size=1).map(list), max_size=6))
def test_nobody_is_lost_and_merging_twice_changes_nothing(answer):
    merged = canonicalise(answer)
    assert {u for users in merged.values() for u in users} == {u for users in answer.values() for u in users}
    assert canonicalise(merged) == merged


def test_one_spelling_a_thing_releases_more():
    # Forty people like two films, spelt in eight ways each.
    spelt = {f"{'!' * i} Film {film}": [f"{film}{i}{j}" for j in range(5)] for i in range(8) for film in "AB"}
    raw, tidy = releasable(spelt, [10, 27]), releasable(canonicalise(spelt), [10, 27])
    assert [row.released for row in raw] == [0, 0]
    assert [row.released for row in tidy] == [2, 2]
    assert tidy[0].to_dict() == {
        "threshold": 10,
        "values": 2,
        "released": 2,
        "mentions": 80,
        "in_time": True,
        "released_mentions": 80,
    }


def test_names_for_strangers_do_not_depend_on_counts():
    aliases = {"LOTR": "The Lord of the Rings", "heat!": "Heat"}
    named = uncounted_names(["lotr", "Lord of the Rings", "HEAT", "A Bug's Life", "!!!"], aliases)
    assert list(named.values()) == [
        "The Lord of the Rings",
        "The Lord of the Rings",
        "Heat",
        "bug s life",
        "!!!",
    ]
