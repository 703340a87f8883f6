"""What is imported: files and data frames, each with a name, a hash of its bytes, and batches of rows.

Data frames may come from pandas, Polars, Arrow or DuckDB; Narwhals tells them apart.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import polars as pl

from incrowd.crowd import readers
from incrowd.crowd.pseudonyms import Pseudonyms
from incrowd.crowd.readers.base import About, Batch, Layout, Reader, ReadOptions, layout_of
from incrowd.crowd.readers.rows import make_batch
from incrowd.crowd.readers.source import extent
from incrowd.crowd.schema import KINDS, Kind
from incrowd.crowd.tables import fetched
from incrowd.errors import InputError, SchemaError, UnreadableSource

__all__ = [
    "FileSource",
    "FrameSource",
    "Paths",
    "ReadOptions",
    "Source",
    "described",
    "frame_source",
    "open_files",
    "require_files",
]

READ_BYTES = 2**20


class Source(Protocol):
    """Something that can be imported."""

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        ...

    @property
    def content_hash(self) -> str:
        """BLAKE2b of its bytes."""
        ...

    @property
    def options(self) -> ReadOptions:
        """How to read it."""
        ...

    @property
    def format(self) -> str:
        """Name of the reader."""
        ...

    @property
    def about(self) -> About:
        """What its format is."""
        ...

    @property
    def text_bytes(self) -> float:
        """About how large it is, unpacked."""
        ...

    def batches(self, batch_bytes: int) -> Iterator[Batch]:
        """Yield the rows in order, about `batch_bytes` of input at a time."""
        ...

    def with_dates(self, dates: str) -> Source:
        """Return the same source, with its dates read in an order."""
        ...


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """One file and the reader that understands it."""

    path: Path
    name: str
    content_hash: str
    reader: Reader
    options: ReadOptions
    state: tuple[int, ...]

    @property
    def format(self) -> str:
        """The reader's name."""
        return self.reader.name

    @property
    def about(self) -> About:
        """What the format is."""
        return self.reader.about

    @property
    def text_bytes(self) -> float:
        """Told from the beginning of a packed file."""
        return extent(self.path, READ_BYTES)[0]

    def with_dates(self, dates: str) -> FileSource:
        """Return the same file, with its dates read in an order."""
        return replace(self, options=replace(self.options, dates=dates))

    def batches(self, batch_bytes: int) -> Iterator[Batch]:
        """Yield the rows; refuse a file that changed since it was hashed."""
        yield from self.reader.read(self.path, replace(self.options, batch_bytes=batch_bytes))
        if _state(self.path) != self.state:
            raise UnreadableSource(f"{self.path}: the file changed while it was read. Import it again.")


Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def require_files(paths: Paths) -> list[Path]:
    """Refuse anything that is no plain, non-empty file."""
    found = [Path(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if not found:
        raise InputError("ingest: expected at least one source, got none.")
    for path in found:
        _state(path)
    return found


def open_files(paths: Paths, format: str, options: ReadOptions) -> list[FileSource]:
    """Check, hash and recognise files; the order of the arguments does not matter."""
    if options.kind is not None and options.kind not in KINDS:
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, got '{options.kind}'.")
    found = [_open_file(path, format, options) for path in require_files(paths)]
    return sorted(found, key=lambda source: (source.name, source.content_hash))


def _open_file(path: Path, format: str, options: ReadOptions) -> FileSource:
    state = _state(path)
    digest = _hash_file(path)
    reader = readers.detect(path, format)
    if options.columns and reader.name not in readers.ANY_COLUMNS:
        raise InputError(
            f"{path}: recognised as {reader.name}, whose columns are known, so --columns would not be used. "
            "Leave it out, or name the columns yourself with --format csv, tsv, jsonl or parquet."
        )
    return FileSource(
        path=path, name=path.name, content_hash=digest, reader=reader, options=options, state=state
    )


def _state(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is replaced or written to; refuse what is no plain file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise UnreadableSource(f"{path}: no such file.") from None
    except OSError as error:
        raise UnreadableSource(f"{path}: {error.strerror}.") from None
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableSource(
            f"{path}: expected a file, got a folder. Name the file in it that has your data, or, if it "
            "is an export that was unpacked, pack it as a zip and name that."
        )
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableSource(
            f"{path}: expected a plain file, got a pipe or device. Write it to a file first: "
            "an import reads its source twice."
        )
    if status.st_size == 0:
        raise UnreadableSource(f"{path}: the file is empty. Was the download interrupted?")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _hash_file(path: Path) -> str:
    digest = blake2b(digest_size=32)
    try:
        with path.open("rb") as file:
            while block := file.read(READ_BYTES):
                digest.update(block)
    except OSError as error:
        raise UnreadableSource(f"{path}: cannot be read: {error.strerror}.") from None
    return digest.hexdigest()


def described(options: ReadOptions, pseudonyms: Pseudonyms) -> Mapping[str, Any]:
    """Return the options that decide which rows come out, for the import log; no name in the clear."""
    facts = {
        "kind": options.kind,
        "columns": dict(options.columns),
        "community": options.community,
        "user": None if options.user is None else pseudonyms.of(options.user.strip()),
        "keep_complete": options.keep_complete,
        "dates": options.dates,
    }
    return {name: value for name, value in facts.items() if value}


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
    about: About = field(default_factory=lambda: About("data frame"))

    @property
    def text_bytes(self) -> float:
        """What the frame takes in memory."""
        return self.frame.estimated_size()

    def with_dates(self, dates: str) -> FrameSource:
        """Return the same frame, with its dates read in an order."""
        return replace(self, options=replace(self.options, dates=dates))

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
    kind = native.implementation
    if kind.is_duckdb():
        return fetched(nw.to_native(native))
    eager = native.collect("polars") if isinstance(native, nw.LazyFrame) else native
    try:
        # The way from pandas to Polars needs PyArrow; without it, values go one by one.
        if kind.is_pandas_like() and find_spec("pyarrow") is None:
            return pl.DataFrame({name: _values(eager[name]) for name in eager.columns})
        data: pl.DataFrame = eager.to_polars()
    except (ValueError, TypeError, NotImplementedError, pl.exceptions.PolarsError):
        # Its own message would quote what the cells hold.
        raise SchemaError(
            "the data frame: a column mixes types. Turn its values into text first, e.g. with .astype(str)."
        ) from None
    return data


def _values(column: nw.Series[Any]) -> list[Any]:
    missing = column.is_null().to_list()
    return [None if gone else value for value, gone in zip(column.to_list(), missing, strict=True)]


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
    for rows in frame.iter_slices(ROWS_PER_BATCH):
        data = io.BytesIO()
        # Not as Polars has them in memory, which depends on where the rows come from.
        rows.rechunk().write_ipc_stream(data, compat_level=pl.CompatLevel.oldest())
        digest.update(data.getbuffer())
    return digest.hexdigest()
