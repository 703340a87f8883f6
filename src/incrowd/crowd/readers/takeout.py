"""Google Takeout: YouTube comments, reviews on Maps, and with ``kind=items`` the videos watched.

The videos watched are a page of HTML, with dates in the language of the account, unless JSON was asked for.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import (
    SKIP,
    Export,
    ExportPart,
    File,
    Row,
    first_object,
    header_of,
    pick,
    top_keys,
)
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


def _is_page(head: bytes) -> bool:
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


_COLUMNS = {"text": "Comment Text or review", "time": "Comment Create Timestamp or date"}
_VIDEOS = {"item": "channel: title", "time": "time"}
_TEXT = (
    "comment text",
    "live chat text",
    "kommentartext",
    "texte du commentaire",
    "texto del comentario",
    "testo del commento",
    "texto do comentário",
    "tekst van reactie",
    "текст комментария",
)
_TIME = re.compile(r"timestamp|zeitstempel|horodatage|marca de tiempo|время|created|create")
_WATCHED = re.compile(
    r"(?:Watched|Hai guardato|Has visto|Assistiu a|Vous avez regardé|Посмотрено видео|Oglądano:?) "
)


def _is_comments(head: bytes) -> bool:
    names = header_of(head)
    return bool(names & set(_TEXT)) and any(_TIME.search(name) for name in names)


def _is_reviews(head: bytes) -> bool:
    return {"type", "features"} <= top_keys(head) and b"star_rating" in head


def _is_history(head: bytes) -> bool:
    first = first_object(head)
    return {"header", "title", "time", "products"} <= set(first) and "YouTube" in str(first["header"])


def _comment(record: dict[str, str], owner: str) -> Row:
    time = next(value for name, value in record.items() if _TIME.search(name))
    name, video = (
        pick(record, "comment id", "kommentar-id", "live chat id"),
        pick(record, "video id", "video-id"),
    )
    return Row(
        text=_plain(pick(record, *_TEXT)),
        time=time,
        id=name,
        link=f"https://www.youtube.com/watch?v={video}&lc={name}" if name and video else None,
        community="youtube.com",
    )


def _plain(text: str) -> str:
    """Return the words of a comment, which Takeout writes as pieces of JSON."""
    try:
        pieces = json.loads(f"[{text}]")
    except ValueError:
        return text
    pieces = [
        inner
        for piece in pieces
        if isinstance(piece, dict)
        for inner in piece.get("takeoutSegments", [piece])
    ]
    return "".join(str(piece.get("text", "")) for piece in pieces) or text


def _review(record: dict[str, Any], owner: str) -> Row | object:
    about = record["properties"]
    text = about.get("review_text_published") or about.get("Review Comment")
    if not text:
        return SKIP
    return Row(text=text, time=about.get("date") or about.get("Published"), community="maps.google.com")


def _video(record: dict[str, Any], owner: str) -> Row | object:
    if "titleUrl" not in record or not record.get("subtitles"):
        return SKIP  # an advertisement, or a video that was removed
    title = _WATCHED.sub("", record["title"], count=1).removesuffix(" angesehen").removesuffix(" bekeken")
    return Row(item=f"{record['subtitles'][0]['name']}: {title}", time=record["time"])


TAKEOUT = Export(
    name="google-takeout",
    about=About(
        "Google Takeout",
        whose="own",
        columns=_COLUMNS,
        left="searches; posts or the videos watched, whichever --kind does not name",
    ),
    parts=(
        ExportPart(knows=_is_comments, records=File.table, row=_comment, files=r"YouTube.*\.csv$"),
        ExportPart(
            knows=_is_reviews,
            records=lambda file: file.json("features"),
            row=_review,
            files=r"Maps[^/]*/[^/]*\.json$|Reviews?\.json$",
        ),
        ExportPart(
            knows=_is_history,
            records=File.json,
            row=_video,
            files=r"YouTube.*/[^/]*\.json$",
            kind="items",
            columns=_VIDEOS,
        ),
        ExportPart(
            knows=_is_page,
            records=cells,
            row=video,
            files=r"YouTube.*/[^/]*\.html$",
            kind="items",
            columns={"item": "channel: title", "time": "the date below"},
        ),
    ),
)
