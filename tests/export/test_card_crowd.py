"""An export among people made up from a card: near the truth, honest about its doubt, silent about others."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from incrowd import (
    AdvisorOptions,
    Card,
    Changes,
    Crowd,
    Standing,
    assess,
    draft,
    what_if,
)
from incrowd.errors import InputError
from incrowd.measures.card_crowd import YOU, CardCrowd, crowd_of_export
from incrowd.measures.person import Person
from incrowd.measures.protocol import Measure, PreparedCrowd, measure_named
from incrowd.result import Assessment
from incrowd.text.options import TextOptions
from incrowd.text.reference import tokenise

MEASURED = AdvisorOptions(advice=False)
EVERYBODY = "cycling"
RADIUS = 0.9


def numbers(
    crowd: PreparedCrowd, user: str, name: str = "anonymity", radius: float = RADIUS
) -> tuple[Assessment, ...]:
    options = AdvisorOptions(radius=radius)
    return measure_named(name).prepare(crowd, options).assess(Person(user, crowd)).assessments


def test_people_who_are_not_in_the_card_have_about_as_many_alike(
    people: Crowd, card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    """The oracle counts real people by the definition of the distance, one pair at a time."""
    posts = people.posts(community="cycling").select("user", "text").collect()
    words = {user: Counter() for user in posts["user"].unique()}  # type: dict[str, Counter[str]]
    for user, text in posts.iter_rows():
        words[user].update(tokenise(text, TextOptions()))
    others = [words[user] for user in words if user not in outsiders]
    covered, drawn = [], {}
    for user in outsiders[:6]:
        crowd = crowd_of_export([export_of(user)], card=card)
        assert isinstance(crowd, CardCrowd)
        crowd._drawn = drawn = crowd._drawn | drawn  # the same made-up people for everybody: it takes longest
        apart = np.array([distance(words[user], other) for other in others])
        for radius in (0.8, 0.85, RADIUS):
            (found,) = numbers(crowd, YOU, radius=radius)
            assert found.interval is not None
            covered.append(found.interval[0] <= (apart <= radius).sum() + 1 <= found.interval[1])
    assert len(covered) == 18
    assert np.mean(covered) >= 0.9, covered


def distance(one: Counter[str], other: Counter[str]) -> float:
    """Jensen-Shannon distance, from its definition."""
    p, q = ({word: count / counts.total() for word, count in counts.items()} for counts in (one, other))
    middle = {word: (p.get(word, 0) + q.get(word, 0)) / 2 for word in p | q}
    parts = [x[word] * math.log2(x[word] / middle[word]) for x in (p, q) for word in x]
    return math.sqrt(max(math.fsum(parts) / 2, 0))


def test_the_same_seed_gives_the_same_people(
    card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    file = export_of(outsiders[0])
    one, same, other = (crowd_of_export([file], card=card, seed=seed).words(EVERYBODY) for seed in (1, 1, 2))
    assert np.array_equal(one.row_counts, same.row_counts)
    assert not np.array_equal(one.totals, other.totals)


def test_the_owner_is_one_row_among_made_up_people(
    people: Crowd, card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    crowd = crowd_of_export([export_of(outsiders[0])], card=card)
    index = crowd.words(EVERYBODY)
    row = index.row_of(YOU)
    assert row == len(index) - 1
    assert index.profile(row).total == Person(YOU, crowd).counts(EVERYBODY).sum()


def test_every_number_says_that_it_is_estimated_and_how_sure_it_is(
    card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    report = assess([export_of(outsiders[0])], card=card, options=MEASURED)
    about_others = [one for one in report.assessments if one.measure != "disclosures"]
    assert {one.measure for one in about_others} >= {"anonymity", "recognition"}
    for one in about_others:
        assert one.standing is Standing.ESTIMATED
        assert one.interval is not None
        assert one.interval[0] <= one.value <= one.interval[1]


def test_what_takes_real_people_is_said_with_a_remedy(
    card: Card, outsiders: list[str], tmp_path: Path
) -> None:
    posts = tmp_path / "posts.jsonl"
    rows = [
        {"user": "ann", "community": "x", "time": 1_600_000_000 + n, "text": f"tea number {n}"}
        for n in range(9)
    ]
    posts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    attributes = tmp_path / "attributes.csv"
    attributes.write_text("user,attribute,value\nann,city,Rome\nann,age,30\n", encoding="utf-8")
    report = assess([posts, attributes], card=card, options=MEASURED)
    told = {one.measure: one for one in report.not_assessed}
    assert "a card holds none of it" in told["belief"].why
    assert "incrowd ingest" in told["belief"].remedy


def test_a_measure_of_somebody_else_s_works_on_a_card(
    card: Card, outsiders: list[str], export_of: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only asks for words needs to know nothing of cards."""
    crowd = crowd_of_export([export_of(outsiders[0])], card=card)
    assert isinstance(crowd, PreparedCrowd)
    assert crowd.population.communities == (EVERYBODY,)
    assert crowd.population.of(YOU) == {EVERYBODY: int((crowd.posts["community"] == EVERYBODY).sum())}
    assert issubclass(type(measure_named("anonymity")), Measure)


def test_changes_are_measured_as_they_would_be_from_scratch(
    card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    """Half of the posts taken away by a change, and half of the posts in the export: the same answer."""
    whole = crowd_of_export([export_of(outsiders[0])], card=card)
    half = whole.posts.height // 2
    later = whole.posts.sort("time", "text")["number"][half:].to_list()
    changed = what_if(whole, None, Changes(delete_posts=frozenset(later)), options=MEASURED)
    scratch = assess([export_of(outsiders[0], slice(half), "half.jsonl")], card=card, options=MEASURED)

    def sizes(report: object) -> list[float]:
        return [one.value for one in report.assessments if one.measure == "anonymity"]  # type: ignore[attr-defined]

    assert sizes(changed) == sizes(scratch)


def test_a_draft_is_checked_against_the_card(
    card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    checked = draft(
        [export_of(outsiders[0])], None, EVERYBODY, "I was depressed and took sertraline.", card=card
    )
    assert {change.measure for change in checked.changes} >= {"anonymity"}


def test_nothing_is_written(
    card: Card,
    outsiders: list[str],
    export_of: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = export_of(outsiders[0])
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    before = sorted(tmp_path.rglob("*"))
    assess([file], card=card, options=MEASURED)
    assert sorted(tmp_path.rglob("*")) == before


def test_posts_outside_the_card_s_communities_are_refused_if_it_has_several(
    card: Card, tmp_path: Path
) -> None:
    facts = dict(card.facts(EVERYBODY))
    head = {
        "text": card.head["text"],
        "communities": [facts | {"name": name} for name in ("cycling", "films")],
    }
    several = Card.made(head, [card.tables(EVERYBODY)] * 2)
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"user": "a", "community": "chess", "text": "Mate."}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"none of your posts.*cycling, films"):
        assess([file], card=several, options=MEASURED)


def test_two_communities_of_one_card_are_linked(
    people: Crowd, card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    counted = people.posts().group_by("user", "community").len().filter(pl.col("len") >= 10).collect()
    there = counted.filter(pl.col("user").is_in(outsiders)).group_by("user").agg(pl.col("community").sort())
    user, places = there.filter(pl.col("community").list.len() >= 2).sort("user").row(0)
    facts = dict(card.facts(EVERYBODY))
    head = {"text": card.head["text"], "communities": [facts | {"name": name} for name in places[:2]]}
    both = Card.made(head, [card.tables(EVERYBODY)] * 2)
    report = assess([export_of(user)], card=both, options=MEASURED)
    linked = [one for one in report.assessments if one.measure == "linkability"]
    assert sorted(one.unit for one in linked) == ["people", "people", "probability"]
    assert all(one.standing is Standing.ESTIMATED and one.interval for one in linked)
    assert not any(one.measure.startswith("linkability") for one in report.not_assessed)


def test_a_card_and_a_crowd_exclude_each_other(people: Crowd, card: Card, outsiders: list[str]) -> None:
    with pytest.raises(InputError, match="stands in for a crowd"):
        assess(people, outsiders[0], card=card)
    with pytest.raises(InputError, match="expected the name"):
        assess(people)


def test_the_report_names_nobody_else(
    people: Crowd, card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    report = assess([export_of(outsiders[0])], card=card)
    said = json.dumps(report.to_dict())
    others = [
        name for name in people.posts().select("user").unique().collect()["user"] if name != outsiders[0]
    ]
    assert not any(f'"{name}"' in said for name in others)
    assert "made-up person" not in said


def test_a_card_crowd_is_found_by_whoever_owns_it(
    card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    crowd = crowd_of_export([export_of(outsiders[0])], card=card)
    assert isinstance(crowd, CardCrowd)
    assert crowd.user_id("anything") == YOU


def test_people_who_write_in_another_language_are_told_so(
    card: Card, outsiders: list[str], export_of: Callable[..., Path], tmp_path: Path
) -> None:
    said = "gestern haben wir lange darüber gesprochen und danach zusammen gekocht"
    rows = [
        {"author": "ann", "subreddit": EVERYBODY, "created_utc": k, "body": f"{said} {k}"} for k in range(20)
    ]
    file = tmp_path / "german.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for export, foreign in ((file, True), (export_of(outsiders[0]), False)):
        report = assess([export], card=card, options=MEASURED)
        why = {one.measure: one.why for one in report.not_assessed}
        assert ("another language" in why.get("recognition (your language)", "")) is foreign
        told_apart = next(one for one in report.themes if one.name == "singled out")
        assert ("another language" in told_apart.sentence) is foreign  # not that there are no items


def test_a_draft_of_new_words_is_asked_about_thoroughly(
    card: Card, outsiders: list[str], export_of: Callable[..., Path]
) -> None:
    file = export_of(outsiders[0])
    check = draft([file], None, EVERYBODY, "Reykjavik dentists zymurgy", card=card, thorough=True)
    found = [one for one in check.changes if one.measure == "recognition"]
    assert found
    assert all(math.isfinite(one.after) for one in found)


def test_posts_are_named_by_where_they_were_written(tmp_path: Path) -> None:
    """The card inside is of people on Reddit: somebody's posts from elsewhere are not said to be there."""
    ill = "I was told that my cancer is back, so the chemo and radiation for the tumor start"
    plain = "I went for a walk with the dog and it was raining all the way to the shops"
    rows = [
        {
            "user": "me",
            "community": "garden.example",
            "time": 1_600_000_000 + 90_000 * n,
            "text": f"{ill if n % 8 == 0 else plain} on day {n} of the month",
        }
        for n in range(40)
    ]
    file = tmp_path / "posts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    report = assess([file], options=AdvisorOptions(thorough=False))
    assert report.posts
    assert {post.community for post in report.posts} == {"garden.example"}
