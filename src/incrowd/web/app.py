"""Puts the web interface together: pages, errors in words, and the guard in front.

The guard says who may talk to the server: this machine's browser, through our own address, with the token or its
cookie. Every request passes here first. Another page on the same machine (another port) can neither read answers (no
CORS), nor send forms (origin and form key are checked), nor frame our pages, nor reach us under a name of its own.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import FastAPI, Form, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from incrowd.crowd import Crowd
from incrowd.errors import IncrowdError
from incrowd.web import home, people, studies
from incrowd.web.serving import ServeOptions
from incrowd.web.site import BadForm, ResultGone, Site, debugging, explain
from incrowd.web.uploads import discard_leftovers

READING = ("GET", "HEAD")
UPLOADS = "/uploads/"
"""Addresses below it take files."""
OPEN = ("/static/", "/enter")
"""What may be seen without the token: the style sheet, and the page that asks for it."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class RequestTooLarge(HTTPException):
    """A request brought more than the limits allow."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"Expected at most {most:,} bytes. Send less at a time, or use incrowd ingest.")


class Guard:
    """Wraps the application; what it refuses never reaches a page."""

    def __init__(self, app: ASGIApp, options: ServeOptions, ask: Callable[[], Response]) -> None:
        self.app, self.options, self.ask = app, options, ask

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        answer = self._refusal(scope)
        if answer is None:
            try:
                await self.app(scope, self._limited(scope, receive), _hardened(send))
            except Exception:
                # The page said that something went wrong. Its message may quote data, so it is not logged.
                if debugging():
                    raise
        else:
            await answer(scope, receive, _hardened(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self.options.hosts:
            return PlainTextResponse(
                "Open incrowd under the address it printed when it started.\n", status_code=421
            )
        if scope["method"] not in READING and not self._own_page(headers):
            return PlainTextResponse("This form was not sent by a page of incrowd.\n", status_code=403)
        most = self._most(scope)
        if int(headers.get("content-length", "0") or 0) > most:
            return PlainTextResponse(f"{RequestTooLarge(most).detail}\n", status_code=413)
        if scope["path"].startswith(OPEN) or self._known(headers):
            return None
        return self._let_in(scope) or self.ask()

    def _own_page(self, headers: Headers) -> bool:
        """Say whether a form comes from one of our pages; a program that is no browser names no origin."""
        origin = headers.get("origin")
        same = origin is None or origin.removeprefix("http://") in self.options.hosts
        return same and headers.get("sec-fetch-site", "same-origin") == "same-origin"

    def _known(self, headers: Headers) -> bool:
        cookies: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
        shown = cookies.get(self.options.cookie)
        return shown is not None and hmac.compare_digest(shown.value.encode(), self.options.session.encode())

    def _let_in(self, scope: Scope) -> Response | None:
        """Trade the token in the address for the cookie, and take it out of the address."""
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        token = query.pop("token", "")
        if scope["method"] not in READING or not self.is_token(token):
            return None
        return self.enter(scope["path"] + (f"?{urlencode(query)}" if query else ""))

    def is_token(self, shown: str) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest(shown.encode(), self.options.token.encode())

    def enter(self, target: str) -> Response:
        """Return the answer that sets the cookie."""
        # A path such as //host would lead elsewhere.
        response = RedirectResponse("/" + target.lstrip("/\\"), status_code=303)
        response.set_cookie(self.options.cookie, self.options.session, httponly=True, samesite="strict")
        return response

    def _most(self, scope: Scope) -> int:
        limits = self.options.limits
        return limits.upload_bytes if scope["path"].startswith(UPLOADS) else limits.form_bytes

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Count what comes in: a length that was announced may be a lie, and none may be announced."""
        most, seen = self._most(scope), 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise RequestTooLarge(most)
            return message

        return counted


def _hardened(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return with_headers


ROUTES = (
    home.routes,
    people.routes,
    people.told_routes,
    home.crowd_routes,
    studies.routes,
    studies.judge_routes,
    home.provider_routes,
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
