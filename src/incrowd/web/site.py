"""What all pages share: the crowd, the jobs, the templates, and how to answer."""

from __future__ import annotations

import hashlib
import hmac
from functools import cached_property
from importlib import resources
from types import UnionType
from typing import Annotated, Any

from fastapi import Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import ChoiceLoader, PackageLoader

from incrowd.crowd import Crowd
from incrowd.crowd.info import CrowdInfo
from incrowd.errors import IncrowdError, InputError
from incrowd.report.page import asset, policy_of
from incrowd.report.person import environment
from incrowd.web.jobs import Jobs, Latest, WebJob, Work
from incrowd.web.serving import ServeOptions
from incrowd.web.uploads import Upload, private_folder, receive

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
