"""Sources of many formats, read alike: ``detect(path).read(path, ReadOptions())`` yields batches of rows."""

from __future__ import annotations

from pathlib import Path

from incrowd.crowd.readers.base import Batch, Reader, ReadOptions
from incrowd.crowd.readers.jsonl import JsonLines
from incrowd.crowd.readers.source import Source
from incrowd.errors import InputError, UnreadableSource

__all__ = ["FORMATS", "Batch", "ReadOptions", "Reader", "detect"]

HEAD_BYTES = 2**18

_READERS: tuple[Reader, ...] = (JsonLines(),)
FORMATS: dict[str, Reader] = {reader.name: reader for reader in _READERS}


def detect(path: Path | str, format: str = "auto") -> Reader:
    """Find the reader for a source by its content, or take the one named."""
    if format != "auto":
        if format not in FORMATS:
            raise InputError(f"--format {format}: no such format. Known: {', '.join(FORMATS)}.")
        return FORMATS[format]
    path = Path(path)
    head = _head(path)
    for reader in FORMATS.values():
        if reader.recognises(path, head):
            return reader
    raise UnreadableSource(
        f"{path}: of no known format. Known: {', '.join(FORMATS)}. Force one with --format."
    )


def _head(path: Path) -> bytes:
    with Source(path, ReadOptions(keep_complete=True)) as source:
        return source.read(HEAD_BYTES)
