"""Parquet files with any columns: posts, items or attributes, by mapping or by common names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions, layout_of
from incrowd.crowd.readers.rows import ROW, Parsed, batch_of
from incrowd.crowd.readers.source import open_regular
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError, UnreadableSource

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema
    from pyarrow.parquet import ParquetFile

MAGIC = b"PAR1"


class Parquet:
    """A table with typed columns."""

    name = "parquet"
    about = About("Parquet table", whose="many")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether the file begins as Parquet does."""
        return look.head.startswith(MAGIC)

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        with _open(path) as file:
            schema = file.schema_arrow
            if len(set(schema.names)) < len(schema.names):
                raise SchemaError(f"{path}: two columns have the same name. Rename one.")
            layout = layout_of(schema.names, options, str(path))
            before = 0
            yield batch_of(Parsed(_texts(_empty(schema), layout, 0, path)), layout, options)
            for frame, bad in _frames(file, layout, options, path):
                texts = _texts(frame, layout, before, path)
                sound = texts.filter(~pl.Series(range(texts.height)).is_in(bad)) if bad else texts
                rejects = [(before + place + 1, Reason.INVALID_UTF8) for place in bad]
                yield batch_of(Parsed(sound, rejects), layout, options)
                before += frame.height


@contextmanager
def _open(path: Path) -> Iterator[ParquetFile]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with open_regular(path) as file:
        try:
            parquet = ParquetFile(file, pre_buffer=False)  # which would fetch the whole file
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path) from error
        yield parquet


def _frames(
    file: ParquetFile, layout: Layout, options: ReadOptions, path: Path
) -> Iterator[tuple[pl.DataFrame, list[int]]]:
    """Yield rows, and which of them hold bytes that are no text."""
    import pyarrow as pa

    size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
    rows = max(1, min(2**17, options.batch_bytes * max(1, file.metadata.num_rows) // max(1, size)))
    try:
        for batch in file.iter_batches(batch_size=rows, columns=layout.sources, use_threads=False):
            batch, bad = _without_broken_texts(batch)
            frame = pl.from_arrow(batch)
            if isinstance(frame, pl.DataFrame):
                yield frame, bad
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path) from error


def _without_broken_texts(batch: RecordBatch) -> tuple[RecordBatch, list[int]]:
    """Blank out texts that are no UTF-8, which Polars would take on trust; return the rows they are in."""
    import pyarrow as pa

    bad: set[int] = set()
    columns = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                as_bytes = pa.binary() if pa.types.is_string(column.type) else pa.large_binary()
                texts = [_decoded(value) for value in column.view(as_bytes).to_pylist()]
                bad.update(
                    place for place, text in enumerate(texts) if text is None and column[place].is_valid
                )
                column = pa.array(texts, column.type)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names), sorted(bad)


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _empty(schema: Schema) -> pl.DataFrame:
    """Return no rows: a table that has none still says what kind it is, and wrong types are found at once."""
    frame = pl.from_arrow(schema.empty_table())
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def _damaged(path: Path) -> UnreadableSource:
    return UnreadableSource(
        f"{path}: the Parquet file is damaged or cut off. Expected a whole one. Fetch it again."
    )


def _texts(frame: pl.DataFrame, layout: Layout, before: int, path: Path) -> pl.DataFrame:
    rows = pl.Series(ROW, range(before + 1, before + 1 + frame.height), dtype=pl.UInt64)
    return frame.select(rows, *(as_text(frame[name], str(path)) for name in layout.sources))


def as_text(column: pl.Series, place: str) -> pl.Series:
    """Spell a typed column the way a text file would, so that all formats take one path."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        raise SchemaError(
            f"{place}: column '{column.name[:40]}' holds {column.dtype.base_type().__name__} values. "
            "Expected texts, numbers or times. Choose another with --columns."
        )
    if column.dtype in (pl.Datetime, pl.Date):
        column = column.cast(pl.Datetime("us")).dt.timestamp("us") // 1_000_000
    return column.cast(pl.String)
