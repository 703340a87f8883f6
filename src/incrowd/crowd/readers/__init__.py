"""Sources of many formats, read alike: ``detect(path).read(path, ReadOptions())`` yields batches of rows."""

from __future__ import annotations

from pathlib import Path

from incrowd.crowd.readers.base import Batch, Reader, ReadOptions
from incrowd.crowd.readers.ego_network import EgoNetworks
from incrowd.crowd.readers.fimi import Fimi
from incrowd.crowd.readers.json_map import JsonMap
from incrowd.crowd.readers.jsonl import JsonLines
from incrowd.crowd.readers.lines import first_bytes, first_lines
from incrowd.crowd.readers.mastodon import MastodonOutbox
from incrowd.crowd.readers.mbox import Mbox
from incrowd.crowd.readers.msweb import MsWeb
from incrowd.crowd.readers.netflix import Netflix
from incrowd.crowd.readers.parquet import Parquet
from incrowd.crowd.readers.ratings import Ratings
from incrowd.crowd.readers.reddit import RedditDump
from incrowd.crowd.readers.reddit_export import RedditExport
from incrowd.crowd.readers.stackexchange import StackExchange
from incrowd.crowd.readers.table import DELIMITERS, Table
from incrowd.crowd.readers.twitter import TwitterArchive
from incrowd.crowd.readers.unknown import what_it_is
from incrowd.errors import InputError, UnreadableSource

__all__ = ["FORMATS", "Batch", "ReadOptions", "Reader", "detect"]

_READERS: tuple[Reader, ...] = (
    RedditDump(),
    RedditExport(),
    TwitterArchive(),
    MastodonOutbox(),
    EgoNetworks(),
    StackExchange(),
    Mbox(),
    Parquet(),
    JsonLines(),
    JsonMap(),
    MsWeb(),
    Netflix(),
    Ratings(),
    Fimi(),
    Table("tsv", "\t"),
    Table("csv", DELIMITERS),
)
FORMATS: dict[str, Reader] = {reader.name: reader for reader in _READERS}
"""Every format by the name that ``--format`` takes, the most particular first."""
ANY_COLUMNS = ("csv", "tsv", "jsonl", "parquet", "reddit-export")
"""Formats whose columns the caller may name."""


def detect(path: Path | str, format: str = "auto") -> Reader:
    """Find the reader for a source by its content, or take the one named."""
    if format != "auto":
        if format not in FORMATS:
            raise InputError(f"--format {format}: no such format. Known: {', '.join(FORMATS)}.")
        return FORMATS[format]
    path = Path(path)
    head = first_bytes(path)
    # The second look skips lines that are too long: a file may begin with one.
    reader = _recognised(path, head) or _recognised(path, first_lines(path))
    if reader is not None:
        return reader
    raise UnreadableSource(
        f"{path}: {what_it_is(head)}. Known formats: {', '.join(FORMATS)}. Force one with --format."
    )


def _recognised(path: Path, head: bytes) -> Reader | None:
    return next((reader for reader in FORMATS.values() if reader.recognises(path, head)), None)
