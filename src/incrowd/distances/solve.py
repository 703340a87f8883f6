"""Runs a question over a plan: here in threads, or wherever an engine sends the tiles.

A :class:`Job` is everything a worker needs, as one picklable value: send it once, `open` it once a process,
then call what comes back with one tile after another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from incrowd.distances.kernel import Kernel
from incrowd.distances.question import Array, Piece, Question, rounded
from incrowd.distances.reference import metric_named
from incrowd.distances.tiles import Tile, TilePlan

Progress = Callable[[float, float | None, str], None]
Absorb = Callable[[Piece], None]
Side = tuple[sparse.csr_matrix, sparse.csr_matrix | None]


@dataclass(frozen=True)
class Job:
    """One question about one or two comparisons, for one kernel."""

    question: Question
    metric: str
    kernel: str
    sides: tuple[Side, ...]

    def open(self) -> Worker:
        """Prepare the kernel; the costly part, done once a process and shared by its threads."""
        from incrowd.distances.dispatch import kernel_named

        kernel, metric = kernel_named(self.kernel), metric_named(self.metric)
        return Worker(self.question, kernel, tuple(kernel.prepare(x, y, metric) for x, y in self.sides))


@dataclass(frozen=True)
class Worker:
    """Answers a job's question on a tile. Safe to call from several threads."""

    question: Question
    kernel: Kernel
    states: tuple[Any, ...]

    def __call__(self, tile: Tile) -> Piece:
        """Compute the tile's distances, settle the doubtful ones in double precision, reduce."""
        piece = self.kernel.fused(self.states, self.question, tile)
        if piece is not None:
            return piece
        return self.question.look(tile, *(self._settled(side, tile) for side in range(len(self.states))))

    @property
    def threads(self) -> int | None:
        """How many tiles this process may work on at once; None: any number."""
        return self.kernel.threads

    def _settled(self, side: int, tile: Tile) -> Array:
        distances = self.kernel.tile(self.states[side], tile)
        if self.kernel.tolerance == 0:
            return rounded(distances)
        i, j = self.question.doubtful(tile, side, distances, self.kernel.tolerance)
        if len(i):
            distances = distances.astype(np.float64)
            rows, columns = i + tile.rows.start, j + tile.columns.start
            distances[i, j] = rounded(self.kernel.exact(self.states[side], rows, columns))
            if tile.diagonal:
                np.fill_diagonal(distances, 0.0)
        return distances


class Engine(Protocol):
    """Where tiles run."""

    @property
    def workers(self) -> int:
        """How many tiles are in memory at once."""
        ...

    def run(self, job: Job, plan: TilePlan, absorb: Absorb, progress: Progress | None) -> None:
        """Run every tile of the plan and hand each piece to `absorb`, in any order, one at a time."""
        ...


class Threads:
    """The default engine: the cores of this machine."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or usable_cores()

    def run(self, job: Job, plan: TilePlan, absorb: Absorb, progress: Progress | None) -> None:
        """Keep `workers` tiles under way; kernels release Python's lock."""
        worker = job.open()
        at_once = min(self.workers, worker.threads or self.workers)
        done, total = 0, float(plan.pairs)
        with ThreadPoolExecutor(at_once) as pool:
            for tile, piece in _as_finished(pool, worker, plan, at_once + 1):
                absorb(piece)
                done += tile.pairs
                if progress:
                    progress(done, total, "distances")


def _as_finished(
    pool: ThreadPoolExecutor, work: Callable[[Tile], Piece], tiles: Iterable[Tile], ahead: int
) -> Iterable[tuple[Tile, Piece]]:
    running: dict[Future[Piece], Tile] = {}
    waiting = iter(tiles)
    try:
        while True:
            while len(running) < ahead and (tile := next(waiting, None)) is not None:
                running[pool.submit(work, tile)] = tile
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()
    finally:
        for future in running:
            future.cancel()


def usable_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
