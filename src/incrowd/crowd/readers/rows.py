"""From a source's columns, all text, to a table of the crowd: times, numbers, joined texts, rejects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from incrowd.crowd.readers.base import Batch, Layout, ReadOptions, empty_rejects, empty_rows
from incrowd.crowd.readers.source import Lines, decoded, storable
from incrowd.crowd.schema import Reason
from incrowd.errors import Undecided

ROW = "\0row"
"""Where parsed rows keep their number, under a name that no source's column can have."""
TIME_FORMATS = (
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%d %H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
)
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d")
NUMERIC_DATE = r"^(\d{1,2})[/.-](\d{1,2})[/.-](\d{4}|\d{2})\b\.?(?:[,T]?\s*(\d.*))?$"
RARER_FORMATS = (
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %I:%M %p",
    "%Y-%m-%d %I:%M:%S %p",
    "%b %d, %Y, %I:%M:%S %p",
    "%b %d, %Y, %I:%M:%S %p UTC",
    "%b %d, %Y %I:%M %p",
    "%B %d, %Y %I:%M %p",
    "%B %d, %Y at %I:%M:%S %p",
    "%d %b %Y %H:%M",
    "%d %b %Y, %H:%M",
    "%d %B %Y, %H:%M",
    "%d %b %Y %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S %z",
    "%d %b %Y %H:%M:%S %z",
    "%a %b %d %H:%M:%S %z %Y",
    "%a %b %d %H:%M:%S %Y",
    "%Y-%m-%dT%H:%M%#z",
)
YEAR_10000 = 253_402_300_800
RARER_DATES = ("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%Y%m%d", "%a, %d %b %Y")


class Extent(Protocol):
    """Where parsed rows come from: what was too long to parse, and whether the source broke off."""

    @property
    def too_long(self) -> tuple[int, ...]:
        """Numbers of the rows over the cap."""

    @property
    def incomplete(self) -> bool:
        """Whether the source ended early."""


@dataclass(frozen=True)
class Whole:
    """The extent of rows that nothing is missing from."""

    too_long: tuple[int, ...] = ()
    incomplete: bool = False


@dataclass(frozen=True)
class Parsed:
    """Rows of text (:data:`ROW` and the source's columns), and the rows that gave none."""

    rows: pl.DataFrame
    rejects: list[tuple[int, Reason]] = field(default_factory=list)
    replaced: int = 0
    skipped: int = 0


WHOLE = Whole()


def make_batch(raw: pl.DataFrame, layout: Layout, options: ReadOptions) -> Batch:
    """Turn rows of text that are whole and sound, numbered in :data:`ROW` or `row`, into a batch."""
    return batch_of(Parsed(raw if ROW in raw.columns else raw.rename({"row": ROW})), layout, options)


def batch_of(parsed: Parsed, layout: Layout, options: ReadOptions, extent: Extent = WHOLE) -> Batch:
    """Turn parsed rows into a batch of the layout's table."""
    rows, refused = _SHAPES[layout.kind](parsed.rows, layout, options)
    too_long = [(row, Reason.TEXT_TOO_LONG) for row in extent.too_long]
    return Batch(
        rows=rows.select(empty_rows(layout.kind).columns).rechunk(),
        rejects=pl.concat([_reject_frame([*parsed.rejects, *too_long]), refused]).sort("row"),
        replaced=parsed.replaced,
        skipped=parsed.skipped,
        incomplete=extent.incomplete,
        notes=layout.notes,
        columns={}
        if layout in FIXED
        else {ours: " + ".join(theirs) for ours, theirs in layout.columns.items()},
    )


def _posts(raw: pl.DataFrame, layout: Layout, options: ReadOptions) -> tuple[pl.DataFrame, pl.DataFrame]:
    time, bad_time = parse_times(_column(raw, layout, "time"), options.dates)
    rows = raw.select(
        pl.col(ROW).alias("row"),
        _name(raw, layout, "id"),
        _name(raw, layout, "user", options.user),
        _name(raw, layout, "community", options.community),
        time.alias("time"),
        _joined(raw, layout.columns["text"]).alias("text"),
        _name(raw, layout, "link"),
    )
    return _split(rows, {Reason.MISSING_FIELD: rows["text"].is_null(), Reason.BAD_TIME: bad_time})


def _items(raw: pl.DataFrame, layout: Layout, options: ReadOptions) -> tuple[pl.DataFrame, pl.DataFrame]:
    time, bad_time = parse_times(_column(raw, layout, "time"), options.dates)
    value, bad_value = parse_numbers(_column(raw, layout, "value"))
    rows = raw.select(
        pl.col(ROW).alias("row"),
        _name(raw, layout, "id"),
        _name(raw, layout, "user", options.user),
        _name(raw, layout, "item"),
        value.alias("value"),
        time.alias("time"),
    )
    missing = rows["item"].is_null()
    return _split(
        rows, {Reason.MISSING_FIELD: missing, Reason.BAD_VALUE: bad_value, Reason.BAD_TIME: bad_time}
    )


def _attributes(raw: pl.DataFrame, layout: Layout, options: ReadOptions) -> tuple[pl.DataFrame, pl.DataFrame]:
    keys = [raw[ROW].alias("row"), _name(raw, layout, "id"), _name(raw, layout, "user", options.user)]
    if not layout.wide:
        rows = raw.select(
            *keys,
            _column(raw, layout, "attribute").alias("attribute"),
            _column(raw, layout, "value").alias("value"),
        )
        return _split(rows, {Reason.MISSING_FIELD: rows["attribute"].is_null() | rows["value"].is_null()})
    parts = [
        raw.select(*keys, pl.lit(_plain(name)).alias("attribute"), pl.col(name).alias("value"))
        for name in layout.wide
    ]
    rows = pl.concat(parts).filter(pl.col("value").is_not_null() & (pl.col("value") != ""))
    return rows.sort("row", maintain_order=True), empty_rejects()


def _plain(name: str) -> str:
    """Return a column's name without RecBole's type."""
    return re.sub(r":(?:token|float)(?:_seq)?$", "", name)


_SHAPES = {"posts": _posts, "items": _items, "attributes": _attributes}


def _split(rows: pl.DataFrame, faults: dict[Reason, pl.Series]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part the good rows from the bad; a row with several faults is rejected for the first."""
    faults = {reason: mask for reason, mask in faults.items() if mask.any()}
    if not faults:
        return rows, empty_rejects()
    reason = pl.coalesce(*(pl.when(mask).then(pl.lit(str(code))) for code, mask in faults.items()))
    marked = rows.with_columns(reason.alias("reason"))
    good = marked.filter(pl.col("reason").is_null()).drop("reason")
    return good, marked.filter(pl.col("reason").is_not_null()).select("row", "reason").unique(
        "row", keep="first"
    )


def _reject_frame(rejects: Iterable[tuple[int, Reason]]) -> pl.DataFrame:
    pairs = [(row, str(reason)) for row, reason in rejects]
    return pl.DataFrame(pairs, schema=empty_rejects().schema, orient="row")


def _column(raw: pl.DataFrame, layout: Layout, ours: str) -> pl.Series:
    """Return the source's column behind one of ours, or nulls."""
    names = layout.columns.get(ours)
    return raw[names[0]] if names else pl.Series(ours, [None], dtype=pl.String).new_from_index(0, raw.height)


def _name(raw: pl.DataFrame, layout: Layout, ours: str, otherwise: str | None = None) -> pl.Series:
    """Return a column of names; a blank one is no name, and takes what the caller said of every row."""
    column = _column(raw, layout, ours).alias(ours)
    if (column == "").any():
        column = column.set(column == "", None)
    return column if otherwise is None else column.fill_null(otherwise)


def _joined(raw: pl.DataFrame, names: tuple[str, ...]) -> pl.Series:
    if len(names) == 1:
        return raw[names[0]]
    parts = [pl.when(pl.col(name) != "").then(pl.col(name)) for name in names]
    joined = pl.concat_str(parts, separator="\n\n", ignore_nulls=True)
    return raw.select(
        pl.when(pl.any_horizontal(pl.col(n).is_not_null() for n in names)).then(joined)
    ).to_series()


class DateOrderNeeded(Undecided):
    """A column holds dates such as 3/4/2020, and nobody has said yet which part is the month."""

    def __init__(self, place: str = "the source") -> None:
        super().__init__(
            f"{place}: its dates are such as 3/4/2020, and every one fits both readings. Which comes first, the day "
            "(dmy) or the month (mdy)?",
            "dates",
            ("dmy", "mdy"),
        )


class DateEvidence(str):
    """Stands in for a date order while a whole column is looked through: days above 12 decide."""

    day_first: bool = False
    month_first: bool = False

    @property
    def order(self) -> str | None:
        """The order that fits every date; None if both do, or neither does."""
        if self.day_first == self.month_first:
            return None
        return "dmy" if self.day_first else "mdy"


def parse_times(text: pl.Series, dates: str | None = None) -> tuple[pl.Series, pl.Series]:
    """Read times as UTC seconds; also say which are no time at all. Blank means unknown.

    Takes epochs (seconds, whole or not, or finer units), ISO dates with or without an offset (without one it is UTC),
    dates with the month's English name, and dates such as 3/4/2020 or 3.4.20 with `dates` (`dmy` or `mdy`) to tell day
    from month.
    """
    seconds = text.cast(pl.Int64, strict=False)
    unread = text.is_not_null() & seconds.is_null()
    if not unread.any():
        return _in_seconds(seconds), unread
    rest = text.filter(unread).str.strip_chars().str.strip_suffix(" UTC")
    parsed = pl.DataFrame({"t": rest}).select(pl.coalesce(_time_readings()).alias("t")).to_series()
    if parsed.null_count():
        left = parsed.is_null() & (rest != "")
        parsed = parsed.scatter(left.arg_true(), _rarer_times(rest.filter(left), dates))
    seconds = _in_seconds(seconds.scatter(unread.arg_true(), parsed))
    blank = text.is_not_null() & (text.str.strip_chars() == "")
    return seconds, text.is_not_null() & seconds.is_null() & ~blank


def _in_seconds(epochs: pl.Series) -> pl.Series:
    """Bring epochs in milli-, micro- or nanoseconds to seconds; as seconds they would lie beyond the year 9999."""
    while (late := epochs >= YEAR_10000).any():
        epochs = pl.select(pl.when(late).then(epochs // 1000).otherwise(epochs)).to_series()
    return epochs


def _time_readings() -> list[pl.Expr]:
    t = pl.col("t")
    number = t.cast(pl.Float64, strict=False)
    number = pl.when(number.is_finite()).then(number.floor()).cast(pl.Int64, strict=False)
    return [number, *_readings(TIME_FORMATS, DATE_FORMATS, whole_years=True)]


def _readings(times: Iterable[str], days: Iterable[str] = (), *, whole_years: bool = False) -> list[pl.Expr]:
    """Return readings of `t` in several forms; with `whole_years`, 3/4/20 is not in the year 3."""
    t = pl.col("t") if not whole_years else pl.when(pl.col("t").str.contains(r"^\d{4}")).then(pl.col("t"))
    dated = [t.str.to_datetime(f, strict=False, time_unit="us", time_zone="UTC") for f in times]
    whole = [t.str.to_date(f, strict=False).cast(pl.Datetime("us", "UTC")) for f in days]
    return [reading.dt.timestamp("us").floordiv(1_000_000) for reading in [*dated, *whole]]


def _rarer_times(text: pl.Series, dates: str | None) -> pl.Series:
    """Read dates with a month's name, and dates of three numbers."""
    tidy = text.str.replace_all("[\u202f\u00a0]", " ").str.replace(r"(?i)\b([ap])\.?\s?m\.?$", "${1}m")
    parts = tidy.str.extract_groups(NUMERIC_DATE).struct.unnest()
    numeric = parts["1"].is_not_null()
    if numeric.any() and dates not in ("dmy", "mdy"):
        first, second = (parts[name].cast(pl.Int64, strict=False) for name in ("1", "2"))
        if isinstance(dates, DateEvidence):
            dates.day_first |= bool((first > 12).any())
            dates.month_first |= bool((second > 12).any())
        elif dates is None:
            raise DateOrderNeeded
    day, month = ("1", "2") if dates != "mdy" else ("2", "1")
    year = parts.select(
        pl.when(pl.col("3").str.len_chars() == 2).then("20" + pl.col("3")).otherwise(pl.col("3"))
    ).to_series()
    clock = parts["4"].fill_null("").str.strip_chars(" ,T")
    spelt = year + "-" + parts[month] + "-" + parts[day] + " " + clock.replace("", "00:00")
    frame = pl.DataFrame({"t": pl.select(pl.when(numeric).then(spelt).otherwise(tidy)).to_series()})
    return frame.select(pl.coalesce(_readings(RARER_FORMATS, RARER_DATES))).to_series()


def parse_numbers(text: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Read finite numbers; also say which are none. Blank means unknown.

    A comma before one or two last digits is a decimal comma; before three it could part the thousands.
    """
    number = text.cast(pl.Float64, strict=False)
    number = pl.select(pl.when(number.is_finite()).then(number)).to_series()
    unread = text.is_not_null() & number.is_null()
    if not unread.any():
        return number, unread
    stripped = text.filter(unread).str.strip_chars().str.replace(r"^([+-]?\d+),(\d{1,2})$", "$1.$2")
    again = stripped.cast(pl.Float64, strict=False)
    number = number.scatter(unread.arg_true(), pl.select(pl.when(again.is_finite()).then(again)).to_series())
    blank = text.is_not_null() & (text.str.strip_chars() == "")
    return number, text.is_not_null() & number.is_null() & ~blank


_POST = ("id", "user", "community", "time", "text", "link")
POSTS = Layout(kind="posts", columns={name: (name,) for name in _POST})
ITEMS = Layout(kind="items", columns={name: (name,) for name in ("user", "item", "value", "time")})
ATTRIBUTES = Layout(kind="attributes", columns={name: (name,) for name in ("user", "attribute", "value")})


FIXED = (POSTS, ITEMS, ATTRIBUTES)
"""Layouts of readers that name rows' parts themselves: the source's own names are the reader's to tell."""


class RowBatch:
    """Holds the rows of one batch: texts in the order of a layout's columns."""

    def __init__(self, layout: Layout, batch_bytes: int) -> None:
        self._names = list(layout.columns)
        self._batch_bytes = batch_bytes
        self._clear()

    def _clear(self) -> None:
        self._rows: list[int] = []
        self._values: list[list[str | None]] = []
        self._rejects: list[tuple[int, Reason]] = []
        self._replaced = 0
        self._skipped = 0
        self.left = 0
        self._size = 0

    @property
    def full(self) -> bool:
        """Whether a batch is gathered."""
        return self._size >= self._batch_bytes

    def add(self, row: int, values: Sequence[str | None], *, replaced: bool = False) -> None:
        """Add a row; what cannot be stored is replaced, and counted. Columns at the end may be left out."""
        values = [*values, *[None] * (len(self._names) - len(values))]
        clean = [None if value is None else storable(value) for value in values]
        self._rows.append(row)
        self._values.append(clean)
        self._replaced += replaced or clean != values
        self._size += 64 + sum(len(value) for value in clean if value is not None)

    def reject(self, row: int, reason: Reason) -> None:
        """Set a row aside."""
        self._rejects.append((row, reason))

    def skip(self) -> None:
        """Count a record that is sound but not this table's."""
        self._skipped += 1

    def leave(self) -> None:
        """Count a record that is somebody else's."""
        self.left += 1

    def take(self) -> Parsed:
        """Return what is gathered, and start anew."""
        columns = {name: [values[i] for values in self._values] for i, name in enumerate(self._names)}
        schema = {ROW: pl.UInt64(), **dict.fromkeys(self._names, pl.String())}
        frame = pl.DataFrame({ROW: self._rows, **columns}, schema=schema)
        parsed = Parsed(frame, self._rejects, self._replaced, self._skipped)
        self._clear()
        return parsed


@dataclass(frozen=True)
class TextLines:
    """The lines that are not blank, with their numbers, without blanks at their ends."""

    frame: pl.DataFrame
    """Columns :data:`~incrowd.crowd.readers.rows.ROW` and `line`."""
    replaced: int


def text_lines(lines: Lines) -> TextLines:
    """Decode lines; invalid bytes are replaced and their rows counted."""
    texts, replaced = _texts(lines.data)
    frame = pl.DataFrame({"line": texts}, schema={"line": pl.String()}).with_row_index(ROW, lines.first_row)
    frame = frame.select(pl.col(ROW).cast(pl.UInt64), pl.col("line").str.strip_chars())
    return TextLines(frame.filter(pl.col("line") != ""), replaced)


def _texts(data: bytes) -> tuple[pl.Series | list[str], int]:
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        whole = "\x00"
    if "\x00" not in whole:
        return pl.Series([whole], dtype=pl.String).str.split("\n").explode(), 0
    each = [decoded(line) for line in data.split(b"\n")]
    return [text for text, _ in each], sum(touched for _, touched in each)
