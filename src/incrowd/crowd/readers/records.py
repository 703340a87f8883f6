"""Delimited text as records: a field in quotes may hold delimiters, quotes and line ends.

A record's number is its place in the file, from 1, as a spreadsheet shows it. Quotes count only at the start
of a field, as in RFC 4180; elsewhere they are ordinary characters.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import polars as pl

from incrowd.crowd.readers.lines import Lines
from incrowd.crowd.readers.shape import ROW, Parsed
from incrowd.crowd.readers.unicode import decoded
from incrowd.crowd.schema import Reason
from incrowd.errors import SchemaError


@dataclass(frozen=True, kw_only=True)
class Records:
    """Some whole records: either all in one piece, one a line, or one by one with their numbers."""

    first_row: int
    data: bytes | None = None
    each: Sequence[bytes] = ()
    rows: Sequence[int] = ()
    too_long: tuple[int, ...] = ()
    incomplete: bool = False


class RecordSplitter:
    """Cuts lines into records; remembers a record that a chunk of lines leaves open."""

    def __init__(self, delimiter: bytes, cap: int, place: str) -> None:
        d = re.escape(delimiter)
        quoted_rest = rb'[^"]*+(?:""[^"]*+)*+"[^' + d + rb"]*+"
        fields = rb"(?:" + d + rb'(?:"' + quoted_rest + rb'|[^"' + d + rb"][^" + d + rb"]*+|))*+"
        self._whole = re.compile(rb'(?:"' + quoted_rest + rb'|[^"' + d + rb"][^" + d + rb"]*+|)" + fields)
        self._closed = re.compile(quoted_rest + fields)
        self._cap = cap
        self._place = place
        self._open: list[bytes] = []
        self._open_size = 0
        self._row = 0

    def split(self, lines: Lines) -> Records:
        """Return the records that end in these lines."""
        first = self._row + 1
        if b'"' not in lines.data and not self._open and not lines.too_long:
            self._row += lines.count
            return Records(first_row=first, data=lines.data, incomplete=lines.incomplete)
        each: list[bytes] = []
        rows: list[int] = []
        too_long: list[int] = []
        line_too_long = {row - lines.first_row for row in lines.too_long}
        for i, line in enumerate(lines.data.split(b"\n")[:-1]):
            self._take(line, i in line_too_long, each, rows, too_long)
        return Records(
            first_row=first, each=each, rows=rows, too_long=tuple(too_long), incomplete=lines.incomplete
        )

    def finish(self, *, incomplete: bool) -> None:
        """Refuse a file that ends inside quotes, unless it is known to be cut."""
        if self._open and not incomplete:
            raise SchemaError(
                f"{self._place}: the quote opened in record {self._row + 1} is never closed. "
                'Expected every " that starts a field to have an end. Repair the file or export it again.'
            )

    def _take(
        self, line: bytes, line_too_long: bool, each: list[bytes], rows: list[int], too_long: list[int]
    ) -> None:
        ends = self._ends(line)
        self._open_size += self._cap + 1 if line_too_long else len(line) + bool(self._open)
        self._open.append(line if self._open_size <= self._cap else b"")
        if not ends:
            return
        self._row += 1
        if self._open_size > self._cap:
            too_long.append(self._row)
        else:
            each.append(b"\n".join(self._open))
            rows.append(self._row)
        self._open, self._open_size = [], 0

    def _ends(self, line: bytes) -> bool:
        if self._open:
            return b'"' in line and self._closed.fullmatch(line) is not None
        return b'"' not in line or self._whole.fullmatch(line) is not None


def parse_records(records: Records, columns: int, wanted: Mapping[int, str], delimiter: str) -> Parsed:
    """Read the `wanted` columns (place -> name) of records of a known width; others are ragged."""
    if records.data is None:
        return _parse_each(records.each, records.rows, columns, wanted, delimiter)
    fast = _parse_unquoted(records.data, records.first_row, columns, wanted, delimiter)
    if fast is not None:
        return fast
    each = records.data.split(b"\n")[:-1]
    rows = range(records.first_row, records.first_row + len(each))
    return _parse_each(each, rows, columns, wanted, delimiter)


def _parse_unquoted(
    data: bytes, first_row: int, columns: int, wanted: Mapping[int, str], delimiter: str
) -> Parsed | None:
    """Read sound lines without quotes at once; None where the careful way must decide."""
    data = data.replace(b"\r\n", b"\n")
    lines = data.count(b"\n")
    ragged = data.count(delimiter.encode()) != lines * (columns - 1)
    if ragged or columns < 2 or not lines or b"\x00" in data or b"\r" in data or not _is_utf8(data):
        return None
    try:
        frame = pl.read_csv(
            io.BytesIO(data),
            has_header=False,
            separator=delimiter,
            quote_char=None,
            schema={_column(place): pl.String() for place in range(columns)},
            columns=[_column(place) for place in wanted],
        )
    except pl.exceptions.PolarsError:
        return None
    if frame.height != lines:
        return None
    rows = np.arange(first_row, first_row + lines, dtype=np.uint64)
    values = (pl.col(_column(place)).fill_null("").alias(name) for place, name in wanted.items())
    return Parsed(frame.select(pl.Series(ROW, rows), *values))


def _column(place: int) -> str:
    return f"column_{place + 1}"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parse_each(
    each: Sequence[bytes], rows: Sequence[int], columns: int, wanted: Mapping[int, str], delimiter: str
) -> Parsed:
    texts, touched = (
        zip(*(decoded(record.removesuffix(b"\r")) for record in each), strict=True) if each else ((), ())
    )
    found = [
        (row, fields, replaced)
        for row, fields, replaced, text in zip(
            rows, split_records(texts, delimiter), touched, texts, strict=True
        )
        if text
    ]
    good = [(row, fields, replaced) for row, fields, replaced in found if len(fields) == columns]
    rejects = [(row, Reason.RAGGED_ROW) for row, fields, _ in found if len(fields) != columns]
    values = {name: [fields[place] for _, fields, _ in good] for place, name in wanted.items()}
    schema = {ROW: pl.UInt64(), **{name: pl.String() for name in wanted.values()}}
    frame = pl.DataFrame({ROW: [row for row, _, _ in good], **values}, schema=schema)
    return Parsed(frame, rejects, sum(replaced for _, _, replaced in good))


def split_records(texts: Sequence[str], delimiter: str) -> list[list[str]]:
    """Return each record's fields; none for what is no record."""
    with _any_field_size():
        try:
            fields = list(csv.reader(texts, delimiter=delimiter))
        except csv.Error:
            fields = []
        if len(fields) == len(texts):
            return fields
        return [_split_record(text, delimiter) for text in texts]


def _split_record(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []


@contextmanager
def _any_field_size() -> Iterator[None]:
    """Lift the csv module's own cap; ours is on the record."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)
