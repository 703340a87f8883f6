"""The first page: drop in an export, say who you are; and the pages that show how far a job is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from incrowd.crowd.ingest import ImportReport, Progress
from incrowd.crowd.schema import KINDS, MEANING
from incrowd.errors import IncrowdError, InputError
from incrowd.web.desk import Desk, Gone, receive_files, see_other
from incrowd.web.jobs import Job
from incrowd.web.uploads import Upload, private_folder


def routes(desk: Desk) -> APIRouter:
    """Return the pages."""
    router = APIRouter()
    form = [Depends(desk.check_form)]

    @router.get("/")
    def home() -> Response:
        return desk.page("home.html", info=desk.info(), jobs=desk.jobs.all()[:8], kinds=KINDS)

    @router.post("/uploads/import")
    async def upload(request: Request) -> Response:
        brought = await receive_files(desk, request)
        try:
            work = _import(desk, brought)
        except InputError:
            brought.discard()
            raise
        return desk.begin("Reading your files", "/imports/{id}", work)

    @router.post("/made-up", dependencies=form)
    def made_up() -> Response:
        if desk.info().users:
            raise InputError("made-up people would mix with the real ones: use an empty crowd for them")
        return desk.begin("Making up people", "/imports/{id}", _make_up(desk))

    @router.get("/imports/{job_id}")
    def imported(job_id: str) -> Response:
        report: ImportReport = desk.finished(job_id, ImportReport).result
        return desk.page("imported.html", report=report, meaning=MEANING, info=desk.info())

    @router.get("/jobs/{job_id}")
    def job_page(job_id: str) -> Response:
        job = _job(desk, job_id)
        return see_other(job.place) if job.state == "done" else desk.page("job.html", job=job)

    @router.get("/jobs/{job_id}/progress")
    def progress(job_id: str) -> Response:
        return JSONResponse(_job(desk, job_id).to_dict())

    @router.post("/jobs/{job_id}/stop", dependencies=form)
    def stop(job_id: str) -> Response:
        _job(desk, job_id).stop()
        return see_other(f"/jobs/{job_id}")

    return router


def _job(desk: Desk, job_id: str) -> Job:
    job = desk.jobs.get(job_id)
    if job is None:
        raise Gone
    return job


def _import(desk: Desk, upload: Upload) -> Callable[[Progress], ImportReport]:
    kind = upload.fields.get("kind") or None
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind: expected {', '.join(KINDS)}, or nothing to find out; got something else")

    def work(progress: Progress) -> ImportReport:
        try:
            return desk.crowd().ingest(
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


def _make_up(desk: Desk) -> Callable[[Progress], ImportReport]:
    def work(progress: Progress) -> ImportReport:
        from incrowd import synthetic

        folder = private_folder(desk.options.crowd)
        try:
            progress(0, 4, "making up people")
            files: list[Path] = synthetic.demo_person().write(folder)
            reports = []
            for step, (kind, file) in enumerate(zip(KINDS, files, strict=True), 1):
                progress(step, 4, f"reading {kind}")
                reports.append(desk.crowd().ingest([file], kind=kind))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        sources: tuple[Any, ...] = tuple(source for report in reports for source in report.sources)
        return ImportReport(sources=sources, known=(), data_hash=reports[-1].data_hash)

    return work
