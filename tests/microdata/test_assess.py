"""Assessments of one person: they add up, promise what they keep, and name nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from incrowd.crowd import Crowd
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.microdata.assess import assess_person, assess_row, crowd_of_everybody
from incrowd.measures.microdata.evaluation import agreement, evaluate, score_table
from incrowd.measures.microdata.expected_crowd import expected_others_of_all
from incrowd.measures.microdata.set_sizes import Effort
from incrowd.measures.microdata.spec import ADVERSARIES, FEW_ITEMS, PAPER, ProfileFilter, ScoreSpec, adversary
from incrowd.measures.microdata.table import ItemTable, item_table
from incrowd.result import Direction, Standing


@pytest.fixture
def crowd(frame: pl.DataFrame) -> Crowd:
    return Crowd.from_frame(frame, kind="items")


def test_every_adversary_gives_an_exact_crowd_whose_evidence_adds_up(table: ItemTable) -> None:
    everybody = crowd_of_everybody(table)
    found = assess_row(table, 4, list(ADVERSARIES.values()), everybody=everybody)
    assert len(found) == len(ADVERSARIES) + 2
    for one, who in zip(found, ADVERSARIES.values(), strict=False):
        assert one.exact
        assert one.assumptions.adversary == who.words
        assert one.direction == Direction.HIGHER_IS_SAFER
        assert sum(part.contribution for part in one.evidence) == pytest.approx(one.value)
        assert one.baseline == 60
    assert everybody is not None
    assert found[0].value == pytest.approx(1 + everybody[4])
    assert found[0].crowd_rank == int((everybody < everybody[4] - 1e-9).sum()) + 1


@pytest.mark.parametrize("name", ["paper", "ratings", "rarest"])
def test_the_effect_promised_is_the_effect_measured_after_doing_it(frame: pl.DataFrame, name: str) -> None:
    table = item_table(frame)
    for user in ("user0004", "user0021"):
        before = assess_row(table, table.row_of(user), [adversary(name)])[0]
        for advice in before.advice:
            count = int(advice.loss.split()[0])
            items = table.profile(table.row_of(user))
            rarest = items[np.argsort(table.popularity[items], kind="stable")][:count]
            names = table.items.gather(rarest.tolist())
            kept = frame.filter((pl.col("user") != user) | ~pl.col("item").is_in(names.implode()))
            done = item_table(kept)
            after = assess_row(done, done.row_of(user), [adversary(name)])[0]
            assert after.value == pytest.approx(advice.after, rel=1e-12)
            assert advice.after > advice.before


def test_how_often_found_is_exact_or_says_it_is_not(table: ItemTable) -> None:
    exact = assess_row(table, 4, [])[-1]
    assert exact.exact
    assert exact.standing == Standing.PROVED
    assert 1 / 60 < exact.value <= 1
    drawn = assess_row(table, 4, [], effort=Effort(steps=0, rounds=500, seed=2))[-1]
    assert drawn.interval is not None
    assert drawn.interval[0] <= exact.value <= drawn.interval[1]
    assert (drawn.assumptions.seed, drawn.standing) == (2, Standing.HEURISTIC)


def test_a_member_s_score_comes_with_group_and_rank(table: ItemTable) -> None:
    scored = score_table(table, ScoreSpec())
    for row in (0, 31):
        one = assess_row(table, row, [])[0]
        assert one.value == pytest.approx(scored.scores[row])
        assert one.crowd_rank == 1 + int((scored.scores < scored.scores[row] - 1e-9).sum())
        assert sum(part.contribution for part in one.evidence) == pytest.approx(scored.raw[row])
        group = scored.groups.of(scored.scores)[row]
        assert f"about {scored.groups.members[group]:,} people" in one.meaning


def test_a_person_is_found_by_name_in_a_crowd_under_pseudonyms(frame: pl.DataFrame, tmp_path) -> None:  # type: ignore[no-untyped-def]
    crowd = Crowd.from_frame(frame, kind="items", path=tmp_path / "crowd", plain_names=False)
    found = assess_person(crowd, "user0004")
    plain = assess_row(item_table(frame), item_table(frame).row_of("user0004"), [adversary("paper")])
    (same,) = (one for one in found if one.assumptions.adversary == PAPER.words and one.unit == "people")
    assert same.value == pytest.approx(plain[0].value)
    assert same.assumptions.data_hash == crowd.data_hash
    assert len(found) == len(FEW_ITEMS) + len(ADVERSARIES) + 2
    assert found[0].assumptions.parameters["takes"].keys() == {"random", "rarest", "dated"}
    with pytest.raises(NotInCrowd):
        assess_person(crowd, "nobody")


def test_the_second_question_is_answered_from_the_cache(crowd: Crowd) -> None:
    table = item_table(crowd)
    first = crowd_of_everybody(table, cache=crowd.cache)
    (kept,) = crowd.cache.glob("microdata-*.npy")
    np.save(kept, np.arange(60.0))
    again = crowd_of_everybody(table, cache=crowd.cache)
    assert first is not None
    assert again is not None
    assert again.tolist() == list(range(60))
    other = item_table(crowd, ProfileFilter(fewest=12))
    fresh = crowd_of_everybody(other, cache=crowd.cache)
    assert fresh is not None
    assert len(fresh) == other.matrix.shape[0] < 60


def test_no_word_about_anybody_else(frames: Callable[..., pl.DataFrame]) -> None:
    frame = frames(40, 30)
    secret = pl.DataFrame(
        {
            "user": [f"user{k:04d}" for k in range(1, 40)],
            "item": [f"MARKER{k}" for k in range(1, 40)],
            "value": [5.0] * 39,
            "time": [1_000_000_000] * 39,
        }
    )
    crowd = Crowd.from_frame(pl.concat([frame, secret]), kind="items")
    printed = json.dumps([one.to_dict() for one in assess_person(crowd, "user0000")])
    assert "MARKER" not in printed
    others = [f"user{k:04d}" for k in range(1, 40)]
    assert not any(name in printed for name in others)


def test_people_with_too_few_items_are_not_there_and_lonely_crowds_are_refused(crowd: Crowd) -> None:
    with pytest.raises(NotInCrowd, match="no profile of the size"):
        assess_person(crowd, "user0000", profiles=ProfileFilter(fewest=200))
    alone = Crowd.from_frame(
        pl.DataFrame({"user": ["a"] * 9, "item": [str(k) for k in range(9)]}), kind="items"
    )
    with pytest.raises(InputError, match="at least 2 people"):
        assess_person(alone, "a")


def test_an_evaluation_holds_the_truth_and_every_score(frames: Callable[..., pl.DataFrame]) -> None:
    table = item_table(frames(400, 80, seed=5), ProfileFilter())
    plain = evaluate(table).to_dict()
    assert (plain["users"], plain["items"], plain["exact"]) == (400, 80, True)
    assert set(plain["scores"]) == {"paper", "expected-crowd", "independent", "expected-crowd-taste"}
    for one in plain["scores"].values():
        assert one["spearman"] > 0.8
        assert one["kendall"] > 0.6
    assert plain["median_crowd"] >= 1
    assert plain["warnings"]
    json.dumps(plain, allow_nan=False)


def test_an_evaluation_does_not_depend_on_the_order_of_people(frames: Callable[..., pl.DataFrame]) -> None:
    frame = frames(120, 50, seed=6)
    renamed = frame.with_columns(user=pl.concat_str(pl.lit("z"), pl.col("user").str.reverse()))
    one, other = evaluate(item_table(frame)), evaluate(item_table(renamed.reverse()))
    assert np.sort(one.others) == pytest.approx(np.sort(other.others), rel=1e-12)
    assert one.agreements["paper"].spearman == pytest.approx(other.agreements["paper"].spearman)


def test_scores_that_do_not_vary_have_no_correlation() -> None:
    flat = agreement(np.ones(5), np.arange(5.0))
    assert flat.to_dict() == {"spearman": None, "kendall": None}


def test_one_class_is_the_plain_estimate(table: ItemTable) -> None:
    from incrowd.measures.microdata.expected_crowd import independent

    p, share = independent(table.popularity / 60)
    result = evaluate(table)
    want = expected_others_of_all(table.matrix, p, share * 59, result.knowledge)
    assert result.estimates["independent"].tolist() == want.tolist()
