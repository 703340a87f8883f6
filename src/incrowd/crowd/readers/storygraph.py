"""A StoryGraph library: one row per book."""

from __future__ import annotations

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import Export, ExportPart, File, Row, header_of, pick

_COLUMNS = {"item": "Title (Authors)", "value": "Star Rating", "time": "Last Date Read or Date Added"}


def _is_library(head: bytes) -> bool:
    return {"title", "authors", "isbn/uid", "read status", "star rating"} <= header_of(head)


def _book(record: dict[str, str], owner: str) -> Row:
    return Row(
        item=f"{record['title']} ({record['authors']})",
        value=record["star rating"] or None,
        time=pick(record, "last date read", "date added"),
    )


STORYGRAPH = Export(
    name="storygraph",
    about=About("StoryGraph library", whose="own", columns=_COLUMNS, left="reviews and moods"),
    parts=(ExportPart(knows=_is_library, records=File.table, row=_book, files=r"\.csv$", kind="items"),),
)
