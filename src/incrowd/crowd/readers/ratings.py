"""Ratings without a header: user, item, number, perhaps a time, parted by ``::``, tabs or commas.

MovieLens writes ``196::242::3::881250949`` or tabs, HetRec writes user, item and a weight with tabs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions
from incrowd.crowd.readers.rows import batch_of
from incrowd.crowd.readers.source import Lines, first_lines, read_lines
from incrowd.crowd.readers.table import Records, parse_records
from incrowd.crowd.schema import Kind
from incrowd.errors import SchemaError

OURS = ("user", "item", "value", "time")
DELIMITERS = ("::", "\t", ",")
UNIT = "\x1f"
"""Stands in for ``::``, which no fast parser takes as a delimiter."""
SAMPLED_LINES = 50
_ID = r"[A-Za-z0-9_-]{1,64}"
_NUMBER = r"-?\d{1,15}(?:\.\d*)?(?:[eE][+-]?\d{1,2})?"


class Ratings:
    """One rating a line, no header."""

    name = "ratings"
    about = About("ratings without a header", whose="many")
    kind: Kind = "items"

    def probe(self, look: Look) -> bool:
        """Say whether all first lines have the same shape: two ids and one or two numbers."""
        return shape_of(look.head) is not None

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        found = shape_of(first_lines(path))
        if found is None:
            raise SchemaError(
                f"{path}: the first lines are no ratings. Expected user, item, number and perhaps a time on "
                "each, parted by ::, tabs or commas, without a header. With a header it is --format csv."
            )
        for lines in read_lines(path, options):
            yield _batch(lines, *found, options)


def shape_of(head: bytes) -> tuple[str, int] | None:
    """Return delimiter and number of columns of the first lines, if they are ratings."""
    lines = [line.rstrip("\r") for line in head.decode("utf-8", "replace").split("\n")[:SAMPLED_LINES]]
    whole = [line for line in (lines[:-1] if len(lines) > 1 else lines) if line]
    for delimiter in DELIMITERS:
        for columns in (4, 3):
            numbers = (columns - 2) * (re.escape(delimiter) + _NUMBER)
            shape = re.compile(_ID + re.escape(delimiter) + _ID + numbers)
            if whole and all(shape.fullmatch(line) for line in whole):
                return delimiter, columns
    return None


def _batch(lines: Lines, delimiter: str, columns: int, options: ReadOptions) -> Batch:
    data = lines.data
    if len(delimiter) > 1:
        data, delimiter = data.replace(delimiter.encode(), UNIT.encode()), UNIT
    wanted = dict(enumerate(OURS[:columns]))
    parsed = parse_records(Records(first_row=lines.first_row, data=data), columns, wanted, delimiter)
    layout = Layout(kind="items", columns={ours: (ours,) for ours in wanted.values()})
    return batch_of(parsed, layout, options, lines)
