"""Lemmy: posts and comments as its API gives them, of a person or of a community."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import CUT, SKIP, Export, ExportPart, File, Row, top_keys

_COLUMNS = {"user": "creator", "community": "community", "time": "published", "text": "name, body or content"}


def _is_answer(head: bytes) -> bool:
    return bool(top_keys(head) & {"comments", "posts"}) and b'"creator"' in head and b'"published"' in head


def _records(file: File) -> Iterator[object]:
    stream = file.stream()
    for key in stream.members():
        if key in ("comments", "posts") and stream.peek() == "[":
            yield from stream.items()
        else:
            stream.value()
    if stream.incomplete:
        yield CUT


def _post(record: dict[str, Any], owner: str) -> Row | object:
    said = record.get("comment") or record["post"]
    if said.get("removed") or said.get("deleted"):
        return SKIP
    texts = (said["content"],) if "content" in said else (said["name"], said.get("body"))
    return Row(
        text="\n\n".join(part for part in texts if part),
        time=said["published"],
        id=said.get("ap_id") or said["id"],
        link=said.get("ap_id"),
        user=federated_name(record["creator"]),
        community=federated_name(record["community"]),
    )


def federated_name(actor: dict[str, Any]) -> str:
    """Return ``name@server``: the same name on another server is somebody else."""
    server = urlsplit(actor.get("actor_id") or "").netloc
    return f"{actor['name']}@{server}" if server else str(actor["name"])


LEMMY = Export(
    name="lemmy",
    about=About("Lemmy posts and comments", columns=_COLUMNS),
    parts=(ExportPart(knows=_is_answer, records=_records, row=_post, files=r"\.json$"),),
)
