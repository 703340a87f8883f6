from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.crowd.making import post, write_jsonl

from incrowd.crowd import Crowd
from incrowd.crowd.plan import JobCost, JobStep, MachineRates, Planner, plan_import
from incrowd.crowd.readers.base import ReadOptions
from incrowd.errors import NotInCrowd

RATES = MachineRates(text_bytes=10.0, pairs=2.0, cells=0.5, item_pairs=4.0)
ROWS = [
    *(post(user, "four", "books", n) for n, user in enumerate(["ann", "ann", "bob", "cy"])),
    post("ann", "zwölf", "films"),
]


@pytest.fixture
def planner() -> Planner:
    return Planner.of(Crowd.from_frame(pl.DataFrame(ROWS)))


def test_counts_are_exact(planner: Planner) -> None:
    assert planner.reading() == [
        JobStep(what="read books", rows=4, text_bytes=16, identities=3),
        JobStep(what="read films", rows=1, text_bytes=6, identities=1),
    ]
    assert [step.pairs for step in planner.within()] == [3, 0]
    assert planner.between("books", "films").pairs == 3
    assert planner.one_against(["books"])[0].pairs == 3
    assert planner.communities_of("ann") == ["books", "films"]


def test_people_with_too_few_posts_are_not_counted() -> None:
    few = Planner.of(Crowd.from_frame(pl.DataFrame(ROWS)), min_posts=2)
    assert few.reading(["books"])[0].identities == 1
    assert few.within(["books"])[0].pairs == 0


def test_items_are_compared_pair_by_pair() -> None:
    crowd = Crowd.from_frame(pl.DataFrame({"user": list("abcd"), "item": list("xxyz")}), kind="items")
    assert Planner.of(crowd).items() == JobStep(
        what="compare everybody's items", rows=4, identities=4, item_pairs=6
    )


def test_a_community_that_is_not_there(planner: Planner) -> None:
    with pytest.raises(NotInCrowd, match="nowhere"):
        planner.between("books", "nowhere")


def test_time_is_work_over_speed_and_the_worst_step_is_named() -> None:
    reading, comparing = (
        JobStep(what="read", rows=3, text_bytes=40),
        JobStep(what="compare", pairs=20, item_pairs=8),
    )
    plan = JobCost(command="x", steps=(reading, comparing), rates=RATES)
    assert plan.seconds_of(reading) == 4.0
    assert plan.seconds_of(comparing) == 12.0
    assert plan.worst == comparing
    assert plan.memory == 40 * 0.5 * 12
    plain = plan.to_dict()
    assert (plain["rows"], plain["pairs"], plain["worst"]["what"]) == (3, 28, "compare")
    assert plain["seconds"] == {"low": 8.0, "likely": 16.0, "high": 48.0}


def test_a_small_import_is_counted_and_a_large_one_estimated(tmp_path: Path) -> None:
    small = write_jsonl(tmp_path / "small.jsonl", [post("a", "x")] * 50)
    large = write_jsonl(tmp_path / "large.jsonl", [post("a", "word " * 40)] * 40_000)
    first, second = plan_import([small, large], "auto", ReadOptions())
    assert first.rows == 50
    assert second.rows == pytest.approx(40_000, rel=0.05)
    assert second.text_bytes == large.stat().st_size


def test_rows_are_estimated_by_lines_not_by_the_length_of_the_first(tmp_path: Path) -> None:
    short, long = [post("a", "word " * 10)] * 60_000, [post("a", "word " * 100)] * 20_000
    path = write_jsonl(tmp_path / "uneven.jsonl", [*short, *long])
    (step,) = plan_import([path], "auto", ReadOptions())
    assert step.estimated
    assert step.rows == pytest.approx(80_000, rel=0.02)
    assert step.text_bytes == pytest.approx(path.stat().st_size, rel=0.01)
