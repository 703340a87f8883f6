"""Jobs that survive an interruption: every finished piece is kept, a second run computes what is missing.

Pieces lie in ``folder/<fingerprint of the job and its plan>/<task number>.parquet``. Another question, other
profiles or another cut into tiles has another fingerprint, so nothing is ever mixed up; a damaged piece is
computed again. The folder can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np
import polars as pl
from scipy import sparse

from incrowd.engine.local import Absorb, Engine, Piece, Progress, Task
from incrowd.errors import SchemaError, UnreadableSource

# Pieces and profiles as Parquet files: what engines read, write and leave behind when interrupted.
#
# Files appear whole or not at all: they are written under another name and then renamed.


PIECE = pl.Schema(
    {"name": pl.String(), "type": pl.String(), "shape": pl.List(pl.Int64()), "bytes": pl.Binary()}
)


def write_piece(path: Path, piece: Piece) -> None:
    """Write a dict of arrays, one row per array."""
    arrays = {name: np.ascontiguousarray(array) for name, array in piece.items()}
    columns = {
        "name": list(arrays),
        "type": [array.dtype.str for array in arrays.values()],
        "shape": [list(np.shape(array)) for array in piece.values()],
        "bytes": [array.tobytes() for array in arrays.values()],
    }
    _write(pl.DataFrame(columns, PIECE), path)


def read_piece(path: Path) -> Piece:
    """Read what `write_piece` wrote."""
    rows = _read(path, {"name", "type", "shape", "bytes"}).iter_rows(named=True)
    return {
        row["name"]: np.frombuffer(row["bytes"], np.dtype(row["type"])).reshape(row["shape"]).copy()
        for row in rows
    }


def write_rows(path: Path, rows: sparse.csr_matrix) -> None:
    """Write profiles, one row per profile: its words (column numbers) and values."""
    rows = sparse.csr_matrix(rows)
    cuts = rows.indptr[1:-1]
    lists = {"words": np.split(rows.indices, cuts), "values": np.split(rows.data, cuts)}
    schema = {"words": pl.List(pl.Int32), "values": pl.List(pl.Float64)}
    table = pl.DataFrame({name: parts[: rows.shape[0]] for name, parts in lists.items()}, schema)
    _write(table, path, {"width": str(rows.shape[1])})


def read_rows(path: Path) -> sparse.csr_matrix:
    """Read what `write_rows` wrote."""
    table = _read(path, {"words", "values"})
    width = pl.read_parquet_metadata(path).get("width")
    if width is None:
        raise SchemaError(f"{path}: expected profiles written by incrowd; the width of the rows is missing.")
    starts = np.concatenate([[0], np.cumsum(table["words"].list.len().to_numpy())])
    # An empty list becomes a null when lists are put end to end; nothing else here is one.
    values, words = (table[name].explode().drop_nulls().to_numpy() for name in ("values", "words"))
    return sparse.csr_matrix((values.copy(), words.copy(), starts), shape=(len(table), int(width)))


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write a result, one row per profile: ids and, say, the ball size at each radius."""
    _write(pl.DataFrame(dict(columns)), path)


def _write(table: pl.DataFrame, path: Path, metadata: dict[str, str] | None = None) -> None:
    beside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        table.write_parquet(beside, compression="zstd", metadata=metadata)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _read(path: Path, expected: set[str]) -> pl.DataFrame:
    try:
        table = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UnreadableSource(
            f"{path}: expected a Parquet file; it is missing or damaged ({type(error).__name__}). "
            "Delete it and run the job again."
        ) from error
    if missing := expected - set(table.columns):
        raise SchemaError(f"{path}: expected the columns {', '.join(sorted(missing))}; they are missing.")
    return table


FORMAT = 1
"""Rises when pieces of an earlier release must not be used again."""
_NUMBER = "task number"


class Resumable:
    """An engine that writes down what another engine computes.

    >>> from incrowd.engine import connect
    >>> engine = Resumable(connect("threads:2"), Path("runs"))
    """

    def __init__(self, engine: Engine, folder: Path | str) -> None:
        self.engine, self.folder = engine, Path(folder)

    @property
    def workers(self) -> int:
        """How many tasks are in memory at once."""
        return self.engine.workers

    def run(self, job: Any, plan: Any, absorb: Absorb, progress: Progress | None) -> None:
        """Absorb the pieces found in the folder, then compute, keep and absorb the others."""
        here = self.folder / fingerprint(FORMAT, job, plan)
        here.mkdir(parents=True, exist_ok=True)
        found = {task.number: task.pairs for task in plan if _absorb_kept(_path(here, task.number), absorb)}
        rest, done = Remaining(plan, frozenset(found)), sum(found.values())
        if progress and found:
            progress(done, float(plan.pairs), "distances")

        def keep(piece: Piece) -> None:
            number = int(piece.pop(_NUMBER)[0])
            write_piece(_path(here, number), piece)
            absorb(piece)

        if len(rest):
            self.engine.run(Numbered(job), rest, keep, _shifted(progress, done, plan.pairs))

    def close(self) -> None:
        """Close the engine; pieces stay."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass(frozen=True)
class Remaining:
    """The tasks of a plan that are still to be done."""

    plan: Any
    done: frozenset[int]

    def __iter__(self) -> Iterator[Task]:
        return (task for task in self.plan if task.number not in self.done)

    def __len__(self) -> int:
        return len(self.plan) - len(self.done)

    @property
    def pairs(self) -> int:
        """The size of what is left."""
        return sum(task.pairs for task in self)


@dataclass(frozen=True)
class Numbered:
    """A job whose pieces say which task they come from."""

    job: Any

    def open(self) -> NumberedWorker:
        """Open the job itself."""
        return NumberedWorker(self.job.open())


@dataclass(frozen=True)
class NumberedWorker:
    """Adds the task's number to each piece."""

    worker: Any

    @property
    def threads(self) -> int | None:
        """As many as the worker itself."""
        threads: int | None = self.worker.threads
        return threads

    def __call__(self, task: Task) -> Piece:
        """Work, then number the piece."""
        return {**self.worker(task), _NUMBER: np.array([task.number])}


def fingerprint(*values: Any) -> str:
    """Hash values by what they hold: equal jobs have equal fingerprints, on every machine."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        _feed(digest.update, value)
    return digest.hexdigest()


def _feed(update: Callable[[Any], None], value: Any) -> None:
    update(f"<{type(value).__qualname__}>".encode())
    if isinstance(value, np.ndarray):
        update(f"{value.dtype.str}{value.shape}".encode())
        update(np.ascontiguousarray(value).data)
    elif sparse.issparse(value):
        rows = sparse.csr_matrix(value)
        for part in (np.array(rows.shape), rows.indptr, rows.indices, rows.data):
            _feed(update, part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            _feed(update, (field.name, getattr(value, field.name)))
    elif isinstance(value, Mapping):
        _feed(update, tuple(value.items()))
    elif isinstance(value, tuple | list):
        for part in value:
            _feed(update, part)
    elif hasattr(value, "__dict__") and not callable(value):  # any other object: what it holds
        _feed(update, vars(value))
    else:  # numbers, texts, ranges, None: their repr is exact
        update(repr(value).encode())


def _absorb_kept(path: Path, absorb: Absorb) -> bool:
    """Use a piece that is there and whole."""
    if not path.exists():
        return False
    try:
        piece = read_piece(path)
    except UnreadableSource:
        return False
    absorb(piece)
    return True


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.parquet"


def _shifted(progress: Progress | None, before: float, total: float) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _, what: progress(before + done, float(total), what)
