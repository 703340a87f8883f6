"""Jobs that survive an interruption: every finished piece is kept, a second run computes what is missing.

Pieces lie in ``folder/<fingerprint of the job and its plan>/<task number>.parquet``. Another question, other
profiles or another cut into tiles has another fingerprint, so nothing is ever mixed up; a damaged piece is
computed again. The folder can be deleted at any time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from incrowd.engine.face import Absorb, Engine, Piece, Progress, Task
from incrowd.engine.parquet import read_piece, write_piece
from incrowd.errors import UnreadableSource

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
