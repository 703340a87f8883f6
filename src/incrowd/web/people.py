"""A person's pages: the answer, one tab per question, what-if, drafts, the offline report.

Also what somebody has told about themselves, from their own files at once: read, answered, and nothing kept.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from incrowd.advisor.advice import effects
from incrowd.advisor.answer import OwnPost, PersonReport
from incrowd.advisor.assess import assess as ask
from incrowd.advisor.assess import what_if
from incrowd.advisor.compare import Earlier, since
from incrowd.advisor.draft import check, draft_in
from incrowd.crowd.ingest import Progress
from incrowd.errors import IncrowdError, InputError
from incrowd.measures.card_crowd import CardCrowd, crowd_of_export
from incrowd.measures.disclosures.assess import Disclosed, disclosed
from incrowd.measures.disclosures.model_reader import NOTE
from incrowd.measures.disclosures.posts import posts_of_export
from incrowd.measures.disclosures.spec import DisclosureOptions
from incrowd.measures.protocol import AdvisorOptions, Changes, PreparedCrowd, ThemeName
from incrowd.report.person import person_report_page
from incrowd.web.site import ResultGone, Site, Stopped, attached, document, explain, receive_files, wants_part
from incrowd.web.uploads import OWN_FORM, Upload

if TYPE_CHECKING:
    from starlette.datastructures import FormData


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
            report = ask(site.crowd(), person, options=options, progress=progress)
            earlier = _last_report(
                site, lambda one: one.person == person and not isinstance(one, ReportOfExport)
            )
            return report if earlier is None else replace(report, since=since(Earlier.of(earlier), report))

        return site.begin("Assessing you", "/reports/{id}", work)

    @router.post("/uploads/assess")
    async def assess_export(request: Request) -> Response:
        brought = await receive_files(site, request)
        return site.begin("Assessing you", "/reports/{id}", _of_export(site, brought))

    @router.get("/reports/{job_id}")
    def overview(job_id: str) -> Response:
        return _tab(site, job_id, "overview.html", "overview")

    @router.get("/reports/{job_id}/fine-print")
    def fine_print(job_id: str) -> Response:
        return _tab(site, job_id, "fine_print.html", "fine-print")

    @router.get("/reports/{job_id}/report.html")
    def offline(job_id: str) -> Response:
        return document(person_report_page(_report(site, job_id)), "incrowd-report.html")

    @router.get("/reports/{job_id}/report.json")
    def as_json(job_id: str) -> Response:
        return JSONResponse(_report(site, job_id).to_dict(), headers=attached("incrowd-report.json"))

    @router.get("/reports/{job_id}/what-if")
    def what_if_form(job_id: str, texts: bool = False) -> Response:
        mine = holdings(*_among(site, _report(site, job_id)), texts)
        return _tab(site, job_id, "what_if.html", "what-if", mine=mine, wish=Wish.fresh(), answer=None)

    @router.post("/reports/{job_id}/what-if", dependencies=form)
    async def what_if(job_id: str, request: Request) -> Response:
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
            raise ResultGone
        theme = next(one for one in _report(site, job_id).themes if one.name == THEMES[slug])
        return _tab(site, job_id, "question.html", slug, theme=theme)

    return router


def _last_report(site: Site, same: Callable[[PersonReport], bool]) -> PersonReport | None:
    """Return the latest answer about the same person that this server still has."""
    done = (job.result for job in site.jobs.all() if isinstance(job.result, PersonReport))
    return next(filter(same, done), None)


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


@dataclass(frozen=True, kw_only=True, repr=False)
class ReportOfExport(PersonReport):
    """A report about the owner of an export, with what was read of it: it lives as long as the report does."""

    among: CardCrowd


def _of_export(site: Site, upload: Upload) -> Callable[[Progress], ReportOfExport]:
    """Return the work that assesses the owner of some files; they are deleted as soon as they are read."""

    def work(progress: Progress) -> ReportOfExport:
        try:
            progress(0, None, "reading your files")
            among = crowd_of_export(upload.files, upload.fields.get("user") or None)
        except IncrowdError as error:
            raise upload.at_the_form(error, OWN_FORM) from None
        finally:
            upload.discard()
        report = ask(among, options=AdvisorOptions(), progress=progress)
        earlier = _last_report(
            site,
            lambda one: isinstance(one, ReportOfExport) and one.among.export.account == among.export.account,
        )
        if earlier is not None:
            report = replace(report, since=since(Earlier.of(earlier), report))
        return ReportOfExport(
            **{part.name: getattr(report, part.name) for part in fields(report)}, among=among
        )

    return work


def _among(site: Site, report: PersonReport) -> tuple[PreparedCrowd, str]:
    """Return whom the person was compared with, and their id there."""
    if isinstance(report, ReportOfExport):
        return report.among, report.among.user_id(report.person)
    crowd = site.crowd()
    return PreparedCrowd.of(crowd), crowd.user(report.person)


def _communities(site: Site, job_id: str) -> list[str]:
    """All communities of the crowd, those the person writes in first."""
    report = _report(site, job_id)
    if isinstance(report, ReportOfExport):
        return list(report.among.card.communities)
    own = holdings(*_among(site, report), texts=False).communities
    return [*own, *(name for name in site.communities() if name not in own)]


def _what_if(site: Site, job_id: str, wish: Wish, part: bool) -> Response:
    report = _report(site, job_id)
    values: dict[str, Any] = {"answer": None, "effects": (), "problem": ""}
    try:
        changes = wish.changes(report)
        if changes:
            answer = what_if(
                report.among if isinstance(report, ReportOfExport) else site.crowd(),
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
    mine = holdings(*_among(site, report), wish.texts)
    return _tab(site, job_id, "what_if.html", "what-if", mine=mine, wish=wish, **values)


def _draft(site: Site, job_id: str, community: str, text: str, part: bool) -> Response:
    report = _report(site, job_id)
    values: dict[str, Any] = {"checked": None, "problem": ""}
    try:
        if text.strip() and isinstance(report, ReportOfExport):
            options = AdvisorOptions(text=report.among.text)
            values["checked"] = check(report.among, report.person, community, text, options=options)
        elif text.strip():
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


MOST_POSTS = 200
"""Posts listed a community, the newest; older ones can be named by number."""
MOST_ITEMS = 500


@dataclass(frozen=True, eq=False)
class Holdings:
    """What the person has in the crowd, to choose from."""

    posts: Mapping[str, tuple[OwnPost, ...]]
    """By community, newest first."""
    counts: Mapping[str, int]
    items: tuple[str, ...]
    attributes: Mapping[str, str]
    texts: bool

    @property
    def communities(self) -> list[str]:
        """Where the person writes."""
        return list(self.posts)


def holdings(crowd: PreparedCrowd, user: str, texts: bool) -> Holdings:
    """Read what is known of one person (by id); texts only where they ask to see them."""
    posts, links = crowd.own_posts(user), crowd.own_links(user)
    by_community = {
        str(name): tuple(
            _post(row, texts, links) for row in part.reverse().head(MOST_POSTS).iter_rows(named=True)
        )
        for (name,), part in posts.group_by("community", maintain_order=True)
    }
    counts = dict(posts.group_by("community").len().iter_rows())
    items = sorted(crowd.own_items(user))[:MOST_ITEMS]
    return Holdings(by_community, counts, tuple(items), dict(crowd.own_attributes(user)), texts)


def _post(row: Mapping[str, Any], texts: bool, links: Mapping[int, str]) -> OwnPost:
    number, text = row["number"], row["text"] if texts else None
    return OwnPost(
        number=number, community=row["community"], time=row["time"], text=text, link=links.get(number)
    )


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What was ticked and typed."""

    plan: bool = False
    actions: frozenset[int] = frozenset()
    """Places in the report's list of actions."""
    delete: frozenset[int] = frozenset()
    move: frozenset[int] = frozenset()
    items: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    words: str = ""
    texts: bool = False
    page: str = ""
    """The open page that asks; of its questions only the latest is worked on."""

    @classmethod
    def fresh(cls) -> Wish:
        """Return an empty wish for a page that is opened now."""
        return cls(page=secrets.token_urlsafe(9))

    @classmethod
    def from_form(cls, form: FormData) -> Wish:
        """Read a form; a field that is missing was not ticked."""
        return cls(
            plan="plan" in form,
            actions=_numbers(form.getlist("advice")),
            delete=_numbers(form.getlist("delete")) | _numbers(str(form.get("delete_more", "")).split(",")),
            move=_numbers(form.getlist("move")),
            items=frozenset(map(str, form.getlist("item"))),
            attributes=frozenset(map(str, form.getlist("attribute"))),
            words=str(form.get("words", "")),
            texts="texts" in form,
            page=str(form.get("page", ""))[:20],
        )

    def changes(self, report: PersonReport) -> Changes:
        """Return all of it as changes to the person's data."""
        chosen = Changes(
            delete_posts=self.delete,
            move_posts=self.move - self.delete,
            drop_items=self.items,
            withhold_attributes=self.attributes,
            edit_words=frozenset(word.strip().lower() for word in self.words.split(",") if word.strip()),
        )
        for place in sorted(self.actions):
            if place < len(report.actions):
                chosen |= report.actions[place].changes
        return chosen | report.plan.changes if self.plan and report.plan else chosen


def _numbers(values: list[Any]) -> frozenset[int]:
    try:
        return frozenset(int(str(value)) for value in values if str(value).strip())
    except ValueError:
        raise InputError("posts go by their numbers, such as 12, 40; check the list") from None


def told_routes(site: Site) -> APIRouter:
    """Return the pages."""
    router = APIRouter()

    @router.get("/told")
    def told() -> Response:
        return site.page("told.html")

    @router.post("/uploads/told")
    async def upload(request: Request) -> Response:
        brought = await receive_files(site, request)
        return site.begin("Reading what you have told", "/told/{id}", _read(brought))

    @router.get("/told/{job_id}")
    def answer(job_id: str) -> Response:
        return site.page("told_answer.html", job_id=job_id, found=_found(site, job_id), reader=NOTE)

    @router.get("/told/{job_id}/told.json")
    def as_json(job_id: str) -> Response:
        return JSONResponse(_found(site, job_id).to_dict(), headers=attached("told.json"))

    return router


def _found(site: Site, job_id: str) -> Disclosed:
    result: Disclosed = site.finished(job_id, Disclosed).result
    return result


def _read(upload: Upload) -> Callable[[Progress], Disclosed]:
    def work(progress: Progress) -> Disclosed:
        try:
            progress(0, None, "reading your posts")
            posts = posts_of_export(upload.files, upload.fields.get("user") or None)
            return disclosed(posts, DisclosureOptions(quote=upload.fields.get("quote") == "true"))
        except IncrowdError as error:
            raise upload.at_the_form(error, OWN_FORM) from None
        finally:
            upload.discard()

    return work
