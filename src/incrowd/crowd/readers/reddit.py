"""Reddit: dumps of comments and submissions as JSON lines, and the ZIP that a person's data request brings."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from incrowd.crowd.readers.archive import Zip, find
from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions
from incrowd.crowd.readers.export import header_of
from incrowd.crowd.readers.jsonl import parse_json_lines, sample_keys
from incrowd.crowd.readers.rows import batch_of
from incrowd.crowd.readers.source import read_lines
from incrowd.crowd.readers.table import read_member
from incrowd.crowd.schema import Kind
from incrowd.errors import Undecided, UnreadableSource

FIELDS = ("author", "subreddit", "created_utc", "id", "body", "title", "selftext")
GONE = ("[deleted]", "[removed]", "")
LAYOUT = Layout(
    kind="posts",
    columns={
        "user": ("author",),
        "community": ("subreddit",),
        "time": ("created_utc",),
        "text": ("text",),
        "id": ("id",),
    },
)


class RedditDump:
    """What Reddit dumps hold: a comment has a body; a submission has a title and perhaps a text."""

    name = "reddit"
    about = About("Reddit dump", whose="many")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether the lines have the keys of comments or submissions."""
        keys = set(sample_keys(look.head))
        return {"author", "subreddit", "created_utc"} <= keys and bool(keys & {"body", "title"})

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        for lines in read_lines(path, options):
            parsed = parse_json_lines(lines, FIELDS, {"created_utc"})
            rows = parsed.rows.with_columns(text(), fullname())
            yield batch_of(replace(parsed, rows=rows), LAYOUT, options, lines)


def text() -> pl.Expr:
    """Return what the person wrote: the comment, or title and text; a title stays when its text is gone."""
    body, title, selftext = pl.col("body"), pl.col("title"), pl.col("selftext")
    kept = pl.when(~selftext.is_in(GONE)).then(selftext)
    submission = pl.when(title.is_not_null() | selftext.is_not_null()).then(
        pl.concat_str(title, kept, separator="\n\n", ignore_nulls=True)
    )
    return pl.coalesce(body, submission).alias("text")


def fullname() -> pl.Expr:
    """Return Reddit's own full id: comments and submissions count separately, so bare ids can collide."""
    kind = pl.when(pl.col("body").is_not_null()).then(pl.lit("t1_")).otherwise(pl.lit("t3_"))
    return pl.concat_str(kind, pl.col("id").str.strip_prefix("t1_").str.strip_prefix("t3_")).alias("id")


FILES = {"comments.csv": "t1_", "posts.csv": "t3_"}
"""What holds the person's words, and Reddit's prefix for its ids. Votes, messages and logins stay unread."""
ACCOUNT_BYTES = 2**16


class RedditExport:
    """Comments and posts of one person."""

    name = "reddit-export"
    about = About("Reddit data request", whose="own")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether the archive holds the tables of a data request: other services have a comments.csv, too."""
        found = (find(look.names, name) for name in FILES)
        return any("subreddit" in header_of(look.head_of(name)) for name in found if name is not None)

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield comments, then posts; rows are numbered on from one to the next."""
        with Zip(path, options) as archive:
            members = {find(archive.names, name): prefix for name, prefix in FILES.items()}
            if not any(members):
                raise UnreadableSource(f"{path}: neither comments.csv nor posts.csv is in the archive.")
            options = replace(options, kind="posts", user=options.user or _user(archive))
            before = last = 0
            for name, prefix in members.items():
                if name is not None:
                    with archive.open(name) as member:
                        for batch in read_member(member, options, f"{path}/{name}"):
                            numbered = _numbered(batch, before, prefix)
                            last = max(last, _last_row(numbered.rows), _last_row(numbered.rejects))
                            yield numbered
                    before = last


def _last_row(frame: pl.DataFrame) -> int:
    return int(frame["row"].tail(1).item()) if frame.height else 0


def _numbered(batch: Batch, before: int, prefix: str) -> Batch:
    row = pl.col("row") + pl.lit(before, pl.UInt64)
    link = pl.col("link").str.replace("^/", "https://www.reddit.com/")
    rows = batch.rows.with_columns(row, pl.concat_str(pl.lit(prefix), pl.col("id")).alias("id"), link)
    return replace(batch, rows=rows, rejects=batch.rejects.with_columns(row))


def _user(archive: Zip) -> str:
    """Find the person's name where Reddit puts it, so that nobody has to type it."""
    name = find(archive.names, "statistics.csv")
    if name is not None:
        with archive.open(name) as member:
            table = member.read(ACCOUNT_BYTES).decode("utf-8-sig", "replace").splitlines()
        values = {
            record[0].strip().lower(): record[1].strip() for record in csv.reader(table) if len(record) > 1
        }
        if user := values.get("account name"):
            return user
    raise Undecided(
        f"{archive.path.name}: does not say whose it is. What is the name of the account?", "user"
    )
