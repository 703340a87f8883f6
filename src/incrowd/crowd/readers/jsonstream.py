"""One large JSON document, walked without holding it: the values of a list or an object, one at a time."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.readers.source import Bytes, Utf8
from incrowd.errors import UnreadableSource

PIECE_BYTES = 2**16
_BLANKS = re.compile(r"[ \t\r\n]*")


class _BrokenError(Exception):
    """The document does not go on as JSON should."""


def _refuse(constant: str) -> object:
    raise ValueError(constant + " is no JSON")


# Digits stay text: nothing here computes with numbers, and a huge one costs nothing this way.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse)


class JsonStream:
    """A reading position in a JSON document. Invalid bytes become half surrogates, replaced later."""

    def __init__(self, source: Bytes, place: str, options: ReadOptions) -> None:
        self._bytes = Utf8(source)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
        self._place = place
        self._cap = options.max_line_bytes
        self._keep_complete = options.keep_complete
        self._buffer = ""
        self._at = 0
        self._before = 0
        self._ended = False
        self.incomplete = False

    def skip_to(self, opening: str) -> None:
        """Move to the first `opening`: what precedes the document is not ours to read."""
        while opening not in self._buffer and self._fill() and len(self._buffer) < self._cap:
            pass
        self._at = max(self._buffer.find(opening), 0)

    def items(self) -> Iterator[object]:
        """Yield the values of the list that begins here."""
        for _ in self._places("[", "]"):
            value = self.value()
            if not self.incomplete:
                yield value

    def places(self) -> Iterator[None]:
        """Stop at each value of the list that begins here; read it before going on."""
        yield from self._places("[", "]")

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; read each one's value before the next key."""
        for _ in self._places("{", "}"):
            key = self.value() if self.peek() == '"' else None
            if isinstance(key, str) and self._take(":"):
                yield key
            elif not self.incomplete:
                self._broken("expected a key and a colon")

    def value(self) -> object:
        """Return the value that begins here, whole."""
        try:
            return self._value()
        except _BrokenError as error:
            self._broken(str(error))
            return None

    def peek(self) -> str:
        """Return the next character that is no blank, or nothing at the end."""
        while True:
            self._at = _BLANKS.match(self._buffer, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._fill():
                return ""

    def _places(self, opening: str, closing: str) -> Iterator[None]:
        if not self._take(opening):
            self._broken(f"expected {opening}")
            return
        if self._take(closing):
            return
        while not self.incomplete:
            yield
            if self.incomplete or self._take(closing):
                return
            if not self._take(","):
                self._broken(f"expected , or {closing}")

    def _take(self, character: str) -> bool:
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def _value(self) -> object:
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except (ValueError, RecursionError):
                value, end = None, -1
            # A value that ends with the buffer may go on: 12 could be 123.
            if end >= 0 and (end < len(self._buffer) or self._ended):
                self._at = end
                return value
            self._grow(found=end >= 0)

    def _grow(self, *, found: bool) -> None:
        """Read as much again as is open, so that a long value is tried few times."""
        wanted = 2 * (len(self._buffer) - self._at)
        if wanted > 2 * self._cap:
            raise _BrokenError(f"one value is longer than {self._cap} characters")
        grew = self._fill()
        while grew and len(self._buffer) - self._at < wanted and self._fill():
            pass
        if not grew and not found:
            raise _BrokenError("the document breaks off, or is no JSON")

    def _fill(self) -> bool:
        if self._ended:
            return False
        piece = self._bytes.read(PIECE_BYTES)
        self._ended = not piece
        text = self._decoder.decode(piece, final=self._ended)
        self._before += self._at
        self._buffer = self._buffer[self._at :] + text
        self._at = 0
        return bool(text) or not self._ended

    def _broken(self, why: str) -> None:
        if not self._keep_complete:
            raise UnreadableSource(
                f"{self._place}: {why}, at character {self._before + self._at}. "
                "Expected a whole JSON document. Fetch it again. Or keep its complete records with --keep-complete."
            )
        self.incomplete = True
