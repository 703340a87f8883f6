"""Tables on the disk: Parquet in bounded row groups, hashed; and DuckDB over it within a memory limit.

Columns of texts are handed to compiled loops as UTF-8 bytes end to end, with the place where each text begins.
"""

from __future__ import annotations

import ctypes
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.crowd.disk import PRIVATE, Disk, disk_full
from incrowd.crowd.manifest import PARTS_FOLDER, TablePart
from incrowd.crowd.row_groups import Compression, RowGroups, Schema
from incrowd.errors import BudgetExceeded

if TYPE_CHECKING:
    import duckdb


Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


def utf8(texts: pl.Series) -> tuple[Bytes, Longs]:
    """Return a column's bytes, free to be overwritten, and where each text begins, the last end included.

    >>> data, starts = utf8(pl.Series(["ab", None, "c"]))
    >>> bytes(data), starts.tolist()
    (b'abc', [0, 2, 2, 3])
    """
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(texts.str.len_bytes().fill_null(0).to_numpy(), out=starts[1:])
    data = texts.str.join().cast(pl.Binary).item() if len(texts) else b""
    return np.frombuffer(bytearray(data), np.uint8), starts


def series_of(data: Bytes, starts: Longs) -> pl.Series:
    """Return the texts that lie end to end in `data`; the reverse of :func:`utf8`."""
    places = pl.DataFrame({"start": starts[:-1], "size": np.diff(starts)})
    whole = pl.lit(
        pl.Series([data.tobytes()])
    ).first()  # a literal of many bytes would be copied for each text
    return places.select(whole.bin.slice(pl.col("start"), pl.col("size")).cast(pl.String)).to_series()


THREAD_MEMORY = 128 * 2**20
"""DuckDB needs about this much for each thread; with less it fails instead of spilling."""
STREAMED_ROWS = 65_536
FLUSHED = "4MB"
"""What DuckDB frees goes back once it is this much; by its default, 128 MB, a small budget would not see it again."""


def processors() -> int:
    """Return how many processors this process may use; only Linux lets a process be held to some of them."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def connect(memory: int, spill: Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database that uses at most `memory` bytes and spills to a folder."""
    import duckdb  # not at the top: a second look at somebody reads what is remembered, without a database

    connection = duckdb.connect(
        config={
            "memory_limit": f"{memory}B",
            "temp_directory": str(spill),
            "threads": max(1, min(processors(), memory // THREAD_MEMORY)),
            "preserve_insertion_order": False,
            # Memory that is freed goes back to the system, where the other libraries find it.
            "allocator_background_threads": True,
            "allocator_flush_threshold": FLUSHED,
            "allocator_bulk_deallocation_flush_threshold": FLUSHED,
            # Nothing is fetched from anywhere, whatever a query says.
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    # Where Python was started with -c, DuckDB takes it for a notebook and draws a bar into our output. In a real
    # notebook without ipywidgets it has no bar to draw, and refuses to hear about it.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
    return connection


def give_memory_back() -> None:
    """Return to the system what allocators keep for later, so that many imports in a row take no more than one."""
    with suppress(OSError, AttributeError, TypeError):  # only the GNU system's library has it
        ctypes.CDLL(None).malloc_trim(0)


@dataclass(frozen=True)
class Shown:
    """A frame or a query as others take it by Arrow's own interface.

    A frame itself DuckDB would ask PyArrow to read; and of a query itself Polars would remember the class, about which
    DuckDB complains at the end of the process.
    """

    rows: Any

    def __arrow_c_stream__(self, schema: object = None) -> object:
        """Return the rows as a stream of Arrow's."""
        return self.rows.__arrow_c_stream__(schema)


def fetched(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """Return all rows of a query."""
    return pl.DataFrame(Shown(relation))


def in_pieces(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[pl.DataFrame]:
    """Yield the rows of a sorted query, some at a time.

    DuckDB puts them aside first, where it can spill them: what then goes wrong, DuckDB itself tells.
    """
    name = f"pieces_{uuid4().hex}"
    connection.execute(f"CREATE TEMP TABLE {name} AS {sql}")
    try:
        ((rows,),) = connection.sql(f"SELECT count(*) FROM {name}").fetchall()
        for start in range(0, rows, STREAMED_ROWS):
            some = f"rowid >= {start} AND rowid < {start + STREAMED_ROWS}"
            piece = fetched(connection.sql(f"SELECT rowid AS row_id, * FROM {name} WHERE {some}"))
            yield piece.sort("row_id").drop("row_id")
    finally:
        connection.execute(f"DROP TABLE {name}")


def parquet_sql(paths: Iterable[Path], *, numbered: bool = False) -> str:
    """Return the SQL that scans Parquet files, with `filename` and `file_row_number` if asked."""
    names = ", ".join(quote(_literal(str(path))) for path in paths)
    numbers = ", filename = true, file_row_number = true" if numbered else ""
    return f"read_parquet([{names}], hive_partitioning = false{numbers})"


def quote(text: str) -> str:
    """Return a string as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _literal(path: str) -> str:
    """Keep DuckDB from reading a file name as a pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


@contextmanager
def explained(spill: Path) -> Iterator[None]:
    """Turn DuckDB's errors about resources into ours; its messages may quote data, so none is passed on."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise BudgetExceeded(
            "import: the rows fit neither the memory budget nor the disk's free space. Nothing was changed. "
            "Give a larger --memory, or free some space."
        ) from None
    except duckdb.IOException as error:
        if "no space left" in str(error).lower():
            raise disk_full(spill.parent) from None
        raise


ROW_GROUP_ROWS = 32_768
ROW_GROUP_BYTES = 8 * 2**20
PART_BYTES = 2**30
"""About how many bytes of rows, before compression, go into one part."""
UNIQUE = {"text", "content_hi", "content_lo", "id_hi", "id_lo"}
"""Columns whose values hardly ever repeat: statistics do not pay."""


class ParquetSink:
    """One Parquet file being written; it knows its hash, size and rows."""

    def __init__(self, file: IO[bytes], schema: Schema, disk: Disk, compression: Compression) -> None:
        self._file, self._disk, self._columns = file, disk, list(schema)
        self._digest = blake2b(digest_size=16)
        self._waiting: list[pl.DataFrame] = []
        self._waiting_bytes = self._waiting_rows = 0
        self.rows = self.size = self.taken_bytes = 0
        self._groups = RowGroups(schema, compression, no_statistics=UNIQUE)

    def add(self, rows: pl.DataFrame) -> None:
        """Take some rows; they are written as soon as they fill a row group."""
        for piece in _slices(rows.select(self._columns)):
            size = int(piece.estimated_size())
            self._waiting.append(piece)
            self._waiting_rows += piece.height
            self._waiting_bytes += size
            self.taken_bytes += size
            self.rows += piece.height
            if self._waiting_bytes >= ROW_GROUP_BYTES or self._waiting_rows >= ROW_GROUP_ROWS:
                self._flush_group()

    def finish(self) -> str:
        """Write what waits and the footer; return the hash of the whole file."""
        self._flush_group()
        self._write(self._groups.end())
        return self._digest.hexdigest()

    def _flush_group(self) -> None:
        if self._waiting:
            self._write(self._groups.group(pl.concat(self._waiting)))
        self._waiting, self._waiting_bytes, self._waiting_rows = [], 0, 0

    def _write(self, data: bytes) -> None:
        self._disk.write(self._file, data)
        self._digest.update(data)
        self.size += len(data)


def _slices(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Cut rows into pieces that fit a row group, however long their texts are."""
    groups = max(1, int(rows.estimated_size()) // ROW_GROUP_BYTES, rows.height // ROW_GROUP_ROWS)
    yield from rows.iter_slices(max(1, rows.height // groups))


@contextmanager
def parquet_sink(
    path: Path, schema: Schema, disk: Disk, *, compression: Compression = "zstd"
) -> Iterator[ParquetSink]:
    """Open a Parquet file for writing; it is durable when the block ends well."""
    with disk.writing(path) as file:
        yield ParquetSink(file, schema, disk, compression)


def write_parts(
    table: str,
    frames: Iterable[pl.DataFrame],
    schema: Schema,
    folder: Path,
    disk: Disk,
    *,
    run: int,
) -> tuple[TablePart, ...]:
    """Write sorted rows as one or more parts into the crowd's `parts` folder."""
    remaining = iter(frames)
    parts: list[TablePart] = []
    while (first := next(remaining, None)) is not None:
        if first.height:
            parts.append(_write_part(table, first, remaining, schema, folder, disk, run))
    disk.sync_folder(folder / PARTS_FOLDER)
    return tuple(parts)


def _write_part(
    table: str,
    first: pl.DataFrame,
    remaining: Iterator[pl.DataFrame],
    schema: Schema,
    folder: Path,
    disk: Disk,
    run: int,
) -> TablePart:
    draft = folder / PARTS_FOLDER / f"{table}.tmp"
    with parquet_sink(draft, schema, disk) as sink:
        rows: pl.DataFrame | None = first
        while rows is not None:
            sink.add(rows)
            rows = next(remaining, None) if sink.taken_bytes < PART_BYTES else None
        digest = sink.finish()
    # The hash in the name lets a repeated import write the same file again without harm.
    name = f"{table}-{run:05d}-{digest}.parquet"
    disk.rename(draft, folder / PARTS_FOLDER / name)
    return TablePart(file=name, rows=sink.rows, bytes=sink.size, blake2b=digest, run=run)


# Where a person's own posts can be found: the addresses in their own export, kept beside the crowd.
#
# Only those of people's own exports are kept. The addresses of everybody's posts would give back the names
# that pseudonyms take away. A row is told by its person, community, time and a digest of its text, so that
# an address is found also where the same post came from a dump before.

LINKS_NAME = "links.parquet"
LINK = "link"
IS_ADDRESS = pl.col(LINK).str.contains(r"^https?://[^\s/]+/\S{1,2000}$")
_ROW = ("user", "community", "time", "digest")
_SCHEMA = {"user": pl.String, "community": pl.String, "time": pl.Int64, "digest": pl.Binary, LINK: pl.String}


def links_in(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the addresses among checked rows of posts whose users have their ids; what is no address is left out."""
    found = rows.filter(IS_ADDRESS)
    return found.select("user", "community", "time", _digests(found), LINK)


def _digests(posts: pl.DataFrame) -> pl.Series:
    texts = (blake2b(text.encode(), digest_size=16).digest() for text in posts["text"])
    return pl.Series("digest", texts, dtype=pl.Binary)


def read_links(folder: Path) -> pl.DataFrame:
    """Return the addresses kept in a folder; none if it has none."""
    path = folder / LINKS_NAME
    return pl.read_parquet(path, glob=False) if path.exists() else pl.DataFrame(schema=_SCHEMA)


def write_links(folder: Path, disk: Disk, links: pl.DataFrame) -> None:
    """Keep these addresses, for nobody but the crowd's owner to read."""
    if links.is_empty():
        disk.remove(folder / LINKS_NAME)
        return
    data = io.BytesIO()
    links.write_parquet(data)
    disk.write_whole(folder / LINKS_NAME, data.getvalue(), PRIVATE)


def add_links(folder: Path, disk: Disk, staged: Iterable[Path]) -> None:
    """Add the addresses of staged sources to a crowd's; a later one takes the place of an earlier one."""
    new = [links for links in map(read_links, staged) if links.height]
    if new:
        both = pl.concat([read_links(folder), *new])
        write_links(folder, disk, both.unique(_ROW, keep="last", maintain_order=True))


def links_of(folder: Path, user: str, posts: pl.DataFrame) -> dict[int, str]:
    """Return the addresses of a person's numbered posts, as far as they are known."""
    kept = read_links(folder).filter(pl.col("user") == user)
    if kept.is_empty():
        return {}
    asked = posts.with_columns(_digests(posts), user=pl.lit(user))
    found = asked.join(kept, on=list(_ROW), nulls_equal=True)
    return dict(found.select("number", LINK).iter_rows())
