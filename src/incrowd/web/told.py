"""What have you told about yourself? From one's own files at once: read, answered, and nothing kept."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from incrowd.crowd.ingest import Progress
from incrowd.errors import IncrowdError
from incrowd.measures.disclosures.assess import Disclosed, disclosed
from incrowd.measures.disclosures.model_reader import NOTE
from incrowd.measures.disclosures.posts import posts_of_export
from incrowd.measures.disclosures.spec import DisclosureOptions
from incrowd.web.site import Site, attached, receive_files
from incrowd.web.uploads import OWN_FORM, Upload


def routes(site: Site) -> APIRouter:
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
