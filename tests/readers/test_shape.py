"""Times and numbers as people write them, and the guesses at columns."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd.readers.base import ReadOptions, guess, layout_of
from incrowd.crowd.readers.rows import parse_numbers, parse_times


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1500000000", 1500000000),
        ("1500000000.9", 1500000000),
        (" 1.5e9 ", 1500000000),
        ("-1", -1),
        ("2017-07-14", 1499990400),
        ("2017/07/14", 1499990400),
        ("2017-07-14T02:40:00Z", 1500000000),
        ("2017-07-14T02:40:00.999Z", 1500000000),
        ("2017-07-14 02:40:00", 1500000000),
        ("2017-07-14 02:40:00 UTC", 1500000000),
        ("2017-07-14T04:40:00+02:00", 1500000000),
        ("2017-07-14 02:40", 1500000000),
        ("1969-12-31T23:59:59.5", -1),
    ],
)
def test_a_time_is_read(text: str, seconds: int) -> None:
    times, bad = parse_times(pl.Series([text, "1"]))
    assert times.to_list() == [seconds, 1]
    assert not bad.any()


@pytest.mark.parametrize("text", ["soon", "nan", "inf", "1e300", "2017-02-30", "9" * 30, "[1]", "true"])
def test_what_is_no_time_is_said_to_be_none(text: str) -> None:
    times, bad = parse_times(pl.Series([text, "5", None, ""]))
    assert times.to_list() == [None, 5, None, None]
    assert bad.to_list() == [True, False, False, False]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), min_size=1))
def test_iso_times_come_back(moments: list[datetime]) -> None:
    times, bad = parse_times(pl.Series([moment.isoformat() for moment in moments]))
    origin = datetime(1970, 1, 1, tzinfo=UTC)
    expected = [(moment.replace(tzinfo=UTC) - origin) for moment in moments]
    assert times.to_list() == [delta.days * 86_400 + delta.seconds for delta in expected]
    assert not bad.any()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_come_back(numbers: list[float]) -> None:
    read, bad = parse_numbers(pl.Series([repr(number) for number in numbers]))
    assert read.to_list() == numbers
    assert not bad.any()


def test_what_is_no_finite_number_is_said_to_be_none() -> None:
    read, bad = parse_numbers(pl.Series(["nan", "inf", "x", " 4 ", "", None]))
    assert read.to_list() == [None, None, None, 4.0, None, None]
    assert bad.to_list() == [True, True, True, False, False, False]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["author", "subreddit", "created_utc", "body"], {"user", "community", "time", "text"}),
        (["UserName", "Forum", "Date", "Message"], {"user", "community", "time", "text"}),
        (["userID", "artistID", "weight"], {"user", "item", "value"}),
        (
            ["user_id:token", "item_id:token", "rating:float", "timestamp:float"],
            {"user", "item", "value", "time"},
        ),
        (["user", "attribute", "value"], {"user", "attribute", "value"}),
        (["height", "width"], set()),
    ],
)
def test_common_names_are_guessed(names: list[str], found: set[str]) -> None:
    assert set(guess(names)) == found


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["author", "text"], "posts"),
        (["author", "item", "rating"], "items"),
        (["author", "attribute", "value"], "attributes"),
        (["author", "age", "job"], "attributes"),
        (["userID", "friendID"], "attributes"),
    ],
)
def test_the_kind_follows_from_the_columns(names: list[str], kind: str) -> None:
    assert layout_of(names, ReadOptions(), "here").kind == kind
