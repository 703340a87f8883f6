"""Work that takes longer than a page may: it runs in the background, says how far it is, and can be stopped."""

from __future__ import annotations

import os
import secrets
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from incrowd.crowd.ingest import Progress
from incrowd.errors import IncrowdError

MOST_PAGES = 100
"""Open pages whose questions are told apart."""
State = Literal["waiting", "running", "done", "failed", "stopped"]
Work = Callable[[Progress], Any]


class Stopped(Exception):
    """Raised inside a job's work once somebody asked it to stop."""


@dataclass
class WebJob:
    """One piece of work and what became of it."""

    title: str
    url: str
    """Where the result is shown; `{id}` stands for the job's id."""
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: State = "waiting"
    what: str = "waiting for another job to finish"
    done: float = 0.0
    total: float | None = None
    result: Any = None
    problem: str = ""
    """What went wrong, for the person."""
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def over(self) -> bool:
        """True once nothing more happens."""
        return self.state in ("done", "failed", "stopped")

    @property
    def place(self) -> str:
        """The address of the result."""
        return self.url.format(id=self.id)

    def stop(self) -> None:
        """Ask it to stop; it does so at its next report of progress."""
        self._stop.set()
        if not self.over:
            self.what = "stopping"

    def report(self, done: float, total: float | None, what: str) -> None:
        """Take note of progress; the way a job learns that it should stop."""
        if self._stop.is_set():
            raise Stopped
        self.done, self.total, self.what = done, total, what

    def to_dict(self) -> dict[str, Any]:
        """Return what the progress bar needs."""
        share = None if not self.total else min(1.0, self.done / self.total)
        return {
            "state": self.state,
            "what": self.what,
            "share": share,
            "problem": self.problem,
            "url": self.place if self.state == "done" else None,
        }


class Latest:
    """Of several questions from one page only the latest counts: a newer one stops those before it."""

    def __init__(self) -> None:
        self._newest: dict[str, object] = {}

    def begin(self, page: str) -> Progress:
        """Return a listener to progress that stops the work once the page has asked again."""
        mine = self._newest[page] = object()
        while len(self._newest) > MOST_PAGES:
            del self._newest[next(iter(self._newest))]

        def listen(done: float, total: float | None, what: str) -> None:
            if self._newest.get(page) is not mine:
                raise Stopped

        return listen


class Jobs:
    """The jobs of this server, oldest first; so many run at a time."""

    def __init__(self, at_a_time: int, kept: int) -> None:
        self._slots = threading.Semaphore(at_a_time)
        self._jobs: dict[str, WebJob] = {}
        self._kept = kept
        self._lock = threading.Lock()

    def start(self, title: str, url: str, work: Work) -> WebJob:
        """Start work in the background."""
        job = WebJob(title, url)
        with self._lock:
            self._jobs[job.id] = job
            self._forget_oldest()
        threading.Thread(target=self._run, args=(job, work), name=f"job-{job.id}", daemon=True).start()
        return job

    def get(self, job_id: str) -> WebJob | None:
        """Return a job, unless it is unknown or forgotten."""
        return self._jobs.get(job_id)

    def all(self) -> list[WebJob]:
        """Return the jobs, newest first."""
        return list(reversed(self._jobs.values()))

    def stop_all(self) -> None:
        """Ask everything to stop: the server goes down."""
        for job in self.all():
            job.stop()

    def _forget_oldest(self) -> None:
        finished = [job.id for job in self._jobs.values() if job.over]
        for job_id in finished[: max(0, len(self._jobs) - self._kept)]:
            del self._jobs[job_id]

    def _run(self, job: WebJob, work: Work) -> None:
        with self._slots:
            try:
                job.report(0, None, "starting")
                job.state = "running"
                job.result = work(job.report)
                job.state = "done"
            except Stopped:
                job.what, job.state = "stopped", "stopped"
            except Exception as error:
                job.problem, job.state = explain(error), "failed"


def debugging() -> bool:
    """Say whether somebody asked for details, which may quote data."""
    return bool(os.environ.get("INCROWD_DEBUG"))


def explain(error: Exception) -> str:
    """Say what went wrong without quoting data: only messages of ours are known to hold none."""
    if isinstance(error, IncrowdError):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, MemoryError):
        return "out of memory: close other programs, or take fewer or smaller files"
    if debugging():
        traceback.print_exception(error)
    return f"unexpected {type(error).__name__}: start incrowd serve with INCROWD_DEBUG=1 for the details"
