"""Hacker News: items of its API, or answers of the search at Algolia, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from incrowd.crowd.readers.base import About, html_text
from incrowd.crowd.readers.export import CUT, SKIP, Export, ExportPart, File, Row, first_object, top_keys

_COLUMNS = {"user": "by or author", "time": "time or created_at_i", "text": "title and text"}


def _is_hits(head: bytes) -> bool:
    return "hits" in top_keys(head) and b'"objectID"' in head


def _is_items(head: bytes) -> bool:
    first = first_object(head)
    return {"by", "id", "time", "type"} <= set(first) and first["type"] in (
        "comment",
        "story",
        "job",
        "poll",
        "pollopt",
    )


def _hit(record: dict[str, Any], owner: str) -> Row | object:
    own = record.get("comment_text") or record.get("story_text")
    texts = [record.get("title"), html_text(own) if own else None]
    text = "\n\n".join(part for part in texts if part)
    if not text:
        return SKIP
    return Row(
        text=text,
        time=record.get("created_at_i"),
        id=record["objectID"],
        link=_address(record["objectID"]),
        user=record["author"],
    )


def _item(record: dict[str, Any], owner: str) -> Row | object:
    if record.get("deleted") or record.get("dead"):
        return SKIP
    texts = [record.get("title"), html_text(record["text"]) if record.get("text") else None]
    text = "\n\n".join(part for part in texts if part)
    link = _address(record["id"])
    return Row(text=text, time=record["time"], id=record["id"], link=link, user=record["by"])


def _address(item: object) -> str:
    return f"https://news.ycombinator.com/item?id={item}"


def _items(file: File) -> Iterator[object]:
    """A list of items, or one a line."""
    stream = file.stream()
    if stream.peek() == "[":
        yield from stream.items()
    else:
        while stream.peek() and not stream.incomplete:
            yield stream.value()
    if stream.incomplete:
        yield CUT


HACKER_NEWS = Export(
    name="hacker-news",
    about=About("Hacker News items", columns=_COLUMNS),
    parts=(
        ExportPart(knows=_is_hits, records=lambda file: file.json("hits"), row=_hit, files=r"\.json$"),
        ExportPart(knows=_is_items, records=_items, row=_item, files=r"\.jsonl?$"),
    ),
    community="news.ycombinator.com",
)
