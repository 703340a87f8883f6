"""Delimited text with a header: records, quotes, ragged rows; columns by mapping or by common names.

A field in quotes may hold delimiters, quotes and line ends. A record's number is its place in the file, from 1, as a
spreadsheet shows it. Quotes count only at the start of a field, as in RFC 4180; elsewhere they are ordinary characters.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl

from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions, guess, layout_of
from incrowd.crowd.readers.rows import ROW, Parsed, batch_of
from incrowd.crowd.readers.source import Bytes, Lines, decoded, first_lines, lines_of, read_lines
from incrowd.crowd.schema import Kind, Reason
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


DELIMITERS = ",\t;|"
MOST_COLUMNS = 10_000
SAMPLED_RECORDS = 100
SAMPLED_BYTES = 2**18
MOST_RAGGED = 0.1
"""A larger part of ragged rows among the first means that the delimiter or the quoting is wrong."""

_WORD = re.compile(r"[A-Za-z_][\w :.-]{0,63}")


class DelimitedTable:
    """Delimited text whose first record names the columns."""

    def __init__(self, name: str, title: str, delimiters: str) -> None:
        self.name = name
        self.about = About(title)
        self.kind: Kind = "posts"
        self._delimiters = delimiters

    def probe(self, look: Look) -> bool:
        """Say whether the first line names columns, and the lines after it have as many."""
        found = _header(look.head, self._delimiters)
        if found is None or len(found.names) < 2 or len(set(found.names)) < len(found.names):
            return False
        return "user" in guess(found.names) or _names_columns(found, look.head)

    def columns(self, path: Path) -> list[str]:
        """Return the names in the first line."""
        found = _header(first_lines(path), self._delimiters)
        return [] if found is None else found.names

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        yield from read_table(read_lines(path, options), options, str(path), self._delimiters)


@dataclass(frozen=True)
class _Header:
    names: list[str]
    delimiter: str


def read_member(source: Bytes, options: ReadOptions, place: str) -> Iterator[Batch]:
    """Yield the rows of a CSV inside an archive."""
    yield from read_table(lines_of(source, options), options, place, ",")


def read_table(chunks: Iterator[Lines], options: ReadOptions, place: str, delimiters: str) -> Iterator[Batch]:
    """Yield the rows of delimited lines."""
    first = _held_back(chunks)
    sample = _sample(first)
    western = is_western(sample)
    if western:
        first, chunks = list(map(_from_western, first)), map(_from_western, chunks)
        sample = _sample(first)
    header = _header(sample, delimiters)
    if header is None:
        raise SchemaError(f"{place}: expected a first line with the names of columns; there is none.")
    _check_header(header, place)
    layout = layout_of(header.names, options, place)
    layout = replace(layout, notes=(*layout.notes, WESTERN_NOTE)) if western else layout
    _check_shape(sample, header, options, place)
    yield from _batches(chain(first, chunks), header, layout, options, place)


def _held_back(chunks: Iterator[Lines]) -> list[Lines]:
    """Take enough chunks to judge the file by, however small they are."""
    held: list[Lines] = []
    while (
        sum(len(lines.data) for lines in held) < SAMPLED_BYTES and (lines := next(chunks, None)) is not None
    ):
        held.append(lines)
    return held


WESTERN = frozenset(
    "àáâãäåæçèéêëìíîïñòóôõöøùúûüýœšžßÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝŒŠŽ“”„‘’‚«»‹›–—…•€£§°¡¿·´©®™ª\xa0"
)
MOST_WESTERN = 0.2
"""More of the letters than this are no Western European language's, whose letters are mostly those of ASCII."""
WESTERN_NOTE = (
    "the file is not in UTF-8; its letters were read as Windows-1252, in which spreadsheets of Western Europe save: if "
    "they look wrong, save it as UTF-8"
)


def is_western(sample: bytes) -> bool:
    """Say whether a table that is not in UTF-8 is in Windows-1252 instead; whatever else it is, is not guessed."""
    if sample.isascii() or not sample.decode("utf-8", "ignore").isascii():
        return False
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    beyond = [letter for letter in text if not letter.isascii()]
    letters = sum(letter.isalpha() for letter in text)
    return WESTERN.issuperset(beyond) and sum(map(str.isalpha, beyond)) <= MOST_WESTERN * letters


def _from_western(lines: Lines) -> Lines:
    return replace(lines, data=lines.data.decode("cp1252", "replace").encode())


def _sample(first: Sequence[Lines]) -> bytes:
    """Return the first lines, the same ones for every size of chunk; the header whatever its length."""
    data = b"".join(lines.data for lines in first)
    end = max(data.find(b"\n"), data.rfind(b"\n", 0, SAMPLED_BYTES)) + 1
    return data[:end]


def _header(data: bytes, delimiters: str) -> _Header | None:
    """Read the first line with the delimiter that finds most known names in it, then most columns."""
    line, _ = decoded(data.split(b"\n", 1)[0].removesuffix(b"\r"))
    if not line:
        return None
    readings = [_Header(split_records([line], d)[0], d) for d in delimiters]
    return max(readings, key=lambda reading: (len(guess(reading.names[:MOST_COLUMNS])), len(reading.names)))


def _names_columns(header: _Header, head: bytes) -> bool:
    """Say whether a line without known names is a header: words above rows of the same width."""
    if not all(_WORD.fullmatch(name) for name in header.names):
        return False
    rows = [
        text for line in head.split(b"\n")[1:-1][:SAMPLED_RECORDS] if (text := decoded(line)[0].rstrip("\r"))
    ]
    widths = {len(fields) for fields in split_records(rows, header.delimiter)}
    return widths == {len(header.names)}


def _check_header(header: _Header, place: str) -> None:
    if len(header.names) > MOST_COLUMNS:
        raise SchemaError(f"{place}: {len(header.names)} columns; at most {MOST_COLUMNS} can be meant.")
    if len(set(header.names)) < len(header.names):
        raise SchemaError(f"{place}: a column's name occurs twice in the first line. Rename one.")


def _check_shape(sample: bytes, header: _Header, options: ReadOptions, place: str) -> None:
    """Refuse a file whose first records mostly do not fit its header."""
    splitter = RecordSplitter(header.delimiter.encode(), options.max_line_bytes, place)
    records = splitter.split(Lines.of(sample))
    each = sample.split(b"\n")[:-1] if records.data is not None else records.each
    texts = [text for record in each[1 : SAMPLED_RECORDS + 1] if (text := decoded(record)[0].strip("\r"))]
    ragged = sum(len(fields) != len(header.names) for fields in split_records(texts, header.delimiter))
    if ragged > max(1, MOST_RAGGED * len(texts)) or (ragged and ragged == len(texts)):
        raise SchemaError(
            f"{place}: {ragged} of the first {len(texts)} rows have not the {len(header.names)} columns of "
            "the first line. Expected one delimiter throughout. Check the delimiter and the quotes."
        )


def _batches(
    chunks: Iterator[Lines], header: _Header, layout: Layout, options: ReadOptions, place: str
) -> Iterator[Batch]:
    splitter = RecordSplitter(header.delimiter.encode(), options.max_line_bytes, place)
    wanted = {header.names.index(name): name for name in layout.sources}
    incomplete = False
    for lines in chunks:
        records = splitter.split(lines)
        incomplete = records.incomplete
        parsed = parse_records(_without_header(records), len(header.names), wanted, header.delimiter)
        yield batch_of(parsed, layout, options, records)
    splitter.finish(incomplete=incomplete)


def _without_header(records: Records) -> Records:
    """Drop record 1, the names of the columns."""
    if records.first_row > 1:
        return records
    data = None if records.data is None else records.data.partition(b"\n")[2]
    return replace(records, first_row=2, data=data, each=records.each[1:], rows=records.rows[1:])
