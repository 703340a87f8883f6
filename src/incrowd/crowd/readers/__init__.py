"""Sources of many formats, read alike: ``detect(path).read(path, ReadOptions())`` yields batches of rows."""

from __future__ import annotations

from pathlib import Path

from incrowd.crowd.readers.archive import ZIP_MAGIC, is_tar
from incrowd.crowd.readers.base import Batch, Reader, ReadOptions
from incrowd.crowd.readers.ego_network import EgoNetworks
from incrowd.crowd.readers.fimi import Fimi
from incrowd.crowd.readers.json_map import JsonMap
from incrowd.crowd.readers.jsonl import JsonLines
from incrowd.crowd.readers.mastodon import MastodonOutbox
from incrowd.crowd.readers.mbox import Mbox
from incrowd.crowd.readers.msweb import MsWeb
from incrowd.crowd.readers.netflix import Netflix
from incrowd.crowd.readers.parquet import Parquet
from incrowd.crowd.readers.ratings import Ratings
from incrowd.crowd.readers.reddit import RedditDump, RedditExport
from incrowd.crowd.readers.source import first_bytes, first_lines
from incrowd.crowd.readers.stackexchange import StackExchange
from incrowd.crowd.readers.table import DELIMITERS, Table
from incrowd.crowd.readers.twitter import TwitterArchive
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
        f"{path}: {_what_it_is(head)}. Known formats: {', '.join(FORMATS)}. Force one with --format."
    )


def _recognised(path: Path, head: bytes) -> Reader | None:
    return next((reader for reader in FORMATS.values() if reader.recognises(path, head)), None)


_BINARY = bytes(c for c in range(32) if c not in b"\t\n\r\f")


def _what_it_is(head: bytes) -> str:
    """Name the first thing that does not fit."""
    start = head.lstrip()
    if not start:
        return "the file is empty"
    if head.startswith(ZIP_MAGIC):
        return "a zip archive without the files of a known export (comments.csv, data/tweets.js, outbox.json)"
    if is_tar(head):
        return "a tar archive without the files of a known export (outbox.json, EGO.feat with EGO.featnames)"
    if start[:4096].translate(None, _BINARY) != start[:4096]:
        return "neither text nor an archive that is known"
    if start.startswith(b"<"):
        return "XML or HTML, but no Stack Exchange dump (its first element is neither posts nor comments)"
    if start.startswith((b"{", b"[")):
        return "begins like JSON, but has neither one object a line nor one object that maps users to lists"
    return "text, but its first line names no column of users (author, user, username, user_id, ...)"
