"""A Tumblr blog: the posts of its export (HTML, one file per post, in a zip of their own), or of the API as JSON.

`tumblr-backup` keeps what the API said of each post in a file of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from incrowd.crowd.readers.base import About, html_text
from incrowd.crowd.readers.export import SKIP, Export, ExportPart, File, Row, top_keys

_COLUMNS = {"time": "timestamp", "text": "title, body or caption"}
_STAMP = re.compile(r'<span id="timestamp">\s*(.*?)\s*</span>', re.DOTALL)
_FOOTER = re.compile(r'<div id="footer">', re.IGNORECASE)
_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)\b")


def _is_page(head: bytes) -> bool:
    return b'<span id="timestamp">' in head and b"<html" in head[:500].lower()


def _is_answer(head: bytes) -> bool:
    return "response" in top_keys(head) and b'"posts"' in head and b'"blog_name"' in head


def _is_post(head: bytes) -> bool:
    return {"blog_name", "reblog_key", "timestamp"} <= top_keys(head)


def _page(file: File) -> Iterator[object]:
    yield "\n".join(file.text())


def _from_page(page: str, owner: str) -> Row | object:
    stamp = _STAMP.search(page)
    text = html_text(_FOOTER.split(page)[0])
    time = _ORDINAL.sub(r"\1", stamp[1]).replace("am", " am").replace("pm", " pm") if stamp else None
    return Row(text=text, time=_spelt(time)) if text else SKIP


def _spelt(time: str | None) -> str | None:
    """Return ``October 1, 2020 5:04 pm`` of ``October 1 2020 5:04 pm``."""
    return (
        None
        if time is None
        else re.sub(r"^(\w+) (\d+),? (\d{4}),? (.*)$", r"\1 \2, \3 \4", " ".join(time.split()))
    )


def _from_api(record: dict[str, Any], owner: str) -> Row | object:
    if record.get("reblogged_from_id") and not record.get("is_root_item"):
        return SKIP  # somebody else's post, shared
    texts = [record.get(name) for name in ("title", "body", "caption", "text", "question", "answer")]
    text = "\n\n".join(html_text(part) for part in texts if isinstance(part, str) and part)
    return (
        Row(
            text=text,
            time=record["timestamp"],
            id=record.get("id_string") or record["id"],
            link=record.get("post_url"),
        )
        if text
        else SKIP
    )


TUMBLR = Export(
    name="tumblr",
    about=About("Tumblr blog", whose="own", columns=_COLUMNS, left="reblogs, likes, messages, pictures"),
    parts=(
        ExportPart(knows=_is_page, records=_page, row=_from_page, files=r"(^|/)html/[^/]+\.html$"),
        ExportPart(
            knows=_is_answer,
            records=lambda file: file.json("response", "posts"),
            row=_from_api,
            files=r"\.json$",
        ),
        ExportPart(knows=_is_post, records=lambda file: file.json(), row=_from_api, files=r"json/\d+\.json$"),
    ),
    community="tumblr.com",
)
