"""A Dask cluster (extra `cluster`): one already running, or one started here.

The job, matrices included, is brought to all workers once (on one machine they share one copy, see `MappedJob`);
each opens it once and then receives tiles. A worker that dies costs the tiles it had under way: they run again
elsewhere. Results are the same as in threads, bit for bit, because pieces can be absorbed in any order.
"""

from __future__ import annotations

import logging
import mmap
import pickle
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self
from uuid import uuid4

from incrowd.engine.local import Absorb, Piece, Progress, Task
from incrowd.errors import BudgetExceeded, IncrowdError, InputError, MissingExtra

# A job laid down in a folder that all workers see: its arrays are mapped into memory, not copied.
#
# Several worker processes on one machine then share one copy of the profiles, and nothing large travels.

_SMALL = 2**16
"""Bytes below which an array stays in the main file: a mapping costs a page and a file."""


@dataclass(frozen=True)
class MappedJob:
    """Where a job lies. Small, so it can travel with every task."""

    folder: Path
    arrays: int

    def open(self) -> Any:
        """Load the job and open it."""
        return self.load().open()

    def load(self) -> Any:
        """Read the job back; its large arrays are private maps of the files, writable without effect on them."""
        buffers = [_mapped(self.folder / str(number)) for number in range(self.arrays)]
        # Written by `write_job` a moment ago into a folder that is ours alone.
        return pickle.loads((self.folder / "job").read_bytes(), buffers=buffers)  # noqa: S301


def write_job(job: Any, folder: Path) -> MappedJob:
    """Write a job into an empty folder."""
    large: list[pickle.PickleBuffer] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        if buffer.raw().nbytes < _SMALL:
            return True
        large.append(buffer)
        return False

    (folder / "job").write_bytes(pickle.dumps(job, protocol=5, buffer_callback=stays))
    for number, buffer in enumerate(large):
        (folder / str(number)).write_bytes(buffer.raw())
    return MappedJob(folder, len(large))


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


AHEAD = 2
"""Tasks sent for each worker thread, so that none waits for the next."""
RESENDS = 3
"""How often a job is sent again after every worker that held it died."""
_JOIN_SECONDS = 10
_WORKER_SECONDS = 120


class DaskEngine:
    """Runs tasks on the workers of a Dask cluster. Close it, or use it in a `with` block."""

    def __init__(self, client: Any, cluster: Any = None, processes: int = 0) -> None:
        self._client, self._cluster, self._processes = client, cluster, processes

    @classmethod
    def start(cls, workers: int = 2) -> Self:
        """Start a cluster of worker processes on this machine, one core each."""
        distributed = _distributed()
        import dask

        # Dask gives a killed worker 15 s to come back, counted from its first death: too little on a busy machine.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=0,  # tiles keep to their own budget; Dask would only kill workers
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
        return cls(distributed.Client(cluster, set_as_default=False), cluster, workers)

    @classmethod
    def join(cls, address: str) -> Self:
        """Connect to a cluster that is running."""
        distributed = _distributed()
        try:
            client = distributed.Client(address, timeout=_JOIN_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"cluster: expected a Dask scheduler at {address}; none answered within {_JOIN_SECONDS} s "
                f"({type(error).__name__}). Start one with: dask scheduler"
            ) from error
        return cls(client)

    @property
    def workers(self) -> int:
        """How many tasks the cluster works on at once, now."""
        try:
            threads: dict[str, int] = self._client.nthreads()
        except (OSError, TimeoutError) as error:
            raise _gone("a scheduler that answers", "it went away") from error
        return max(1, sum(threads.values()))

    def run(self, job: Any, plan: Any, absorb: Absorb, progress: Progress | None) -> None:
        """Send the job once, then its tasks, a few ahead of the workers; absorb pieces as they come."""
        missing: dict[int, Task] = {task.number: task for task in plan}
        done, total = 0, float(plan.pairs)
        for _ in range(1 + RESENDS):
            self._wait_for_workers()
            with self._sent(job) as sent:
                for number, piece in self._attempt(sent, list(missing.values())):
                    absorb(piece)
                    done += missing.pop(number).pairs
                    if progress:
                        progress(done, total, "distances")
            if not missing:
                return
        raise IncrowdError(
            f"cluster: every worker holding the job died, {1 + RESENDS} times in a row; {len(missing)} of "
            f"{len(plan)} tiles are missing. Give workers more memory, or lower the memory of the job."
        )

    def _wait_for_workers(self) -> None:
        try:
            if self._cluster is not None:  # replaces workers that died for good
                self._cluster.scale(self._processes)
            self._client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except (OSError, TimeoutError) as error:
            raise _gone("at least one worker", f"none answered within {_WORKER_SECONDS} s") from error

    def _attempt(self, sent: Any, tasks: list[Task]) -> Iterator[tuple[int, Piece]]:
        """Yield (task number, piece) until all are done or the job was lost with its last holder."""
        as_completed = _distributed().as_completed
        token, waiting = uuid4().hex, iter(tasks)
        numbers = {self._submit(sent, token, task): task.number for task in islice(waiting, self._ahead())}
        flying = as_completed(list(numbers), loop=self._client.loop)
        try:
            for future in flying:
                number, piece = numbers.pop(future), _result(future)
                if piece is None:
                    return
                yield number, piece
                for task in islice(waiting, max(0, self._ahead() - len(numbers))):
                    numbers[added := self._submit(sent, token, task)] = task.number
                    flying.add(added)
        finally:
            with suppress(OSError, TimeoutError):  # nothing to tidy up on a cluster that is gone
                self._client.cancel(list(numbers), force=True)
                self._client.run(_forget, token, on_error="ignore")

    @contextmanager
    def _sent(self, job: Any) -> Iterator[Any]:
        """Bring the job to all workers once: through a folder if they are on this machine."""
        if self._cluster is not None:
            with TemporaryDirectory(prefix="incrowd-") as folder:
                yield write_job(job, Path(folder))
            return
        sent = self._client.scatter(job, broadcast=True, hash=False)
        try:
            yield sent
        finally:
            with suppress(OSError, TimeoutError):
                self._client.cancel([sent], force=True)

    def _ahead(self) -> int:
        return AHEAD * self.workers

    def _submit(self, sent: Any, token: str, task: Task) -> Any:
        return self._client.submit(_work, sent, token, task, key=f"incrowd-{token}-{task.number}", pure=False)

    def close(self) -> None:
        """Leave the cluster; stop it if it was started here."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _gone(expected: str, got: str) -> IncrowdError:
    return IncrowdError(
        f"cluster: expected {expected}; {got}. Start the scheduler (dask scheduler) and workers (dask worker "
        "ADDRESS) again. A job that keeps its tiles (Resumable) continues where it stopped."
    )


def _result(future: Any) -> Piece | None:
    """Fetch a piece; None if the job was lost before it could be computed."""
    try:
        piece: Piece = future.result()
    except CancelledError:
        return None
    except _distributed().KilledWorker as error:
        raise BudgetExceeded(
            "cluster: several workers died one after the other on the same tile, most likely out of memory. "
            "Lower the memory of the job (smaller tiles), or give workers more."
        ) from error
    return piece


# In a worker process: jobs already opened, the two latest.
_opened: OrderedDict[str, Any] = OrderedDict()
_opening = threading.Lock()


def _work(job: Any, token: str, task: Any) -> Piece:
    with _opening:
        if token not in _opened:
            _opened[token] = job.open()
        while len(_opened) > 2:
            _opened.popitem(last=False)
        worker = _opened[token]
    piece: Piece = worker(task)
    return piece


def _forget(token: str) -> None:
    with _opening:
        _opened.pop(token, None)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtra("running on a cluster", "cluster") from error
    return distributed
