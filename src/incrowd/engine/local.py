"""What every engine does (hand over a job and a plan, get pieces back), and the engine that uses this machine.

::

    job.open()            once a process: the costly preparation
      └── worker(task)    once a task: returns a piece, a dict of plain arrays
    absorb(piece)         here, one at a time, in any order

A task is anything with a `number` (unique in its plan) and a size in `pairs`; distances use tiles, counting
uses files. Jobs and tasks are picklable values, so the same plan runs in threads or on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

from incrowd.distances.all_pairs import Absorb, Progress, Threads
from incrowd.distances.reductions import Piece

__all__ = ["Absorb", "Engine", "Piece", "Progress", "Task", "TaskPlan", "Worker", "WorkerJob"]


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


class TaskPlan(Protocol):
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


class WorkerJob(Protocol):
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


# The cores of this machine.


class Local(Threads):
    """Threads of this process: matrices are shared, nothing is copied. The default everywhere."""

    def close(self) -> None:
        """Nothing is left running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


# A plan of row ranges: for measures that compare some people with everybody, a range at a time.


@dataclass(frozen=True)
class RowRange:
    """One task: rows `start` to `stop` (excluded) against everybody."""

    number: int
    start: int
    stop: int
    others: int

    @property
    def rows(self) -> slice:
        """The rows as a slice."""
        return slice(self.start, self.stop)

    @property
    def pairs(self) -> int:
        """Its size, for the progress bar."""
        return (self.stop - self.start) * self.others


@dataclass(frozen=True)
class RowRanges:
    """All ranges of a job.

    >>> RowRanges.of([slice(0, 2), slice(2, 3)], others=10).pairs
    30
    """

    ranges: tuple[RowRange, ...]

    @classmethod
    def of(cls, slices: Iterable[slice], others: int) -> Self:
        """Number the slices; `others` is how many people each row is compared with."""
        return cls(tuple(RowRange(n, part.start, part.stop, others) for n, part in enumerate(slices)))

    def __iter__(self) -> Iterator[RowRange]:
        return iter(self.ranges)

    def __len__(self) -> int:
        return len(self.ranges)

    @property
    def pairs(self) -> int:
        """The size of all ranges together."""
        return sum(part.pairs for part in self.ranges)
