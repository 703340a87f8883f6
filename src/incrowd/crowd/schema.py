"""The three tables of a crowd, and the reasons a row may be set aside.

==========  ==============================================================================
table       columns
==========  ==============================================================================
posts       user, community, time (UTC seconds or null), text
items       user, item, value (float or null), time (UTC seconds or null)
attributes  user, attribute, value
==========  ==============================================================================

An *identity* is a (user, community) pair: one person as one community sees them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import polars as pl

Kind = Literal["posts", "items", "attributes"]
KINDS: tuple[Kind, ...] = ("posts", "items", "attributes")

COLUMNS: dict[Kind, dict[str, pl.DataType]] = {
    "posts": {
        "user": pl.String(),
        "community": pl.String(),
        "time": pl.Int64(),
        "text": pl.String(),
    },
    "items": {"user": pl.String(), "item": pl.String(), "value": pl.Float64(), "time": pl.Int64()},
    "attributes": {"user": pl.String(), "attribute": pl.String(), "value": pl.String()},
}

ROW_COLUMNS: dict[str, pl.DataType] = {"row": pl.UInt64(), "id": pl.String()}
"""What a reader adds: the row's number in its source (from 1) and the source's own id, or null."""


class Reason(StrEnum):
    """Why a row is in quarantine. The codes are stable: other programs count them."""

    BAD_JSON = "bad_json"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    INVALID_UTF8 = "invalid_utf8"
    RAGGED_ROW = "ragged_row"
    NO_AUTHOR = "no_author"
    DELETED_AUTHOR = "deleted_author"
    BOT = "bot"
    DELETED_TEXT = "deleted_text"
    EMPTY_TEXT = "empty_text"
    TEXT_TOO_LONG = "text_too_long"
    BAD_TIME = "bad_time"
    BAD_VALUE = "bad_value"
    CONFLICTING_ID = "conflicting_id"
    DUPLICATE = "duplicate"
