"""Steam: the games a person owns and how long they played, as JSON from the API or XML from the profile."""

from __future__ import annotations

import re
from collections.abc import Iterator

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import Export, ExportPart, File, Row, top_keys

_COLUMNS = {"item": "name", "value": "hours played"}
_GAME = re.compile(r"<game>(.*?)</game>", re.DOTALL)
_FIELD = re.compile(r"<(name|hoursOnRecord)>\s*(?:<!\[CDATA\[(.*?)\]\]>|([^<]*))\s*</", re.DOTALL)


def _is_json(head: bytes) -> bool:
    return top_keys(head) == {"response"} and b'"games"' in head and b'"playtime_forever"' in head


def _is_xml(head: bytes) -> bool:
    return b"<gamesList>" in head[:1000]


def _from_json(record: dict[str, str], owner: str) -> Row:
    return Row(
        item=record.get("name") or f"app {record['appid']}", value=float(record["playtime_forever"]) / 60
    )


def _xml(file: File) -> Iterator[object]:
    kept = ""
    for line in file.text():
        kept += line + "\n"
        for game in _GAME.finditer(kept):
            yield {found[1]: found[2] or found[3] for found in _FIELD.finditer(game[1])}
        kept = kept[kept.rfind("</game>") + 7 :] if "</game>" in kept else kept[-(2**16) :]


def _from_xml(record: dict[str, str], owner: str) -> Row:
    return Row(item=record["name"], value=(record.get("hoursOnRecord") or "0").replace(",", ""))


STEAM = Export(
    name="steam",
    about=About("Steam library", whose="own", columns=_COLUMNS),
    parts=(
        ExportPart(
            knows=_is_json,
            records=lambda file: file.json("response", "games"),
            row=_from_json,
            kind="items",
            files=r"\.json$",
        ),
        ExportPart(knows=_is_xml, records=_xml, row=_from_xml, kind="items", files=r"\.xml$"),
    ),
)
