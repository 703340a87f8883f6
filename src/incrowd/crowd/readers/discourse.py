"""Discourse's user archive: the posts of a person, as CSV."""

from __future__ import annotations

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import SKIP, Export, ExportPart, File, Row, header_of, pick

_COLUMNS = {"community": "categories", "time": "created_at", "text": "post_raw"}
_TEXT = ("post raw", "post", "post cooked")


def _is_archive(head: bytes) -> bool:
    names = header_of(head)
    return {"topic title", "is pm", "url"} <= names and bool(names & set(_TEXT))


def _post(record: dict[str, str], owner: str) -> Row | object:
    if record["is pm"].strip().lower() in ("yes", "true", "t", "1", "ja", "oui"):
        return SKIP
    return Row(
        text=pick(record, *_TEXT),
        time=record["created at"],
        id=record["url"],
        link=record["url"],
        community=pick(record, "categories", "category"),
    )


DISCOURSE = Export(
    name="discourse",
    about=About(
        "Discourse user archive", whose="own", columns=_COLUMNS, left="private messages, likes, visits"
    ),
    parts=(
        ExportPart(
            knows=_is_archive,
            records=File.table,
            row=_post,
            files=r"user_(archive|posts)[^/]*\.csv$|archive\.csv$",
        ),
    ),
)
