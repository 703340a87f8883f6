"""IMDb: a person's ratings or watchlist."""

from __future__ import annotations

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import Export, ExportPart, File, Row, header_of, pick

_COLUMNS = {"item": "Title (Year)", "value": "Your Rating", "time": "Date Rated or Created"}


def _is_list(head: bytes) -> bool:
    names = header_of(head)
    return {"const", "title", "title type"} <= names and bool(
        names & {"your rating", "you rated", "date rated", "created"}
    )


def _title(record: dict[str, str], owner: str) -> Row:
    return Row(
        item=f"{record['title']} ({record.get('year', '')})",
        value=pick(record, "your rating", "you rated"),
        time=pick(record, "date rated", "created"),
    )


IMDB = Export(
    name="imdb",
    about=About("IMDb ratings or watchlist", whose="own", columns=_COLUMNS),
    parts=(ExportPart(knows=_is_list, records=File.table, row=_title, files=r"\.csv$", kind="items"),),
)
