"""The three tables of a crowd, and the reasons a row may be set aside.

==========  ==============================================================================
table       columns
==========  ==============================================================================
posts       user, community, time (UTC seconds or null), text
items       user, item, value (float or null), time (UTC seconds or null)
attributes  user, attribute, value
==========  ==============================================================================

An *identity* is a (user, community) pair: one person as one community sees them.

What holds for every format is checked here, too: which rows are a person's own words or choices, and which are set
aside. The first reason that applies wins, in the order of the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from incrowd.crowd.manifest import KINDS, Kind

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
    Reason.BAD_VALUE: "the value is no number",
    Reason.CONFLICTING_ID: "an earlier row has the same id and says something else",
    Reason.DUPLICATE: "the crowd has this row already",
}
"""What each reason means, for people."""


LONGEST_TEXT = 128 * 2**10
"""Bytes of UTF-8: more than the longest post forums allow (Reddit: 40,000 letters) in any script."""
LONGEST_NAME = 4096
"""Bytes of a user, community, item or attribute name."""
DEFAULT_COMMUNITY = "default"
"""Where posts go whose source knows no communities."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
A_DAY = 86_400

DELETED = ("[deleted]", "[removed]")
# Exactly as Reddit writes them: a person may write "[Removed]" in jest.
DELETED_TEXTS = (*DELETED, "[deleted by user]", "[ Removed by Reddit ]", "[removed by reddit]")
BOTS = ("automoderator", "autowikibot", "autotldr", "remindmebot", "sneakpeekbot", "wikitextbot", "gifvbot")
# A separate word or a capital sets "-bot" apart from people called Talbot or xX_robot.
BOT_PATTERN = r"([_-](?i:bot)$)|([a-z0-9]B(ot|OT)$)|(^(?i:bot)[_-])"


@dataclass(frozen=True)
class Checked:
    """A batch after validation."""

    rows: pl.DataFrame
    rejects: pl.DataFrame
    """Columns `row` and `reason`."""
    replaced: int
    """Rows in which NULs were replaced."""


def check(rows: pl.DataFrame, kind: Kind, *, now: int, allow_bots: bool = False) -> Checked:
    """Separate a batch's good rows from those to set aside; `now` is in UTC seconds."""
    tidy, replaced = _without_nuls(_tidy(rows, kind), kind)
    judged = tidy.with_columns(_first(_rules(kind, now, allow_bots)).alias("reason"))
    bad = pl.col("reason").is_not_null()
    return Checked(
        rows=judged.filter(~bad).drop("reason"),
        rejects=judged.filter(bad).select("row", "reason"),
        replaced=replaced,
    )


def _names(kind: Kind) -> list[str]:
    texts = [name for name, dtype in COLUMNS[kind].items() if dtype == pl.String()]
    return [name for name in texts if name != "text"]


def _tidy(rows: pl.DataFrame, kind: Kind) -> pl.DataFrame:
    tidy = rows.with_columns(pl.col(_names(kind)).str.strip_chars())
    if kind == "posts":
        community = pl.col("community")
        tidy = tidy.with_columns(
            pl.when(community.is_null() | (community == ""))
            .then(pl.lit(DEFAULT_COMMUNITY))
            .otherwise(community)
            .alias("community")
        )
    return tidy


def _without_nuls(rows: pl.DataFrame, kind: Kind) -> tuple[pl.DataFrame, int]:
    """Replace NULs by U+FFFD: they separate columns when rows are hashed, and C programs stop at them."""
    columns = [*_names(kind), *(["text"] if kind == "posts" else [])]
    has_nul = pl.any_horizontal(pl.col(columns).str.contains("\0", literal=True))
    replaced = int(rows.select(has_nul.sum()).item() or 0)
    if replaced:
        rows = rows.with_columns(pl.col(columns).str.replace_all("\0", REPLACEMENT, literal=True))
    return rows, replaced


Rules = list[tuple[pl.Expr, Reason]]


def _rules(kind: Kind, now: int, allow_bots: bool) -> Rules:
    user = pl.col("user")
    rules: Rules = [
        (user.is_null() | (user == ""), Reason.NO_AUTHOR),
        (user.is_in(DELETED), Reason.DELETED_AUTHOR),
        (pl.any_horizontal(pl.col(_names(kind)).str.len_bytes() > LONGEST_NAME), Reason.TEXT_TOO_LONG),
    ]
    if kind == "posts" and not allow_bots:
        rules.append((user.str.to_lowercase().is_in(BOTS) | user.str.contains(BOT_PATTERN), Reason.BOT))
    rules += {"posts": _text_rules, "items": _item_rules, "attributes": _attribute_rules}[kind]()
    if "time" in COLUMNS[kind]:
        time = pl.col("time")
        rules.append(((time < 0) | (time > now + A_DAY), Reason.BAD_TIME))
    return rules


def _text_rules() -> Rules:
    text = pl.col("text")
    return [
        (text.is_null(), Reason.MISSING_FIELD),
        (text.is_in(DELETED_TEXTS), Reason.DELETED_TEXT),
        (text.str.len_bytes() > LONGEST_TEXT, Reason.TEXT_TOO_LONG),
        (~text.str.contains(r"\S"), Reason.EMPTY_TEXT),
    ]


def _item_rules() -> Rules:
    item, value = pl.col("item"), pl.col("value")
    return [
        (item.is_null() | (item == ""), Reason.MISSING_FIELD),
        (value.is_nan() | value.is_infinite(), Reason.BAD_VALUE),
    ]


def _attribute_rules() -> Rules:
    missing = [pl.col(name).is_null() | (pl.col(name) == "") for name in ("attribute", "value")]
    return [(missing[0] | missing[1], Reason.MISSING_FIELD)]


def _first(rules: Rules) -> pl.Expr:
    return pl.coalesce(pl.when(broken).then(pl.lit(str(reason))) for broken, reason in rules)
