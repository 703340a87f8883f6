"""Text bytes as UTF-8, and what cannot be: replaced by U+FFFD, and counted."""

from __future__ import annotations

import codecs
import re
from typing import Protocol

REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")


class Bytes(Protocol):
    """Anything with bytes to read."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""


class Utf8:
    """A text's bytes as UTF-8: a byte-order mark is dropped, UTF-16 is converted.

    What has no UTF-8 form (half a surrogate pair, half a code unit) becomes invalid bytes, so that the one
    place that replaces and counts invalid bytes sees it.
    """

    def __init__(self, source: Bytes) -> None:
        self._source = source
        self._decoder: codecs.IncrementalDecoder | None = None
        self._head = _at_least(source, 4)
        if self._head.startswith(codecs.BOM_UTF8):
            self._head = self._head[3:]
        elif encoding := utf16_of(self._head):
            self._decoder = codecs.getincrementaldecoder(encoding)(errors="surrogatepass")
            self._head = self._decoder.decode(self._head).lstrip("\ufeff").encode("utf-8", "surrogatepass")

    def read(self, size: int, /) -> bytes:
        """Return about `size` bytes; none at the end."""
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._source.read(size) if self._decoder is None else self._converted(self._decoder, size)

    def _converted(self, decoder: codecs.IncrementalDecoder, size: int) -> bytes:
        while True:
            data = self._source.read(size)
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                decoder.reset()
                return b"\xff"
            if text or not data:
                return text.encode("utf-8", "surrogatepass")


def utf16_of(head: bytes) -> str | None:
    """Name the UTF-16 flavour of a text's first bytes, or None."""
    marked = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    if head[:2] in marked:
        return marked[head[:2]]
    zeros = "".join("0" if byte == 0 else "x" for byte in head[:4])
    return {"x0x0": "utf-16-le", "0x0x": "utf-16-be"}.get(zeros)


def decoded(data: bytes) -> tuple[str, bool]:
    """Decode UTF-8; also say whether anything was replaced."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").replace("\x00", REPLACEMENT), True
    return (text.replace("\x00", REPLACEMENT), True) if "\x00" in text else (text, False)


def storable(text: str) -> str:
    """Replace what a table of UTF-8 texts cannot hold: half surrogate pairs and NUL."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def _at_least(source: Bytes, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := source.read(size - len(data))):
        data += piece
    return data
