"""Discord's data package: everything the person wrote, channel by channel."""

from __future__ import annotations

import re
from collections.abc import Iterator

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import SKIP, Export, ExportPart, File, Row, first_object, header_of

_COLUMNS = {"community": "channel and server", "time": "Timestamp", "text": "Contents"}
_PRIVATE = ("direct message", "dm", "group_dm", "1", "3")


def _is_messages(head: bytes) -> bool:
    names = {"ID", "Timestamp", "Contents"}
    return names <= set(first_object(head)) or {"id", "timestamp", "contents", "attachments"} <= header_of(
        head
    )


def _messages(file: File) -> Iterator[object]:
    """Yield messages with their channel; the channel's own file says where it is, and whether it is private."""
    folder = file.name.rpartition("/")[0]
    channel = (file.among.json(re.escape(f"{folder}/channel.json") + "$") if folder else None) or {}
    channel = channel if isinstance(channel, dict) else {}
    where = channel.get("name") or f"channel {channel.get('id', '')}".strip()
    guild = channel.get("guild")
    if isinstance(guild, dict) and guild.get("name"):
        where = f"{where} in {guild['name']}"
    private = str(channel.get("type", "")).lower() in _PRIVATE
    for record in file.table() if file.name.endswith(".csv") else file.json():
        yield (record, where, private) if isinstance(record, dict) else record


def _message(record: tuple[dict[str, str], str, bool], owner: str) -> Row | object:
    message, where, private = record
    values = {key.lower(): value for key, value in message.items()}
    if private or not values["contents"]:
        return SKIP  # written to one person, or a picture
    return Row(text=values["contents"], time=values["timestamp"], id=values["id"], community=where)


DISCORD = Export(
    name="discord",
    about=About("Discord data package", whose="own", columns=_COLUMNS, left="direct messages, activity"),
    parts=(
        ExportPart(
            # The outer folders' names are in the language of the owner's Discord.
            knows=_is_messages,
            records=_messages,
            row=_message,
            files=r"(^|/)c?\d+/messages\.(csv|json)$",
        ),
    ),
    owner=lambda files: (files.json(r"(^|/)user\.json$") or {}).get("username"),
    community="discord",
)
