"""Can two accounts be linked? Sooner if they are one person's, and by words that both share."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from tests.cli.running import incrowd

from incrowd import Card, CardOptions, Crowd, assess
from incrowd.cards.card import text_facts
from incrowd.cards.make import safe_statistics
from incrowd.cards.members import read_members
from incrowd.cards.noise import Blur
from incrowd.crowd.own_export import OwnExport
from incrowd.errors import InputError
from incrowd.measures.card_crowd import CardCrowd, crowd_of_export
from incrowd.measures.made_up_rivals import FARTHEST, MadeUpRivals, counted_posts, log_ranks
from incrowd.measures.person import Person
from incrowd.measures.prepared import YOU
from incrowd.measures.protocol import AdvisorOptions
from incrowd.measures.recognition import definition
from incrowd.measures.recognition.assess import MemberRecognition, words_of
from incrowd.measures.recognition.from_card import LEARNT, TRIED, gone_on, probabilities
from incrowd.measures.recognition.history import Histories, contest
from incrowd.measures.recognition.link import AccountLink, link_accounts
from incrowd.measures.recognition.measure import ReadyRecognition, Recognition
from incrowd.measures.recognition.spec import KNOWN, How
from incrowd.profiles.habits import post_habits
from incrowd.result import Evidence

ONE = "cycling"


def linked(one: Path, two: Path, card: Card) -> AccountLink:
    return link_accounts(crowd_of_export([one], card=card), crowd_of_export([two], card=card))


@pytest.fixture
def halves(export_of: Callable[..., Path], outsiders: list[str]) -> list[tuple[Path, Path]]:
    return [
        (
            export_of(user, slice(None, None, 2), f"{n}-a.jsonl"),
            export_of(user, slice(1, None, 2), f"{n}-b.jsonl"),
        )
        for n, user in enumerate(outsiders[:3])
    ]


def test_one_person_s_accounts_are_linked_rather_than_two_people_s(
    halves: list[tuple[Path, Path]], card: Card
) -> None:
    for n, pair in enumerate(halves):
        same, different = linked(*pair, card), linked(pair[0], halves[n - 1][1], card)
        assert same.likeness > different.likeness
        assert same.probability >= different.probability


def test_what_gives_away_adds_up_and_is_shared(halves: list[tuple[Path, Path]], card: Card) -> None:
    found = linked(*halves[0], card)
    texts = [path.read_text(encoding="utf-8").lower() for path in halves[0]]
    assert math.isclose(sum(part.contribution for part in found.evidence), found.likeness)
    for part in found.evidence[:5]:
        assert all(part.what.split("“")[1].rstrip("”") in text for text in texts)
    low, high = found.assessment.interval or (1, 0)
    assert low <= found.probability <= high
    assert found.assessment.crowd_size == found.found.members


def test_the_command(
    halves: list[tuple[Path, Path]], card: Card, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    one, two = halves[0]
    page, file = tmp_path / "link.html", tmp_path / "card.txt"
    card.write(file)
    told = incrowd(capsys, "link", one, two, "--card", file, "--json", "--html", page)
    assert told.code == 0, told.err
    answer = json.loads(told.out)
    assert answer["interval"][0] <= answer["probability"] <= answer["interval"][1]
    assert answer["standing"] == "estimated from a card"
    assert answer["gives_away"]
    assert "linked" in page.read_text(encoding="utf-8")
    shown = incrowd(capsys, "link", one, two, "--card", file, "--fail-above", "0")
    assert shown.code == 1
    assert "what gives you away" in shown.out


def test_too_few_posts_are_refused(export_of: Callable[..., Path], outsiders: list[str], card: Card) -> None:
    whole, little = export_of(outsiders[0]), export_of(outsiders[0], slice(2), "little.jsonl")
    with pytest.raises(InputError, match="second account has 2 posts"):
        linked(whole, little, card)


@pytest.mark.parametrize("question", ["recognised", "linked"])
def test_what_a_card_tells_lies_between_its_ends_where_people_are_really_attacked(
    question: str, people: Crowd, a_card_without_some: tuple[Card, list[str]]
) -> None:
    """People who are not in the card, attacked by words, phrases and style with the posts of their later half.

    One person's rate cannot be seen from six tries, so people are put together by what they were told.
    """
    card, judged = a_card_without_some
    pool = people.posts(community=ONE).collect().sort("user", "time", "text")
    names = pool["user"].unique().sort().to_list()
    starts = np.searchsorted(pool["user"].to_numpy(), [*names, "~"])
    habits = post_habits(pool["text"])
    histories = Histories(
        posts=habits,
        words=words_of(habits),
        days=pool["time"].to_numpy() / 86_400,
        of=tuple(np.arange(a, b) for a, b in itertools.pairwise(starts)),
    )
    trial = contest(histories, "earlier", "later", How(6, 0, 2**28))
    places = np.searchsorted(names, judged)
    drawn: dict[str, Any] = {}

    def own(rows: NDArray[np.int64]) -> CardCrowd:
        mine = pool[rows.tolist()].select("community", "time", "text", link=pl.lit(None, pl.String))
        crowd = CardCrowd(card, OwnExport(mine.with_row_index("number"), frozenset(), {}, "x", "x"))
        crowd._drawn = drawn  # the same made-up people for everybody: drawing them takes longest
        return crowd

    def told(rows: NDArray[np.int64]) -> MemberRecognition:
        cut = definition.halves(len(rows))[0]
        if question == "linked":
            return link_accounts(own(rows[:cut]), own(rows[cut:])).found
        crowd = own(rows[:cut])
        ready = Recognition().prepare(crowd, AdvisorOptions())
        assert isinstance(ready, ReadyRecognition)
        return ready._ask(Person(YOU, crowd), ONE)

    answers = {at: told(histories.of[at]) for at in places}
    covered = []
    for n in KNOWN:
        able = np.intersect1d(places, trial.can_be_tried(n))
        found = trial.tried(n, able).first
        chances = np.array([answers[at].probability[n] for at in able])
        ends = np.array([answers[at].interval[n] for at in able])
        for part in np.array_split(np.argsort(chances, kind="stable"), 4):
            (low, high), rate = ends[part].mean(axis=0), found[part].mean()
            covered.append(low <= rate <= high)
    assert np.mean(covered) >= 0.85, covered  # chance in the groups' own rates counts against the ends


@pytest.fixture(scope="module")
def a_card_without_some(people: Crowd) -> tuple[Card, list[str]]:
    """A card without forty of its community's people, and their names."""
    counted = (
        people.posts(community=ONE).group_by("user").len().sort("len", "user", descending=True).collect()
    )
    judged = sorted(counted["user"].head(40).to_list())
    options = CardOptions()
    members = read_members(people, [ONE], options.text).without(judged)
    community = safe_statistics(members, options.k, Blur(np.random.default_rng(0)), ONE)
    head = {"text": text_facts(options.text), "communities": [{"name": ONE, **community.facts()}]}
    return Card.made(head, [community.tables()]), judged


# The numbers behind it


def test_who_reads_more_finds_no_less() -> None:
    for learnt in (LEARNT, TRIED):
        for ranks in ([8.0, 6.0, 3.0, 0.0], [2.0, 4.0, 4.0, 4.0], [5.0, math.nan, math.nan, math.nan]):
            for words in (1.0, 300.0, 20_000.0):
                chances, ends = probabilities(np.array(ranks), words, learnt)
                told = list(chances.values())
                assert told == sorted(told)
                assert all(ends[n][0] <= chances[n] <= ends[n][1] for n in chances)
    assert probabilities(np.full(4, math.nan), 100.0) == ({}, {})


def test_a_higher_rank_is_found_less() -> None:
    for learnt in (LEARNT, TRIED):
        ahead, near, far = (
            probabilities(gone_on([rank] * 4), 500.0, learnt)[0] for rank in (-20.0, 0.0, 6.0)
        )
        assert all(ahead[n] > near[n] > far[n] for n in near)


def test_who_is_far_ahead_of_all_made_up_people_may_be_at_risk() -> None:
    assert probabilities(np.full(4, -FARTHEST), 5_000.0)[0][3] > 0.6
    assert probabilities(np.zeros(4), 5_000.0)[0][3] < 0.5


def test_ranks_are_counted_and_carried_on_by_hand() -> None:
    """The line is the 31st best of a hundred scores, 69; the thirty above it lie 15.5 above it on average."""
    others = np.arange(100.0)
    mine = np.array([10.0, 49.5, 69.0, 84.5, 100.0, 1_000.0])
    wanted = [math.log(89.5), math.log(50), math.log(30.5), math.log(30) - 1, math.log(30) - 2, -FARTHEST]
    found = log_ranks(mine, np.tile(others, (6, 1)))
    assert found == pytest.approx(wanted)
    assert log_ranks(mine * 7, np.tile(others * 7, (6, 1))) == pytest.approx(wanted)
    nobody_else = np.zeros((1, 100))
    assert log_ranks(np.array([0.1]), nobody_else).tolist() == [-FARTHEST]
    assert log_ranks(np.array([0.0]), nobody_else).tolist() == [math.log(50)]


def test_a_rank_is_one_of_the_community_s_people() -> None:
    """Half of the made-up people write as the post does, the person and the other half not: these are tied."""
    made = sp.csr_matrix(np.array([[9, 0], [0, 9]] * 40))
    keys = np.array([10, 20, 30], np.uint64)
    posts = sp.csr_matrix(np.array([[0, 2, 1], [0, 1, 0], [4, 0, 0], [0, 1, 0]]))
    counted = counted_posts(posts, keys, keys[:2], keys[2:], 2)
    early, late = counted.halves
    for people, halved in ((80, 1), (40, 2)):
        rivals = MadeUpRivals.of(made, np.zeros(80, np.int64), np.array([0.5, 0.5]), people=people)
        rank = rivals.log_rank(counted, early, counted, np.array([2]), 1)
        assert rank == pytest.approx(math.log(60 / halved))
        assert math.isnan(rivals.log_rank(counted, early, counted, late, 3))


def test_columns_follow_the_card() -> None:
    card, own = np.array([7, 3, 9], np.uint64), np.array([3, 4, 9], np.uint64)
    counted = counted_posts(sp.csr_matrix(np.array([[1, 2, 3]])), own, card, own, 1)
    assert counted.counts.toarray()[0].tolist() == [0, 1, 3, 0, 2, 0, 0]


def test_accounts_without_posts_are_told_so(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("item,rating\nBlue,4\nRed,5\n", encoding="utf-8")
    one = crowd_of_export([file])
    with pytest.raises(InputError, match="the first account has 0 posts"):
        link_accounts(one, one)


def test_the_same_account_twice_is_told_so(halves: list[tuple[Path, Path]], card: Card) -> None:
    with pytest.raises(InputError, match="they are the same account"):
        linked(halves[0][0], halves[0][0], card)


def test_whoever_is_like_nobody_is_at_risk_by_three_posts_and_a_change_helps(tmp_path: Path) -> None:
    """How far somebody comes before made-up people counts, and may be anything higher among real ones."""
    one_of_a_kind = [f"sourdough lighthouse squeaking sicilian {k}" for k in range(12)]
    # Nothing of the earlier posts comes again.
    changed = [
        "time",
        "people",
        "good",
        "day",
        "work",
        "thing",
        "year",
        "way",
        "home",
        "life",
        "game",
        "money",
    ]
    told = {}
    for name, texts in (("alone", one_of_a_kind), ("changed", changed)):
        path = tmp_path / f"{name}.jsonl"
        rows = [{"author": "me", "text": text, "time": 1_600_000_000 + k} for k, text in enumerate(texts)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = assess([path], options=AdvisorOptions(advice=False)).assessments
        told[name] = next(
            one
            for one in found
            if one.measure == "recognition" and one.assumptions.parameters["posts_known"] == 3
        )
    assert told["alone"].value > 0.5
    assert told["alone"].interval is not None
    assert told["alone"].interval[1] == 1.0
    assert told["changed"].value < told["alone"].value - 0.01


def in_german(path: Path, things: str) -> Path:
    rows = [
        {
            "user": "wer",
            "community": "x",
            "text": f"{thing} ist heute nicht so gut wie gestern und ich bin müde",
        }
        for thing in things.split() * 5
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_accounts_in_a_language_that_the_card_does_not_hold_are_not_called_linked(
    halves: list[tuple[Path, Path]],
    card: Card,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What two strangers share in German, nobody made up from an English card has: both would be taken for one."""
    cars = in_german(tmp_path / "cars.jsonl", "Wagen Motor Getriebe Bremse")
    garden = in_german(tmp_path / "garden.jsonl", "Beet Rasen Kompost Tomate")
    for pair, said in (
        ((cars, garden), "both accounts are in a language that the card does not hold"),
        ((cars, halves[0][0]), "your first account is in a language"),
        ((halves[0][0], garden), "your second account is in a language"),
    ):
        found = linked(*pair, card)
        assert math.isnan(found.probability)
        assert found.sentence().startswith(f"Cannot tell: {said}")
        assert not found.assessment.defined
    page = tmp_path / "link.html"
    told = incrowd(capsys, "link", cars, garden, "--json", "--html", page, "--fail-above", "0.99")
    assert told.code == 1  # unknown is not safe
    answer = json.loads(told.out)
    assert answer["probability"] is None
    assert answer["gives_away"] == []
    assert "Cannot tell" in page.read_text(encoding="utf-8")


def test_the_sentence_says_what_linking_takes_and_nothing_is_shown_as_nothing(
    halves: list[tuple[Path, Path]], card: Card
) -> None:
    found = linked(*halves[0], card)
    few = replace(found, found=replace(found.found, probability=dict.fromkeys(KNOWN, 0.1)))
    assert few.sentence().endswith(
        "To link them half of the time takes more posts than your second account has."
    )
    sure = replace(found, found=replace(found.found, probability=dict.fromkeys(KNOWN, 0.9)))
    assert sure.sentence().endswith("To link them half of the time takes 1 post of the second.")
    faint = Evidence(what="the word “faint”", contribution=0.004 * found.likeness)
    assert replace(found, evidence=(*found.evidence, faint)).shown == found.evidence
