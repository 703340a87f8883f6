"""Mailman 3 archives (HyperKitty): a list's mails, month by month, from the mailboxes its pages offer.

They are part of the archive's pages, so its robots.txt applies.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from incrowd.collect.client import AnswerTooLarge
from incrowd.collect.services.base import Page, Post, Service, posts_in
from incrowd.errors import UnreadableSource

ARCHIVES = "/archives"
LIST = "a mailing list"
MAILS = "the mails of a month"
MOST_EMPTY_MONTHS = 24
"""A list that was silent for longer is taken to begin there."""
_LIST = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9.-]+$")


class Mailman(Service):
    """Mails of public lists; a list is a community, a person an address."""

    name = "mailman"
    communities = "a list's address"
    example = "tea@lists.example.org"
    page_posts = 200
    pause = 2.0  # a month's mailbox is work for the server
    robots = True
    follows_people = False
    ordered = False

    @classmethod
    def address(cls, server: str) -> str:
        """Return the address of the archives; `/archives` is where they are if nothing else is said."""
        full = super().address(server)
        return full if urlsplit(full).path.strip("/") else full + ARCHIVES

    def check(self, community: str) -> str:
        """Return a list's address."""
        name = super().check(community).lower()
        if not _LIST.match(name):
            raise self.no_community(community)
        return name

    def newest(self, community: str, cursor: str) -> Page:
        """Ask whether the list is there first, then return a month's mails, the newest month first."""
        if cursor == "":
            answer = self.client.get(
                f"{self.server}/api/list/{community}/", LIST, {"format": "json"}, types=("json",)
            )
            return Page(cursors=(f"{_today(answer.headers.get('date', '')):%Y-%m}/0",))
        period, _, empty = cursor.partition("/")
        with self.reading(MAILS):
            first, last = _days(period)
        try:
            posts = self._mails(community, first, last)
        except AnswerTooLarge:
            if first == last:
                raise
            days = (last - timedelta(day) for day in range((last - first).days + 1))
            return Page(cursors=(*(f"{day}/-" for day in days), *_before(first, 0)))
        posts.reverse()  # newest first, as everywhere
        if empty == "-":
            return Page(posts=tuple(posts))
        return Page(posts=tuple(posts), cursors=_before(first, 0 if posts else int(empty) + 1))

    def _mails(self, community: str, first: date, last: date) -> list[Post]:
        name = community.partition("@")[0]
        answer = self.client.get(
            f"{self.server}/list/{community}/export/{name}.mbox.gz",
            MAILS,
            {"start": f"{first}", "end": f"{last + timedelta(1)}"},
            types=("gzip", "octet-stream", "mbox"),
        )
        try:
            return posts_in(answer.body, f"{name}.mbox.gz")
        except UnreadableSource:
            raise self.wrong(MAILS) from None


def _today(header: str) -> date:
    """Return the date by the server's clock: ours may be wrong."""
    try:
        return parsedate_to_datetime(header).astimezone(UTC).date()
    except (TypeError, ValueError, IndexError):
        return datetime.now(UTC).date()


def _days(period: str) -> tuple[date, date]:
    """Return the first and last day of a month or a day."""
    year, month, *day = (int(part) for part in period.split("-"))
    if day:
        return date(year, month, day[0]), date(year, month, day[0])
    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


def _before(first: date, empty: int) -> tuple[str, ...]:
    """Return the cursor of the month before, unless the list seems not to have existed then."""
    return () if empty >= MOST_EMPTY_MONTHS else (f"{first - timedelta(1):%Y-%m}/{empty}",)
