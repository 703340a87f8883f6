"""What a service is: communities whose newest posts can be listed, and people whose posts can be listed.

A listing comes in pages. The first is asked for with an empty cursor; every page names the cursors of those that
follow it. Cursors are plain text that survives a restart; they never hold a credential.

The same post must look the same however it was found, in a community, at its author, or in a dump: so its
community is told from the post, and ids, names and texts are those the readers of dumps give.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar
from urllib.parse import urlsplit

from incrowd.collect.client import PoliteClient, check_address, find_credential
from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.readers.mbox import Mbox
from incrowd.errors import InputError, ServerError

REFUSALS = ("#nobot", "#nobots", "#noindex", "#noarchive", "#nosearch")
"""What people write into their profile who do not want to be collected."""


@dataclass(frozen=True)
class Post:
    """One public post, as it goes into the crowd."""

    id: str | None
    user: str
    community: str
    time: int | None
    text: str

    def __post_init__(self) -> None:
        """Refuse what a server put in the wrong place; who reads an answer says so in a sentence."""
        texts = (self.user, self.community, self.text, "" if self.id is None else self.id)
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.time, int | None):
            raise TypeError


@dataclass(frozen=True, kw_only=True)
class Page:
    """One answer to one request."""

    posts: tuple[Post, ...] = ()
    """Newest first, if the service lists them so."""
    part: str = ""
    """Where a listing is several lists, one after the other: which of them this page belongs to."""
    people: tuple[tuple[str, str], ...] = ()
    """Authors found: how to ask the service for them, and their name in the crowd."""
    cursors: tuple[str, ...] = ()
    """The pages that follow."""
    left_out: str | None = None
    """Why the person this listing belongs to is left out of the crowd."""
    refused: tuple[str, ...] = ()
    """Names in the crowd of people met on this page who do not want to be collected."""

    def __post_init__(self) -> None:
        """Refuse what a server put in the wrong place."""
        texts = (*self.cursors, *self.refused, *(text for pair in self.people for text in pair))
        if not all(isinstance(text, str) for text in texts):
            raise TypeError

    @property
    def found(self) -> int:
        """How many posts it has; accounts, where a community is a list of accounts."""
        return len(self.posts) or len(self.people)


class Service:
    """One service; a subclass says how its pages are asked for and read."""

    name: ClassVar[str]
    home: ClassVar[str] = ""
    """The server, where there is only one."""
    communities: ClassVar[str]
    """What `--community` takes, for the help."""
    example: ClassVar[str]
    page_posts: ClassVar[int]
    """Posts of a full page."""
    pause: ClassVar[float] = 1.0
    """Least seconds between two requests."""
    robots: ClassVar[bool] = False
    follows_people: ClassVar[bool] = True
    """Whether a person's own posts can be listed."""
    ordered: ClassVar[bool] = True
    """Whether pages always come newest first, so that what is missing in between was deleted."""
    most_listed: ClassVar[int | None] = None
    """How many posts of a listing the service shows at most: what lies behind is not gone."""
    wants: ClassVar[Mapping[str, str]] = {}
    """Names of credentials it takes, and what for."""

    def __init__(self, server: str, client: PoliteClient) -> None:
        self.server = self.address(server)
        self.client = client
        self._secrets: dict[str, str | None] = {}

    @classmethod
    def address(cls, server: str) -> str:
        """Return the server's address, spelt out; refuse what is none."""
        chosen = (server or cls.home).strip().rstrip("/")
        if not chosen:
            raise InputError(f"--server: {cls.name} runs on many servers; name one, e.g. https://example.org")
        full = chosen if "://" in chosen else f"https://{chosen}"
        check_address(full)
        return full

    @property
    def host(self) -> str:
        """The server's name."""
        return urlsplit(self.server).hostname or ""

    def close(self) -> None:
        """Hang up, where a connection is kept."""

    def check(self, community: str) -> str:
        """Return a community's name in one spelling; refuse what can be none, before anything is asked."""
        name = community.strip()
        if not name or not name.isprintable() or len(name) > 300:
            raise self.no_community(community)
        return name

    def newest(self, community: str, cursor: str) -> Page:
        """Return a page of a community's newest posts."""
        raise NotImplementedError

    def posts_of(self, account: str, cursor: str) -> Page:
        """Return a page of a person's newest posts."""
        raise NotImplementedError

    def needs_profile(self, account: str) -> bool:
        """Say whether a person's first page is their profile, asked only for whether they want to be left out."""
        return False

    def no_community(self, community: str) -> InputError:
        """Return the complaint about a community's name."""
        return InputError(
            f"--community: expected {self.communities} for {self.name}, such as {self.example}, "
            f"got '{community[:40]}'."
        )

    def wrong(self, what: str) -> ServerError:
        """Return the complaint about an answer of another shape than documented."""
        return ServerError(
            f"{self.host}: the answer about {what} is not what {self.name} documents. Is this a {self.name} server? "
            "Nothing of it was kept."
        )

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Read an answer; one that is not as documented is refused as a whole."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise self.wrong(what) from None

    def secret(self, name: str) -> str | None:
        """Return one of the user's credentials, looked up once."""
        if name not in self._secrets:
            found = find_credential(name)
            self._secrets[name] = None if found is None else found.value
        return self._secrets[name]


def seconds(text: object) -> int | None:
    """Return a date as UTC seconds; None if it is no date.

    >>> seconds("2024-05-01T12:00:00.000Z")
    1714564800
    """
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


def refuses(profile: object) -> bool:
    """Say whether a person's profile asks not to be collected."""
    return isinstance(profile, str) and any(
        word.strip(".,;:!()<>/\"'") in REFUSALS for word in profile.lower().replace("<", " <").split()
    )


def distinct(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return pairs once each, in order."""
    return tuple(dict.fromkeys(pairs))


def joined(*parts: str | None) -> str:
    """Return a title and a text as one, as readers of dumps join them."""
    return "\n\n".join(part for part in parts if part)


# Mails as posts: what NNTP and mail archives give, read by the same reader as a mailbox on disk.

LARGEST_MAILBOX = 256 * 2**20
"""Bytes of one answer's mails, decompressed."""
_SEPARATOR = b"From nobody Thu Jan  1 00:00:00 1970\n"
# Only lines that would look like the next mail are marked: readers take a marked line for a quotation.
_FROM = re.compile(rb"^(From [^\n]*\d:\d\d[^\n]*)$", re.MULTILINE)


def posts_in(mailbox: bytes, name: str, community: str | None = None) -> list[Post]:
    """Return the mails of a mailbox, packed or not, in its order; `name` is the file's, `community` overrules it."""
    if not mailbox.strip(b"\r\n"):
        return []
    options = ReadOptions(community=community, max_output_bytes=LARGEST_MAILBOX, keep_complete=False)
    with TemporaryDirectory(prefix="incrowd-") as folder:
        path = Path(folder) / name
        path.write_bytes(mailbox)
        return [
            Post(row["id"], row["user"], row["community"], row["time"], row["text"])
            for batch in Mbox().read(path, options)
            for row in batch.rows.iter_rows(named=True)
            if row["user"] and row["text"]
        ]


def bound(mails: Iterable[bytes]) -> bytes:
    """Return single mails as one mailbox."""
    return b"\n".join(_SEPARATOR + _FROM.sub(rb">\1", mail).rstrip(b"\n") + b"\n" for mail in mails)


def wants_no_archive(mail: bytes) -> bool:
    """Say whether an author asked, in the header, that a mail be kept nowhere."""
    head = mail.partition(b"\n\n")[0].lower()
    return (
        re.search(rb"^(?:x-no-archive:\s*yes|archive:\s*no|x-archive:\s*no)\b", head, re.MULTILINE)
        is not None
    )
