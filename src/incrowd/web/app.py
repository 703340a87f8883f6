"""Puts the web interface together: pages, errors in words, and the guard in front."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Form, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from incrowd.crowd import Crowd
from incrowd.errors import IncrowdError
from incrowd.web import home, people, providers, studies, told
from incrowd.web.guard import Guard, RequestTooLarge
from incrowd.web.jobs import explain
from incrowd.web.options import ServeOptions
from incrowd.web.site import BadForm, ResultGone, Site
from incrowd.web.uploads import discard_leftovers

ROUTES = (
    home.routes,
    people.routes,
    told.routes,
    home.crowd_routes,
    studies.routes,
    studies.judge_routes,
    providers.routes,
)


def create_app(options: ServeOptions) -> Guard:
    """Return the web interface to one crowd; the crowd is made if it is not there yet."""
    Crowd.open_or_create(options.crowd)
    discard_leftovers(options.crowd)
    site = Site(options)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        site.jobs.stop_all()

    app = FastAPI(title="incrowd", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    for routes in ROUTES:
        app.include_router(routes(site))
    _explain_errors(app, site)
    guard = Guard(app, options, lambda: site.page("enter.html", 403, wrong=False))

    @app.post("/enter")
    def enter(token: Annotated[str, Form()] = "") -> Response:
        """Take the token from the form, for people whose browser lost the cookie."""
        # What people copy may be the whole address.
        shown = token.strip().rpartition("token=")[2]
        return guard.enter("/") if guard.is_token(shown) else site.page("enter.html", 403, wrong=True)

    @app.get("/static/style.css")
    def style() -> Response:
        return _lasting(site.style, "text/css")

    @app.get("/static/script.js")
    def script() -> Response:
        return _lasting(site.script, "text/javascript")

    return guard


def _lasting(text: str, kind: str) -> Response:
    """Return a file that may be kept: its address changes when it does."""
    return Response(text, media_type=kind, headers={"cache-control": "private, max-age=31536000, immutable"})


def _explain_errors(app: FastAPI, site: Site) -> None:
    """Every failure becomes a page with a way on; none shows data."""

    def problem(status: int, words: str) -> HTMLResponse:
        return site.page("problem.html", status, problem=words)

    @app.exception_handler(IncrowdError)
    async def ours(request: Request, error: Exception) -> Response:
        # Where the crowd lies is no news to the person, and no help.
        told = explain(error).removeprefix(f"{site.options.crowd.absolute()}: ")
        return problem(403 if isinstance(error, BadForm) else 400, told[:1].upper() + told[1:])

    @app.exception_handler(ResultGone)
    async def gone(request: Request, error: Exception) -> Response:
        return problem(404, "This result is no longer here: results live as long as the server. Ask again.")

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: Exception) -> Response:
        return problem(400, "A field of the form is missing or is no number. Go back and check it.")

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        if isinstance(error, RequestTooLarge):
            return problem(413, error.detail)
        words = "There is no such page." if error.status_code == 404 else "This does not work."
        return problem(error.status_code, words)

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> Response:
        return problem(500, f"Unexpected {type(error).__name__}; nothing was changed.")
