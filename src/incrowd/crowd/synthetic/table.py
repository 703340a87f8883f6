"""What all made-up tables share: checks of their options, chunks, files, crowds."""

from __future__ import annotations

import gzip
import io
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, ClassVar, cast

import polars as pl
from backports import zstd
from polars.io.plugins import register_io_source

from incrowd.crowd.schema import COLUMNS, Kind
from incrowd.crowd.store import Crowd
from incrowd.errors import InputError

CHUNK = 65_536


class SyntheticTable(ABC):
    """A table that is made as it is read. The rows depend on options and seed, never on the chunks."""

    kind: ClassVar[Kind]

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are; known without making them."""

    @abstractmethod
    def frames(self, chunk: int = CHUNK) -> Iterator[pl.DataFrame]:
        """Yield the rows in order, about `chunk` at a time."""

    def lists(self) -> Iterator[pl.DataFrame] | None:
        """Yield names with their lists, if the table can be written as a map of lists."""
        return None

    def to_frame(self) -> pl.DataFrame:
        """Return all rows at once."""
        return pl.concat([pl.DataFrame(schema=COLUMNS[self.kind]), *self.frames()])

    def write(self, path: Path | str) -> Path:
        """Write a file as the real readers expect it; the name's ending decides the format."""
        return write(self, Path(path))

    def crowd(self, path: Path | str | None = None, *, plain_names: bool = True) -> Crowd:
        """Import the table into a crowd through the real readers; without a path, into a temporary one."""
        return as_crowd([self], path, plain_names=plain_names)


def require(condition: bool, what: str, expected: str, got: object) -> None:
    """Refuse an option that cannot be met."""
    if not condition:
        raise InputError(f"synthetic {what}: expected {expected}, got {got}. Change that option.")


Lines = Iterator[bytes]
ZSTD_LEVEL = 3
REDDIT = {"user": "author", "community": "subreddit", "time": "created_utc", "text": "body"}
CROWD_FORMATS = {"posts": "posts.ndjson.zst", "items": "items.parquet", "attributes": "attributes.parquet"}


def write(table: SyntheticTable, path: Path) -> Path:
    """Write a table; an interrupted write leaves no file of that name."""
    plain, packing = (path.stem, path.suffix) if path.suffix in (".zst", ".gz") else (path.name, "")
    ending = Path(plain).suffix
    layouts = _layouts(table)
    if ending not in layouts or (packing and ending == ".parquet"):
        expected = ", ".join(layouts)
        raise InputError(f"{path}: expected a name that ends in {expected}, got '{ending}'. Rename it.")
    unfinished = path.with_name(path.name + ".part")
    layouts[ending](table, unfinished, packing)
    return unfinished.replace(path)


def as_crowd(tables: Iterable[SyntheticTable], path: Path | str | None, *, plain_names: bool) -> Crowd:
    """Write the tables to a temporary folder and import them; without a path the crowd is temporary too."""
    folder = Path(tempfile.mkdtemp(prefix="incrowd-")) if path is None else Path(path)
    crowd = Crowd.create(folder, plain_names=plain_names)
    if path is None:
        weakref.finalize(crowd, shutil.rmtree, folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="incrowd-") as scratch:
        for table in tables:
            crowd.ingest(write(table, Path(scratch) / CROWD_FORMATS[table.kind]), kind=table.kind)
    return crowd


Layout = Callable[[SyntheticTable, Path, str], None]


def _layouts(table: SyntheticTable) -> dict[str, Layout]:
    listed = {".json": _text(_lists_map)} if table.lists() is not None else {}
    return {**_layouts_of[table.kind], **listed}


def _text(lines_of: Callable[[SyntheticTable], Lines]) -> Layout:
    """Make a layout of a function that yields the file's bytes."""

    def layout(table: SyntheticTable, path: Path, packing: str) -> None:
        with _opened(path, packing) as out:
            for lines in lines_of(table):
                out.write(lines)

    return layout


@contextmanager
def _opened(path: Path, packing: str) -> Iterator[IO[bytes]]:
    with path.open("wb") as raw:
        if packing == ".gz":  # no name and no time inside: they would change the bytes
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:
                yield cast("IO[bytes]", out)
        elif packing == ".zst":
            with zstd.ZstdFile(raw, "wb", level=ZSTD_LEVEL) as out:
                yield cast("IO[bytes]", out)
        else:
            yield raw


def _reddit(table: SyntheticTable) -> Lines:
    written = 0
    for frame in table.frames():
        numbers = pl.int_range(written, written + frame.height, eager=True).cast(pl.String)
        yield _ndjson(frame.rename(REDDIT).with_columns(id="s" + numbers))
        written += frame.height


def _json_lines(table: SyntheticTable) -> Lines:
    for frame in table.frames():
        yield _ndjson(frame)


def _ndjson(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_ndjson(out)
    return out.getvalue()


def _csv(table: SyntheticTable) -> Lines:
    for number, frame in enumerate(table.frames()):
        given = frame.select(column for column in frame if column.null_count() < frame.height)
        yield given.write_csv(include_header=number == 0).encode()


def _double_colons(table: SyntheticTable) -> Lines:
    for frame in table.frames():
        fields = [pl.col("user"), pl.col("item"), pl.col("value").fill_null(1.0), pl.col("time").fill_null(0)]
        lines = frame.select(pl.concat_str(fields, separator="::")).to_series()
        yield ("\n".join(lines) + "\n").encode()


def _item_map(table: SyntheticTable) -> Lines:
    yield from _map(frame.group_by("user", maintain_order=True).agg("item") for frame in table.frames())


def _lists_map(table: SyntheticTable) -> Lines:
    yield from _map(table.lists() or ())


def _map(parts: Iterable[pl.DataFrame]) -> Lines:
    """Yield one JSON object from frames of (key, list of texts)."""
    before = "{"
    for part in parts:
        key, values = part.columns
        quoted = pl.col(values).list.eval(_quoted(pl.element())).list.join(", ")
        members = part.select(
            pl.concat_str(_quoted(pl.col(key)), pl.lit(": ["), quoted, pl.lit("]"))
        ).to_series()
        yield (before + ",\n".join(members)).encode()
        before = ",\n"
    yield b"}\n"


def _quoted(text: pl.Expr) -> pl.Expr:
    """Return JSON strings; names hold no control characters."""
    escaped = text.str.replace_all("\\", "\\\\", literal=True).str.replace_all('"', '\\"', literal=True)
    return pl.concat_str(pl.lit('"'), escaped, pl.lit('"'))


def _parquet(table: SyntheticTable, path: Path, packing: str) -> None:
    frames = table.frames()
    first = next(frames)

    def batches(*_: object) -> Iterator[pl.DataFrame]:
        yield first
        for frame in frames:
            yield frame.cast(first.schema)

    # One frame after the other is made, compressed and forgotten.
    pulled = register_io_source(batches, schema=first.schema)
    pulled.sink_parquet(path, compression="zstd", row_group_size=max(first.height, 1))


_layouts_of: dict[str, dict[str, Layout]] = {
    "posts": {".ndjson": _text(_reddit), ".jsonl": _text(_reddit), ".csv": _text(_csv), ".parquet": _parquet},
    "items": {
        ".csv": _text(_csv),
        ".dat": _text(_double_colons),
        ".json": _text(_item_map),
        ".parquet": _parquet,
    },
    "attributes": {
        ".csv": _text(_csv),
        ".ndjson": _text(_json_lines),
        ".jsonl": _text(_json_lines),
        ".parquet": _parquet,
    },
}
