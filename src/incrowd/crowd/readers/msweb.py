"""UCI's .dst layout, as of Anonymous Microsoft Web Data: ``C`` names a person, ``V`` lines their visits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions
from incrowd.crowd.readers.rows import ROW, Parsed, batch_of, text_lines
from incrowd.crowd.readers.source import Lines, read_lines
from incrowd.crowd.schema import Kind, Reason

LAYOUT = Layout(kind="items", columns={"user": ("user",), "item": ("item",)})
_LINE = re.compile(rb"[ITNAXCV],[^\n]*")
_CASE = r'^C,"?([^",]+)"?,'
_VOTE = r"^V,([^,]+)(?:,|$)"


class MsWeb:
    """Who visited which area; the areas' titles are left out."""

    name = "msweb"
    about = About("UCI web log (.dst)", whose="many")
    kind: Kind = "items"

    def probe(self, look: Look) -> bool:
        """Say whether the file begins with the layout's own description lines."""
        lines = [line for line in look.head.split(b"\n")[:-1] if line.strip()]
        return look.head.startswith((b"I,", b"A,", b"C,")) and bool(lines) and all(map(_LINE.match, lines))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        person: str | None = None
        for lines in read_lines(path, options):
            parsed, person = _parse(lines, person)
            yield batch_of(parsed, LAYOUT, options, lines)


def _parse(lines: Lines, person: str | None) -> tuple[Parsed, str | None]:
    text = text_lines(lines)
    line = pl.col("line")
    frame = text.frame.with_columns(
        line.str.extract(_CASE).forward_fill().fill_null(pl.lit(person)).alias("user"),
        line.str.extract(_VOTE).alias("item"),
    )
    last = frame["user"].tail(1).item() if frame.height else person
    broken = frame.filter(
        ~line.str.contains(r"^[ITNAX],") & ~line.str.contains(_CASE) & pl.col("item").is_null()
    )
    rejects = [(row, Reason.RAGGED_ROW) for row in broken[ROW].to_list()]
    return Parsed(frame.filter(pl.col("item").is_not_null()), rejects, text.replaced), last
