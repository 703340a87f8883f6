"""The card inside: small, private, and enough for an answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.running import incrowd

from incrowd import AdvisorOptions, Card, Crowd, Standing, assess, default_card
from incrowd.cards.background import Background, OverBackground, blended, describe_over
from incrowd.cards.card import LARGEST_FILE
from incrowd.cards.laws import Community
from incrowd.cards.make import CardOptions
from incrowd.cards.members import read_members
from incrowd.cards.noise import library
from incrowd.errors import InputError
from incrowd.text.options import TextOptions


def test_it_is_small_and_says_what_it_is() -> None:
    card = default_card()
    assert len(card.to_bytes()) < LARGEST_FILE
    assert card.communities == ("Reddit",)
    assert Community.of(card, "Reddit").people > 3_000
    assert card.head["left_out"]
    assert card.head["sources"]


def test_its_parts_spend_no_more_than_epsilon_three() -> None:
    """Added up here again, and turned into (epsilon, delta) by OpenDP."""
    privacy = default_card().head["privacy"]
    spent = privacy["accountant"]["spent"]
    scale = 1 / math.sqrt(2 * sum(spent.values()))  # of Gaussian noise on one count that would cost as much
    assert privacy["delta"] <= 1e-6
    assert library().epsilon(scale, privacy["delta"]) <= 3.0
    assert set(spent) >= {"people", "lengths", "listed", "hours", "words", "concentration", "sections"}
    assert default_card().facts("Reddit")["accuracy"] is None  # it would have to be paid for, too


def test_it_holds_words_and_numbers_alone() -> None:
    for name, table in default_card().tables("Reddit").items():
        texts = [column for column in table.columns if table.schema[column] == pl.String]
        assert set(texts) <= {"word", "topic"}, name


def test_an_export_alone_gets_an_answer(
    outsiders: list[str], export_of: Callable[..., Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    told = incrowd(capsys, "assess", export_of(outsiders[0]), "--json", "--html", page, "--fail-above", "0")
    assert told.code == 1, told.err
    answer = json.loads(told.out)
    measured = {one["measure"]: one["standing"] for one in answer["assessments"]}
    assert measured["recognition"] == measured["exposure"] == str(Standing.ESTIMATED)
    assert "disclosures" in measured
    assert "Reddit" in page.read_text(encoding="utf-8")


WALK = "I took the dog to the park for a walk"


def mastodon(path: Path, said: str = WALK) -> Path:
    notes = [
        {
            "type": "Create",
            "published": f"2020-01-{day + 1:02d}T10:00:00Z",
            "object": {
                "type": "Note",
                "content": f"<p>{said}, day {day}</p>",
                "to": ["https://www.w3.org/ns/activitystreams#Public"],
            },
        }
        for day in range(20)
    ]
    outbox = {"id": "outbox.json", "type": "OrderedCollection", "orderedItems": notes}
    path.write_text(json.dumps(outbox), encoding="utf-8")
    return path


def test_who_writes_elsewhere_is_told_whose_people_these_are(
    outsiders: list[str], export_of: Callable[..., Path], card: Card, tmp_path: Path
) -> None:
    options = AdvisorOptions(advice=False)
    toots = mastodon(tmp_path / "outbox.json")
    report = assess([toots], options=options)
    (why,) = [one.why for one in report.not_assessed if one.measure == "recognition (where you write)"]
    assert "Mastodon archive" in why
    assert "people of Reddit" in why
    subjects = {one.subject for one in report.assessments if one.measure in ("recognition", "anonymity")}
    assert subjects == {"you, among people of Reddit"}
    for files, chosen in (([toots], card), ([export_of(outsiders[0])], None)):
        told = assess(files, card=chosen, options=options).not_assessed
        assert "recognition (where you write)" not in {one.measure for one in told}


def test_advice_to_who_writes_elsewhere_is_about_no_posts_in_reddit(tmp_path: Path) -> None:
    ill = "My cancer is back, so the chemo and radiation for the tumor and the oncologist start again"
    report = assess([mastodon(tmp_path / "outbox.json", ill)])
    assert report.actions
    assert not [one for one in report.actions if "Reddit" in one.what + one.loss]


# Over a background


def test_clear_numbers_are_the_people_s_and_drowned_ones_the_background_s() -> None:
    shares = np.geomspace(0.1, 1e-6, 2_000)
    noisy = np.concatenate([np.full(100, 900.0), np.zeros(1_900)])
    found = blended(noisy, 10.0, shares, k=25)
    assert found[:100].tolist() == [900.0] * 100
    assert found[100:].max() <= 25 + 4 * 10
    group = found[100:400]
    assert (np.diff(group) <= 0).all()  # in the background's order
    with pytest.raises(InputError, match="drowns every word"):
        blended(np.zeros(50), 10.0, shares[:50], k=25)


def test_no_word_of_the_people_s_own_is_in_a_card_over_a_background(people: Crowd) -> None:
    options = CardOptions(k=2, epsilon=20.0, delta=1e-6, words_each=200)
    members = read_members(people, None, options.text)
    public = (*sorted(members.vocabulary)[::2], "zzzunheard")
    background = Background(tuple(sorted(public)), np.full(len(public), 1 / len(public)))
    community, noise = describe_over(members, background, options, "x")
    assert set(community.words) == set(public)
    assert isinstance(noise, OverBackground)
    assert sum(noise.spent.values()) <= noise.budget * (1 + 1e-9)
    assert noise.facts()["epsilon"] == 20.0
    with pytest.raises(InputError, match="goes with epsilon"):
        describe_over(members, background, CardOptions(), "x")


def test_background_words_are_those_of_several_communities() -> None:
    texts = pl.Series(["tea cup", "tea pot", "tea", "coffee"])
    made = Background.of(texts, ["a", "b", "c", "c"], TextOptions())
    assert made.words == ("tea",)
    assert made.shares.tolist() == [1.0]
