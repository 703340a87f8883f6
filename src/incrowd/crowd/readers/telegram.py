"""Telegram Desktop's export: one chat or all of them as result.json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import CUT, LEFT, SKIP, Export, ExportPart, File, Files, Row, top_keys
from incrowd.crowd.readers.jsonstream import JsonStream

_COLUMNS = {"community": "chat", "time": "date_unixtime", "text": "text", "user": "from"}


def _is_export(head: bytes) -> bool:
    keys = top_keys(head)
    return (
        {"name", "type", "id", "messages"} <= keys
        or {"about", "personal_information"} <= keys  # contacts and sessions may come before the chats
        or ("chats" in keys and b'"from_id"' in head)
    )


def _messages(file: File) -> Iterator[object]:
    """Yield (message, chat, account): chats are walked, never held."""
    stream = file.stream()
    account = ""
    chat: dict[str, object] = {}
    for key in stream.members():
        if key in ("chats", "left_chats") and stream.peek() == "{":
            for inner in stream.members():
                if inner == "list" and stream.peek() == "[":
                    yield from _chats(stream, account)
                else:
                    stream.value()
        elif key == "messages" and stream.peek() == "[":
            for message in stream.items():
                yield message, chat, account
        else:
            chat[key] = stream.value()
            about = chat.get("personal_information")
            account = f"user{about.get('user_id')}" if isinstance(about, dict) else ""
    if stream.incomplete:
        yield CUT


def _chats(stream: JsonStream, account: str) -> Iterator[object]:
    for _ in stream.places():
        if stream.peek() == "{":
            yield from _chat(stream, {}, account)
        else:
            stream.value()


def _chat(stream: JsonStream, chat: dict[str, object], account: str) -> Iterator[object]:
    for key in stream.members():
        if key == "messages" and stream.peek() == "[":
            for message in stream.items():
                yield message, chat, account
        else:
            chat[key] = stream.value()


def _message(record: tuple[dict[str, Any], dict[str, Any], str], owner: str) -> Row | object:
    message, chat, account = record
    if message.get("type") != "message":
        return SKIP
    mine = (
        message.get("from_id") == account
        if account
        else owner in (message.get("from"), message.get("from_id"))
    )
    if not mine or message.get("forwarded_from"):
        return LEFT  # somebody else's words, also where the owner passed them on
    parts = message["text"] if isinstance(message["text"], list) else [message["text"]]
    text = "".join(part if isinstance(part, str) else part["text"] for part in parts)
    if not text:
        return SKIP
    return Row(
        text=text,
        time=message.get("date_unixtime") or message["date"],
        id=f"{chat.get('id', '')}/{message['id']}",
        community=_community(chat),
    )


def _community(chat: dict[str, Any]) -> str:
    """Return the group's name; a chat with one person is called by that person's, which is nobody's business."""
    if chat.get("type") in ("personal_chat", "bot_chat", "private_chat"):
        return "private chats"
    return str(chat.get("name") or "saved messages")


def _owner(files: Files) -> str | None:
    """A whole export says whose it is; a single chat does not."""
    with files.open(files.find(r"result\.json$") or "") as file:
        for value in file.json("personal_information"):
            if isinstance(value, dict):
                name = " ".join(str(value[key]) for key in ("first_name", "last_name") if value.get(key))
                return str(value.get("username") or "").lstrip("@") or name or None
    return None


TELEGRAM = Export(
    name="telegram",
    about=About(
        "Telegram export", whose="chat", columns=_COLUMNS, left="other people's messages, forwarded ones"
    ),
    parts=(ExportPart(knows=_is_export, records=_messages, row=_message, files=r"(^|/)result\.json$"),),
    owner=_owner,
)
