"""Who may talk to the server: this machine's browser, through our own address, with the token or its cookie.

Every request passes here first. Another page on the same machine (another port) can neither read answers (no
CORS), nor send forms (origin and form key are checked), nor frame our pages, nor reach us under a name of its own.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from http.cookies import SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from incrowd.web.jobs import debugging
from incrowd.web.options import ServeOptions

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
