"""A person's own archive from X (Twitter): a ZIP of JavaScript files with JSON in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from email.utils import mktime_tz, parsedate_tz
from pathlib import Path

from incrowd.crowd.readers.archive import find
from incrowd.crowd.readers.base import About, Batch, Look, ReadOptions
from incrowd.crowd.readers.export import Files
from incrowd.crowd.readers.rows import POSTS, RowBatch, Whole, batch_of
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import Undecided, UnreadableSource

TWEETS = re.compile(r"(?:^|/)data/tweets?(?:-part(\d+))?\.js$")
COMMUNITY = "x.com"
_BARE = re.compile(rb"\s*window\.YTD\.tweets?\.part\d+\s*=\s*\[")


class TwitterArchive:
    """Tweets of one person; retweets are someone else's words and are skipped."""

    name = "twitter"
    about = About("X (Twitter) archive", whose="own")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether the archive has tweets where X puts them."""
        return bool(_parts(look.names)) or _BARE.match(look.head) is not None

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the tweets, part after part."""
        with Files.of(path, options) as files:
            parts = _parts(files.names) if files.names else _bare(files, path)
            if not parts:
                raise UnreadableSource(f"{path}: no data/tweets.js is in the archive, nor is this that file.")
            user = options.user or _user(files, path)
            community = options.community or COMMUNITY
            rows = RowBatch(POSTS, options.batch_bytes)
            number = 0
            for name in parts:
                with files.open(name) as file:
                    stream = file.stream()
                    stream.skip_to("[")
                    for record in stream.items():
                        number += 1
                        _add(rows, number, record, user, community)
                        if rows.full:
                            yield batch_of(rows.take(), POSTS, options)
                yield batch_of(rows.take(), POSTS, options, Whole(incomplete=stream.incomplete))


def _bare(files: Files, path: Path) -> list[str]:
    """Return the file itself if it is a tweets.js outside its archive."""
    return [path.name] if _BARE.match(files.head_of(path.name)) else []


def _parts(names: Sequence[str]) -> list[str]:
    """Return the files of tweets in order: tweets.js, tweets-part1.js, ..."""
    found = [(int(match[1] or 0), name) for name in names if (match := TWEETS.search(name))]
    return [name for _, name in sorted(found)]


def _add(rows: RowBatch, number: int, record: object, user: str, community: str) -> None:
    tweet = record.get("tweet", record) if isinstance(record, dict) else None
    if not isinstance(tweet, dict):
        return rows.reject(number, Reason.NOT_AN_OBJECT)
    text = tweet.get("full_text", tweet.get("text"))
    if text is None:
        return rows.reject(number, Reason.MISSING_FIELD)
    if not isinstance(text, str):
        return rows.reject(number, Reason.WRONG_TYPE)
    if text.startswith("RT @"):
        return rows.skip()
    identity = tweet.get("id_str", tweet.get("id"))
    name = identity if isinstance(identity, str) else None
    link = f"https://x.com/{user}/status/{name}" if name else None
    return rows.add(number, (name, user, community, _time(tweet.get("created_at")), text, link))


def _time(created: object) -> str | None:
    """Return UTC seconds of ``Wed Nov 11 20:00:00 +0000 2020``; what is no time is left to be refused."""
    parsed = parsedate_tz(created) if isinstance(created, str) else None
    if parsed is None:
        return None if created is None else "?"
    try:
        return str(mktime_tz(parsed))
    except (ValueError, OverflowError):  # a year that no calendar has
        return "?"


def _user(files: Files, path: Path) -> str:
    name = find(files.names, "data/account.js")
    if name is not None:
        with files.open(name) as file:
            stream = file.stream()
            stream.skip_to("[")
            for record in stream.items():
                account = record.get("account") if isinstance(record, dict) else None
                user = account.get("username") if isinstance(account, dict) else None
                if isinstance(user, str) and user:
                    return user
    raise Undecided(f"{path.name}: does not say whose tweets it holds. Whose are they?", "user")
