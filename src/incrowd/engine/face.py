"""The one face all engines share: hand over a job and a plan, get pieces back.

::

    job.open()            once a process: the costly preparation
      └── worker(task)    once a task: returns a piece, a dict of plain arrays
    absorb(piece)         here, one at a time, in any order

A task is anything with a `number` (unique in its plan) and a size in `pairs`; distances use tiles, counting
uses files. Jobs and tasks are picklable values, so the same plan runs in threads or on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self

from incrowd.distances.all_pairs import Absorb, Progress
from incrowd.distances.reductions import Piece

__all__ = ["Absorb", "Engine", "Job", "Piece", "Plan", "Progress", "Task", "Worker"]


class Task(Protocol):
    """One unit of work."""

    @property
    def number(self) -> int:
        """Its place in the plan."""
        ...

    @property
    def pairs(self) -> int:
        """Its size, for the progress bar."""
        ...


class Plan(Protocol):
    """All tasks of a job."""

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...

    @property
    def pairs(self) -> int:
        """The size of all tasks together."""
        ...


class Worker(Protocol):
    """A job opened in one process; called with one task after another, from several threads if it allows."""

    @property
    def threads(self) -> int | None:
        """How many tasks it takes at once; None: any number."""
        ...

    __call__: Callable[[Any], Piece]


class Job(Protocol):
    """Everything a worker needs, as one picklable value."""

    def open(self) -> Any:
        """Prepare; return a `Worker`."""
        ...


class Engine(Protocol):
    """Where tasks run. Closing one stops what it started; all can be used in a `with` block."""

    @property
    def workers(self) -> int:
        """How many tasks are in memory at once."""
        ...

    def run(self, job: Any, plan: Any, absorb: Absorb, progress: Progress | None) -> None:
        """Run every task of the plan and hand each piece to `absorb`, in any order, one at a time."""
        ...

    def close(self) -> None:
        """Let go of workers."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...
