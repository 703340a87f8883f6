"""The crowd as a whole: what is in it, and its risk report for data officers. Totals only."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse, Response

from incrowd.advisor.crowd_answer import CrowdReport
from incrowd.crowd.ingest import Progress
from incrowd.crowd.schema import MEANING
from incrowd.web.desk import Desk, attached, document


def routes(desk: Desk) -> APIRouter:
    """Return the pages."""
    router = APIRouter(prefix="/crowd")

    @router.get("")
    def crowd() -> Response:
        done = [job for job in desk.jobs.all() if isinstance(job.result, CrowdReport)]
        return desk.page("crowd.html", section="Crowd", info=desk.info(), meaning=MEANING, done=done)

    @router.post("/report", dependencies=[Depends(desk.check_form)])
    def report() -> Response:
        def work(progress: Progress) -> CrowdReport:
            from incrowd.advisor.crowd_report import crowd_report

            return crowd_report(desk.crowd(), progress=progress)

        return desk.begin("Assessing everybody", "/crowd/report/{id}", work)

    @router.get("/report/{job_id}")
    def show(job_id: str) -> Response:
        from incrowd.report.crowd import crowd_report_page

        return document(crowd_report_page(_result(desk, job_id)))

    @router.get("/report/{job_id}/report.json")
    def as_json(job_id: str) -> Response:
        return JSONResponse(_result(desk, job_id).to_dict(), headers=attached("incrowd-crowd.json"))

    return router


def _result(desk: Desk, job_id: str) -> CrowdReport:
    result: CrowdReport = desk.finished(job_id, CrowdReport).result
    return result
