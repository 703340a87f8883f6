"""Rows become a sparse table, whatever their order, repeats and types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from incrowd.crowd import Crowd
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.microdata.spec import Matching, ProfileFilter
from incrowd.measures.microdata.table import item_table, kept_item_table
from incrowd.measures.prepared import PreparedCrowd


def rows(*some: tuple[str, str, float | None, int | None]) -> pl.DataFrame:
    return pl.DataFrame(list(some), schema=["user", "item", "value", "time"], orient="row")


def test_by_hand() -> None:
    table = item_table(rows(("b", "y", 2.0, 86_400), ("a", "x", 1.0, None), ("b", "x", None, 0)))
    assert table.users.to_list() == ["a", "b"]
    assert table.items.to_list() == ["x", "y"]
    assert table.matrix.toarray().tolist() == [[1, 0], [1, 1]]
    assert np.nan_to_num(table.ratings, nan=-1).tolist() == [1, -1, 2]
    assert np.nan_to_num(table.days, nan=-1).tolist() == [-1, 0, 1]
    assert (table.sizes.tolist(), table.popularity.tolist()) == ([1, 2], [2, 1])
    assert repr(table) == "ItemTable(2 people, 2 items, 3 entries)"


def test_of_repeats_the_first_in_time_counts() -> None:
    table = item_table(rows(("a", "x", 5.0, 300_000), ("a", "x", 3.0, 100_000), ("a", "y", 1.0, 1)))
    assert table.matrix.nnz == 2
    assert table.ratings.tolist() == [3, 1]


def test_small_and_large_profiles_are_left_out_and_their_items_with_them() -> None:
    frame = pl.DataFrame({"user": [*"aab", *"c" * 4], "item": [*"xyx", *"qrst"]})
    table = item_table(frame, ProfileFilter(fewest=2, most=3))
    assert (table.users.to_list(), table.items.to_list()) == (["a"], ["x", "y"])
    repeated = pl.DataFrame({"user": ["a", "a", "a"], "item": ["x", "x", "x"]})
    assert item_table(repeated, ProfileFilter(fewest=2)).matrix.shape == (0, 0)


def test_numbers_are_names_too_and_the_order_of_rows_does_not_matter() -> None:
    frame = pl.DataFrame({"user": [1, 2, 1], "item": [7, 7, 8]})
    one, other = item_table(frame), item_table(frame.reverse().lazy())
    assert (one.matrix != other.matrix).nnz == 0
    assert one.users.to_list() == other.users.to_list() == ["1", "2"]


def test_missing_columns_and_people_are_told() -> None:
    with pytest.raises(InputError, match="expected a column 'item', got user, thing"):
        item_table(pl.DataFrame({"user": ["a"], "thing": ["x"]}))
    with pytest.raises(NotInCrowd, match="no profile of the size"):
        item_table(pl.DataFrame({"user": ["a"], "item": ["x"]})).row_of("b")


def test_ratings_and_dates_are_there_or_not() -> None:
    table = item_table(rows(("a", "x", 1.0, None)))
    assert table.has(Matching(rating_within=1))
    assert not table.has(Matching(days_within=7))
    assert table.has(Matching())
    assert Matching(rating_within=1, days_within=7).words == "ratings or dates"


def test_the_kept_table_is_the_table_and_follows_the_crowd(tmp_path: Path) -> None:
    crowd = Crowd.create(tmp_path / "crowd", plain_names=True)
    some = rows(("b\nc", "y, z", 2.0, 86_400), ("a", "x", 1.0, None), ("b\nc", "x", None, 0))
    for more in (some, rows(("ä", "y, z", None, 5))):
        crowd.add_frame(more, "items")
        read = item_table(crowd)
        for kept in (kept_item_table(PreparedCrowd.of(crowd)) for _ in range(2)):  # made, then from the cache
            assert (kept.matrix != read.matrix).nnz == 0
            assert kept.users.equals(read.users, check_names=True)
            assert kept.items.equals(read.items, check_names=True)
            assert kept.data_hash == read.data_hash
            for mine, theirs in ((kept.ratings, read.ratings), (kept.days, read.days)):
                np.testing.assert_array_equal(mine, theirs)
