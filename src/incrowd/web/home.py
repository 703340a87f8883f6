"""The first page: import files or make up a crowd, see how far a job is; and the crowd as a whole, totals only."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from incrowd.advisor.crowd_answer import CrowdReport
from incrowd.crowd.ingest import ImportReport, Progress
from incrowd.crowd.schema import KINDS, MEANING
from incrowd.errors import IncrowdError, InputError
from incrowd.report.crowd import crowd_report_page
from incrowd.web.jobs import Job
from incrowd.web.site import Gone, Site, attached, document, receive_files, see_other
from incrowd.web.uploads import Upload, private_folder


def routes(site: Site) -> APIRouter:
    """Return the pages."""
    router = APIRouter()
    form = [Depends(site.check_form)]

    @router.get("/")
    def home() -> Response:
        return site.page("home.html", info=site.info(), jobs=site.jobs.all()[:8], kinds=KINDS)

    @router.post("/uploads/import")
    async def upload(request: Request) -> Response:
        brought = await receive_files(site, request)
        try:
            work = _import(site, brought)
        except InputError:
            brought.discard()
            raise
        return site.begin("Reading your files", "/imports/{id}", work)

    @router.post("/made-up", dependencies=form)
    def made_up() -> Response:
        if site.info().users:
            raise InputError("made-up people would mix with the real ones: use an empty crowd for them")
        return site.begin("Making up people", "/imports/{id}", _make_up(site))

    @router.get("/imports/{job_id}")
    def imported(job_id: str) -> Response:
        report: ImportReport = site.finished(job_id, ImportReport).result
        return site.page("imported.html", report=report, meaning=MEANING, info=site.info())

    @router.get("/jobs/{job_id}")
    def job_page(job_id: str) -> Response:
        job = _job(site, job_id)
        return see_other(job.place) if job.state == "done" else site.page("job.html", job=job)

    @router.get("/jobs/{job_id}/progress")
    def progress(job_id: str) -> Response:
        return JSONResponse(_job(site, job_id).to_dict())

    @router.post("/jobs/{job_id}/stop", dependencies=form)
    def stop(job_id: str) -> Response:
        _job(site, job_id).stop()
        return see_other(f"/jobs/{job_id}")

    return router


def _job(site: Site, job_id: str) -> Job:
    job = site.jobs.get(job_id)
    if job is None:
        raise Gone
    return job


def _import(site: Site, upload: Upload) -> Callable[[Progress], ImportReport]:
    kind = upload.fields.get("kind") or None
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind: expected {', '.join(KINDS)}, or nothing to find out; got something else")

    def work(progress: Progress) -> ImportReport:
        try:
            return site.crowd().ingest(
                upload.files,
                kind=kind,
                community=upload.fields.get("community") or None,
                user=upload.fields.get("user") or None,
                progress=progress,
            )
        except IncrowdError as error:
            raise type(error)(upload.for_the_form(str(error))) from None
        finally:
            upload.discard()

    return work


def _make_up(site: Site) -> Callable[[Progress], ImportReport]:
    def work(progress: Progress) -> ImportReport:
        from incrowd import synthetic

        folder = private_folder(site.options.crowd)
        try:
            progress(0, 4, "making up people")
            files: list[Path] = synthetic.demo_person().write(folder)
            reports = []
            for step, (kind, file) in enumerate(zip(KINDS, files, strict=True), 1):
                progress(step, 4, f"reading {kind}")
                reports.append(site.crowd().ingest([file], kind=kind))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        sources: tuple[Any, ...] = tuple(source for report in reports for source in report.sources)
        return ImportReport(sources=sources, known=(), data_hash=reports[-1].data_hash)

    return work


def crowd_routes(site: Site) -> APIRouter:
    """Return the pages."""
    router = APIRouter(prefix="/crowd")

    @router.get("")
    def crowd() -> Response:
        done = [job for job in site.jobs.all() if isinstance(job.result, CrowdReport)]
        return site.page("crowd.html", section="Crowd", info=site.info(), meaning=MEANING, done=done)

    @router.post("/report", dependencies=[Depends(site.check_form)])
    def report() -> Response:
        def work(progress: Progress) -> CrowdReport:
            from incrowd.advisor.crowd_report import crowd_report

            return crowd_report(site.crowd(), progress=progress)

        return site.begin("Assessing everybody", "/crowd/report/{id}", work)

    @router.get("/report/{job_id}")
    def show(job_id: str) -> Response:
        return document(crowd_report_page(_result(site, job_id)))

    @router.get("/report/{job_id}/report.json")
    def as_json(job_id: str) -> Response:
        return JSONResponse(_result(site, job_id).to_dict(), headers=attached("incrowd-crowd.json"))

    return router


def _result(site: Site, job_id: str) -> CrowdReport:
    result: CrowdReport = site.finished(job_id, CrowdReport).result
    return result
