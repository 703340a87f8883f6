"""Threads, which comes inside Instagram's download: posts and replies."""

from __future__ import annotations

from typing import Any

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import SKIP, Export, ExportPart, Row, top_keys
from incrowd.crowd.readers.facebook import repaired
from incrowd.crowd.readers.instagram import instagram_owner

_COLUMNS = {"time": "creation_timestamp", "text": "title"}


def _is_posts(head: bytes) -> bool:
    return "text_post_app_text_posts" in top_keys(head)


def _post(record: dict[str, Any], owner: str) -> Row | object:
    media = record["media"][0]
    text = media.get("title") or record.get("title")
    return Row(text=repaired(text), time=media["creation_timestamp"]) if text else SKIP


THREADS = Export(
    name="threads",
    about=About("Threads download", whose="own", columns=_COLUMNS, left="likes, followers, pictures"),
    parts=(
        ExportPart(
            knows=_is_posts,
            records=lambda file: file.json("text_post_app_text_posts"),
            row=_post,
            files=r"threads/threads_and_replies\.json$",
        ),
    ),
    owner=instagram_owner,
    community="threads.net",
)
