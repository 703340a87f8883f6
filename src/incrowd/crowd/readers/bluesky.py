"""Bluesky: the repository of an account as a CAR file, a chain of small CBOR documents."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import CUT, SKIP, Export, File, Files, Part, Row
from incrowd.crowd.readers.source import Bytes
from incrowd.crowd.schema import Reason
from incrowd.errors import UnreadableSource

_COLUMNS = {"time": "createdAt", "text": "text"}
_ACCOUNT = re.compile(
    rb"cdid(?:x.|[\x60-\x77])(did:(?:plc:[a-z2-7]{24}|web:[a-z0-9.-]{3,80}))(?!e\$type)", re.DOTALL
)
"""The account of a commit; other accounts stand under other keys, and in mentions, where the type comes next."""
MOST_DEPTH = 64


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
    """Yield the documents that are posts; the header and everything else is passed over."""
    source = io.BufferedReader(_Raw(file.bytes))
    size = _varint(source)
    if size is None or size > HEADER or len(source.read(size)) < size:
        raise UnreadableSource(f"{file.place}: the CAR file is damaged or cut off. Fetch it again.")
    while (size := _varint(source)) is not None:
        block = source.read(min(size, file.options.max_line_bytes))
        if len(block) < size:
            if file.options.keep_complete:
                yield CUT
                return
            raise UnreadableSource(f"{file.place}: the CAR file is damaged or cut off. Fetch it again.")
        identity = block[:CID]
        try:
            document = _Cbor(block[CID:]).value()
        except (ValueError, IndexError, TypeError, RecursionError):
            yield Reason.WRONG_TYPE
            continue
        if isinstance(document, dict) and document.get("$type") == "app.bsky.feed.post":
            yield {**document, "cid": identity.hex()}


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
    return (
        Row(text=record["text"], time=record.get("createdAt"), id=record["cid"]) if record["text"] else SKIP
    )


def _owner(files: Files) -> str | None:
    """The repository names its account only by its identifier."""
    with files.open("") as file:
        found = _ACCOUNT.search(file.bytes.read(2**20))
    return found[1].decode() if found else None


BLUESKY = Export(
    name="bluesky",
    about=About(
        "Bluesky repository (CAR)", whose="own", columns=_COLUMNS, left="likes, reposts, follows, pictures"
    ),
    parts=(Part(knows=_is_car, records=_documents, row=_post),),
    owner=_owner,
    community="bsky.app",
)
