"""Last.fm scrobbles as the common exporters write them: CSV with or without a header, or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import Export, ExportPart, File, Files, Row, header_of, top_keys
from incrowd.crowd.readers.table import split_records
from incrowd.crowd.schema import Reason

_COLUMNS = {"item": "artist: track", "time": "uts or the last column, epochs in milliseconds too"}
_SCROBBLE = re.compile(
    rb'(?:"(?:[^"]|"")*"|[^,"\n]*)(?:,(?:"(?:[^"]|"")*"|[^,"\n]*)){2},"?\d{1,2} [A-Z][a-z]{2} \d{4}[, ]+\d\d:\d\d"?\r?'
)


def _has_header(head: bytes) -> bool:
    return {"uts", "artist", "track"} <= header_of(head)


def _is_stats(head: bytes) -> bool:
    """Tables of lastfmstats.com say whose they are in their last column: ``Artist;Album;AlbumId;Track;Date#ann``."""
    names = header_of(head)
    return {"artist", "album", "track"} <= names and any(name.startswith("date#") for name in names)


def _is_stats_json(head: bytes) -> bool:
    return {"username", "scrobbles"} <= top_keys(head)


def _from_stats(record: dict[str, Any], owner: str) -> Row:
    moment = next(value for name, value in record.items() if name.startswith("date"))
    return Row(item=f"{record['artist']}: {record['track']}", time=moment)


def _owner(files: Files) -> str | None:
    with files.open(next(iter(files.names), "")) as file:
        head = file.bytes.read(2**16)
    if _is_stats_json(head):
        named = re.search(rb'"username"\s*:\s*"([^"\\]{1,200})"', head)
        return named[1].decode("utf-8", "replace") if named else None
    return (
        next((name.partition("#")[2] for name in header_of(head) if name.startswith("date#")), None) or None
    )


def _is_bare(head: bytes) -> bool:
    lines = [line for line in head.split(b"\n")[:20] if line.strip()]
    return bool(lines) and all(_SCROBBLE.fullmatch(line) for line in lines[:-1] or lines)


def _bare(file: File) -> Iterator[object]:
    for line in file.text():
        if line:
            fields = split_records([line], ",")[0]
            yield fields if len(fields) == 4 else Reason.RAGGED_ROW


LASTFM = Export(
    name="lastfm",
    about=About("Last.fm scrobbles", whose="own", columns=_COLUMNS),
    parts=(
        ExportPart(
            knows=_has_header,
            records=File.table,
            row=lambda record, owner: Row(item=f"{record['artist']}: {record['track']}", time=record["uts"]),
            files=r"\.csv$",
            kind="items",
        ),
        ExportPart(knows=_is_stats, records=File.table, row=_from_stats, files=r"\.csv$", kind="items"),
        ExportPart(
            knows=_is_stats_json,
            records=lambda file: file.json("scrobbles"),
            row=_from_stats,
            files=r"\.json$",
            kind="items",
        ),
        ExportPart(
            knows=_is_bare,
            records=_bare,
            row=lambda record, owner: Row(item=f"{record[0]}: {record[2]}", time=record[3]),
            files=r"\.csv$",
            kind="items",
        ),
    ),
    owner=_owner,
)
