"""What all pages share: the crowd, the templates, how to answer, and jobs.

A job is work that takes longer than a page may: it runs in the background, says how far it is, and can be stopped.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from types import UnionType
from typing import Annotated, Any, Literal

from fastapi import Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import ChoiceLoader, PackageLoader

from incrowd.crowd import Crowd
from incrowd.crowd.ingest import Progress
from incrowd.crowd.store import CrowdInfo
from incrowd.errors import IncrowdError, InputError
from incrowd.report.page import asset, policy_of
from incrowd.report.person import environment
from incrowd.web.serving import ServeOptions
from incrowd.web.uploads import Upload, private_folder, receive

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


PART = "x-part"
"""A script that wants only the part of a page that changed says so in this header."""


class ResultGone(Exception):
    """A page was asked for whose result this server no longer has, or never had."""


class BadForm(IncrowdError):
    """A form that no page of this server made."""


class Site:
    """The crowd being shown, its jobs and templates. Pages read it; only jobs change the crowd."""

    def __init__(self, options: ServeOptions) -> None:
        self.options = options
        self._info: CrowdInfo | None = None
        self._communities: tuple[str, list[str]] = ("", [])
        self.jobs = Jobs(options.limits.jobs, options.limits.kept_results)
        self.latest = Latest()
        loaders = (PackageLoader("incrowd.web", "templates"), PackageLoader("incrowd.report", "templates"))
        self.templates = environment(ChoiceLoader(loaders))
        self.templates.globals |= {
            "form_key": options.form_key,
            "style_version": _fingerprint(self.style),
            "script_version": _fingerprint(self.script),
            "crowd_name": options.crowd.name,
        }

    @cached_property
    def style(self) -> str:
        """One style sheet: the offline pages' and ours."""
        return asset("page.css") + asset("person.css") + _static("web.css")

    @cached_property
    def script(self) -> str:
        """One script."""
        return _static("web.js")

    def crowd(self) -> Crowd:
        """Open the crowd as it is now: a job or another process may have added to it."""
        return Crowd(self.options.crowd)

    def info(self) -> CrowdInfo:
        """Return the crowd at a glance; counted once for every state of its data."""
        crowd = self.crowd()
        if self._info is None or self._info.data_hash != crowd.data_hash:
            self._info = crowd.info()
        return self._info

    def communities(self) -> list[str]:
        """Return the names of all communities, largest first; looked up once for every state of the data."""
        crowd = self.crowd()
        if self._communities[0] != crowd.data_hash:
            self._communities = (crowd.data_hash, crowd.communities()["community"].to_list())
        return self._communities[1]

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        return HTMLResponse(self.templates.get_template(template).render(**values), status)

    def part(self, template: str, **values: Any) -> HTMLResponse:
        """Return part of a page, marked as such."""
        answer = self.page(template, **values)
        answer.headers[PART] = "1"
        return answer

    def begin(self, title: str, url: str, work: Work) -> RedirectResponse:
        """Start a job and lead to the page that shows how far it is."""
        return see_other(f"/jobs/{self.jobs.start(title, url, work).id}")

    def finished(self, job_id: str, kind: type | UnionType) -> WebJob:
        """Return a job with a result of that kind."""
        job = self.jobs.get(job_id)
        if job is None or not isinstance(job.result, kind):
            raise ResultGone
        return job

    def check_form(self, form_key: Annotated[str, Form()] = "") -> None:
        """Refuse a form that was not made by this server. Every route that takes a form depends on it."""
        if not hmac.compare_digest(form_key.encode(), self.options.form_key.encode()):
            raise BadForm("this form was not made by this server. Reload the page and try again.")


def document(text: str, save_as: str = "") -> HTMLResponse:
    """Return one of the offline pages; it brings its own, stricter policy."""
    headers = {"content-security-policy": policy_of(text) + "; frame-ancestors 'none'"}
    return HTMLResponse(text, headers=headers | (attached(save_as) if save_as else {}))


def attached(name: str) -> dict[str, str]:
    """Return the header that makes a browser save instead of show."""
    return {"content-disposition": f'attachment; filename="{name}"'}


async def receive_files(site: Site, request: Request) -> Upload:
    """Take a form with at least one file; whoever gets it discards it."""
    folder = private_folder(site.options.crowd)
    try:
        brought = await receive(request, folder, site.options.limits.upload_files, site.options.form_key)
        if not brought.files:
            raise InputError("choose at least one file")
    except BaseException:
        Upload(folder).discard()
        raise
    return brought


def see_other(url: str) -> RedirectResponse:
    """Lead on after a form, so that reloading does not send it again."""
    return RedirectResponse(url, status_code=303)


def wants_part(request: Request) -> bool:
    """Say whether a script asked for part of the page."""
    return request.headers.get(PART) == "1"


def _static(name: str) -> str:
    return resources.files("incrowd.web").joinpath("static", name).read_text(encoding="utf-8")


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
