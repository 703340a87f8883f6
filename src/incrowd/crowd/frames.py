"""Data frames as sources: pandas, Polars, Arrow and DuckDB relations, told apart by Narwhals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import narwhals as nw
import polars as pl
import pyarrow as pa

from incrowd.crowd.readers.base import Batch, ReadOptions
from incrowd.crowd.readers.fields import Layout, layout_of
from incrowd.crowd.readers.shape import make_batch
from incrowd.crowd.schema import Kind
from incrowd.errors import InputError, SchemaError

ROWS_PER_BATCH = 65_536


@dataclass(frozen=True)
class FrameSource:
    """One data frame; its rows are checked exactly as a file's are."""

    frame: pl.DataFrame = field(repr=False)
    layout: Layout
    options: ReadOptions
    content_hash: str
    name: str = "frame"
    format: str = "frame"

    def batches(self, batch_bytes: int) -> Iterator[Batch]:
        """Yield the rows in order."""
        del batch_bytes  # the frame is in memory already
        for slice_ in self.frame.iter_slices(ROWS_PER_BATCH):
            yield make_batch(slice_, self.layout, self.options)


def frame_source(frame: Any, kind: Kind | None, columns: Mapping[str, str] | None) -> FrameSource:
    """Accept any data frame Narwhals knows."""
    options = ReadOptions(kind=kind, columns=columns or {})
    data = _to_polars(frame)
    layout = layout_of(data.columns, options, "the data frame")
    texts = data.select(_as_text(data[name]) for name in layout.sources)
    texts = texts.with_row_index("row", offset=1).cast({"row": pl.UInt64})
    return FrameSource(texts, layout, options, _hash(texts))


def _to_polars(frame: Any) -> pl.DataFrame:
    try:
        native = nw.from_native(frame)
    except TypeError:
        raise InputError(
            "from_frame: expected a pandas, Polars or Arrow frame or a DuckDB relation, "
            f"got {type(frame).__name__}."
        ) from None
    if isinstance(native, nw.LazyFrame):
        native = native.collect("polars")
    try:
        data: pl.DataFrame = native.to_polars()
    except (pa.ArrowException, TypeError):  # the message would quote what the cells hold
        raise SchemaError(
            "the data frame: a column mixes types. Turn its values into text first, e.g. with .astype(str)."
        ) from None
    return data


def _as_text(column: pl.Series) -> pl.Series:
    """Spell a column the way a file would, so that frames and files take one path."""
    if column.dtype == pl.Date or column.dtype == pl.Datetime:
        column = column.dt.epoch("s")
    elif column.dtype.is_float() and (whole := column.cast(pl.Int64, strict=False)).cast(column.dtype).equals(
        column, null_equal=True
    ):
        column = whole  # what was a column of integers before a missing value made it floats
    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError:
        raise SchemaError(
            f"the data frame: column '{column.name}' holds {column.dtype}; expected text, numbers or dates."
        ) from None


def _hash(frame: pl.DataFrame) -> str:
    digest = blake2b(digest_size=32)
    table = frame.to_arrow()
    sink = pa.PythonFile(_Hasher(digest), mode="w")
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=ROWS_PER_BATCH)
    return digest.hexdigest()


class _Hasher:
    """A file that hashes what is written to it."""

    closed = False

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._digest.update(view)
        return view.nbytes

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True
