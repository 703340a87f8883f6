"""The Netflix prize's layout: ``movie:`` on a line of its own, then ``user,rating,date`` for that movie."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from incrowd.crowd.readers.base import About, Batch, Look, ReadOptions
from incrowd.crowd.readers.rows import ITEMS, ROW, Parsed, TextLines, batch_of, text_lines
from incrowd.crowd.readers.source import Lines, read_lines
from incrowd.crowd.schema import Kind, Reason

_START = re.compile(rb"\s*\d+:\s*\n\s*\d+,\d(?:\.\d+)?,\d{4}-\d\d-\d\d")


class Netflix:
    """Ratings grouped by movie: combined_data_*.txt and mv_*.txt."""

    name = "netflix"
    about = About("Netflix prize ratings", whose="many")
    kind: Kind = "items"

    def probe(self, look: Look) -> bool:
        """Say whether the first line is a movie's number and the second a rating of it."""
        return _START.match(look.head) is not None

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        movie: str | None = None
        for lines in read_lines(path, options):
            parsed, movie = _parse(lines, movie)
            yield batch_of(parsed, ITEMS, options, lines)


def _parse(lines: Lines, movie: str | None) -> tuple[Parsed, str | None]:
    text: TextLines = text_lines(lines)
    line = pl.col("line")
    frame = text.frame.with_columns(
        pl.when(line.str.contains(r"^\d+:$")).then(line.str.strip_suffix(":")).alias("movie"),
        line.str.split_exact(",", 3).struct.rename_fields(["user", "value", "time", "more"]).alias("parts"),
    ).unnest("parts")
    frame = frame.with_columns(pl.col("movie").forward_fill().fill_null(pl.lit(movie)).alias("item"))
    last = frame["item"].tail(1).item() if frame.height else movie
    ratings = frame.filter(pl.col("movie").is_null())
    ragged = pl.col("time").is_null() | pl.col("more").is_not_null() | pl.col("item").is_null()
    bad = ratings.filter(ragged)[ROW].to_list()
    return Parsed(ratings.filter(~ragged), [(row, Reason.RAGGED_ROW) for row in bad], text.replaced), last
