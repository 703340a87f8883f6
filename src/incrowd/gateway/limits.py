"""What a stranger may send: how large, how deep, how slowly, how much at once."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from incrowd.errors import InputError

STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
BRACKET = re.compile(r"[\[\]{}]")


class TooLarge(InputError):
    """The body is larger than allowed."""


class TooSlow(InputError):
    """The body did not arrive in time."""


class Busy(InputError):
    """As many queries as allowed are being decided."""


async def read_body(chunks: AsyncIterator[bytes], *, most: int, seconds: float) -> bytes:
    """Return a request's body unless it is too large or too slow; never hold more than is allowed."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in chunks:
                body += chunk
                if len(body) > most:
                    raise TooLarge(f"body: expected at most {most} bytes, got more; ask for less at a time")
    except TimeoutError:
        raise TooSlow(f"body: expected all of it within {seconds:g} seconds, got only a part") from None
    return bytes(body)


def parse_json(body: bytes, *, depth: int) -> Any:
    """Read one JSON value strictly: no repeated keys, no NaN, no nesting beyond the limit."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InputError("body: expected JSON in UTF-8, got other bytes") from None
    if _nesting(text) > depth:
        raise InputError(f"body: expected nesting of at most {depth} levels, got more")
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise InputError("body: expected one JSON object, could not read it as JSON") from None


def _nesting(text: str) -> int:
    """How deep brackets nest outside strings."""
    deepest = level = 0
    for bracket in BRACKET.findall(STRING.sub("", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise InputError("body: expected every key once in an object, got a key twice")
    return made


def _no_constant(name: str) -> Any:
    raise InputError("body: expected finite numbers, got NaN or Infinity")


class Admission:
    """Lets in only so many queries at once, and only a part of them from one organisation.

    Whoever does not fit is told to come back, before anything of theirs is looked at: it depends on the
    load alone.
    """

    def __init__(self, most: int, each: int) -> None:
        self._most = most
        self._each = each
        self._inside: Counter[str] = Counter()

    @property
    def inside(self) -> int:
        """How many queries are being decided."""
        return self._inside.total()

    @contextmanager
    def enter(self, organisation: str) -> Iterator[None]:
        """Hold a place for one query, or raise :class:`Busy`."""
        if self.inside >= self._most or self._inside[organisation] >= self._each:
            raise Busy("too many queries at once; ask again in a second")
        self._inside[organisation] += 1
        try:
            yield
        finally:
            self._inside[organisation] -= 1
            if not self._inside[organisation]:
                del self._inside[organisation]
