"""DuckDB over a crowd's files: connections with a memory limit, and file names spelt safely."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from incrowd.errors import BudgetExceeded

THREAD_MEMORY = 128 * 2**20
"""DuckDB needs about this much for each thread; with less it fails instead of spilling."""
STREAMED_ROWS = 65_536


def processors() -> int:
    """Return how many processors this process may use; only Linux lets a process be held to some of them."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def connect(memory: int, spill: Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database that uses at most `memory` bytes and spills to a folder."""
    return duckdb.connect(
        config={
            "memory_limit": f"{memory}B",
            "temp_directory": str(spill),
            "threads": max(1, min(processors(), memory // THREAD_MEMORY)),
            "preserve_insertion_order": False,
            # Memory that is freed goes back to the system, where the other libraries find it.
            "allocator_background_threads": True,
            # Nothing is fetched from anywhere, whatever a query says.
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )


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
def explained() -> Iterator[None]:
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
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        raise
