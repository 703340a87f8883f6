"""Instagram's download (JSON): captions of posts, and comments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import (
    CUT,
    SKIP,
    Export,
    ExportPart,
    File,
    Files,
    Row,
    first_object,
    top_keys,
)
from incrowd.crowd.readers.facebook import repaired

_COLUMNS = {"time": "creation_timestamp or Time", "text": "title (the caption) or Comment"}


_USERNAME = (
    "username",
    "benutzername",
    "nom d’utilisateur",
    "nom d'utilisateur",
    "nom de profil",
    "nombre de usuario",
    "nome utente",
    "nome de usuário",
    "nome de utilizador",
    "gebruikersnaam",
)


def _is_posts(head: bytes) -> bool:
    first = first_object(head)
    media = first.get("media")
    return (
        isinstance(media, list)
        and bool(media)
        and isinstance(media[0], dict)
        and "creation_timestamp" in media[0]
    )


def _is_comments(head: bytes) -> bool:
    """Comments have three fields; searches and what was looked at have two, a login has more."""
    first = first_object(head)
    inner = next((value[0] for value in first.values() if isinstance(value, list) and value), None)
    record = first if "string_map_data" in first else inner
    said = record.get("string_map_data") if isinstance(record, dict) else None
    if not isinstance(said, dict):
        return False
    return "Comment" in said or ["value" in field for field in said.values()] == [True, True, False]


def _is_reels(head: bytes) -> bool:
    return bool(top_keys(head) & {"ig_reels_media", "ig_igtv_media"}) and b'"creation_timestamp"' in head


def _post(record: dict[str, Any], owner: str) -> Row | object:
    media = record["media"][0]
    caption = record.get("title") or media.get("title")
    if not caption:
        return SKIP
    return Row(text=repaired(caption), time=record.get("creation_timestamp", media["creation_timestamp"]))


def _comments(file: File) -> Iterator[object]:
    """Comments on posts are a list, or a single comment is the document itself; those on reels lie under a key."""
    stream = file.stream()
    if stream.peek() == "[":
        yield from stream.items()
    elif stream.peek() == "{":
        single = {}
        for key in stream.members():
            if stream.peek() == "[" and key != "media_list_data":
                yield from stream.items()
            else:
                single[key] = stream.value()
        if "string_map_data" in single:
            yield single
    else:
        stream.value()
    if stream.incomplete:
        yield CUT


def _comment(record: dict[str, Any], owner: str) -> Row | object:
    """Fields are named in the account's language, always in one order: the comment, whose picture, when."""
    said = list(record["string_map_data"].values())
    times = [field["timestamp"] for field in said if field.get("timestamp")]
    text = said[0].get("value")
    return Row(text=repaired(text), time=times[0]) if text and times else SKIP


def instagram_owner(files: Files) -> str | None:
    """Return the account's name."""
    about = files.json(r"personal_information/personal_information\.json$") or {}
    users = about.get("profile_user") if isinstance(about, dict) else None
    values = users[0].get("string_map_data", {}) if isinstance(users, list) and users else {}
    named = (value for label, value in values.items() if repaired(label).lower() in _USERNAME)
    name = next((value.get("value") for value in named if isinstance(value, dict)), None)
    return name if isinstance(name, str) else None


INSTAGRAM = Export(
    name="instagram",
    about=About(
        "Instagram download", whose="own", columns=_COLUMNS, left="messages, likes, followers, pictures"
    ),
    parts=(
        ExportPart(knows=_is_posts, records=File.json, row=_post, files=r"(content|media)/posts_\d+\.json$"),
        ExportPart(
            knows=_is_reels,
            records=lambda file: file.json("*"),
            row=_post,
            files=r"(content|media)/(reels|igtv_videos)\.json$",
        ),
        ExportPart(
            knows=_is_comments, records=_comments, row=_comment, files=r"comments/[^/]*comments[^/]*\.json$"
        ),
    ),
    owner=instagram_owner,
    community="instagram.com",
)
