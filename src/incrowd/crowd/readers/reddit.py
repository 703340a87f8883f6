"""Reddit dumps: comments and submissions as JSON lines, one kind a file or both mixed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from incrowd.crowd.readers.base import Batch, ReadOptions
from incrowd.crowd.readers.fields import Layout
from incrowd.crowd.readers.jsonl import sample_keys
from incrowd.crowd.readers.jsonparse import parse_json_lines
from incrowd.crowd.readers.lines import read_lines
from incrowd.crowd.readers.shape import batch_of
from incrowd.crowd.schema import Kind

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
    kind: Kind = "posts"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Say whether the lines have the keys of comments or submissions."""
        keys = set(sample_keys(head))
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
