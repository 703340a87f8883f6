"""A person's pages: the answer, a tab a question, what-if, drafts, the offline report."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from incrowd.advisor.answer import OwnPost, PersonReport
from incrowd.crowd.ingest import Progress
from incrowd.errors import IncrowdError, InputError
from incrowd.measures.protocol import AdvisorOptions, Changes, ThemeName
from incrowd.report.person import person_report_page
from incrowd.web.jobs import Stopped, explain
from incrowd.web.site import Gone, Site, attached, document, wants_part

if TYPE_CHECKING:
    from starlette.datastructures import FormData

    from incrowd.crowd import Crowd

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


def holdings(crowd: Crowd, person: str, texts: bool) -> Holdings:
    """Read what the crowd holds of one person; texts only where they ask to see them."""
    from incrowd.measures.person import own_posts

    user = crowd.user(person)
    posts, mine = own_posts(crowd, user), pl.col("user") == user
    by_community = {
        str(name): tuple(_post(row, texts) for row in part.reverse().head(MOST_POSTS).iter_rows(named=True))
        for (name,), part in posts.group_by("community", maintain_order=True)
    }
    items = crowd.items().filter(mine).select(pl.col("item").unique().sort()).collect()["item"].to_list()
    attributes = crowd.attributes().filter(mine).select("attribute", "value").sort("attribute").collect()
    counts = dict(posts.group_by("community").len().iter_rows())
    return Holdings(by_community, counts, tuple(items[:MOST_ITEMS]), dict(attributes.iter_rows()), texts)


def _post(row: Mapping[str, Any], texts: bool) -> OwnPost:
    text = row["text"] if texts else None
    return OwnPost(number=row["number"], community=row["community"], time=row["time"], text=text)


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
