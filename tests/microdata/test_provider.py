"""The provider: counting, updating without a full pass, publishing."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from incrowd.errors import InputError, SchemaError, UnreadableSource
from incrowd.measures.microdata.provider import Tally, publish, score_everybody
from incrowd.measures.microdata.spec import ProfileFilter, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import ReleaseState, Statistics, load_statistics

pairs = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=25)


def as_frame(some: set[tuple[int, int]]) -> pl.DataFrame:
    rows = sorted(some)
    return pl.DataFrame(
        {"user": [f"u{u}" for u, _ in rows], "item": [f"i{i}" for _, i in rows]},
        schema={"user": pl.String, "item": pl.String},
    )


def lookup(frame: pl.DataFrame) -> Callable[[pl.Series], pl.DataFrame]:
    return lambda items: frame.filter(pl.col("item").is_in(items.implode()))


@given(
    old=pairs,
    new=pairs,
    gone=st.integers(0, 10),
    spec=st.sampled_from([ScoreSpec(rare_below=3), ScoreSpec(rare_below=1), ScoreSpec(rare_fraction=0.4)]),
)
@settings(max_examples=80, deadline=None)
def test_a_day_s_update_equals_counting_everything_anew(
    old: set[tuple[int, int]], new: set[tuple[int, int]], gone: int, spec: ScoreSpec
) -> None:
    removed = set(sorted(old)[:gone])
    added = new - old
    after = (old | added) - removed
    before = as_frame(old)
    updated = Tally.count(before, spec).updated(as_frame(added), as_frame(removed), holders=lookup(before))
    fresh = Tally.count(as_frame(after), spec)
    assert_frame_equal(updated.items, fresh.items)
    assert_frame_equal(updated.users, fresh.users)


def test_a_table_in_memory_counts_like_its_rows(frames: Callable[..., pl.DataFrame]) -> None:
    from incrowd.measures.microdata.table import item_table

    frame, spec = frames(80, 30), ScoreSpec(rare_below=20)
    rows, table = Tally.count(frame, spec), Tally.of(item_table(frame), spec)
    assert_frame_equal(rows.items, table.items)
    assert_frame_equal(rows.users, table.users)


def test_only_items_that_change_sides_are_looked_up() -> None:
    old = as_frame({(u, 0) for u in range(4)} | {(u, 1) for u in range(2)})
    asked: list[list[str]] = []

    def holders(items: pl.Series) -> pl.DataFrame:
        asked.append(sorted(items.to_list()))
        return lookup(old)(items)

    tally = Tally.count(old, ScoreSpec(rare_below=3))
    quiet = tally.updated(as_frame({(5, 0)}), holders=holders)
    assert asked == []
    assert quiet.users.filter(pl.col("user") == "u5")["rare"].to_list() == [0]
    tally.updated(as_frame({(5, 1)}), holders=holders)
    assert asked == [["i1"]]
    with pytest.raises(InputError, match="Give holders="):
        tally.updated(as_frame({(5, 1)}))


def test_removing_what_was_never_there_is_noticed() -> None:
    tally = Tally.count(as_frame({(0, 0)}))
    with pytest.raises(InputError, match="count anew"):
        tally.updated(as_frame(set()), as_frame({(0, 1)}))


def test_updates_and_full_passes_publish_the_same(frames: Callable[..., pl.DataFrame]) -> None:
    everything = frames(400, 60, seed=3)
    cut = pl.col("user") < "user0350"
    old, new = everything.filter(cut), everything.filter(~cut)
    one = Tally.count(old).updated(new, holders=lookup(old))
    day = dt.date(2026, 1, 2)
    first, _ = publish(one, state=ReleaseState.fresh(b"x"), date=day)
    second, _ = publish(Tally.count(everything), state=ReleaseState.fresh(b"x"), date=day)
    assert first.to_dict() == second.to_dict()


def test_a_release_tells_every_parameter_and_survives_the_file(
    frames: Callable[..., pl.DataFrame], tmp_path
) -> None:  # type: ignore[no-untyped-def]
    statistics, state = publish(Tally.count(frames(300, 50)), date=dt.date(2026, 5, 1))
    path = tmp_path / "statistics.json"
    statistics.write(path)
    plain = json.loads(path.read_text())
    for name in ("rare_below", "log_base", "knowledge", "crowd", "step", "decimals", "trim", "groups_fewest"):
        assert name in plain["parameters"]
    assert (plain["format"], plain["version"], plain["release"]) == ("incrowd-microdata-statistics", 1, 1)
    assert (plain["date"], plain["users"]) == ("2026-05-01", 300)
    assert plain["parameters"]["knowledge"]["rounding"] == "half-up"
    back = load_statistics(path)
    assert back.to_dict() == statistics.to_dict()
    assert back.popularity == statistics.popularity
    assert state.number == 1


def test_nothing_published_is_one_person_s_own(frames: Callable[..., pl.DataFrame]) -> None:
    """The scale's ends are the tenth most extreme people's, not the extremes'; rounded; groups in tens."""
    tally = Tally.count(frames(300, 50))
    safe, _ = publish(tally)
    exact, _ = publish(tally, release=ReleaseSpec(literal=True))
    assert exact.raw_min < safe.raw_min < safe.raw_max < exact.raw_max
    assert safe.raw_min == round(safe.raw_min, 2)
    assert all(group.people % 10 == 0 for group in safe.groups)
    assert safe.users % 10 == 0


@pytest.mark.parametrize("crowd", [10, 25])
def test_no_published_number_is_about_fewer_people(crowd: int) -> None:
    """Three people have far more items than all others: a group of their own would tell their score."""
    sizes = [8 + u % 5 for u in range(120)] + [400, 410, 420]
    frame = as_frame({(u, i) for u, size in enumerate(sizes) for i in range(size)})
    tally = Tally.count(frame)
    exact, _ = publish(tally, release=ReleaseSpec(literal=True))
    assert min(group.people for group in exact.groups) == 3
    safe, _ = publish(tally, release=ReleaseSpec(crowd=crowd))
    assert min(group.people for group in safe.groups) >= crowd
    assert safe.activity.shares.min() * len(sizes) >= crowd - 1  # shares are rounded


@pytest.mark.parametrize(("people", "crowd"), [(20, 10), (150, 1000), (150, 75)])
def test_a_crowd_too_small_for_the_promise_is_refused(people: int, crowd: int) -> None:
    tally = Tally.count(as_frame({(u, i) for u in range(people) for i in range(8 + u % 7)}))
    with pytest.raises(InputError, match=rf"about fewer than {crowd:,} people .* got {people}"):
        publish(tally, release=ReleaseSpec(crowd=crowd))


def test_the_literal_release_is_the_paper_s_algorithm(frames: Callable[..., pl.DataFrame]) -> None:
    frame = frames(300, 50)
    tally = Tally.count(frame, ScoreSpec(rare_below=80))
    statistics, _ = publish(tally, release=ReleaseSpec(literal=True))
    popularity = dict(frame.group_by("item").len().iter_rows())
    assert statistics.popularity == {item: float(people) for item, people in popularity.items()}
    sizes = frame.group_by("user").agg(pl.len(), rare=pl.col("item").replace_strict(popularity).lt(80).sum())
    raw = (sizes["rare"] / sizes["len"] + sizes["len"].log()).to_numpy()
    assert statistics.raw_min == pytest.approx(raw.min())
    assert statistics.raw_max == pytest.approx(raw.max())


def test_profiles_outside_the_filter_count_but_set_no_scale(frames: Callable[..., pl.DataFrame]) -> None:
    giant = pl.DataFrame({"user": ["giant"] * 500, "item": [f"item{k:04d}" for k in range(500)]})
    frame = pl.concat([frames(200, 50).select("user", "item"), giant])
    tally = Tally.count(frame)
    few, _ = publish(tally, release=ReleaseSpec(literal=True), profiles=ProfileFilter(most=400))
    all_, _ = publish(tally, release=ReleaseSpec(literal=True), profiles=ProfileFilter(most=5000))
    assert few.raw_max < all_.raw_max
    assert few.users == all_.users == 201


def test_scores_are_positively_and_raw_risks_negatively_related_to_the_crowd(
    frames: Callable[..., pl.DataFrame],
) -> None:
    from scipy.stats import spearmanr

    from incrowd.measures.microdata.anonymity_set import expected_others
    from incrowd.measures.microdata.evaluation import score_table
    from incrowd.measures.microdata.spec import Knowledge
    from incrowd.measures.microdata.table import item_table

    table = item_table(frames(300, 80))
    others = expected_others(table.matrix, table.matrix, Knowledge())
    scored = score_table(table, ScoreSpec(rare_below=60))
    assert spearmanr(scored.scores, others)[0] > 0.8
    assert spearmanr(scored.raw, others)[0] < -0.8


def test_people_who_are_all_alike_have_one_group_and_no_scale() -> None:
    scored = score_everybody([10, 10, 10], [2, 2, 2], ScoreSpec())
    assert np.isnan(scored.scores).all()
    assert scored.groups.members.tolist() == [3]
    assert scored.raw_min == scored.raw_max


def test_no_profile_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="allow smaller profiles"):
        publish(Tally.count(as_frame({(0, 0)})))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("not json", UnreadableSource, "expected JSON"),
        ("{}", SchemaError, "expected a document of format"),
        ('{"format": "incrowd-microdata-statistics", "version": 9}', SchemaError, "update incrowd"),
        ('{"format": "incrowd-microdata-statistics", "version": 1}', SchemaError, "download it again"),
    ],
)
def test_other_files_are_refused_in_one_sentence(tmp_path, text: str, error: type, message: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(error, match=message):
        load_statistics(path)
    with pytest.raises(UnreadableSource, match="cannot be read"):
        load_statistics(tmp_path / "missing.json")


def test_infinite_scales_are_refused() -> None:
    statistics, _ = publish(Tally.count(as_frame({(u, i) for u in range(30) for i in range(8 + u)})))
    plain = statistics.to_dict()
    plain["scale"]["raw_min"] = math.inf
    with pytest.raises(SchemaError, match="malformed"):
        Statistics.from_dict(plain)
