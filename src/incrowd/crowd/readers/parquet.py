"""Parquet files with any columns: posts, items or attributes, by mapping or by common names."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl

from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions, layout_of
from incrowd.crowd.readers.rows import ROW, Parsed, batch_of
from incrowd.crowd.readers.source import open_regular
from incrowd.crowd.row_groups import MAGIC, texts_as_bytes
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError, UnreadableSource

FIRST_ROWS, MOST_ROWS = 1024, 2**17
"""How many rows are read at once: first, while nobody knows how long they are, and at most."""
PROBLEMS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What Polars makes of a file that is damaged."""


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
        open_regular(path).close()
        schema, height = _shape(path)
        layout = layout_of(list(schema), options, str(path))
        before = 0
        yield batch_of(Parsed(_texts(pl.DataFrame(schema=schema), layout, 0, path)), layout, options)
        for frame, bad in _frames(path, height, layout, options):
            texts = _texts(frame, layout, before, path)
            rejects = [(before + int(place) + 1, Reason.INVALID_UTF8) for place in bad.arg_true()]
            yield batch_of(Parsed(texts.filter(~bad), rejects), layout, options)
            before += frame.height


def _shape(path: Path) -> tuple[pl.Schema, int]:
    """Return a file's columns and how many rows it has."""
    try:
        scan = pl.scan_parquet(path, glob=False)
        return scan.collect_schema(), scan.select(pl.len()).collect(engine="in-memory").item()
    except pl.exceptions.DuplicateError:
        raise SchemaError(f"{path}: two columns have the same name. Rename one.") from None
    except PROBLEMS as error:
        raise _damaged(path) from error


def _frames(
    path: Path, height: int, layout: Layout, options: ReadOptions
) -> Iterator[tuple[pl.DataFrame, pl.Series]]:
    """Yield rows, and which of them hold bytes that are no text."""
    done, rows, readable = 0, FIRST_ROWS, path
    with ExitStack() as copies:
        while done < height:
            try:
                frame = _slice(readable, layout.sources, done, min(rows, height - done))
            except PROBLEMS as error:
                if readable != path:
                    raise _damaged(path) from error
                # Polars refuses a column with texts that are no UTF-8; as bytes it reads them.
                readable = copies.enter_context(_copy_with_bytes(path))
                continue
            yield _decoded(frame)
            done += frame.height
            size = max(1, int(frame.estimated_size()) // frame.height)
            rows = max(1, min(MOST_ROWS, options.batch_bytes // size))


def _slice(path: Path, columns: Sequence[str], start: int, rows: int) -> pl.DataFrame:
    found = pl.scan_parquet(path, glob=False).slice(start, rows).select(columns).collect(engine="in-memory")
    if found.height != rows:
        raise OSError("the file has fewer rows than it says")
    return found


@contextmanager
def _copy_with_bytes(path: Path) -> Iterator[Path]:
    """Copy a file for a while, with all that it calls text called bytes."""
    with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:
        copy = Path(folder) / "copy.parquet"
        shutil.copyfile(path, copy)
        try:
            texts_as_bytes(copy)
        except (ValueError, RecursionError) as error:
            raise _damaged(path) from error
        yield copy


def _decoded(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Turn bytes into text; return the rows in which some are none."""
    raw = [name for name, kind in frame.schema.items() if kind == pl.Binary]
    if not raw:
        return frame, pl.repeat(value=False, n=frame.height, eager=True)
    texts = frame.with_columns(_texts_of(frame[name]) for name in raw)
    broken = [frame[name].is_not_null() & texts[name].is_null() for name in raw]
    return texts, pl.DataFrame(broken).select(pl.any_horizontal(pl.all())).to_series()


def _texts_of(column: pl.Series) -> pl.Series:
    """Return the texts that some bytes spell; null where they spell none."""
    try:
        return column.cast(pl.String)
    except pl.exceptions.ComputeError:
        return pl.Series(column.name, [_text(value) for value in column], dtype=pl.String)


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


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
