"""Parquet files that grow by one row group at a time, and are read in the same way.

Polars writes a file as a whole: row groups of so many rows, however long, are gathered in memory and in threads of its
own. An import has a memory budget and long texts, and hashes what it writes. So each row group is written as a file of
its own, in memory, and its bytes are passed on; only the footers are put together at the end, which in Parquet say
where everything lies (`parquet.thrift` of the Parquet format names their fields; they are spelt in Thrift's compact
protocol).
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl

Compression = Literal["lz4", "zstd"]
Schema = Mapping[str, pl.DataType]
MAGIC = b"PAR1"
LEVEL: dict[Compression, int | None] = {"lz4": None, "zstd": 1}


class RowGroups:
    """Turns frames into the bytes of one Parquet file; a frame becomes a row group.

    `no_statistics` are columns whose least and largest values help nobody to find rows.
    """

    def __init__(
        self,
        schema: Schema,
        compression: Compression,
        *,
        no_statistics: Collection[str] = (),
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self._schema, self._compression = dict(schema), compression
        self._metadata, self._no_statistics = dict(metadata or {}), frozenset(no_statistics)
        self._footer: Struct = {}
        self._size = 0

    def group(self, rows: pl.DataFrame) -> bytes:
        """Return what is to be written next: these rows as a row group."""
        file = io.BytesIO()
        rows.select(pl.col(name).cast(kind) for name, kind in self._schema.items()).write_parquet(
            file,
            compression=self._compression,
            compression_level=LEVEL[self._compression],
            row_group_size=max(1, rows.height),
            metadata=self._metadata or None,
        )
        data = file.getvalue()
        start = _footer_start(data[-8:], len(data))
        footer = parsed(data[start:-8])
        found = MAGIC + data[len(MAGIC) : start] if not self._size else data[len(MAGIC) : start]
        self._take_over(footer, self._size - len(MAGIC) if self._size else 0)
        self._size += len(found)
        return found

    def end(self) -> bytes:
        """Return what ends the file."""
        rest = b"" if self._size else self.group(pl.DataFrame(schema=self._schema))
        return rest + _ending(self._footer)

    def _take_over(self, footer: Struct, shift: int) -> None:
        """Add a file's row groups to ours, whose bytes lie so much later here."""
        groups = footer[FILE_ROW_GROUPS].value
        for group in groups.items:
            for column in group[GROUP_COLUMNS].value.items:
                about = column[COLUMN_ABOUT].value
                if about[ABOUT_PATH].value.items[0].decode() in self._no_statistics:
                    about.pop(ABOUT_STATISTICS, None)
                _shift(column, COLUMN_OFFSETS, shift)
                _shift(about, ABOUT_OFFSETS, shift)
            _shift(group, GROUP_OFFSETS, shift)
        if not self._footer:
            self._footer = footer
            return
        ours = self._footer[FILE_ROW_GROUPS].value
        for group in groups.items:
            if GROUP_ORDINAL in group:
                group[GROUP_ORDINAL].value = len(ours.items)
            ours.items.append(group)
        self._footer[FILE_ROWS].value += footer[FILE_ROWS].value


def group_rows(path: Path) -> list[int]:
    """Return how many rows each row group of a file has."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(-8, io.SEEK_END)
        file.seek(_footer_start(file.read(8), size))
        footer = parsed(file.read())
    return [group[GROUP_ROWS].value for group in footer[FILE_ROW_GROUPS].value.items]


def read_groups(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    where: pl.Expr | None = None,
    most_rows: int | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield a file's row groups in order: some rows and columns, and cut into pieces of `most_rows`, if asked."""
    start = 0
    for rows in group_rows(path):
        end = start + rows
        while start < end:
            count = min(end - start, most_rows or rows)
            piece = pl.scan_parquet(path, glob=False).slice(start, count)
            start += count
            if where is not None:
                # Asked first, because that reads only the columns it takes.
                if not piece.select(where.any()).collect(engine="in-memory").item():
                    continue
                piece = piece.filter(where)
            yield (piece if columns is None else piece.select(columns)).collect(engine="in-memory")


def texts_as_bytes(path: Path) -> None:
    """Rewrite a file's footer so that columns of texts are columns of bytes, which need not be UTF-8."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(-8, io.SEEK_END)
        start = _footer_start(file.read(8), size)
        file.seek(start)
        footer = parsed(file.read())
        for column in footer[FILE_SCHEMA].value.items:
            converted, logical = column.get(COLUMN_CONVERTED), column.get(COLUMN_LOGICAL)
            if (converted and converted.value == UTF8) or (logical and LOGICAL_STRING in logical.value):
                column.pop(COLUMN_CONVERTED, None)
                column.pop(COLUMN_LOGICAL, None)
        footer.pop(FILE_METADATA, None)  # where Arrow says once more what is text
        file.seek(start)
        file.truncate()
        file.write(_ending(footer))


# Fields of a Parquet footer, by their numbers.
FILE_SCHEMA, FILE_ROWS, FILE_ROW_GROUPS, FILE_METADATA = 2, 3, 4, 5
COLUMN_CONVERTED, COLUMN_LOGICAL, UTF8, LOGICAL_STRING = 6, 10, 0, 1
GROUP_COLUMNS, GROUP_ROWS, GROUP_OFFSETS, GROUP_ORDINAL = 1, 3, (5,), 7
COLUMN_OFFSETS, COLUMN_ABOUT = (2, 4, 6), 3
ABOUT_PATH, ABOUT_OFFSETS, ABOUT_STATISTICS = 3, (9, 10, 11, 14), 12


def _ending(footer: Struct) -> bytes:
    data = spelt(footer)
    return data + len(data).to_bytes(4, "little") + MAGIC


def _footer_start(end: bytes, size: int) -> int:
    """Return where the footer begins; the last eight bytes of a file tell how long it is."""
    start = size - 8 - int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or start < len(MAGIC):
        raise ValueError("no Parquet file: it does not end as one")
    return start


def _shift(struct: Struct, fields: Sequence[int], by: int) -> None:
    for number in fields:
        # Offset 0 is inside the first four letters of the file: nothing lies there, so nothing is meant.
        if number in struct and struct[number].value:
            struct[number].value += by


# Thrift's compact protocol, as far as footers use it: numbers, byte strings, lists and structs of those.


@dataclass(slots=True)
class Field:
    """A value with its kind."""

    kind: int
    value: Any


@dataclass(slots=True)
class Items:
    """A list of values of one kind."""

    kind: int
    items: list[Any]


Struct = dict[int, Field]
"""Fields by number."""
STOP, TRUE, FALSE, BYTE, NUMBERS, DOUBLE, BINARY, LISTS, STRUCT = 0, 1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12


def parsed(data: bytes) -> Struct:
    """Return the struct that some bytes begin with."""
    struct: Struct = _FooterReader(data).value(STRUCT)
    return struct


class _FooterReader:
    """Reads one value after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def value(self, kind: int) -> Any:
        if kind in NUMBERS:
            number = self._varint()
            return (number >> 1) ^ -(number & 1)
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == STRUCT:
            return self._struct()
        if kind in LISTS:
            return self._list()
        if kind == DOUBLE:
            return self._bytes(8)
        if kind in (BYTE, TRUE, FALSE):  # in lists, booleans take a byte
            return self._bytes(1)
        raise ValueError(f"no Parquet footer: it has a value of kind {kind}")

    def _struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self._bytes(1)[0]) != STOP:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self.value(NUMBERS[0])
            fields[number] = Field(kind, None if kind in (TRUE, FALSE) else self.value(kind))
        return fields

    def _list(self) -> Items:
        head = self._bytes(1)[0]
        count = self._varint() if head >> 4 == 15 else head >> 4
        return Items(head & 15, [self.value(head & 15) for _ in range(count)])

    def _bytes(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise ValueError("no Parquet footer: it ends too early")
        self._at += count
        return found

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._bytes(1)[0]
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7


def spelt(value: Any, kind: int = STRUCT) -> bytes:
    """Return the bytes of a value; the reverse of :func:`parsed`."""
    if kind in NUMBERS:
        return _varint(value << 1 if value >= 0 else (-value << 1) - 1)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return _struct(value)
    if kind in LISTS:
        count = len(value.items)
        head = (
            bytes([count << 4 | value.kind]) if count < 15 else bytes([15 << 4 | value.kind]) + _varint(count)
        )
        return head + b"".join([spelt(item, value.kind) for item in value.items])
    return bytes(value or b"")


def _struct(fields: Struct) -> bytes:
    out = bytearray()
    before = 0
    for number, field in sorted(fields.items()):
        step = number - before
        if step < 16:
            out.append(step << 4 | field.kind)
        else:
            out += bytes([field.kind]) + spelt(number, NUMBERS[0])
        out += spelt(field.value, field.kind)
        before = number
    out.append(STOP)
    return bytes(out)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
