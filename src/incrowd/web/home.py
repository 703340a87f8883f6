"""The first page: import files or make up a crowd, see how far a job is; the crowd as a whole; what providers need."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import JSONResponse, Response

from incrowd import synthetic
from incrowd.advisor.crowd_report import CrowdReport, crowd_report
from incrowd.crowd.ingest import ImportReport, Progress, stop_at_questions
from incrowd.crowd.readers import column_names
from incrowd.crowd.schema import KINDS, MEANING
from incrowd.crowd.staging import Understood
from incrowd.errors import IncrowdError, InputError, Undecided
from incrowd.gateway.state import SECRET_NAME, open_secret
from incrowd.measures.crowd_rates import CrowdOptions
from incrowd.measures.microdata import provider
from incrowd.measures.microdata.spec import GroupSpec, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import load_state, save_state
from incrowd.report.crowd import crowd_report_page
from incrowd.report.page import microdata_page
from incrowd.web.site import ResultGone, Site, WebJob, attached, document, receive_files, see_other
from incrowd.web.uploads import IMPORT_FORM, Upload, private_folder

if TYPE_CHECKING:
    from incrowd.measures.microdata.statistics import Statistics


def routes(site: Site) -> APIRouter:
    """Return the pages."""
    router = APIRouter()
    form = [Depends(site.check_form)]

    @router.get("/")
    def home() -> Response:
        jobs = site.jobs.all()
        owner = next((_owner(job.result) for job in jobs if isinstance(job.result, ImportReport)), "")
        return site.page("home.html", info=site.info(), jobs=jobs[:8], kinds=KINDS, owner=owner)

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
        result = site.finished(job_id, ImportReport | StoppedImport).result
        if isinstance(result, StoppedImport):
            return site.page(
                "import_question.html",
                asked=result,
                job_id=job_id,
                kinds=KINDS,
                fields=FIELDS,
                meaning=MEANING,
                day=_day,
            )
        return site.page(
            "imported.html", report=result, meaning=MEANING, info=site.info(), owner=_owner(result)
        )

    @router.post("/imports/{job_id}/answer", dependencies=form)
    async def answer(job_id: str, request: Request) -> Response:
        asked: StoppedImport = site.finished(job_id, StoppedImport).result
        answers = {name: str(value).strip() for name, value in (await request.form()).items()}
        asked.upload.fields.pop("look", None)
        asked.upload.fields |= {name: value for name, value in answers.items() if value}
        return site.begin("Reading your files", "/imports/{id}", _import(site, asked.upload))

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


def _owner(report: ImportReport) -> str:
    """Return the account whose own export was just imported, to be filled in; empty if there is not just one."""
    owners = {one.owner for one in report.understood if one.whose == "own" and one.owner}
    return owners.pop() if len(owners) == 1 else ""


def _job(site: Site, job_id: str) -> WebJob:
    job = site.jobs.get(job_id)
    if job is None:
        raise ResultGone
    return job


FIELDS = ("user", "community", "time", "text", "item", "value", "attribute")
"""What a column of a table may be chosen for."""


@dataclass(frozen=True)
class StoppedImport:
    """An import that stopped: what was understood so far, and the files, which wait."""

    upload: Upload
    question: Undecided | None
    """What has to be decided; None: somebody only wanted to look first."""
    understood: tuple[Understood, ...]
    columns: tuple[str, ...]
    """The columns the files have, if they are tables."""

    @property
    def text(self) -> str:
        """The question, for somebody at a form: files go by their names alone."""
        return "" if self.question is None else self.upload.for_the_form(self.question.question, IMPORT_FORM)


def _chosen_columns(fields: Mapping[str, str]) -> dict[str, str]:
    """Return which column is what: from one field of pairs, and from a choice for each of ours."""
    pairs = [part.partition("=") for part in fields.get("columns", "").split(",") if part.strip()]
    found = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if not all(ours and theirs for ours, theirs in found.items()):
        raise InputError("columns: expected OURS=THEIRS, parted by commas, e.g. user=author, text=body")
    return found | {name: fields[f"column_{name}"] for name in FIELDS if fields.get(f"column_{name}")}


def _day(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def _columns(upload: Upload) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for path in upload.files for name in column_names(path)))


def _import(site: Site, upload: Upload) -> Callable[[Progress], ImportReport | StoppedImport]:
    columns = _chosen_columns(upload.fields)
    kind = upload.fields.get("kind") or None
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind: expected {', '.join(KINDS)}, or nothing to find out; got something else")

    seen: list[Understood] = []

    def confirm(understood: Sequence[Understood]) -> None:
        seen.extend(understood)
        if upload.fields.get("yes") != "true":
            stop_at_questions(understood)

    def work(progress: Progress) -> ImportReport | StoppedImport:
        look = upload.fields.get("look") == "true"
        waits = False
        try:
            report = site.crowd().ingest(
                upload.files,
                kind=kind,
                columns=columns,
                community=upload.fields.get("community") or None,
                user=upload.fields.get("user") or None,
                dates=upload.fields.get("dates") or None,
                confirm=confirm,
                dry_run=look,
                progress=progress,
            )
            waits = look
            return StoppedImport(upload, None, report.understood, _columns(upload)) if look else report
        except Undecided as question:
            waits = True
            return StoppedImport(upload, question, tuple(seen), _columns(upload))
        except IncrowdError as error:
            raise upload.at_the_form(error, IMPORT_FORM) from None
        finally:
            if not waits:
                upload.discard()

    return work


def _make_up(site: Site) -> Callable[[Progress], ImportReport]:
    def work(progress: Progress) -> ImportReport:
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
    def report(people: Annotated[int, Form(ge=1)] = CrowdOptions.sampled) -> Response:
        options = CrowdOptions(sampled=people)

        def work(progress: Progress) -> CrowdReport:
            return crowd_report(site.crowd(), options=options, progress=progress)

        return site.begin("Assessing the crowd", "/crowd/report/{id}", work)

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


# For those who hold the data: statistics that people can check themselves with, and the gateway's report.

STATE = "microdata-release"
"""Where `incrowd microdata publish` keeps what it must remember between releases."""


@dataclass(frozen=True)
class SavedRelease:
    """A release, ready to be saved."""

    statistics: Statistics
    counted: int
    """Items there are; only those common enough are listed."""


def provider_routes(site: Site) -> APIRouter:
    """Return the pages."""
    router = APIRouter(prefix="/providers")

    @router.get("")
    def providers() -> Response:
        return site.page(
            "providers.html", section="Providers", info=site.info(), gateway=site.options.gateway is not None
        )

    @router.post("/publish", dependencies=[Depends(site.check_form)])
    def publish(
        smallest: Annotated[int, Form()] = 10,
        rare_below: Annotated[int, Form()] = 100,
        groups: Annotated[str, Form()] = "",
    ) -> Response:
        if groups and not groups.isdecimal():
            raise InputError(
                f"groups: expected a whole number, or nothing to find out; got {len(groups)} letters"
            )
        release, score = ReleaseSpec(crowd=smallest), ScoreSpec(rare_below=rare_below)
        chosen = GroupSpec(exactly=int(groups) if groups else None)
        return site.begin(
            "Counting what may be published",
            "/providers/{id}",
            lambda progress: _publish(site, release, score, chosen, progress),
        )

    @router.get("/gateway")
    def gateway() -> Response:
        return _gateway_report(site)

    @router.get("/{job_id}")
    def published(job_id: str) -> Response:
        result: SavedRelease = site.finished(job_id, SavedRelease).result
        return site.page("published.html", section="Providers", job_id=job_id, made=result)

    @router.get("/{job_id}/statistics.json")
    def statistics(job_id: str) -> Response:
        result: SavedRelease = site.finished(job_id, SavedRelease).result
        return JSONResponse(result.statistics.to_dict(), headers=attached("statistics.json"))

    @router.get("/{job_id}/client.html")
    def client(job_id: str) -> Response:
        result: SavedRelease = site.finished(job_id, SavedRelease).result
        return document(microdata_page(result.statistics), "client.html")

    return router


def _publish(
    site: Site, release: ReleaseSpec, score: ScoreSpec, groups: GroupSpec, progress: Progress
) -> SavedRelease:
    progress(0, 3, "counting items")
    tally = provider.Tally.count(site.crowd().items(), score)
    folder = site.options.crowd / STATE
    progress(1, 3, "rounding and hiding rare items")
    statistics, after = provider.publish(tally, state=load_state(folder), release=release, groups=groups)
    progress(2, 3, "remembering the release")
    # The state first: a release that nobody remembers must not be out.
    save_state(after, folder)
    return SavedRelease(statistics, tally.items.height)


def _gateway_report(site: Site) -> Response:
    from incrowd.gateway.report import activity_report
    from incrowd.report.gateway import gateway_page

    state = site.options.gateway
    if state is None or not (state / SECRET_NAME).is_file():
        raise InputError(
            "the gateway's state folder is not there. Start incrowd serve with --gateway and the folder that "
            "incrowd gateway was given with --state."
        )
    return document(gateway_page(activity_report(state, open_secret(state))))
