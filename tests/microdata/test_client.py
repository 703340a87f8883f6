"""The client: a person scores their own list, and learns what hurts."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from incrowd.crowd.own_export import read_export
from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.microdata.client import parse_items, read_items, score, score_assessments
from incrowd.measures.microdata.evaluation import estimate_from
from incrowd.measures.microdata.provider import Tally, publish, publish_taste, score_everybody
from incrowd.measures.microdata.spec import Knowledge, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import Statistics
from incrowd.measures.microdata.table import item_table


@pytest.fixture
def crowd(frames: Callable[..., pl.DataFrame]) -> pl.DataFrame:
    return frames(300, 60, seed=9)


def statistics_of(frame: pl.DataFrame, **release: object) -> Statistics:
    tally = Tally.count(frame, ScoreSpec(rare_below=90))
    return publish(tally, release=ReleaseSpec(**release), date=dt.date(2026, 1, 1))[0]  # type: ignore[arg-type]


def test_the_client_computes_what_the_provider_computed(crowd: pl.DataFrame) -> None:
    tally = Tally.count(crowd, ScoreSpec(rare_below=90))
    statistics = statistics_of(crowd, literal=True)
    everybody = score_everybody(tally.users["items"], tally.users["rare"], tally.spec)
    group = everybody.groups.of(everybody.scores)
    for place in (0, 100, 299):
        mine = crowd.filter(pl.col("user") == tally.users["user"][place])["item"].to_list()
        result = score(mine, statistics)
        assert result.raw == pytest.approx(everybody.raw[place])
        assert result.score == pytest.approx(everybody.scores[place])
        assert result.group == group[place]
        assert not result.clamped


def test_the_expected_crowd_is_the_same_for_one_and_for_all(crowd: pl.DataFrame) -> None:
    statistics, table = statistics_of(crowd), item_table(crowd)
    every = estimate_from(table, statistics, statistics.knowledge)
    for row in (0, 50, 299):
        names = table.items.gather(table.profile(row).tolist()).to_list()
        assert score(names, statistics).others == pytest.approx(every[row], rel=1e-9)


def test_an_unknown_item_counts_as_rare(crowd: pl.DataFrame) -> None:
    statistics = statistics_of(crowd)
    mine = ["item0000", "item0001", "never heard of"]
    result = score(mine, statistics)
    assert (result.items, result.rare, result.unknown) == (3, 1, 1)
    assert score([*mine, "nor of this"], statistics).others < result.others


def test_repeats_and_blanks_do_not_count(crowd: pl.DataFrame) -> None:
    statistics = statistics_of(crowd)
    once = score(["item0000", "item0001"], statistics)
    again = score([" item0001", "item0000", "item0000 ", "", "  "], statistics)
    assert once.to_dict() == again.to_dict()


def test_a_profile_beyond_the_scale_is_clamped_and_flagged(crowd: pl.DataFrame) -> None:
    statistics = statistics_of(crowd)
    huge = score(["item0000", *(f"odd{k}" for k in range(5000))], statistics)
    assert (huge.score, huge.clamped, huge.group) == (0.0, True, 0)
    tiny = score(["item0000"], statistics)
    assert (tiny.score, tiny.clamped, tiny.group) == (1.0, True, len(statistics.groups) - 1)


def test_a_list_of_which_nothing_is_known_gets_no_label(crowd: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="cannot tell: of your 9 items none"):
        score([f"song {k}" for k in range(9)], statistics_of(crowd))


def test_an_empty_list_is_refused(crowd: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="empty profile"):
        score(["", " "], statistics_of(crowd))


def test_without_a_scale_the_score_is_undefined_and_says_why(crowd: pl.DataFrame) -> None:
    flat = replace(statistics_of(crowd), raw_max=1.0, raw_min=1.0)
    result = score(["item0000", "item0001"], flat)
    assert math.isnan(result.score)
    assert result.group is None
    paper, _ = score_assessments(result)
    assert not paper.defined
    assert "no_scale" in paper.reason
    assert result.to_dict()["score"] is None


def test_what_hurts_is_named_with_the_effect_that_leaving_it_out_has(crowd: pl.DataFrame) -> None:
    statistics = statistics_of(crowd)
    mine = ["item0000", "item0003", "item0040", "item0055", "strange"]
    result = score(mine, statistics, hurting=3)
    assert result.hurting[0].item == "strange"
    assert result.hurting[0].people is None
    for one in result.hurting:
        without = score([item for item in mine if item != one.item], statistics)
        assert one.score_without == without.score
        assert one.others_without == pytest.approx(without.others, rel=1e-12)
    gone = {one.item for one in result.hurting}
    rest = score([item for item in mine if item not in gone], statistics)
    assert result.score_without_all == rest.score
    assert result.others_without_all == pytest.approx(rest.others, rel=1e-12)


def test_the_rarest_item_hurts_most(crowd: pl.DataFrame) -> None:
    result = score([f"item{k:04d}" for k in range(0, 60, 4)], statistics_of(crowd))
    effects = [one.others_without for one in result.hurting]
    assert effects == sorted(effects, reverse=True)


def test_taste_groups_are_used_where_published(crowd: pl.DataFrame) -> None:
    table, release = item_table(crowd), ReleaseSpec(taste_groups=3)
    plain = statistics_of(crowd)
    taste = publish_taste(table, plain.activity, release, 90, b"secret")
    assert sum(one.people for one in taste) <= 300
    for one in taste:
        assert one.people >= 2 * release.crowd
        assert all(people > 0 for people in one.popularity.values())
        assert one.activity_shares.sum() == pytest.approx(1)
    with_taste = replace(plain, taste=taste)
    back = Statistics.from_dict(with_taste.to_dict())
    every = estimate_from(table, back, Knowledge())
    names = table.items.gather(table.profile(7).tolist()).to_list()
    assert score(names, back).others == pytest.approx(every[7], rel=1e-9)
    assert np.all(np.isfinite(every))


def test_taste_needs_enough_people(crowd: pl.DataFrame) -> None:
    few = crowd.filter(pl.col("user") < "user0030")
    with pytest.raises(InputError, match="ask for fewer"):
        publish_taste(item_table(few), statistics_of(crowd).activity, ReleaseSpec(taste_groups=4), 90)


def test_the_evidence_adds_up_and_the_advice_helps(crowd: pl.DataFrame) -> None:
    paper, people = score_assessments(score([f"item{k:04d}" for k in range(0, 60, 3)], statistics_of(crowd)))
    assert sum(part.contribution for part in paper.evidence) == pytest.approx(paper.explained)
    for one in (*paper.advice, *people.advice):
        assert one.after > one.before
    assert people.baseline == 300
    assert "would fit" in people.meaning


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("a\nb\n\n a \n", ["a", "b"]),
        ('["a", 7, {"item": "c"}]', ["a", "7", "c"]),
        ('user,item,rating\nme,a,5\nme,"b, or c",4', ["a", "b, or c"]),
        ("user_id:token\titem:token\n1\tx\n1\ty", ["x", "y"]),
        ("one, two\nthree", ["one, two", "three"]),
        ("", []),
    ],
)
def test_lists_are_read_as_lines_json_or_tables(text: str, items: list[str]) -> None:
    assert parse_items(text) == items


def test_unreadable_lists_are_refused_without_quoting_them(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "mine.json"
    path.write_text('["secret item",')
    with pytest.raises(InputError, match="expected a JSON list") as caught:
        read_items(path)
    assert "secret" not in str(caught.value)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableSource, match="cannot be read"):
        read_items(path)


def test_the_list_of_a_service_is_read_as_an_import_reads_it(tmp_path: Path) -> None:
    books = tmp_path / "goodreads.csv"
    header = "Book Id,Title,Author,My Rating,Average Rating,Date Read,Date Added,Bookshelves,Exclusive Shelf,My Review"
    rows = [f'{k},"Moss, volume {k}",A. Uthor,4,3.9,2024/01/02,2024/01/01,,read,' for k in range(5)]
    books.write_text("\n".join([header, *rows]), "utf-8")
    found = read_items(books)
    assert len(found) == 5
    assert set(found) == read_export([books]).items
    assert not any("Book Id" in item or "2024/01/02" in item for item in found)


def test_a_table_without_items_is_refused_and_a_list_of_titles_is_none(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("colour,size,weight\nred,1,2\nblue,3,4\n", "utf-8")
    with pytest.raises(InputError, match="expected one item a line, or a table with a column 'item'"):
        read_items(table)
    titles = tmp_path / "titles.txt"
    titles.write_text("Eats, Shoots & Leaves\nIt\nRed, White, Blue\n", "utf-8")
    assert read_items(titles) == ["Eats, Shoots & Leaves", "It", "Red, White, Blue"]
