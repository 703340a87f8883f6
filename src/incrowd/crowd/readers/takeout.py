"""Google Takeout: YouTube comments, reviews on Maps, and with ``kind=items`` the videos watched."""

from __future__ import annotations

import json
import re
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
from incrowd.crowd.readers.takeout_page import cells, is_page, video

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
            knows=is_page,
            records=cells,
            row=video,
            files=r"YouTube.*/[^/]*\.html$",
            kind="items",
            columns={"item": "channel: title", "time": "the date below"},
        ),
    ),
)
