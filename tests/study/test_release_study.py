"""The study of paper 001: its rows are right, its rivals do what their names say, its page names nobody."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from incrowd.cli import app
from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.measures.release import HolderIndex, SuppressOptions, measure_q
from incrowd.report.page import study_page
from incrowd.study.figures import Study, Table
from incrowd.study.release import release_study
from incrowd.study.release_data import AT_RANDOM, Released, ReleaseStudyOptions, asked_of, release, spellings
from incrowd.study.release_questions import _class_row, by_columns, by_holders_alone, by_rows, small_answers
from incrowd.synthetic import SyntheticHolders

OPTIONS = ReleaseStudyOptions(thresholds=(5, 8), classes=6)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    made = SyntheticHolders(users=250, values=80, favourites=3.0, spellings=3, locations=8, affiliations=5)
    return made.crowd(tmp_path_factory.mktemp("holders") / "crowd")


@pytest.fixture(scope="module")
def study(crowd: Crowd) -> Study:
    return release_study(crowd, OPTIONS)


def table(study: Study, title: str) -> Table:
    found = [part for one in study.sections for part in one.parts if part.title == title]
    assert len(found) == 1
    assert isinstance(found[0], Table)
    return found[0]


def test_the_attribute_with_most_values_is_asked_for(crowd: Crowd) -> None:
    asked = asked_of(crowd, OPTIONS)
    rows = crowd.attributes().filter(attribute="favourite").unique().collect()
    assert asked.interest == "favourite"
    assert len(asked.user) == rows.height
    assert asked.people == 250
    assert set(asked.classes) == {"location", "affiliation"}
    assert sum(map(len, asked.classes["location"])) == 250


def test_items_are_asked_for_where_there_are_any(tiny_crowd: Crowd) -> None:
    asked = asked_of(tiny_crowd, OPTIONS)
    assert asked.interest == "items"
    assert len(asked.names) == tiny_crowd.items().select("item").unique().collect().height


def test_without_attributes_classes_are_drawn_at_random(tmp_path: Path) -> None:
    rows = pl.DataFrame({"user": [f"u{k}" for k in range(60)] * 2, "item": ["a"] * 60 + ["b"] * 60})
    asked = asked_of(Crowd.from_frame(rows, kind="items", path=tmp_path / "crowd"), OPTIONS)
    assert [len(one) for one in asked.classes[AT_RANDOM]] == [60, 50, 25]


def test_a_class_holds_its_own_answer_only(crowd: Crowd) -> None:
    asked = asked_of(crowd, OPTIONS)
    members = asked.classes["location"][0]
    index = asked.index(members=members)
    assert index.names is not None
    assert set(index.names) <= set(members.tolist())
    inside = np.isin(asked.user, members)
    assert sorted(index.values) == sorted(set(asked.value[inside].tolist()))


def test_tidying_joins_spellings_and_keeps_every_person(crowd: Crowd) -> None:
    asked = asked_of(crowd, OPTIONS)
    written, tidied, alike = spellings(asked, {})
    assert written.things > tidied.things >= alike.things
    for one in (tidied, alike):
        assert set(asked.index(one.number).names or ()) == set(asked.user.tolist())
    assert max(asked.index(tidied.number).supports) > max(asked.index(written.number).supports)


def test_an_alias_joins_what_folding_cannot(crowd: Crowd) -> None:
    asked = asked_of(crowd, OPTIONS)
    first, second = asked.names[0], asked.names[-1]
    number = spellings(asked, {first: second})[1].number
    assert number[0] == number[-1]


def test_released_counts_what_is_left_and_says_when_there_was_no_time() -> None:
    index = HolderIndex.from_holders({"common": range(20), "rare": [1, 2]})
    found = release(index, 10, SuppressOptions())
    assert (found.values, found.enough, found.released, found.entries) == (2, 1, 1.0, 20.0)
    assert found.share == pytest.approx(20 / 22)


def test_counting_holders_breaks_the_paper_s_second_query() -> None:
    index = HolderIndex.from_holders({"x": [*"CD"], "y": [*"DE"], "z": [*"CE"]})
    found = by_holders_alone(index, 2, seconds=1.0)
    assert found is not None
    assert found.broken
    assert found.q == pytest.approx(1.5 / 2)
    assert by_holders_alone(index, 3, seconds=1.0) is None


def test_small_answers_are_measured_exactly() -> None:
    rng = np.random.default_rng(1)
    holders = {value: rng.choice(60, 20, replace=False) for value in range(12)}
    index = HolderIndex.from_holders(holders)
    found = small_answers(index, 10, draws=6, seed=2, seconds=5.0)
    assert len(found) == 6
    assert all(one.broken != one.kept for one in found)
    assert all(one.values == 8 for one in found)


def test_blanked_values_leave_rows_that_k_people_share() -> None:
    rng = np.random.default_rng(3)
    people, k = 200, 10
    owned = rng.random((people, 9)) < np.array([0.5, 0.4, 0.3, 0.3, 0.2, 0.1, 0.1, 0.05, 0.01])
    index = HolderIndex.from_holders({v: np.flatnonzero(owned[:, v]) for v in range(9)})
    left = by_columns(index, k, people)
    assert 0 < left.values < 9
    supports = np.sort(owned.sum(axis=0))[::-1]
    assert left.mentions <= supports[: left.values].sum()
    by_hand = _columns_by_hand(owned, k)
    assert (left.values, left.mentions) == (len(by_hand), int(owned[:, by_hand].sum()))


def _columns_by_hand(owned: np.ndarray, k: int) -> list[int]:
    kept: list[int] = []
    for value in np.argsort(-owned.sum(axis=0), kind="stable").tolist():
        _, shared = np.unique(owned[:, [*kept, value]], axis=0, return_counts=True)
        if shared.min() >= k:
            kept.append(value)
    return kept


def test_left_out_rows_are_those_few_people_share() -> None:
    index = HolderIndex.from_holders({"a": range(12), "b": [*range(10, 12), *range(20, 30)], "c": [40]})
    left = by_rows(index, 10, index.users)  # ten list a alone, ten b alone, two both, one c
    assert (left.values, left.mentions, left.people) == (2, 20, 20)


def test_what_the_study_reports_is_what_the_engine_says(crowd: Crowd, study: Study) -> None:
    rows = table(study, "Values that may leave, before and after").rows
    asked = asked_of(crowd, OPTIONS)
    for threshold, spelling, values, enough, leave, *_ in rows:
        one = next(s for s in spellings(asked, {}) if s.name == spelling)
        index = asked.index(one.number)
        assert values == len(index.values)
        assert enough == (index.supports >= threshold).sum()
        assert 0 < leave <= enough


def test_counting_holders_is_shown_to_break_the_threshold(study: Study) -> None:
    rows = table(study, "Answers released by counting holders alone (LCV)").rows
    assert len(rows) == 4
    for _, _, number, broken, kept, unknown, _ in rows:
        assert number > 0
        assert broken + kept + unknown == pytest.approx(100)
    assert max(row[3] for row in rows) > 50


def test_k_anonymity_of_the_same_table_leaves_less(study: Study) -> None:
    rows = table(study, "What is left of the table for everybody, spellings tidied").rows
    for ours, blanked, left_out in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        assert ours[2] > blanked[2]
        assert ours[2] > left_out[2]


def test_larger_classes_release_more(study: Study) -> None:
    rows = table(study, "Answers of the classes looked at").rows
    assert all(row[3] == 0 for row in rows), "every class was known"
    shares = {(row[0], row[1]): row[5] for row in rows}
    assert shares[5, "tidied"] >= shares[8, "tidied"]


def test_the_page_is_whole_and_shows_no_person_and_no_value(crowd: Crowd, study: Study) -> None:
    page = study_page(study)
    json.dumps(study.to_dict(), allow_nan=False)
    assert "https://" not in page
    rows = crowd.attributes().collect()
    for name in {*rows["user"], *rows["value"]}:
        assert f">{name}<" not in page


def test_an_unknown_attribute_is_a_clear_error(crowd: Crowd) -> None:
    with pytest.raises(InputError, match="affiliation, favourite, location"):
        asked_of(crowd, ReleaseStudyOptions(attribute="films"))


def test_a_crowd_of_posts_alone_is_a_clear_error(tmp_path: Path) -> None:
    posts = pl.DataFrame({"user": ["a"], "community": ["c"], "time": [1], "text": ["hello"]})
    with pytest.raises(InputError, match="--kind items"):
        asked_of(Crowd.from_frame(posts, path=tmp_path / "crowd"), OPTIONS)


def test_the_command_writes_the_page(crowd: Crowd, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    arguments = ["--threshold", "8", "--classes", "2", "--json", "--out", str(out)]
    ran = CliRunner().invoke(app, ["study", "release", str(crowd.path), *arguments])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["facts"]["thresholds"] == "8"
    assert "paper 001" in out.read_text("utf-8")


def test_rows_agree_with_a_measurement_of_the_released_set(crowd: Crowd) -> None:
    asked = asked_of(crowd, OPTIONS)
    index = asked.index(spellings(asked, {})[1].number)
    found = by_holders_alone(index, 60, seconds=2.0)
    enough = [v for v, users in zip(index.values, index.supports, strict=True) if users >= 60]
    if found is None:
        assert not enough
    else:
        assert found.broken == ((measure_q(index.patterns(enough)).q or 0) < 60)


def test_a_class_without_a_proof_in_time_is_unknown_and_not_empty() -> None:
    row = {"threshold": 10, "values": 4, "enough": 4, "entries": 20.0, "share": 0.5}
    known, late = Released(**row, released=2.0), Released(**{**row, "released": np.nan})
    assert _class_row([known, late]) == (2, 1, 100.0, 50.0, 2.0)
    assert _class_row([late])[:2] == (1, 1)
