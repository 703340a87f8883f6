"""Tables on the disk: Parquet in bounded row groups, hashed; and DuckDB over it within a memory limit."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from incrowd.crowd.disk import Disk, disk_full
from incrowd.crowd.manifest import PARTS_FOLDER, TablePart
from incrowd.errors import BudgetExceeded

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
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError, TypeError):  # only the GNU system's library has it
        ctypes.CDLL(None).malloc_trim(0)


def stream(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[pa.RecordBatch]:
    """Yield a query's rows, and give its memory back at the end rather than some time later."""
    relation = connection.sql(sql)
    reader = relation.to_arrow_reader(STREAMED_ROWS)
    try:
        yield from reader
    finally:
        reader.close()
        relation.close()


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
"""Columns whose values hardly ever repeat: neither dictionaries nor statistics pay."""


class ParquetSink:
    """One Parquet file being written; it knows its hash, size and rows."""

    def __init__(self, file: IO[bytes], schema: pa.Schema, disk: Disk, compression: str) -> None:
        self._file, self._disk, self._schema = file, disk, schema
        self._digest = blake2b(digest_size=16)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = self._waiting_rows = 0
        self.closed = self.broken = False
        self.rows = self.size = self.taken_bytes = 0
        short = [name for name in schema.names if name not in UNIQUE]
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self, mode="w"),
            schema,
            compression=compression,
            use_dictionary=short,
            write_statistics=short,
        )

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Take some rows; they are written as soon as they fill a row group."""
        for batch in _slices(rows):
            self._waiting.append(batch.select(self._schema.names))
            self._waiting_rows += batch.num_rows
            self._waiting_bytes += batch.nbytes
            self.taken_bytes += batch.nbytes
            self.rows += batch.num_rows
            if self._waiting_bytes >= ROW_GROUP_BYTES or self._waiting_rows >= ROW_GROUP_ROWS:
                self._flush_group()

    def finish(self) -> str:
        """Write what waits and the footer; return the hash of the whole file."""
        self._flush_group()
        self._close()
        return self._digest.hexdigest()

    def abandon(self) -> None:
        """Stop after a failure: nothing more reaches the file."""
        self.broken = True
        self._close()

    def _close(self) -> None:
        # The writer holds this object, through C++, where no garbage collector looks; so this lets go of the writer.
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _flush_group(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting).cast(self._schema))
        self._waiting, self._waiting_bytes, self._waiting_rows = [], 0, 0

    # What Arrow calls.

    def write(self, data: Any) -> int:
        """Append bytes and hash them."""
        view = memoryview(data)
        if not self.broken:
            self._disk.write(self._file, view)
            self._digest.update(view)
        self.size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.size

    def flush(self) -> None:
        """Do nothing: the disk syncs once, at the end."""

    def close(self) -> None:
        """Mark as done; the file itself belongs to whoever opened it."""
        self.closed = True


def _slices(rows: pa.Table | pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut rows into pieces that fit a row group, however long their texts are."""
    groups = max(1, rows.nbytes // ROW_GROUP_BYTES, rows.num_rows // ROW_GROUP_ROWS)
    step = max(1, rows.num_rows // groups)
    for start in range(0, rows.num_rows, step):
        piece = rows.slice(start, step)
        yield from piece.to_batches() if isinstance(piece, pa.Table) else [piece]


@contextmanager
def parquet_sink(
    path: Path, schema: pa.Schema, disk: Disk, *, compression: str = "zstd"
) -> Iterator[ParquetSink]:
    """Open a Parquet file for writing; it is durable when the block ends well."""
    with disk.writing(path) as file:
        sink = ParquetSink(file, schema, disk, compression)
        try:
            yield sink
        except BaseException:
            sink.abandon()
            raise


def write_parts(
    table: str,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    folder: Path,
    disk: Disk,
    *,
    run: int,
) -> tuple[TablePart, ...]:
    """Write sorted rows as one or more parts into the crowd's `parts` folder."""
    remaining = iter(batches)
    parts: list[TablePart] = []
    while (first := next(remaining, None)) is not None:
        if first.num_rows:
            parts.append(_write_part(table, first, remaining, schema, folder, disk, run))
    disk.sync_folder(folder / PARTS_FOLDER)
    return tuple(parts)


def _write_part(
    table: str,
    first: pa.RecordBatch,
    remaining: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    folder: Path,
    disk: Disk,
    run: int,
) -> TablePart:
    draft = folder / PARTS_FOLDER / f"{table}.tmp"
    with parquet_sink(draft, schema, disk) as sink:
        batch: pa.RecordBatch | None = first
        while batch is not None:
            sink.add(batch)
            batch = next(remaining, None) if sink.taken_bytes < PART_BYTES else None
        digest = sink.finish()
    # The hash in the name lets a repeated import write the same file again without harm.
    name = f"{table}-{run:05d}-{digest}.parquet"
    disk.rename(draft, folder / PARTS_FOLDER / name)
    return TablePart(file=name, rows=sink.rows, bytes=sink.size, blake2b=digest, run=run)
