"""Sources of many formats, read alike: ``detect(path).read(path, ReadOptions())`` yields batches of rows."""

from __future__ import annotations

from pathlib import Path

from incrowd.crowd.readers.base import Batch, Reader, ReadOptions
from incrowd.crowd.readers.jsonl import JsonLines
from incrowd.crowd.readers.lines import first_bytes, first_lines
from incrowd.crowd.readers.ratings import Ratings
from incrowd.crowd.readers.reddit import RedditDump
from incrowd.crowd.readers.table import DELIMITERS, Table
from incrowd.errors import InputError, UnreadableSource

__all__ = ["FORMATS", "Batch", "ReadOptions", "Reader", "detect"]

_READERS: tuple[Reader, ...] = (
    RedditDump(),
    JsonLines(),
    Ratings(),
    Table("tsv", "\t"),
    Table("csv", DELIMITERS),
)
FORMATS: dict[str, Reader] = {reader.name: reader for reader in _READERS}
"""Every format by the name that ``--format`` takes, the most particular first."""


def detect(path: Path | str, format: str = "auto") -> Reader:
    """Find the reader for a source by its content, or take the one named."""
    if format != "auto":
        if format not in FORMATS:
            raise InputError(f"--format {format}: no such format. Known: {', '.join(FORMATS)}.")
        return FORMATS[format]
    path = Path(path)
    for head in (first_bytes, first_lines):
        start = head(path)
        for reader in FORMATS.values():
            if reader.recognises(path, start):
                return reader
    raise UnreadableSource(
        f"{path}: of no known format. Known: {', '.join(FORMATS)}. Force one with --format."
    )
