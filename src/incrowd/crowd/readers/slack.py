"""A Slack workspace's export: one folder per channel, one file per day. Only the owner's messages are read."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import CUT, LEFT, SKIP, Export, ExportPart, File, Row, first_object

_COLUMNS = {"community": "channel", "user": "user", "time": "ts", "text": "text"}
_MARKUP = re.compile(r"<(?:@[A-Z0-9]+|#[A-Z0-9]+\|([^>]*)|https?:[^>|]*(?:\|([^>]*))?)>")


def _is_day(head: bytes) -> bool:
    first = first_object(head)
    return first.get("type") == "message" and "ts" in first


def _messages(file: File) -> Iterator[object]:
    """Yield (message, channel, ids of people by their names)."""
    users = file.among.json(r"(^|/)users\.json$")
    names: dict[str, set[str]] = {}
    for user in users if isinstance(users, list) else []:
        if isinstance(user, dict) and isinstance(user.get("id"), str):
            found = user.get("profile")
            profile: dict[str, Any] = found if isinstance(found, dict) else {}
            called = (
                user.get("name"),
                user.get("real_name"),
                profile.get("display_name"),
                profile.get("real_name"),
            )
            names[user["id"]] = {name for name in called if name} | {user["id"]}
    channel = file.name.rpartition("/")[0].rpartition("/")[2]
    for message in file.json():
        yield message if message is CUT else (message, channel, names)


def _message(record: tuple[dict[str, Any], str, dict[str, set[str]]], owner: str) -> Row | object:
    message, channel, names = record
    if message.get("type") != "message" or message.get("subtype") not in (
        None,
        "thread_broadcast",
        "me_message",
    ):
        return SKIP
    author = message["user"]
    if owner not in names.get(author, {author}):
        return LEFT
    text = _MARKUP.sub(lambda found: found[1] or found[2] or "", message["text"])
    return Row(text=html.unescape(text), time=message["ts"], community=channel or None)


SLACK = Export(
    name="slack",
    about=About("Slack export", whose="chat", columns=_COLUMNS, left="other people's messages"),
    parts=(
        ExportPart(knows=_is_day, records=_messages, row=_message, files=r"[^/]+/\d{4}-\d\d-\d\d\.json$"),
    ),
    community="slack",
)
