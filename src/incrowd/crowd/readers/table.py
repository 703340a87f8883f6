"""CSV and TSV with a header: posts, items or attributes, by mapping or by common names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from incrowd.crowd.readers.base import Batch, ReadOptions
from incrowd.crowd.readers.fields import Layout, guess, layout_of
from incrowd.crowd.readers.lines import Lines, lines_of, read_lines
from incrowd.crowd.readers.records import Records, RecordSplitter, parse_records, split_records
from incrowd.crowd.readers.shape import batch_of
from incrowd.crowd.readers.unicode import Bytes, decoded
from incrowd.crowd.schema import Kind
from incrowd.errors import SchemaError

DELIMITERS = ",\t;|"
MOST_COLUMNS = 10_000
SAMPLED_RECORDS = 100
SAMPLED_BYTES = 2**18
MOST_RAGGED = 0.1
"""A larger part of ragged rows among the first means that the delimiter or the quoting is wrong."""

_WORD = re.compile(r"[A-Za-z_][\w :.-]{0,63}")


class Table:
    """Delimited text whose first record names the columns."""

    def __init__(self, name: str, delimiters: str) -> None:
        self.name = name
        self.kind: Kind = "posts"
        self._delimiters = delimiters

    def recognises(self, path: Path, head: bytes) -> bool:
        """Say whether the first line names columns, and the lines after it have as many."""
        found = _header(head, self._delimiters)
        if found is None or len(found.names) < 2 or len(set(found.names)) < len(found.names):
            return False
        return "user" in guess(found.names) or _names_columns(found, head)

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
    header = _header(sample, delimiters)
    if header is None:
        raise SchemaError(f"{place}: expected a first line with the names of columns; there is none.")
    _check_header(header, place)
    layout = layout_of(header.names, options, place)
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
