"""The page of videos watched, which Google Takeout makes unless JSON is asked for; its dates are in many languages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from incrowd.crowd.readers.export import SKIP, File, Row
from incrowd.crowd.readers.source import decoded
from incrowd.crowd.schema import Reason

_CELL = b'<div class="outer-cell'
MOST_CELL = 2**20
_LINK = re.compile(r'<a href="([^"<>]*)"[^<>]*>([^<>]*)</a>')
_WHEN = re.compile(r"<br ?/?>([^<>]{10,60})(?:<br ?/?>\s*)?</div>")
_DAY_FIRST = r"(?P<day>\d{1,2})\.? (?:de )?(?P<month>[^\W\d]{3,12})\.? (?:de )?(?P<year>\d{4})"
_MONTH_FIRST = r"(?P<month>[^\W\d]{3,12})\.? (?P<day>\d{1,2}), (?P<year>\d{4})"
_DOTTED = r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})"
_CLOCK = r",? (?P<clock>\d{1,2}:\d\d:\d\d)(?: ?(?P<half>[AP])M)? (?P<zone>\S+)"
_DATES = tuple(re.compile(day + _CLOCK) for day in (_DAY_FIRST, _MONTH_FIRST, _DOTTED))
_NAMES = (
    "jan ene gen|feb fev fév|mar mär mrt|apr abr avr|may mai mag mei|jun juin giu|jul juil lug|aug ago aoû|sep set|"
    "oct okt ott out|nov|dec dez dic déc"
)
_MONTHS = {start: number for number, starts in enumerate(_NAMES.split("|"), 1) for start in starts.split()}
_ZONES = {
    "UTC": 0, "GMT": 0, "WET": 0, "BST": 1, "WEST": 1, "CET": 1, "MEZ": 1, "CEST": 2, "MESZ": 2, "EET": 2, "EEST": 3,
    "MSK": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11,
    "BRT": -3, "EDT": -4, "EST": -5, "CDT": -5, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8,
}  # fmt: skip
"""Hours from UTC, of abbreviations that mean one zone."""


def is_page(head: bytes) -> bool:
    """Say whether it is a page of Google's activity; hundreds of kilobytes of style come before the first video."""
    return (
        b"<html" in head[:200]
        and b"mdl-typography" in head
        and (_CELL not in head or b"youtube.com/" in head)
    )


def cells(file: File) -> Iterator[object]:
    """Yield the markup of one video after the other; the page is a single line."""
    kept = b""
    while piece := file.bytes.read(2**16):
        *whole, kept = (kept + piece).split(_CELL)
        for cell in whole:
            if b"content-cell" in cell:
                yield decoded(cell)[0]
        if len(kept) > MOST_CELL:
            kept = b""
            yield Reason.TEXT_TOO_LONG
    if b"content-cell" in kept:
        yield decoded(kept)[0]


def video(cell: str, owner: str) -> Row | object:
    """Return the video of a cell; without a channel it is an advertisement, a search or removed."""
    links = [(address, html.unescape(name)) for address, name in _LINK.findall(cell)]
    title = next((name for address, name in links if "/watch?v=" in address), None)
    channel = next((name for address, name in links if re.search("/channel/|/user/|/c/|/@", address)), None)
    if not title or not channel:
        return SKIP
    when = _WHEN.search(cell)
    return Row(item=f"{channel}: {title}", time=moment(html.unescape(when[1])) if when else None)


def moment(text: str) -> str | None:
    """Return a page's date as ISO says it; None where its language or zone is not known.

    >>> moment("Jan 31, 2021, 1:05:09\u202fPM UTC"), moment("31 janv. 2021, 13:05:09 CET"), moment("2021年1月31日")
    ('2021-01-31T13:05:09+00:00', '2021-01-31T12:05:09+00:00', None)
    """
    tidy = " ".join(text.replace("\u202f", " ").split())
    found = next((match for form in _DATES if (match := form.fullmatch(tidy))), None)
    if found is None:
        return None
    month, offset = _month(found["month"]), _offset(found["zone"])
    if month is None or offset is None:
        return None
    hour, minute, second = map(int, found["clock"].split(":"))
    if found["half"]:
        hour = hour % 12 + (12 if found["half"] == "P" else 0)
    try:
        local = datetime(int(found["year"]), month, int(found["day"]), hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return (local - offset).isoformat()


def _month(name: str) -> int | None:
    if name.isdecimal():
        return int(name)
    return _MONTHS.get(name[:4].lower(), _MONTHS.get(name[:3].lower()))


def _offset(zone: str) -> timedelta | None:
    if zone in _ZONES:
        return timedelta(hours=_ZONES[zone])
    shift = re.fullmatch(r"(?:GMT|UTC)([+-]\d{1,2})(?::?(\d\d))?", zone.replace("\u2212", "-"))
    if shift is None:
        return None
    hours, minutes = int(shift[1]), int(shift[2] or 0)
    return timedelta(hours=hours, minutes=-minutes if shift[1].startswith("-") else minutes)
