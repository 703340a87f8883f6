"""Lines as a column of text, for formats whose lines are short and many."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from incrowd.crowd.readers.lines import Lines
from incrowd.crowd.readers.shape import ROW
from incrowd.crowd.readers.unicode import decoded


@dataclass(frozen=True)
class TextLines:
    """The lines that are not blank, with their numbers, without blanks at their ends."""

    frame: pl.DataFrame
    """Columns :data:`~incrowd.crowd.readers.shape.ROW` and `line`."""
    replaced: int


def text_lines(lines: Lines) -> TextLines:
    """Decode lines; invalid bytes are replaced and their rows counted."""
    texts, replaced = _texts(lines.data)
    frame = pl.DataFrame({"line": texts}, schema={"line": pl.String()}).with_row_index(ROW, lines.first_row)
    frame = frame.select(pl.col(ROW).cast(pl.UInt64), pl.col("line").str.strip_chars())
    return TextLines(frame.filter(pl.col("line") != ""), replaced)


def _texts(data: bytes) -> tuple[pl.Series | list[str], int]:
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        whole = "\x00"
    if "\x00" not in whole:
        return pl.Series([whole], dtype=pl.String).str.split("\n").explode(), 0
    each = [decoded(line) for line in data.split(b"\n")]
    return [text for text, _ in each], sum(touched for _, touched in each)
