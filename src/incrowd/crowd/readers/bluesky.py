"""Bluesky: the repository of an account as a CAR file, a chain of small CBOR documents."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import CUT, SKIP, Export, ExportPart, File, Files, Row
from incrowd.crowd.readers.source import Bytes
from incrowd.crowd.schema import Reason
from incrowd.errors import UnreadableSource

_COLUMNS = {"time": "createdAt", "text": "text"}
_ACCOUNT = re.compile(
    rb"cdid(?:x.|[\x60-\x77])(did:(?:plc:[a-z2-7]{24}|web:[a-z0-9.-]{3,80}))(?!e\$type)", re.DOTALL
)
"""The account of a commit; other accounts stand under other keys, and in mentions, where the type comes next."""
MOST_DEPTH = 64
MOST_WAITING = 200_000
"""Posts that wait for their names; more go without an address."""
_POSTS = b"app.bsky.feed.post/"


def _is_car(head: bytes) -> bool:
    return b"\xa2eroots\x81\xd8*" in head[:20] or (b"eroots" in head[:40] and b"gversion\x01" in head[:120])


class _Cbor:
    """Reads the part of CBOR that such files use."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def value(self, depth: int = 0) -> Any:
        if depth > MOST_DEPTH:
            raise ValueError("nested too deeply")
        first = self._take(1)[0]
        major, size = first >> 5, self._size(first & 31)
        if major == 0:
            return size
        if major == 1:
            return -1 - size
        if major in (2, 3):
            part = self._take(size)
            return part if major == 2 else part.decode("utf-8", "replace")
        if major == 4:
            return [self.value(depth + 1) for _ in self._items(size)]
        if major == 5:
            return {self.value(depth + 1): self.value(depth + 1) for _ in self._items(size)}
        if major == 6:
            return self.value(depth + 1)  # a link to another document
        return {20: False, 21: True}.get(first & 31)

    def _items(self, size: int) -> range:
        if size > len(self._data):
            raise ValueError("longer than the document")
        return range(size)

    def _size(self, short: int) -> int:
        if short < 24:
            return short
        if short > 27:
            raise ValueError("no length")
        return int.from_bytes(self._take(1 << (short - 24)), "big")

    def _take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        if len(part) < size:
            raise ValueError("cut off")
        self._at += size
        return part


def _varint(source: BinaryIO) -> int | None:
    value = shift = 0
    while byte := source.read(1):
        value |= (byte[0] & 127) << shift
        shift += 7
        if byte[0] < 128:
            return value
        if shift > 63:
            break
    return None


def _documents(file: File) -> Iterator[object]:
    """Yield the documents that are posts, each with its address; the header and everything else is passed over.

    Only the index knows the name of a post, and may come after it: such posts wait.
    """
    names: dict[bytes, str] = {}
    waiting: dict[bytes, dict[str, Any]] = {}
    account = ""
    for identity, document in _blocks(file):
        if not isinstance(document, dict):
            if document is not None:
                yield document
            continue
        if document.get("$type") == "app.bsky.feed.post":
            post = {**document, "cid": identity.hex()}
            if identity in names or len(waiting) >= MOST_WAITING:
                yield post | {"link": _address(account, names.get(identity))}
            else:
                waiting[identity] = post
        elif isinstance(document.get("did"), str) and "$type" not in document:
            account = document["did"]
        elif isinstance(document.get("e"), list):
            names |= _posts_named(document["e"])
    for identity, post in waiting.items():
        yield post | {"link": _address(account, names.get(identity))}


def _posts_named(entries: list[Any]) -> dict[bytes, str]:
    """Read a node of the index: each entry shares the beginning of its key with the one before."""
    found, key = {}, b""
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        shared, rest, points_to = entry.get("p"), entry.get("k"), entry.get("v")
        if isinstance(shared, int) and isinstance(rest, bytes) and isinstance(points_to, bytes):
            key = key[:shared] + rest
            if key.startswith(_POSTS):
                found[points_to[1:]] = key.removeprefix(_POSTS).decode("utf-8", "replace")
    return found


def _address(account: str, name: str | None) -> str | None:
    return f"https://bsky.app/profile/{account}/post/{name}" if account and name else None


def _blocks(file: File) -> Iterator[tuple[bytes, object]]:
    """Yield the blocks: their identity and the document; None if it is of no interest, or why it cannot be read."""
    source = io.BufferedReader(_Raw(file.bytes))
    size = _varint(source)
    if size is None or size > HEADER or len(source.read(size)) < size:
        raise UnreadableSource(f"{file.place}: the CAR file is damaged or cut off. Fetch it again.")
    while (size := _varint(source)) is not None:
        block = source.read(min(size, file.options.max_line_bytes))
        if len(block) < size:
            if file.options.keep_complete:
                yield b"", CUT
                return
            raise UnreadableSource(f"{file.place}: the CAR file is damaged or cut off. Fetch it again.")
        identity = block[:CID]
        try:
            document = _Cbor(block[CID:]).value()
        except (ValueError, IndexError, TypeError, RecursionError):
            yield identity, Reason.WRONG_TYPE
            continue
        yield identity, document if isinstance(document, dict) else None


HEADER, CID = 2**16, 36


class _Raw(io.RawIOBase):
    def __init__(self, source: Bytes) -> None:
        super().__init__()
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._source.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _post(record: dict[str, Any], owner: str) -> Row | object:
    if not record["text"]:
        return SKIP
    return Row(text=record["text"], time=record.get("createdAt"), id=record["cid"], link=record["link"])


def _owner(files: Files) -> str | None:
    """The repository names its account only by its identifier."""
    with files.open(files.find(r"\.car$") or "") as file:
        found = _ACCOUNT.search(file.bytes.read(2**20))
    return found[1].decode() if found else None


BLUESKY = Export(
    name="bluesky",
    about=About(
        "Bluesky repository (CAR)", whose="own", columns=_COLUMNS, left="likes, reposts, follows, pictures"
    ),
    parts=(ExportPart(knows=_is_car, records=_documents, row=_post, files=r"\.car$"),),
    owner=_owner,
    community="bsky.app",
)
