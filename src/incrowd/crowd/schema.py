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

import polars as pl

from incrowd.crowd.kinds import KINDS, Kind

__all__ = ["COLUMNS", "KINDS", "MEANING", "ROW_COLUMNS", "Kind", "Reason"]

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


MEANING: dict[str, str] = {
    Reason.BAD_JSON: "the line is no JSON",
    Reason.NOT_AN_OBJECT: "the line is JSON but no object",
    Reason.MISSING_FIELD: "a field that is needed is missing or empty",
    Reason.WRONG_TYPE: "a field is not of the type it should be",
    Reason.INVALID_UTF8: "the bytes are no text",
    Reason.RAGGED_ROW: "the row has too many or too few columns",
    Reason.NO_AUTHOR: "nobody is named as the author",
    Reason.DELETED_AUTHOR: "the author deleted the account",
    Reason.BOT: "the author is a program",
    Reason.DELETED_TEXT: "the text was deleted",
    Reason.EMPTY_TEXT: "there is no text",
    Reason.TEXT_TOO_LONG: "the text or a name is longer than any person's",
    Reason.BAD_TIME: "the time is before 1970, in the future, or neither seconds nor a date such as 2020-12-31",
    Reason.BAD_VALUE: "the value is negative or no number",
    Reason.CONFLICTING_ID: "an earlier row has the same id and says something else",
    Reason.DUPLICATE: "the crowd has this row already",
}
"""What each reason means, for people."""
