"""A Goodreads library: one row per book, with the reader's own rating, dates and review."""

from __future__ import annotations

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import Export, ExportPart, File, Row, header_of, pick

_COLUMNS = {"item": "Title (Author)", "value": "My Rating", "time": "Date Read or Date Added"}


def _is_library(head: bytes) -> bool:
    return {"book id", "title", "author", "my rating", "exclusive shelf"} <= header_of(head)


def _book(record: dict[str, str], owner: str) -> Row:
    rating = record["my rating"]
    return Row(
        item=f"{record['title']} ({record['author']})",
        value=None if rating in ("", "0") else rating,  # 0 stars: read or wanted, and not rated
        time=pick(record, "date read", "date added"),
    )


GOODREADS = Export(
    name="goodreads",
    about=About("Goodreads library", whose="own", columns=_COLUMNS, left="reviews and private notes"),
    parts=(ExportPart(knows=_is_library, records=File.table, row=_book, files=r"\.csv$", kind="items"),),
)
