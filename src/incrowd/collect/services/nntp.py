"""NNTP (RFC 3977): the newest articles of newsgroups, over one connection, one command at a time.

Python's own module for it is gone since 3.13; the four commands needed are quicker written than a package is
vetted. Articles are read by the reader of mailboxes, as newsgroup dumps are.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from typing import ClassVar
from urllib.parse import urlsplit

from incrowd.collect.client import AGAIN, Forbidden, NotThere, is_loopback
from incrowd.collect.services.base import Page, Service, bound, posts_in, wants_no_archive
from incrowd.errors import InputError, ServerError

PORTS = {"nntps": 563, "nntp": 119}
ARTICLES_A_PAGE = 50
LARGEST_ARTICLE = 2**20
LONGEST_LINE = 2**16
TIMEOUT = 30.0
MOST_TRIES = 4
_GROUP = re.compile(r"[A-Za-z0-9+_-]+(?:\.[A-Za-z0-9+_-]+)*$")


class Nntp(Service):
    """Articles of newsgroups; a group is a community, a person an address."""

    name = "nntp"
    communities = "a newsgroup"
    example = "rec.food.drink.tea"
    page_posts = ARTICLES_A_PAGE
    pause = 0.05  # between two articles; a page is as many commands as it has articles
    follows_people = False
    wants: ClassVar = {
        "nntp-user": "your name, if the server wants one to read",
        "nntp-password": "and your password",
    }
    _line: _Connection | None = None

    @classmethod
    def address(cls, server: str) -> str:
        """Return the server's address; encrypted unless ``nntp://`` is written out."""
        if not server.strip():
            raise InputError("--server: expected a news server for nntp, e.g. news.example.org, got none.")
        full = server.strip().rstrip("/")
        full = full if "://" in full else f"nntps://{full}"
        parts = urlsplit(full)
        if parts.scheme not in PORTS or not parts.hostname or parts.username is not None:
            raise InputError("--server: expected an address such as nntps://news.example.org for nntp.")
        return full

    def close(self) -> None:
        """Hang up."""
        if self._line is not None:
            self._line.close()
        self._line = None

    def check(self, community: str) -> str:
        """Return a newsgroup's name."""
        name = super().check(community)
        if not _GROUP.match(name):
            raise self.no_community(community)
        return name

    def newest(self, community: str, cursor: str) -> Page:
        """Return the articles below a number, newest first; the first page begins at the newest."""
        for tried in range(MOST_TRIES):
            try:
                return self._articles(community, cursor)
            except (OSError, EOFError):
                self.close()
                self.client.sleep(0.0 if is_loopback(self.host) else min(2.0**tried, 60.0))
        raise ServerError(f"{self.host}: the connection broke off {MOST_TRIES} times. {AGAIN}")

    def _articles(self, group: str, cursor: str) -> Page:
        line = self._connected()
        low, high = line.group(group)
        last = min(int(cursor), high) if cursor else high
        first = max(low, last - ARTICLES_A_PAGE + 1)
        found = []
        for number in range(last, first - 1, -1):
            self.client.requests += 1
            article = line.article(number)
            if article is not None and not wants_no_archive(article):
                found.append(article)
            if not is_loopback(self.host):
                self.client.sleep(max(self.pause, self.client.pause))
        self.client.received += sum(map(len, found))
        posts = posts_in(bound(found), "articles.mbox", community=group)
        return Page(posts=tuple(posts), cursors=(str(first - 1),) if first > low else ())

    def _connected(self) -> _Connection:
        if self._line is None:
            parts = urlsplit(self.server)
            name, password = self.secret("nntp-user"), self.secret("nntp-password")
            if name is not None and parts.scheme == "nntp" and not is_loopback(self.host):
                raise InputError("--server: expected nntps:// where a password is sent, got nntp://.")
            line = _Connection(self.host, parts.port or PORTS[parts.scheme], secure=parts.scheme == "nntps")
            self._line = line
            if name is not None and password is not None:
                line.log_in(name, password)
        return self._line


class _Connection:
    """One connection to a news server; it believes nothing about the length of what it is sent."""

    def __init__(self, host: str, port: int, *, secure: bool) -> None:
        self._host = host
        plain = socket.create_connection((host, port), timeout=TIMEOUT)
        try:
            self._socket = (
                ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
            )
        except ssl.SSLError:
            plain.close()
            raise ServerError(
                f"{host}: the encrypted connection failed, so nobody can say who answers there. "
                "incrowd does not go on without a valid certificate."
            ) from None
        self._file = self._socket.makefile("rb")
        try:
            self._expect(self._answer(), "200", "201")
            self._command("MODE READER")
        except TimeoutError:
            self.close()
            raise self._strange() from None  # a news server speaks first
        except (ServerError, OSError, EOFError):
            self.close()
            raise

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def log_in(self, name: str, password: str) -> None:
        answer = self._command(f"AUTHINFO USER {name}")
        if answer.startswith("381"):
            answer = self._command(f"AUTHINFO PASS {password}")
        if not answer.startswith("281"):
            raise Forbidden(f"{self._host}: does not take your name and password.")

    def group(self, name: str) -> tuple[int, int]:
        """Return the numbers of a group's oldest and newest article."""
        answer = self._command(f"GROUP {name}")
        if answer.startswith("411"):
            raise NotThere(f"{self._host}: has no such newsgroup. Check the name.")
        self._expect(answer, "211")
        try:
            _, low, high = (int(part) for part in answer.split()[1:4])
        except ValueError:
            raise self._strange() from None
        return low, high

    def article(self, number: int) -> bytes | None:
        """Return an article, or nothing if it was cancelled or is absurdly large."""
        answer = self._command(f"ARTICLE {number}")
        if answer[:3] in ("420", "423", "430"):
            return None
        self._expect(answer, "220")
        lines, size, end = [], 0, time.monotonic() + 4 * TIMEOUT
        while (line := self._read()) != b".\r\n" and line != b".\n":
            size += len(line)
            if size > 64 * LARGEST_ARTICLE or time.monotonic() > end:
                raise ServerError(f"{self._host}: an article does not end. Nothing of it was kept.")
            if size <= LARGEST_ARTICLE:
                lines.append(line[1:] if line.startswith(b"..") else line)
        return None if size > LARGEST_ARTICLE else b"".join(lines).replace(b"\r\n", b"\n")

    def _command(self, text: str) -> str:
        if "\r" in text or "\n" in text:
            raise InputError("nntp: a name or password holds a line break.")
        self._socket.sendall(text.encode() + b"\r\n")
        return self._answer()

    def _answer(self) -> str:
        line = self._read()
        if len(line) > 1024:
            raise self._strange()
        return line.decode("utf-8", "replace").strip()

    def _read(self) -> bytes:
        line = self._file.readline(LONGEST_LINE)
        if not line:
            raise EOFError
        return line

    def _expect(self, answer: str, *codes: str) -> None:
        if answer.startswith(("480", "502", "281")):
            raise Forbidden(f"{self._host}: wants a login to read; see: incrowd collect --help")
        if answer.startswith("400"):
            raise EOFError
        if not answer.startswith(codes):
            raise self._strange()

    def _strange(self) -> ServerError:
        return ServerError(f"{self._host}: answers in a way NNTP does not have. Is this a news server?")
