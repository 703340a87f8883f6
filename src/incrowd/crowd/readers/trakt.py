"""Trakt: films and episodes that a person rated or watched."""

from __future__ import annotations

from typing import Any

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import Export, ExportPart, File, Files, Row, first_object

_COLUMNS = {"item": "title (year), or show and episode", "value": "rating", "time": "rated_at or watched_at"}


def _is_list(head: bytes) -> bool:
    first = first_object(head)
    return bool({"rated_at", "watched_at", "last_watched_at"} & set(first)) and bool(
        {"movie", "show", "episode"} & set(first)
    )


def _title(record: dict[str, Any], owner: str) -> Row:
    title = record.get("movie") or record["show"]
    name = f"{title['title']} ({title.get('year', '')})"
    if "season" in record:
        name += f" season {record['season'].get('number')}"
    elif "episode" in record:
        name += f" {record['episode'].get('season')}x{record['episode'].get('number')}"
    time = record.get("rated_at") or record.get("watched_at") or record.get("last_watched_at")
    return Row(item=name, value=record.get("rating"), time=time)


def _owner(files: Files) -> str | None:
    about = files.json(r"user-profile\.json$") or files.json(r"user-settings\.json$")
    about = about if isinstance(about, dict) else {}
    inner = about.get("user")
    name = (inner if isinstance(inner, dict) else about).get("username")
    return name if isinstance(name, str) else None


TRAKT = Export(
    name="trakt",
    about=About("Trakt export", whose="own", columns=_COLUMNS, left="lists, comments and followers"),
    parts=(
        ExportPart(
            knows=_is_list,
            records=File.json,
            row=_title,
            files=r"(ratings|watched|history).*\.json$",
            kind="items",
        ),
    ),
    owner=_owner,
)
