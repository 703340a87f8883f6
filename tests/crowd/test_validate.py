from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd.schema import (
    COLUMNS,
    LONGEST_NAME,
    LONGEST_TEXT,
    MEANING,
    ROW_COLUMNS,
    Checked,
    Kind,
    Reason,
    check,
)

NOW = 1_700_000_000


def checked(kind: Kind, *rows: dict[str, Any], **options: Any) -> Checked:
    schema = {**ROW_COLUMNS, **COLUMNS[kind]}
    full = [{**dict.fromkeys(schema), "row": number, **row} for number, row in enumerate(rows, 1)]
    return check(pl.DataFrame(full, schema=schema), kind, now=NOW, **options)


def reason(kind: Kind, **row: Any) -> str | None:
    rejects = checked(kind, row).rejects
    return rejects["reason"].item() if rejects.height else None


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"user": None}, Reason.NO_AUTHOR),
        ({"user": "  "}, Reason.NO_AUTHOR),
        ({"user": "[deleted]"}, Reason.DELETED_AUTHOR),
        ({"user": "x" * (LONGEST_NAME + 1)}, Reason.TEXT_TOO_LONG),
        ({"user": "AutoModerator"}, Reason.BOT),
        ({"user": "haiku_bot"}, Reason.BOT),
        ({"user": "gif-BOT"}, Reason.BOT),
        ({"user": "ConvertBot"}, Reason.BOT),
        ({"user": "bot_of_the_day"}, Reason.BOT),
        ({"text": None}, Reason.MISSING_FIELD),
        ({"text": "[deleted]"}, Reason.DELETED_TEXT),
        ({"text": "[removed]"}, Reason.DELETED_TEXT),
        ({"text": ""}, Reason.EMPTY_TEXT),
        ({"text": " \n\t\u2003"}, Reason.EMPTY_TEXT),
        ({"text": "a" * (LONGEST_TEXT + 1)}, Reason.TEXT_TOO_LONG),
        ({"time": -1}, Reason.BAD_TIME),
        ({"time": NOW * 1000}, Reason.BAD_TIME),
        ({"time": NOW + 10 * 86_400}, Reason.BAD_TIME),
    ],
)
def test_a_post_that_says_nothing_of_a_person_is_set_aside(row: dict[str, Any], expected: Reason) -> None:
    assert reason("posts", **{"user": "ann", "text": "hello", **row}) == expected


@pytest.mark.parametrize(
    "row",
    [
        {"user": "Talbot"},
        {"user": "robot"},
        {"user": "abbott"},
        {"user": "Zoë"},
        {"text": "[Removed] in jest"},
        {"text": "=cmd|' /C calc'!A0"},
        {"text": "\u202eright to left"},
        {"text": "a" * LONGEST_TEXT},
        {"time": None},
        {"time": 0},
        {"time": NOW},
        {"community": None},
    ],
)
def test_an_ordinary_post_passes(row: dict[str, Any]) -> None:
    assert reason("posts", **{"user": "ann", "text": "hello", **row}) is None


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"value": float("nan")}, Reason.BAD_VALUE),
        ({"value": float("inf")}, Reason.BAD_VALUE),
        ({"value": -1.0}, None),
        ({"item": ""}, Reason.MISSING_FIELD),
        ({"item": None}, Reason.MISSING_FIELD),
        ({"time": -1}, Reason.BAD_TIME),
        ({"user": None}, Reason.NO_AUTHOR),
        ({"user": "haiku_bot"}, None),
        ({"value": None}, None),
        ({"value": 0.0}, None),
    ],
)
def test_items_need_a_name_and_a_sound_value(row: dict[str, Any], expected: Reason | None) -> None:
    assert reason("items", **{"user": "ann", "item": "x", "value": 1.0, **row}) == expected


@pytest.mark.parametrize("row", [{"attribute": None}, {"value": ""}, {"attribute": " "}])
def test_attributes_need_a_name_and_a_value(row: dict[str, Any]) -> None:
    assert (
        reason("attributes", **{"user": "ann", "attribute": "town", "value": "Ulm", **row})
        == Reason.MISSING_FIELD
    )


def test_a_person_called_like_a_bot_may_import_their_own_export() -> None:
    assert checked("posts", {"user": "haiku_bot", "text": "mine"}, allow_bots=True).rows.height == 1


def test_nul_bytes_are_replaced_and_counted() -> None:
    outcome = checked("posts", {"user": "a\0b", "text": "x\0y"}, {"user": "c", "text": "z"})
    assert outcome.rows["user"].to_list() == ["a\ufffdb", "c"]
    assert outcome.rows["text"].to_list() == ["x\ufffdy", "z"]
    assert outcome.replaced == 1


def test_names_lose_the_blanks_around_them_and_texts_keep_theirs() -> None:
    outcome = checked("posts", {"user": " ann ", "community": " books\n", "text": " hi "})
    assert outcome.rows.row(0, named=True) | {
        "user": "ann",
        "community": "books",
        "text": " hi ",
    } == outcome.rows.row(0, named=True)


def test_posts_without_a_community_share_one() -> None:
    outcome = checked("posts", {"user": "a", "text": "x"}, {"user": "a", "text": "x", "community": " "})
    assert outcome.rows["community"].to_list() == ["default", "default"]


def test_every_reason_has_words() -> None:
    assert set(MEANING) == set(Reason)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "user": st.none() | st.text(st.characters(codec="utf-8"), max_size=8),
                "community": st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
                "time": st.none() | st.integers(-(2**62), 2**62),
                "text": st.none() | st.text(st.characters(codec="utf-8"), max_size=8),
            }
        ),
        max_size=12,
    )
)
def test_no_row_is_lost_or_kept_twice(rows: list[dict[str, Any]]) -> None:
    outcome = checked("posts", *rows)
    assert sorted([*outcome.rows["row"], *outcome.rejects["row"]]) == list(range(1, len(rows) + 1))
    assert "\0" not in "".join(outcome.rows["user"]) + "".join(outcome.rows["community"]) + "".join(
        outcome.rows["text"]
    )
