from __future__ import annotations

import gc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

from incrowd.crowd import Crowd
from incrowd.errors import CrowdError, InputError, SchemaError

FRAME = pl.DataFrame(
    {
        "author": ["ann", "bob", "ann", "[deleted]"],
        "subreddit": ["books", "films", "books", "books"],
        "created_utc": [10, 20, 30, 40],
        "body": ["one", "two", "three", "four"],
    }
)


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: frame.lazy(),
        lambda frame: frame.to_pandas(),
        lambda frame: frame.to_arrow(),
        lambda frame: duckdb.sql("SELECT * FROM frame"),
    ],
    ids=["polars", "lazy", "pandas", "arrow", "duckdb"],
)
def test_every_kind_of_frame_gives_the_same_crowd(convert: Any) -> None:
    crowd = Crowd.from_frame(convert(FRAME))
    assert crowd.posts().sort("time").collect().rows() == [
        ("ann", "books", 10, "one"),
        ("bob", "films", 20, "two"),
        ("ann", "books", 30, "three"),
    ]
    assert crowd.quarantine().collect().rows() == [("frame", 4, "deleted_author")]
    assert crowd.data_hash == Crowd.from_frame(FRAME).data_hash


def test_columns_may_be_named() -> None:
    frame = pl.DataFrame({"who": ["ann"], "what": ["hello"], "body": ["not this"]})
    crowd = Crowd.from_frame(frame, columns={"user": "who", "text": "what"})
    assert crowd.posts().collect().rows() == [("ann", "default", None, "hello")]


def test_dates_become_utc_seconds() -> None:
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    for times in ([moment], pd.Series([moment]), pl.Series([moment.date()]), ["2020-01-01"], [1577836800.0]):
        crowd = Crowd.from_frame(pd.DataFrame({"user": ["a"], "text": ["x"], "time": times}))
        assert crowd.posts().collect()["time"].item() == 1_577_836_800


def test_numbers_become_names_without_a_decimal_point() -> None:
    frame = pd.DataFrame({"user": [1, 2], "item": [7.0, None], "rating": [4.5, 3.0]})
    crowd = Crowd.from_frame(frame, kind="items")
    assert crowd.items().collect().rows() == [("1", "7", 4.5, None)]


def test_a_crowd_may_take_frames_of_every_kind() -> None:
    crowd = Crowd.from_frame(FRAME)
    crowd.add_frame(pl.DataFrame({"user": ["ann"], "item": ["book"]}), "items")
    crowd.add_frame(pl.DataFrame({"user": ["cy"], "attribute": ["town"], "value": ["Ulm"]}), "attributes")
    info = crowd.info()
    assert (info.posts, info.item_rows, info.attribute_rows, info.users) == (3, 1, 1, 3)


def test_a_temporary_crowd_goes_with_its_object() -> None:
    crowd = Crowd.from_frame(FRAME)
    path = crowd.path
    assert path.exists()
    del crowd
    gc.collect()
    assert not path.exists()


def test_a_crowd_with_a_path_stays_and_may_have_pseudonyms(tmp_path: Path) -> None:
    crowd = Crowd.from_frame(FRAME, path=tmp_path / "crowd", plain_names=False)
    assert Crowd(tmp_path / "crowd").user("ann") == crowd.user("ann") != "ann"
    with pytest.raises(CrowdError, match="already"):
        Crowd.from_frame(FRAME, path=tmp_path / "crowd")


def test_a_frame_that_does_not_fit_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no column for 'text'"):
        Crowd.from_frame(pl.DataFrame({"user": ["a"]}), path=tmp_path / "crowd")
    assert not (tmp_path / "crowd").exists()


def test_cells_that_are_no_text_are_refused_without_quoting_them() -> None:
    frames = [
        pl.DataFrame({"user": ["a"], "text": [b"secret\xff"]}),
        pd.DataFrame({"user": ["a", 1], "text": ["secret", {}]}),
    ]
    for frame in frames:
        with pytest.raises(SchemaError) as caught:
            Crowd.from_frame(frame)
        assert "secret" not in str(caught.value)


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(InputError, match="got list"):
        Crowd.from_frame([1, 2])
