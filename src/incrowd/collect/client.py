"""One polite HTTP client for every service: slow, patient, and afraid of what it may be sent.

It asks one thing at a time, says who asks, keeps to the pauses a server names, and never takes more of an answer
than a page can be. What cannot be waited for or understood ends in one sentence that names the server and what
was asked for, never a person: an address may hold somebody's name.
"""

from __future__ import annotations

import json
import logging
import os
import ssl
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from incrowd import __version__
from incrowd.errors import InputError, MissingExtra, ServerError

try:
    import httpx
except ImportError as error:
    raise MissingExtra("collecting from the network", "collect") from error

LARGEST_ANSWER = 32 * 2**20
"""Bytes of one answer after decompression: a page of posts is a hundredth of it."""
LARGEST_ROBOTS = 500 * 2**10
LONGEST_ANSWER_SECONDS = 120.0
"""A server that sends a byte now and then is given up."""
MOST_TRIES = 6
MOST_REDIRECTS = 3
LONGEST_WAIT = 15 * 60.0
"""Longer pauses end the run: the same command goes on later."""
WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
# At the level below it would write every address into a log, with the names and keys in them.
logging.getLogger("httpx").setLevel(logging.WARNING)
AGAIN = "Run the same command again later: it goes on where it stopped."

Params = Mapping[str, object]


class NotThere(ServerError):
    """What was asked for is not there (any more): a deleted account, a closed community."""


class Forbidden(ServerError):
    """The server does not show this to us."""


class LoggedOut(Forbidden):
    """The server wants to know again who asks."""


class NotUnderstood(ServerError):
    """The server cannot make sense of what was asked; some say so about accounts that were closed."""


class AnswerTooLarge(ServerError):
    """The answer is larger than an answer can be."""


class _TryAgain(Exception):
    """Something that may go well next time."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


@dataclass(frozen=True)
class ServerAnswer:
    """A whole answer, decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(kw_only=True)
class PoliteClient:
    """Asks servers, one request after the other."""

    contact: str
    """Whom a server's operator can write to: an address or a page."""
    pause: float = 1.0
    """Least seconds between two requests to one host."""
    robots: bool = False
    """Whether robots.txt applies: it does to pages, not to interfaces made for programs."""
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    """Never the wall clock: that one jumps."""
    requests: int = field(default=0, init=False)
    received: int = field(default=0, init=False)
    waited: float = field(default=0.0, init=False)
    _next: dict[str, float] = field(default_factory=dict, init=False)
    _rules: dict[str, RobotFileParser] = field(default_factory=dict, init=False)
    _http: dict[bool, httpx.Client] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not self.contact.strip() or not self.contact.isprintable() or not self.contact.isascii():
            raise InputError(
                "--contact: expected an address or a page by which a server's operator can reach you, "
                "in plain letters. Give --contact you@example.org, or set INCROWD_CONTACT."
            )

    @property
    def agent(self) -> str:
        """Who asks."""
        return f"incrowd/{__version__} (gathers public posts to measure privacy; contact: {self.contact.strip()})"

    def close(self) -> None:
        """Hang up."""
        for client in self._http.values():
            client.close()

    # What services call

    def json(self, url: str, what: str, params: Params | None = None, headers: Params | None = None) -> Any:
        """Ask for a JSON document; `what` says in an error what was asked for, without naming anybody."""
        return self._parsed(self.get(url, what, params, headers, ("json",)), url, what)

    def post(
        self, url: str, what: str, *, json: Any = None, form: Params | None = None, **kwargs: Any
    ) -> Any:
        """Send a document and return the JSON answer; only to log in."""
        body = {"json": json} if form is None else {"data": dict(form)}
        answer = self._patiently("POST", url, what, ("json",), LARGEST_ANSWER, **body, **kwargs)
        return self._parsed(answer, url, what)

    def get(
        self,
        url: str,
        what: str,
        params: Params | None = None,
        headers: Params | None = None,
        types: tuple[str, ...] = (),
        largest: int = LARGEST_ANSWER,
    ) -> ServerAnswer:
        """Ask for a document of one of some types, e.g. ``("json",)``."""
        if self.robots and not self._may_read(url):
            raise Forbidden(
                f"{_host(url)}: its robots.txt asks programs not to read {what}. incrowd keeps to that; "
                "ask the operator for a dump."
            )
        query = {name: str(value) for name, value in (params or {}).items()}
        fields = {name: str(value) for name, value in (headers or {}).items()}
        return self._patiently("GET", url, what, types, largest, params=query or None, headers=fields)

    def rest(self, url: str, seconds: float) -> None:
        """Ask a host nothing for a while: it said so in an answer's text."""
        self._check_wait(url, seconds)
        host = _host(url)
        self._next[host] = max(self._next.get(host, 0.0), self.clock() + seconds)

    # How a request is made

    def _patiently(
        self, method: str, url: str, what: str, types: tuple[str, ...], largest: int, **kwargs: Any
    ) -> ServerAnswer:
        """Ask until there is an answer, it is clear that there will be none, or patience ends."""
        problem = ""
        for tried in range(MOST_TRIES):
            try:
                return self._redirected(method, url, what, types, largest, **kwargs)
            except _TryAgain as failure:
                problem = str(failure)
                wait = failure.wait if failure.wait is not None else min(2.0**tried, 60.0)
                self._check_wait(url, wait)
                if tried + 1 < MOST_TRIES:
                    self._sleep(wait)
        raise ServerError(
            f"{_host(url)}: asked {MOST_TRIES} times for {what}, and each time {problem}. {AGAIN}"
        )

    def _redirected(
        self, method: str, url: str, what: str, types: tuple[str, ...], largest: int, **kwargs: Any
    ) -> ServerAnswer:
        for _ in range(MOST_REDIRECTS + 1):
            answer = self._once(method, url, what, types, largest, **kwargs)
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            target = str(httpx.URL(url).join(answer.headers.get("location", "")))
            if not _same_place(url, target):
                raise ServerError(
                    f"{_host(url)}: sends us to another server ({_host(target)}) for {what}. "
                    "incrowd does not follow: if that is where the service lives now, name it with --server."
                )
            url = target
            kwargs = {**kwargs, "params": None}  # the target says itself what is asked
        raise ServerError(f"{_host(url)}: redirects in a circle when asked for {what}. Check --server.")

    def _once(
        self, method: str, url: str, what: str, types: tuple[str, ...], largest: int, **kwargs: Any
    ) -> ServerAnswer:
        check_address(url)
        host = _host(url)
        self._sleep(self._next.get(host, 0.0) - self.clock())
        self.requests += 1
        try:
            with _explained(host, what), self._client(host).stream(method, url, **kwargs) as response:
                self._judge_status(response, host, what)
                _check_type(response, types, host, what)
                body = b"" if response.is_redirect else self._body(response, largest, host, what)
        finally:
            self._next[host] = max(self._next.get(host, 0.0), self.clock() + self.gap(host))
        self._keep_to_limits(response, url)
        return ServerAnswer(response.status_code, dict(response.headers), body)

    def _client(self, host: str) -> httpx.Client:
        local = is_loopback(host)
        if local not in self._http:
            self._http[local] = httpx.Client(
                headers={"user-agent": self.agent, "accept-encoding": "gzip"},
                timeout=httpx.Timeout(30.0),
                limits=httpx.Limits(max_connections=1),
                trust_env=not local,  # a proxy, but never on the way to this machine itself
            )
        return self._http[local]

    def gap(self, host: str) -> float:
        """Return the least seconds between two requests to a host; this machine itself needs none."""
        return 0.0 if is_loopback(host) else self.pause

    def _judge_status(self, response: httpx.Response, host: str, what: str) -> None:
        status = response.status_code
        if status in (404, 410):
            raise NotThere(f"{host}: does not have {what} (any more; status {status}). Check the name.")
        if status in (401, 403):
            raise (LoggedOut if status == 401 else Forbidden)(
                f"{host}: does not show {what} to us (status {status}). incrowd reads what is public; "
                "if the service wants credentials of your own, see: incrowd collect --help"
            )
        if status == 429 or status >= 500:
            raise _TryAgain(f"it answered with status {status}", _asked_wait(response))
        if status >= 400:
            raise NotUnderstood(f"{host}: did not understand the request for {what} (status {status}).")

    def _body(self, response: httpx.Response, largest: int, host: str, what: str) -> bytes:
        """Read an answer, decompressing as it comes, and stop as soon as it is too much."""
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("identity", "", *WINDOW_BITS):
            raise ServerError(f"{host}: compressed its answer in a way we did not ask for ('{coding[:20]}').")
        unpack = zlib.decompressobj(WINDOW_BITS[coding]) if coding in WINDOW_BITS else None
        pieces: list[bytes] = []
        size, end = 0, self.clock() + LONGEST_ANSWER_SECONDS
        for piece in response.iter_raw():
            self.received += len(piece)
            for part in _unpacked(unpack, piece, largest):
                size += len(part)
                pieces.append(part)
                if size > largest:
                    raise AnswerTooLarge(
                        f"{host}: sent more than {largest / 2**20:,.0f} MiB for {what}; no page is that large. "
                        "Nothing of it was kept."
                    )
            if self.clock() > end:
                raise _TryAgain("the answer took too long")
        if unpack is not None and not unpack.eof:
            raise _TryAgain("the answer broke off")
        return b"".join(pieces)

    def _parsed(self, answer: ServerAnswer, url: str, what: str) -> Any:
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise ServerError(
                f"{_host(url)}: expected JSON for {what}, got something that is none (or is nested absurdly deep). "
                "Nothing of it was kept."
            ) from None

    # Limits

    def _keep_to_limits(self, response: httpx.Response, url: str) -> None:
        """If this request was the last one allowed for now, wait for the next period."""
        remaining = _first_number(response, "ratelimit-remaining", "x-ratelimit-remaining")
        if remaining is not None and remaining < 1:
            wait = _until_reset(response)
            if wait is not None:
                self.rest(url, wait)

    def _check_wait(self, url: str, seconds: float) -> None:
        if seconds > LONGEST_WAIT:
            raise ServerError(f"{_host(url)}: asks us to come back in {_duration(seconds)}. {AGAIN}")

    def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.waited += seconds
            self.sleep(seconds)

    def _may_read(self, url: str) -> bool:
        parts = urlsplit(url)
        root = f"{parts.scheme}://{parts.netloc}"
        if root not in self._rules:
            self._rules[root] = self._robots_of(root)
        rules = self._rules[root]
        delay = rules.crawl_delay("incrowd")
        if delay is not None:
            self.pause = max(self.pause, min(float(delay), 60.0))
        return rules.can_fetch("incrowd", url)

    def _robots_of(self, root: str) -> RobotFileParser:
        """Read a server's robots.txt as RFC 9309 has it: none is a yes, a broken server is a no."""
        rules = RobotFileParser()
        try:
            found = self._patiently("GET", f"{root}/robots.txt", "its robots.txt", (), LARGEST_ROBOTS)
            rules.parse(found.body.decode("utf-8", "replace").splitlines())
        except (NotThere, Forbidden):
            rules.parse([])
        return rules


def check_address(url: str) -> None:
    """Refuse what is no https address; plain http only to this machine itself."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.username is not None:
        raise InputError("--server: expected an address such as https://example.org, got something else.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise InputError(
            f"--server: expected https for {parts.hostname}: over http anybody on the way reads and changes "
            "what you collect."
        )


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the server"


def _same_place(url: str, target: str) -> bool:
    """Say whether a redirect stays on the same server, without giving up encryption."""
    ours, theirs = urlsplit(url), urlsplit(target)
    if ours.hostname != theirs.hostname:
        return False
    upgraded = ours.scheme == "http" and theirs.scheme == "https" and theirs.port is None
    return (ours.scheme, ours.port) == (theirs.scheme, theirs.port) or upgraded


@contextmanager
def _explained(host: str, what: str) -> Iterator[None]:
    """Turn what goes wrong on the way into a reason to try again, or into a sentence."""
    try:
        yield
    except httpx.TimeoutException:
        raise _TryAgain("it did not answer in time") from None
    except httpx.TransportError as error:
        if any(isinstance(cause, ssl.SSLError) or "CERTIFICATE" in str(cause) for cause in _causes(error)):
            raise ServerError(
                f"{host}: the encrypted connection failed, so nobody can say who answers there. "
                "Check the name and this machine's clock; incrowd does not go on without a valid certificate."
            ) from None
        raise _TryAgain("the connection failed or broke off") from None
    except (zlib.error, httpx.DecodingError):
        raise _TryAgain(f"the answer about {what} could not be decompressed") from None
    except httpx.InvalidURL:
        raise ServerError(f"{host}: not an address that can be asked for {what}.") from None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(8):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _check_type(response: httpx.Response, types: tuple[str, ...], host: str, what: str) -> None:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if types and not response.is_redirect and not any(name in kind.replace("x-", "") for name in types):
        raise ServerError(
            f"{host}: expected {' or '.join(types)} for {what}, got '{kind[:40]}'. Is this the right server, "
            "or a sign-in page in between?"
        )


def _unpacked(unpack: Any, piece: bytes, largest: int) -> Iterator[bytes]:
    """Yield a piece of a body decompressed, in parts: a bomb never unfolds in memory."""
    if unpack is None:
        yield piece
        return
    while piece:
        yield unpack.decompress(piece, 2**20)
        piece = unpack.unconsumed_tail


def _asked_wait(response: httpx.Response) -> float | None:
    """Return how many seconds a server asks us to wait: seconds, a date, or the end of a period."""
    text = response.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - _server_time(response)).total_seconds())
    except (TypeError, ValueError, IndexError):
        return _until_reset(response)


def _until_reset(response: httpx.Response) -> float | None:
    """Return seconds until the server's limit begins anew; services write it in three ways."""
    for name in ("ratelimit-reset", "x-ratelimit-reset"):
        text = response.headers.get(name, "").strip()
        if not text:
            continue
        try:
            number = float(text)
        except ValueError:
            try:
                at = datetime.fromisoformat(text)
            except ValueError:
                continue
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            return max(0.0, (at - _server_time(response)).total_seconds())
        if not number >= 0:
            continue
        # A large number is a date in Unix time, a small one a number of seconds.
        return max(0.0, number - _server_time(response).timestamp()) if number > 1e8 else number
    return None


def _server_time(response: httpx.Response) -> datetime:
    """Return the time by the server's own clock: ours may be wrong."""
    try:
        at = parsedate_to_datetime(response.headers.get("date", ""))
    except (TypeError, ValueError, IndexError):
        at = datetime.now(UTC)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _first_number(response: httpx.Response, *names: str) -> float | None:
    for name in names:
        try:
            return float(response.headers.get(name, ""))
        except ValueError:
            continue
    return None


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 120 else f"{round(minutes / 60)} hours"


# Credentials: the user's own, from the environment or the system's keyring, and nowhere else.
#
# They are never written to a file, a log, a journal or a crowd, and never shown: a value that has to be
# passed on is wrapped, so that no message and no repr can hold it.

KEYRING_SERVICE = "incrowd"


@dataclass(frozen=True)
class Credential:
    """A value that does not show itself."""

    value: str

    def __repr__(self) -> str:
        return "Credential(hidden)"

    __str__ = __repr__


def credential_variable(name: str) -> str:
    """Return the environment variable of a credential.

    >>> credential_variable("reddit-client-id")
    'INCROWD_REDDIT_CLIENT_ID'
    """
    return "INCROWD_" + name.upper().replace("-", "_")


def find_credential(name: str) -> Credential | None:
    """Return a credential from the environment, else from the keyring, if there is one."""
    value = os.environ.get(credential_variable(name), "").strip() or _from_keyring(name)
    return Credential(value) if value else None


def need_credential(name: str, why: str) -> Credential:
    """Return a credential, or say how to give it."""
    found = find_credential(name)
    if found is None:
        raise InputError(
            f"{why}. Set the environment variable {credential_variable(name)}, "
            f"or store it in the system's keyring with: keyring set {KEYRING_SERVICE} {name}"
        )
    return found


def _from_keyring(name: str) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except (KeyringError, RuntimeError, OSError):
        # No keyring on this machine, or it is locked: as if nothing were in it.
        return ""
