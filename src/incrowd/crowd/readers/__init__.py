"""Sources of many formats, read alike: ``detect(path).read(path, ReadOptions())`` yields batches of rows."""

from __future__ import annotations

import re
from pathlib import Path

from incrowd.crowd.readers.amazon import AMAZON
from incrowd.crowd.readers.archive import ZIP_MAGIC, is_tar
from incrowd.crowd.readers.base import Batch, Reader, ReadOptions
from incrowd.crowd.readers.bluesky import BLUESKY
from incrowd.crowd.readers.discord import DISCORD
from incrowd.crowd.readers.discourse import DISCOURSE
from incrowd.crowd.readers.ego_network import EgoNetworks
from incrowd.crowd.readers.excel import Excel
from incrowd.crowd.readers.export import Export, FirstLook, is_nothing
from incrowd.crowd.readers.facebook import FACEBOOK
from incrowd.crowd.readers.feeds import FEEDS
from incrowd.crowd.readers.fimi import Fimi
from incrowd.crowd.readers.goodreads import GOODREADS
from incrowd.crowd.readers.hacker_news import HACKER_NEWS
from incrowd.crowd.readers.imdb import IMDB
from incrowd.crowd.readers.instagram import INSTAGRAM
from incrowd.crowd.readers.jester import Jester
from incrowd.crowd.readers.json_array import JsonArray
from incrowd.crowd.readers.json_map import JsonMap
from incrowd.crowd.readers.jsonl import JsonLines, sample_keys
from incrowd.crowd.readers.lastfm import LASTFM
from incrowd.crowd.readers.lemmy import LEMMY
from incrowd.crowd.readers.letterboxd import LETTERBOXD
from incrowd.crowd.readers.linkedin import LINKEDIN
from incrowd.crowd.readers.mastodon import MastodonOutbox
from incrowd.crowd.readers.mbox import Mbox
from incrowd.crowd.readers.movielens_users import MovieLensUsers
from incrowd.crowd.readers.msweb import MsWeb
from incrowd.crowd.readers.netflix import Netflix
from incrowd.crowd.readers.netflix_history import NETFLIX_HISTORY
from incrowd.crowd.readers.parquet import Parquet
from incrowd.crowd.readers.ratings import Ratings
from incrowd.crowd.readers.reddit import RedditDump, RedditExport
from incrowd.crowd.readers.slack import SLACK
from incrowd.crowd.readers.source import first_bytes, first_lines
from incrowd.crowd.readers.spotify import SPOTIFY
from incrowd.crowd.readers.sqlite import Sqlite
from incrowd.crowd.readers.stackexchange import StackExchangeDump
from incrowd.crowd.readers.steam import STEAM
from incrowd.crowd.readers.storygraph import STORYGRAPH
from incrowd.crowd.readers.table import DELIMITERS, DelimitedTable
from incrowd.crowd.readers.takeout import TAKEOUT
from incrowd.crowd.readers.telegram import TELEGRAM
from incrowd.crowd.readers.threads import THREADS
from incrowd.crowd.readers.trakt import TRAKT
from incrowd.crowd.readers.tumblr import TUMBLR
from incrowd.crowd.readers.twitter import TwitterArchive
from incrowd.crowd.readers.whatsapp import WHATSAPP
from incrowd.errors import InputError, UnreadableSource

__all__ = ["FORMATS", "Batch", "ReadOptions", "Reader", "column_names", "detect"]

_READERS: tuple[Reader, ...] = (
    # A person's own exports, each told by marks of its own.
    RedditExport(),
    TwitterArchive(),
    MastodonOutbox(),
    BLUESKY,
    THREADS,
    INSTAGRAM,
    FACEBOOK,
    LINKEDIN,
    DISCORD,
    TELEGRAM,
    WHATSAPP,
    SLACK,
    TAKEOUT,
    SPOTIFY,
    NETFLIX_HISTORY,
    LETTERBOXD,
    GOODREADS,
    STORYGRAPH,
    IMDB,
    TRAKT,
    LASTFM,
    STEAM,
    AMAZON,
    TUMBLR,
    DISCOURSE,
    FEEDS,
    # Data about many people.
    RedditDump(),
    HACKER_NEWS,
    LEMMY,
    EgoNetworks(),
    StackExchangeDump(),
    Mbox(),
    Parquet(),
    Sqlite(),
    Excel(),
    JsonLines(),
    JsonArray(),
    JsonMap(),
    MsWeb(),
    Netflix(),
    MovieLensUsers(),
    Jester(),
    Ratings(),
    Fimi(),
    DelimitedTable("tsv", "table with tabs", "\t"),
    DelimitedTable("csv", "table (CSV)", DELIMITERS),
)
FORMATS: dict[str, Reader] = {reader.name: reader for reader in _READERS}
"""Every format by the name that ``--format`` takes, the most particular first."""
ANY_COLUMNS = ("csv", "tsv", "jsonl", "json", "parquet", "sqlite", "excel", "reddit-export")
"""Formats whose columns the caller may name."""


def detect(path: Path | str, format: str = "auto") -> Reader:
    """Find the reader for a source by its content, or take the one named."""
    if format != "auto":
        if format not in FORMATS:
            raise InputError(f"--format {format}: no such format. Known: {', '.join(FORMATS)}.")
        return FORMATS[format]
    path = Path(path)
    with FirstLook(path, first_bytes(path)) as look:
        # The second look skips lines that are too long: a file may begin with one.
        reader = _taker(look)
        if reader is None and not look.names:
            reader = _taker(FirstLook(path, first_lines(path)))
        if reader is not None:
            return reader
        raise UnreadableSource(f"{path}: {_known_mistake(look) or _what_it_is(look.head)}")


def _taker(look: FirstLook) -> Reader | None:
    return next((reader for reader in FORMATS.values() if reader.probe(look)), None)


def column_names(path: Path) -> list[str]:
    """Return the columns of a table whose columns the caller may name; none of other formats."""
    try:
        reader = detect(path)
        if isinstance(reader, DelimitedTable):
            return reader.columns(path)
        return sample_keys(first_lines(path)) if isinstance(reader, JsonLines) else []
    except InputError:
        return []


_META_PAGES = (
    "a download of Facebook, Instagram or Threads as web pages (HTML), in which posts cannot be told from the rest. "
    "Ask for it once more, and choose JSON as its format."
)
_TELEGRAM_PAGES = (
    "a Telegram chat as web pages (HTML). Export it once more from Telegram Desktop, and choose machine-readable JSON "
    "as its format."
)
_NO_POSTS = "Large downloads come in several parts: give the one that has them, and leave this one out."
_MISTAKES = (
    (
        r"(^|/)(your_(facebook|instagram)_activity|posts|content|media|threads)/.*posts[^/]*\.html$",
        _META_PAGES,
    ),
    (r"(^|/)your_(facebook|instagram)_activity/.*\.html$", _META_PAGES),
    (r"(^|/)messages\d*\.html$", _TELEGRAM_PAGES),
    (
        r"(^|/)(your_(facebook|instagram)_activity|personal_information)/",
        f"a part of a download of Facebook or Instagram without posts or comments. {_NO_POSTS}",
    ),
    (
        r"(^|/)(Takeout/|archive_browser\.html$)",
        f"a part of a Google Takeout without YouTube comments, videos watched or reviews of places. {_NO_POSTS}",
    ),
    (
        r"^word/document\.xml$",
        "a document of Word. If there is a table in it, save that as CSV or Excel.",
    ),
)
"""Files in an archive, or marks of a page, and what somebody can do about them."""
_PAGES = {b'class="page_wrap"': _TELEGRAM_PAGES, b"_a6-g": _META_PAGES, b"_3-95": _META_PAGES}
_PICTURE = "a picture, a film or a sound, in which nothing can be read. Give the export that it came with."
_ARCHIVE = "an archive of another kind than zip. Unpack it, and pack it as a zip."
_MAGIC = {
    b"\xff\xd8\xff": _PICTURE,
    b"\x89PNG": _PICTURE,
    b"GIF8": _PICTURE,
    b"RIFF": _PICTURE,
    b"ID3": _PICTURE,
    b"\0\0\0\x18ftyp": _PICTURE,
    b"\0\0\0\x20ftyp": _PICTURE,
    b"7z\xbc\xaf\x27\x1c": _ARCHIVE,
    b"Rar!": _ARCHIVE,
    b"%PDF": "a PDF. Services offer the same as JSON or CSV: choose that; a table can be saved as CSV.",
}


def _known_mistake(look: FirstLook) -> str | None:
    """Say what somebody with a file that is nearly right can do."""
    if is_nothing(look.head):
        return (
            "the file is empty: nothing is in it. Fetch it again, or give another file; "
            f"{len(FORMATS)} kinds of files are known, see docs/how-to/formats.md."
        )
    for magic, sentence in _MAGIC.items():
        if look.head.startswith(magic):
            return sentence
    for reader in FORMATS.values():
        if isinstance(reader, Export) and reader.is_empty(look):
            return f"recognised as {reader.about.title}, but nothing is in it: its files are empty."
    for pattern, sentence in _MISTAKES:
        if any(re.search(pattern, name, re.IGNORECASE) for name in look.names):
            return sentence
    if b"<html" in look.head[:1000].lower():
        return next((sentence for mark, sentence in _PAGES.items() if mark in look.head), None)
    return None


_BINARY = bytes(c for c in range(32) if c not in b"\t\n\r\f")


def _what_it_is(head: bytes) -> str:
    """Name the first thing that does not fit, and what is known."""
    return (
        f"{_unfitting(head)}. {len(FORMATS)} kinds of files are known, see docs/how-to/formats.md. Make a "
        "table (CSV) whose first line names its columns. Or name its kind with --format."
    )


def _unfitting(head: bytes) -> str:
    start = head.lstrip()
    if head.startswith(ZIP_MAGIC):
        return "a zip archive without the files of a known export (comments.csv, data/tweets.js, outbox.json)"
    if is_tar(head):
        return "a tar archive without the files of a known export (outbox.json, EGO.feat with EGO.featnames)"
    if start[:4096].translate(None, _BINARY) != start[:4096]:
        return "neither text nor an archive that is known"
    if start.startswith(b"<"):
        return "XML or HTML, but neither a feed, nor a Stack Exchange dump, nor a page of an export that is known"
    if start.startswith((b"{", b"[")):
        return "begins like JSON, but has neither one object per line nor one object that maps users to lists"
    names = start.partition(b"\n")[0].strip().lower().split(b",")
    if len(set(names)) < len(names):
        return "text whose first line names a column twice. Rename one"
    return "text, but its first line names no column of users (author, user, username, user_id, ...)"
