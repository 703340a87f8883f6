"""Whole lines, many at a time, with their numbers and a cap on the length of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.readers.source import Source
from incrowd.crowd.readers.unicode import Bytes, Utf8

PIECE_BYTES = 2**20
HEAD_BYTES = 2**18
HEAD = ReadOptions(keep_complete=True)
"""To look at the first bytes only: a file that breaks off later is found out when it is read."""


@dataclass(frozen=True)
class Lines:
    """Some whole lines of a source; a line over the cap is left empty and named in `too_long`."""

    first_row: int
    data: bytes
    """Every line ends with a line end, the last one too."""
    count: int
    too_long: tuple[int, ...] = ()
    incomplete: bool = False

    @classmethod
    def of(cls, data: bytes, first_row: int = 1) -> Lines:
        """Return whole lines."""
        return cls(first_row, data, data.count(b"\n"))


class _Collector:
    """Joins pieces into whole lines, and drops a line once it is over the cap."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._whole: list[bytes] = []
        self._open: list[bytes] = []
        self._open_size = 0
        self._rows_before = 0
        self._rows = 0
        self._too_long: list[int] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        end = piece.rfind(b"\n") + 1
        if end:
            first = piece.find(b"\n") + 1
            self._close(piece[:first])
            self._append(piece[first:end])
        self._extend(piece[end:])

    def finish(self) -> None:
        if self._open_size:
            self._close(b"")

    def take(self) -> Lines:
        lines = Lines(self._rows_before + 1, b"".join(self._whole), self._rows, tuple(self._too_long))
        self._rows_before += self._rows
        self._whole, self._too_long, self._rows, self.size = [], [], 0, 0
        return lines

    def _extend(self, part: bytes) -> None:
        self._open_size += len(part)
        if self._open_size > self._cap:
            self._open.clear()
        elif part:
            self._open.append(part)

    def _close(self, end: bytes) -> None:
        self._extend(end.removesuffix(b"\n"))
        line = b"".join(self._open)
        if self._open_size > self._cap:
            self._too_long.append(self._rows_before + self._rows + 1)
        self._open, self._open_size = [], 0
        self._append(line + b"\n")

    def _append(self, data: bytes) -> None:
        self._whole.append(data)
        self._rows += data.count(b"\n")
        self.size += len(data)


def read_lines(path: Path, options: ReadOptions) -> Iterator[Lines]:
    """Yield a text file's lines, about ``options.batch_bytes`` at a time."""
    with Source(path, options) as source:
        for lines in lines_of(source, options):
            yield replace(lines, incomplete=source.incomplete)


def lines_of(source: Bytes, options: ReadOptions) -> Iterator[Lines]:
    """Yield the lines of text that is already open."""
    text = Utf8(source)
    lines = _Collector(options.max_line_bytes)
    # Half the cap: UTF-16 may grow by half when converted, and no line may hide inside one piece.
    step = max(1, min(PIECE_BYTES, options.batch_bytes, options.max_line_bytes // 2))
    while piece := text.read(step):
        lines.add(piece)
        if lines.size >= options.batch_bytes:
            yield lines.take()
    if not getattr(source, "incomplete", False):
        lines.finish()
    yield lines.take()


def first_bytes(path: Path, options: ReadOptions = HEAD) -> bytes:
    """Return a file's first decompressed bytes, as they are."""
    with Source(path, options) as source:
        text = Utf8(source)
        head = b""
        while len(head) < HEAD_BYTES and (piece := text.read(HEAD_BYTES)):
            head += piece
        return head


def first_lines(path: Path, options: ReadOptions = HEAD) -> bytes:
    """Return a text file's first whole lines: the same ones whatever the size of a batch."""
    with Source(path, options) as source:
        return next(lines_of(source, replace(options, batch_bytes=HEAD_BYTES))).data
