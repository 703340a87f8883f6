"""Hand-made sentences: every attribute, third persons, negation, quotes, jokes, lists, typos, spelt-out addresses."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from re import _compiler, _parser  # type: ignore[attr-defined]

import pytest

from incrowd.errors import InputError
from incrowd.measures.disclosures.automaton import Automaton
from incrowd.measures.disclosures.find import read_text
from incrowd.measures.disclosures.language import load_language
from incrowd.measures.disclosures.rules import STARTS, Rules, Sketches, rules_of


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
        ("third_sentences.tsv", 0.88),  # the hardest: rants, profiles, second-language English
        ("fourth_sentences.tsv", 0.9),
        ("fifth_sentences.tsv", 0.9),
        ("sixth_sentences.tsv", 0.9),
        ("seventh_sentences.tsv", 0.9),
        ("eighth_sentences.tsv", 0.9),
        ("ninth_sentences.tsv", 0.9),
        ("tenth_sentences.tsv", 0.9),
        ("eleventh_sentences.tsv", 0.9),
        ("twelfth_sentences.tsv", 0.9),
        ("work_sentences.tsv", 0.9),
    ],
)
def test_the_finder_is_precise_and_misses_little(name: str, recall: float) -> None:
    """Precision at least .97, recall at least .90, over all finds; the hardest set is not there yet.

    The finder was mended by each of these sets. What it did with them before: NOTES.md.
    """
    precise, told = precision_and_recall(name)
    assert precise >= 0.97
    assert told >= recall


def precision_and_recall(name: str) -> tuple[float, float]:
    said = rows(name)
    right = sum(len(found(text) & wanted(cell)) for text, cell in said)
    made = sum(len(found(text) - allowed(cell)) for text, cell in said)
    there = sum(len(wanted(cell)) for _, cell in said)
    return right / made, right / there


@pytest.mark.parametrize(
    ("name", "precision", "recall"),
    [
        ("forum", 0.98, 0.86),
        ("chat", 0.98, 0.8),
        ("english", 0.95, 0.73),
        ("traps", 0.92, 0.67),
        ("fragments", 0.77, 0.7),
        ("bios", 0.91, 0.68),
        ("comments", 0.98, 0.66),
        ("diary", 0.93, 0.53),
        ("long", 0.86, 0.41),
        ("traps2", 0.55, 0.65),
        ("mixed", 0.89, 0.58),
        ("sideways", 0.77, 0.19),
    ],
)
def test_sentences_of_somebody_who_had_not_read_the_patterns(
    name: str, precision: float, recall: float
) -> None:
    """Short of .97 and .90, and no worse than it is: the last seven sets were never mended by (NOTES.md)."""
    precise, told = precision_and_recall(f"blind_{name}_sentences.tsv")
    assert precise >= precision
    assert told >= recall


def test_whatever_a_rule_matches_is_not_passed_over() -> None:
    """What the automaton rules out could not have matched: every rule, at every place of every sentence."""
    known = rules_of(load_language())
    rules = list({rule.sketch: rule for rules in known.by_start.values() for rule in rules}.values())
    patterns = {number: known.sketches.parse(rule.sketch) for number, rule in enumerate(rules)}
    opening = Automaton(known.sketches.lists).opening(patterns)
    for text, _ in ROWS:
        low = text.lower()
        for place in range(len(low)):
            left = set(opening.rules(low, place))
            for number, rule in enumerate(rules):
                if number not in left:
                    assert rule.match.match(low, place) is None, (rule.kind, text, place)


def test_where_a_text_can_hold_a_rule_is_found() -> None:
    """Every rule that may stand anywhere and every start, found one by one, are among the places that are tried."""
    known = rules_of(load_language())
    for text, _ in ROWS:
        low = text.lower()
        places = known.places(low)
        for place in (found.start() for found in re.finditer(r"(?<![a-z0-9_])[a-z0-9_]", low)):
            assert known.trigger.match(low, place) is None or place in places[STARTS], text
            for number, rule in enumerate(known.by_start["any"]):
                if not rule.needs and not rule.opens and rule.match.match(low, place):
                    assert place in places[number], (rule.kind, text)


def test_what_can_no_longer_match_is_passed_over() -> None:
    """ "BU" is a university: neither "but" nor "bus" is worth a second look, nor is "bu" before another word."""
    some = Sketches({"school": "(?:bu|mit)"})
    parsed = some.parse(rf"\b(?:(?P<school>{some.marks['school']})\b)(?: here| there)$")
    opening = Automaton(some.lists).opening({7: parsed})
    assert all(opening.rules(text, 0) == (7,) for text in ("bu here", "bu there\n", "mit here"))
    assert not any(opening.rules(text, 0) for text in ("but here", "bus", "bu", "bu heron", "mit", "am bu"))


def test_any_words_are_not_followed() -> None:
    """After any word the letters of a long list tell nothing more, and after any words nothing does."""
    some = Sketches({"pet": "(?:cat|dog)"})
    opening = Automaton(some.lists).opening(
        {
            1: some.parse(rf" (?:[a-z]+ )?{some.marks['pet']} owner"),
            2: some.parse(r" (?:[a-z]+ )?mum"),
            3: some.parse(r" [a-z ]+ at home"),
        }
    )
    said = (" dog owner", " proud mum", " proud owl", " 2 cats")
    assert [opening.rules(text, 0) for text in said] == [(1, 3), (1, 2, 3), (1, 3), (3,)]


def test_an_automaton_that_has_grown_too_large_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    language = load_language()
    known = Rules(language)
    texts = [text.lower() for text, _ in ROWS[:40]]
    before = [known.places(text) for text in texts]
    assert len(known._automaton) > 100
    monkeypatch.setattr("incrowd.measures.disclosures.rules.MOST_STATES", 100)
    assert [known.places(text) for text in texts] == before


def test_rules_whose_lists_are_read_once_are_compiled_as_re_compiles_them() -> None:
    known = rules_of(load_language())
    for rule in {rule.sketch: rule for rules in known.by_start.values() for rule in rules}.values():
        read = known.sketches._with_lists(_parser.parse(rule.sketch))
        assert _compiler._code(read, 0) == _compiler._code(_parser.parse(rule.pattern), 0), rule.kind
        assert dict(rule.match.groupindex) == dict(re.compile(rule.pattern).groupindex)


def test_rules_that_may_begin_with_a_mark_are_tried() -> None:
    assert "education=bachelor" in found("Sir, I am a fresher, B.Com pass, kindly suggest some job.")
    assert "relationship=engaged" in found("I'm after getting engaged, lads!")


def test_a_rule_that_can_begin_with_anything_must_say_what_it_needs() -> None:
    language = load_language()
    bare = {**language.patterns["rule"][0], "start": "any", "match": r"\w+ years old", "needs": []}
    broken = replace(language, patterns={**language.patterns, "rule": [bare]})
    with pytest.raises(InputError, match="needs"):
        Rules(broken).places("")


def test_mistyped_words_are_read_and_finds_point_into_the_text_as_it_is() -> None:
    text = "Hi! I am divorsed, my dauhgter is tall, and I wrok as a nusre in Leeds."
    said = {find.attribute: text[find.start : find.end].strip() for find in read_text(text).finds}
    assert said["relationship"] == "divorsed"
    assert said["children"] == "dauhgter"
    assert said["occupation"] == "nusre"


@pytest.mark.parametrize(
    "text",
    [
        "Her email is ann@example.org.",
        "My boss's number is 555-867-5309.",
        "Call him at 555-867-5309.",
        "JOEL: my girlfriend is late JILL: oh JOEL: my girlfriend again",
        "I read Things My Girlfriend And I Have Argued About.",
        "His gimmick was being a surfer boy and I laughed.",
        "Man, I would have won that bet.",
        "Being a mother is a humble calling.",
    ],
)
def test_what_is_somebody_elses_is_not_the_writers(text: str) -> None:
    assert not found(text) - {"relationship=in a relationship"}


def test_a_town_the_tables_do_not_know_is_read_as_the_place_around_it() -> None:
    assert "location=Ohio" in found("I live in Millbrook, Ohio.")


def test_dates_in_numbers_are_read_as_far_as_they_can_be() -> None:
    assert found("DOB 03/14/1991") == {"birth date=03-14", "birth year=1991"}
    assert found("DOB 03/04/1991") == {"birth year=1991"}  # the third of April, or the fourth of March


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        ("name", "Thank you, Penelope"),
        ("name", "Thanks! Hugely helpful."),
        ("name", "Thank you! They will."),
        ("name", "“Know thyself.”\n-Socrates"),
        ("name", "Bring with you:\n- Rope\n- Nails"),
        ("name", "I'm Pure Maths myself, in my third year"),
        ("name", "I'm Christian, so fasting is not new to me."),
        ("name", "It is Hector, look at those ears"),
        ("name", "A villain known as Hector."),
        ("name", "Hello, Pastry Kitchen person here."),
        ("absence", "I'm going through a rough patch with my landlord"),
        ("absence", "I've gone through three phones in two years"),
        ("absence", "I'm going to love this band until I die"),
        ("absence", "I have been going to choir for five months"),
        ("absence", "I also go for swims a few times a week"),
        ("name", "I also doubt myself, I'll say that much."),
        ("employer", "I have worked with DBAs who paint."),
        ("employer", "I started with The Name Of The Wind."),
        ("health", "I have been in academia since my thirties"),
        ("health", "I have quit academia"),
        ("health", "I have such nostalgia for trams"),
        ("health", "I'm borderline useless before coffee"),
        ("car", "the finale had me on the edge of my seat"),
    ],
)
def test_real_talk_only_seems_to_tell(attribute: str, text: str) -> None:
    """Constructions that were wrong on posts of real forums, in words made up for the purpose."""
    assert not {one for one in found(text) if one.startswith(f"{attribute}=")}


@pytest.mark.parametrize(
    "text",
    [
        "Any ideas?\n\nThanks,\nCaroline",
        "Best wishes, Caroline",
        "My name is Caroline.",
        "Hi, I'm Caroline!",
        "You can call me Caroline.",
    ],
)
def test_whoever_signs_or_introduces_themselves_is_named(text: str) -> None:
    assert "name=Caroline" in found(text)
