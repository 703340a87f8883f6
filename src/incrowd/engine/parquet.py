"""Pieces and profiles as Parquet files: what engines read, write and leave behind when interrupted.

Files appear whole or not at all: they are written under another name and then renamed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from incrowd.engine.face import Piece
from incrowd.errors import SchemaError, UnreadableSource


def write_piece(path: Path, piece: Piece) -> None:
    """Write a dict of arrays, one row an array."""
    arrays = {name: np.ascontiguousarray(array) for name, array in piece.items()}
    columns = {
        "name": pa.array(arrays, pa.string()),
        "type": pa.array([array.dtype.str for array in arrays.values()], pa.string()),
        "shape": pa.array([np.shape(array) for array in piece.values()], pa.list_(pa.int64())),
        "bytes": pa.array([array.tobytes() for array in arrays.values()], pa.large_binary()),
    }
    _write(pa.table(columns), path)


def read_piece(path: Path) -> Piece:
    """Read what `write_piece` wrote."""
    rows = _read(path, {"name", "type", "shape", "bytes"}).to_pylist()
    return {
        row["name"]: np.frombuffer(row["bytes"], np.dtype(row["type"])).reshape(row["shape"]).copy()
        for row in rows
    }


def write_rows(path: Path, rows: sparse.csr_matrix) -> None:
    """Write profiles, one row a profile: its words (column numbers) and values."""
    rows = sparse.csr_matrix(rows)
    starts = pa.array(rows.indptr, pa.int64())
    table = pa.table(
        {
            "words": pa.LargeListArray.from_arrays(starts, pa.array(rows.indices, pa.int32())),
            "values": pa.LargeListArray.from_arrays(starts, pa.array(rows.data, pa.float64())),
        }
    )
    _write(table.replace_schema_metadata({"width": str(rows.shape[1])}), path)


def read_rows(path: Path) -> sparse.csr_matrix:
    """Read what `write_rows` wrote."""
    table = _read(path, {"words", "values"}).combine_chunks()
    width = (table.schema.metadata or {}).get(b"width")
    if width is None:
        raise SchemaError(f"{path}: expected profiles written by incrowd; the width of the rows is missing.")
    if not len(table):
        return sparse.csr_matrix((0, int(width)))
    words, values = (table.column(name).chunk(0) for name in ("words", "values"))
    parts = (np.array(values.values), np.array(words.values), np.array(words.offsets))
    return sparse.csr_matrix(parts, shape=(len(table), int(width)))


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write a result, one row a profile: ids and, say, the ball size at each radius."""
    _write(pa.table({name: pa.array(values) for name, values in columns.items()}), path)


def _write(table: pa.Table, path: Path) -> None:
    beside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        pq.write_table(table, beside, compression="zstd")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _read(path: Path, expected: set[str]) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise UnreadableSource(
            f"{path}: expected a Parquet file; it is missing or damaged ({type(error).__name__}). "
            "Delete it and run the job again."
        ) from error
    if missing := expected - set(table.column_names):
        raise SchemaError(f"{path}: expected the columns {', '.join(sorted(missing))}; they are missing.")
    return table
