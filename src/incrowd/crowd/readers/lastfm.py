"""Last.fm scrobbles as the common exporters write them: a CSV with or without a header."""

from __future__ import annotations

import re
from collections.abc import Iterator

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import Export, File, Part, Row, header_of
from incrowd.crowd.readers.table import split_records
from incrowd.crowd.schema import Reason

_COLUMNS = {"item": "artist: track", "time": "uts or the last column"}
_SCROBBLE = re.compile(
    rb'(?:"(?:[^"]|"")*"|[^,"\n]*)(?:,(?:"(?:[^"]|"")*"|[^,"\n]*)){2},"?\d{1,2} [A-Z][a-z]{2} \d{4}[, ]+\d\d:\d\d"?\r?'
)


def _has_header(head: bytes) -> bool:
    return {"uts", "artist", "track"} <= header_of(head)


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
        Part(
            knows=_has_header,
            records=File.table,
            row=lambda record, owner: Row(item=f"{record['artist']}: {record['track']}", time=record["uts"]),
            files=r"\.csv$",
            kind="items",
        ),
        Part(
            knows=_is_bare,
            records=_bare,
            row=lambda record, owner: Row(item=f"{record[0]}: {record[2]}", time=record[3]),
            files=r"\.csv$",
            kind="items",
        ),
    ),
)
