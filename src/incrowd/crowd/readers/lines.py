"""Whole lines, many at a time, with their numbers and a cap on the length of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.readers.source import Source, Utf8

PIECE_BYTES = 2**20


@dataclass(frozen=True)
class Lines:
    """Some whole lines of a source; a line over the cap is left empty and named in `too_long`."""

    first_row: int
    data: bytes
    too_long: tuple[int, ...]
    incomplete: bool

    @property
    def count(self) -> int:
        """Return how many lines there are, counting a last one without a line end."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n") and bool(self.data))


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

    def take(self, *, incomplete: bool, last: bool) -> Lines:
        if last and not incomplete and self._open_size:
            self._close(b"")
        lines = Lines(self._rows_before + 1, b"".join(self._whole), tuple(self._too_long), incomplete)
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
        text = Utf8(source)
        lines = _Collector(options.max_line_bytes)
        step = max(1, min(PIECE_BYTES, options.batch_bytes, options.max_line_bytes))
        while piece := text.read(step):
            lines.add(piece)
            if lines.size >= options.batch_bytes:
                yield lines.take(incomplete=False, last=False)
        yield lines.take(incomplete=source.incomplete, last=True)
