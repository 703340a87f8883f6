"""Letterboxd: films rated, watched and reviewed."""

from __future__ import annotations

from incrowd.crowd.readers.base import About, html_text
from incrowd.crowd.readers.export import SKIP, Export, ExportPart, File, Files, Row, header_of

_COLUMNS = {"item": "Name (Year)", "value": "Rating", "time": "Date"}


def _is_films(head: bytes) -> bool:
    names = header_of(head)
    return {"date", "name", "year", "letterboxd uri"} <= names and "review" not in names


def _is_reviews(head: bytes) -> bool:
    return {"name", "year", "letterboxd uri", "review"} <= header_of(head)


def _film(record: dict[str, str], owner: str) -> Row:
    return Row(
        item=f"{record['name']} ({record['year']})", value=record.get("rating") or None, time=record["date"]
    )


def _review(record: dict[str, str], owner: str) -> Row | object:
    if not record["review"]:
        return SKIP
    address = record["letterboxd uri"]
    return Row(text=html_text(record["review"]), time=record["date"], id=address, link=address)


def _owner(files: Files) -> str | None:
    name = files.find(r"(^|/)profile\.csv$")
    if name is None:
        return None
    with files.open(name) as file:
        profile = next(file.table(), None)
    return profile.get("username") if isinstance(profile, dict) else None


LETTERBOXD = Export(
    name="letterboxd",
    about=About("Letterboxd export", whose="own", columns=_COLUMNS, left="lists, likes and comments"),
    # Ratings come first: a film that is rated and watched counts once, with its rating.
    parts=(
        ExportPart(knows=_is_films, records=File.table, row=_film, files=r"(^|/)ratings\.csv$", kind="items"),
        ExportPart(knows=_is_films, records=File.table, row=_film, files=r"(^|/)watched\.csv$", kind="items"),
        ExportPart(
            knows=_is_reviews,
            records=File.table,
            row=_review,
            files=r"^(?!.*(deleted|orphaned)/)(.*/)?reviews\.csv$",
            columns={"text": "Review", "time": "Date"},
        ),
    ),
    owner=_owner,
    community="letterboxd.com",
)
