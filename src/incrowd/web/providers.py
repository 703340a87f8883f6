"""For those who hold the data: statistics that people can check themselves with, and the gateway's report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Form
from fastapi.responses import JSONResponse, Response

from incrowd.crowd.ingest import Progress
from incrowd.errors import InputError
from incrowd.gateway.state import SECRET_NAME, open_secret
from incrowd.measures.microdata import provider
from incrowd.measures.microdata.spec import GroupSpec, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import load_state, save_state
from incrowd.report.page import microdata_page
from incrowd.web.site import Site, attached, document

if TYPE_CHECKING:
    from incrowd.measures.microdata.statistics import Statistics

STATE = "microdata-release"
"""Where `incrowd microdata publish` keeps what it must remember between releases."""


@dataclass(frozen=True)
class SavedRelease:
    """A release, ready to be saved."""

    statistics: Statistics
    counted: int
    """Items there are; only those common enough are listed."""


def routes(site: Site) -> APIRouter:
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
