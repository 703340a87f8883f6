"""A person's pages: the answer, a tab a question, what-if, drafts, the offline report."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import JSONResponse, Response

from incrowd.advisor.answer import PersonReport
from incrowd.crowd.ingest import Progress
from incrowd.errors import IncrowdError, InputError
from incrowd.measures.protocol import AdvisorOptions, ThemeName
from incrowd.web.jobs import Stopped, explain
from incrowd.web.site import Gone, Site, attached, document, wants_part
from incrowd.web.what_if import Wish, holdings

THEMES = {name.replace(" ", "-"): name for name in ThemeName}


def routes(site: Site) -> APIRouter:
    """Return the pages."""
    router = APIRouter()
    form = [Depends(site.check_form)]

    @router.post("/assess", dependencies=form)
    def assess(name: Annotated[str, Form()] = "", quote: Annotated[bool, Form()] = False) -> Response:
        person = name.strip()
        if not person:
            raise InputError("say under which name you are in the crowd")
        site.crowd().user(person)
        options = AdvisorOptions(quote_posts=quote)

        def work(progress: Progress) -> PersonReport:
            from incrowd.advisor.assess import assess as ask

            return ask(site.crowd(), person, options=options, progress=progress)

        return site.begin("Assessing you", "/reports/{id}", work)

    @router.get("/reports/{job_id}")
    def overview(job_id: str) -> Response:
        return _tab(site, job_id, "overview.html", "overview")

    @router.get("/reports/{job_id}/fine-print")
    def fine_print(job_id: str) -> Response:
        return _tab(site, job_id, "fine_print.html", "fine-print")

    @router.get("/reports/{job_id}/report.html")
    def offline(job_id: str) -> Response:
        from incrowd.report.advice import person_report_page

        return document(person_report_page(_report(site, job_id)), "incrowd-report.html")

    @router.get("/reports/{job_id}/report.json")
    def as_json(job_id: str) -> Response:
        return JSONResponse(_report(site, job_id).to_dict(), headers=attached("incrowd-report.json"))

    @router.get("/reports/{job_id}/what-if")
    def what_if_form(job_id: str, texts: bool = False) -> Response:
        report = _report(site, job_id)
        mine = holdings(site.crowd(), report.person, texts)
        return _tab(site, job_id, "what_if.html", "what-if", mine=mine, wish=Wish.fresh(), answer=None)

    @router.post("/reports/{job_id}/what-if", dependencies=form)
    async def what_if(job_id: str, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        wish = Wish.from_form(await request.form())
        return await run_in_threadpool(_what_if, site, job_id, wish, wants_part(request))

    @router.get("/reports/{job_id}/draft")
    def draft_form(job_id: str) -> Response:
        communities = _communities(site, job_id)
        return _tab(site, job_id, "draft.html", "draft", communities=communities, checked=None)

    @router.post("/reports/{job_id}/draft", dependencies=form)
    def draft(
        request: Request,
        job_id: str,
        community: Annotated[str, Form()] = "",
        text: Annotated[str, Form()] = "",
    ) -> Response:
        return _draft(site, job_id, community, text, wants_part(request))

    @router.get("/reports/{job_id}/{slug}")
    def question(job_id: str, slug: str) -> Response:
        if slug not in THEMES:
            raise Gone
        theme = next(one for one in _report(site, job_id).themes if one.name == THEMES[slug])
        return _tab(site, job_id, "question.html", slug, theme=theme)

    return router


def _report(site: Site, job_id: str) -> PersonReport:
    report: PersonReport = site.finished(job_id, PersonReport).result
    return report


def _tab(
    site: Site, job_id: str, template: str, current: str, status: int = 200, **values: object
) -> Response:
    base = f"/reports/{job_id}"
    return site.page(
        template,
        status,
        report=_report(site, job_id),
        base=base,
        current=current,
        tabs=THEMES,
        links={name: f"{base}/{slug}" for slug, name in THEMES.items()},
        **values,
    )


def _communities(site: Site, job_id: str) -> list[str]:
    """All communities of the crowd, those the person writes in first."""
    crowd, report = site.crowd(), _report(site, job_id)
    own = holdings(crowd, report.person, texts=False).communities
    return [*own, *(name for name in site.communities() if name not in own)]


def _what_if(site: Site, job_id: str, wish: Wish, part: bool) -> Response:
    from incrowd.advisor.advice import effects
    from incrowd.advisor.assess import what_if

    report = _report(site, job_id)
    values: dict[str, Any] = {"answer": None, "effects": (), "problem": ""}
    try:
        changes = wish.changes(report)
        if changes:
            answer = what_if(
                site.crowd(),
                report.person,
                changes,
                options=AdvisorOptions(advice=False),
                progress=site.latest.begin(wish.page) if wish.page else None,
            )
            values |= {"answer": answer, "effects": list(effects(report.findings, answer.findings).values())}
    except Stopped:
        return Response(status_code=409)
    except IncrowdError as error:
        values["problem"] = explain(error)
    if part:
        return site.part("what_if_answer.html", report=report, **values)
    mine = holdings(site.crowd(), report.person, wish.texts)
    return _tab(site, job_id, "what_if.html", "what-if", mine=mine, wish=wish, **values)


def _draft(site: Site, job_id: str, community: str, text: str, part: bool) -> Response:
    from incrowd.advisor.draft import draft_in

    report = _report(site, job_id)
    values: dict[str, Any] = {"checked": None, "problem": ""}
    try:
        if text.strip():
            values["checked"] = draft_in(
                site.options.crowd, report.person, community, text, options=AdvisorOptions()
            )
    except IncrowdError as error:
        values["problem"] = explain(error)
    if part:
        return site.part("draft_answer.html", **values)
    communities = _communities(site, job_id)
    return _tab(
        site, job_id, "draft.html", "draft", communities=communities, community=community, text=text, **values
    )
