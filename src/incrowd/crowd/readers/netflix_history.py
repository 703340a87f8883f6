"""What a person, or a household, watched on Netflix: the viewing history, short or from a data request."""

from __future__ import annotations

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import LEFT, SKIP, Export, ExportPart, File, Files, Row, header_of, pick
from incrowd.errors import Undecided

_TITLE = ("title", "titel", "titre", "título", "titolo", "tytuł", "タイトル")
_DATE = ("date", "datum", "fecha", "data", "日付")
_COLUMNS = {"item": "Title", "time": "Date or Start Time"}


def _is_short(head: bytes) -> bool:
    names = header_of(head)
    return len(names) == 2 and bool(names & set(_TITLE)) and bool(names & set(_DATE))


def _is_activity(head: bytes) -> bool:
    return {"profile name", "start time", "title"} <= header_of(head)


def _seen(record: dict[str, str], owner: str) -> Row:
    return Row(item=pick(record, *_TITLE), time=pick(record, *_DATE))


def _activity(record: dict[str, str], owner: str) -> Row | object:
    if record["profile name"] != owner:
        return LEFT
    return (
        SKIP
        if record.get("supplemental video type")
        else Row(item=record["title"], time=record["start time"])
    )


def _owner(files: Files) -> str | None:
    """Return the only profile; several share an account, and only one of them is the person's own."""
    name = files.find(r"ViewingActivity\.csv$") or ""
    if files.names and not name:
        return None
    if not _is_activity(files.head_of(name)):
        return None
    with files.open(name) as file:
        profiles = {record["profile name"] for record in file.table() if isinstance(record, dict)}
    if len(profiles) > 1:
        raise Undecided(
            f"the Netflix history holds {len(profiles)} profiles of one account. Which one is yours?", "user"
        )
    return next(iter(profiles), None)


NETFLIX_HISTORY = Export(
    name="netflix-history",
    about=About("Netflix viewing history", whose="own", columns=_COLUMNS, left="other profiles, trailers"),
    parts=(
        ExportPart(
            knows=_is_activity,
            records=File.table,
            row=_activity,
            files=r"ViewingActivity\.csv$",
            kind="items",
        ),
        ExportPart(
            knows=_is_short, records=File.table, row=_seen, files=r"NetflixViewingHistory\.csv$", kind="items"
        ),
    ),
    owner=_owner,
)
