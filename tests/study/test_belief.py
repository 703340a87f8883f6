"""The belief study: its parts, its arithmetic, and what words add."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.belief.making import table_of
from tests.cli.running import incrowd

from incrowd.crowd import Crowd
from incrowd.profiles.attributes import HIDDEN, AttributeSpace, TableChoices, attribute_table, from_long
from incrowd.study.belief import belief_study, rises
from incrowd.study.belief_experiments import FEWEST, GUESSING, PEOPLE, BeliefStudyOptions, folds

SMALL = BeliefStudyOptions(people=36, policies=30, repairs=2)


def quiet(*_: object) -> None:
    """Say nothing."""


def twins(people: int = 120, missing: float = 0.1) -> object:
    """b repeats a; c is a coin."""
    rng = np.random.default_rng(0)
    a = rng.integers(4, size=people)
    codes = np.column_stack([a, a, rng.integers(2, size=people)])
    codes[rng.random(codes.shape) < missing] = HIDDEN
    return table_of(AttributeSpace.of({"a": list("wxyz"), "b": list("wxyz"), "c": ["0", "1"]}), codes)


def test_the_study_has_all_its_parts(tiny_crowd: Crowd) -> None:
    study = belief_study(attribute_table(tiny_crowd), SMALL, tiny_crowd).to_dict()
    assert [one["heading"] for one in study["sections"]] == [
        "What gives what away",
        "Are beliefs honest?",
        "Can withholding repair it?",
        "Beside counting: k-anonymity of single attributes",
        "What words give away",
    ]
    json.dumps(study, allow_nan=False)
    for section in study["sections"]:
        for part in section["parts"]:
            counted = {"people", "cases", "guesses"} & set(part.get("columns", ()))
            assert all(row[part["columns"].index(name)] >= FEWEST for name in counted for row in part["rows"])
    tells = {(row[0], row[1]) for row in study["sections"][0]["parts"][1]["rows"][:6]}
    assert ("zip", "region") in tells or ("city", "region") in tells


def test_everybody_is_left_out_once_and_never_known() -> None:
    table = twins()
    found = list(folds(table, BeliefStudyOptions(people=1000), quiet))
    held = np.concatenate([one.held_rows for one in found])
    assert sorted(held) == list(range(120))
    for one in found:
        assert not set(one.held_rows) & set(one.train_rows)
        assert len(one.held_rows) + len(one.train_rows) == 120
    assert sum(len(one.held_rows) for one in folds(table, BeliefStudyOptions(people=30), quiet)) == 30


def test_a_twin_gives_all_away_and_a_coin_nothing() -> None:
    found = rises(folds(twins(), BeliefStudyOptions(people=200), quiet))
    assert found[0, 1].mean() > 0.5
    assert abs(found[2, 1].mean()) < 0.05
    study = belief_study(twins(), BeliefStudyOptions(people=200, repairs=5)).to_dict()
    alone = {row[0]: row[2] for row in study["sections"][0]["parts"][0]["rows"]}
    assert min(alone["a"], alone["b"]) > 10 * abs(alone["c"])
    repair = {row[0]: row for row in study["sections"][2]["parts"][0]["rows"]}
    assert repair["a"][2] > 0.8  # violated: b gives a away
    assert repair["a"][3] == 0  # a blind guess is never surer than one half
    assert repair["a"][5] == 1  # withholding b repairs it
    assert repair["a"][6] == 1
    assert repair["a"][7] == pytest.approx(2, abs=0.3)  # one of four values tells two bits


def test_sharing_counts_the_known_people_with_the_value() -> None:
    (fold,) = folds(twins(missing=0.0), BeliefStudyOptions(people=24), quiet)
    guesses = fold.guesses(PEOPLE)
    sharing = fold.sharing(guesses)
    first = int(np.flatnonzero((guesses.place == 0) & (guesses.person == 0))[0])
    assert sharing[first] == (fold.train.codes[:, 0] == fold.held.codes[0, 0]).sum()
    blind = fold.guesses(GUESSING)
    np.testing.assert_allclose(blind.true, blind.prior)


def writers(people: int = 80) -> tuple[Crowd, pl.DataFrame]:
    rng = np.random.default_rng(1)
    posts, attributes = [], []
    for number in range(people):
        smith = bool(rng.random() < 0.5)
        words = rng.choice(["iron", "anvil", "hammer"] if smith else ["ward", "patient", "nurse"], 2)
        posts.append((f"p{number:03}", "work", f"today {words[0]} and {words[1]}"))
        attributes += [
            (f"p{number:03}", "job", "smith" if smith else "nurse"),
            (f"p{number:03}", "age", str(rng.integers(18, 60))),
            (f"p{number:03}", "sign", "?" if number % 3 else "ram"),
        ]
    frame = pl.DataFrame(attributes, schema=["user", "attribute", "value"], orient="row")
    return Crowd.from_frame(pl.DataFrame(posts, schema=["user", "community", "text"], orient="row")), frame


def test_words_and_topics_tell_the_job() -> None:
    crowd, frame = writers()
    topics = {"metal": ["iron", "anvil", "hammer"], "health": ["ward", "patient", "nurse"]}
    study = belief_study(from_long(frame), BeliefStudyOptions(people=80), crowd, topics).to_dict()
    chart, table = study["sections"][-1]["parts"]
    right = {(row[0], row[1]): row[3] for row in table["rows"]}
    assert right["job", "nothing (guessing)"] < 0.75
    assert right["job", "words"] > 0.9
    assert right["job", "topics"] > 0.95
    assert right["job", "attributes and words"] > 0.9
    assert {one["name"] for one in chart["series"]} == {seen for _, seen in right}


def test_choices_leave_out_band_and_blank() -> None:
    from incrowd.profiles.attributes import parse_bands

    _, frame = writers(30)
    chosen = TableChoices(bands=parse_bands(["age=30"]), ignore=("job",), unknown=("?",))
    table = chosen.apply(from_long(frame))
    assert table.space.attributes == ("age", "sign")
    assert table.space.values == (("under 30", "30 or more"), ("ram",))
    assert (table.codes[:, 1] == HIDDEN).sum() == 20


def test_the_command_writes_a_page(
    tiny_crowd: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    command = ["study", "belief", tiny_crowd.path, "--out", out, "--people", "36", "--topics", "starter"]
    ran = incrowd(capsys, *command, "--ignore", "birthday", "--bands", "age=width:20", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["facts"]["attributes"] == 19
    assert "What words give away" in out.read_text("utf-8")
    wrong = incrowd(capsys, *command, "--bands", "age=old")
    assert wrong.code == 2
    assert "age=18,25,35" in wrong.err
