"""FIMI transactions: a line is one person's basket, integers parted by blanks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions
from incrowd.crowd.readers.rows import ROW, Parsed, batch_of, text_lines
from incrowd.crowd.readers.source import Lines, first_lines, read_lines
from incrowd.crowd.schema import Kind, Reason

LAYOUT = Layout(kind="items", columns={"user": ("user",), "item": ("item",)})
SAMPLED_LINES = 100
_BASKET = re.compile(rb"[0-9]+(?: +[0-9]+)* *\r?")


class Fimi:
    """Baskets without names: a person is the line's number."""

    name = "fimi"
    about = About("FIMI baskets, one person a line", whose="many")
    kind: Kind = "items"

    def probe(self, look: Look) -> bool:
        """Say whether the first lines hold integers and blanks only."""
        lines = look.head.split(b"\n", SAMPLED_LINES)
        whole = [line for line in (lines[:-1] if len(lines) > 1 else lines) if line.strip()]
        return bool(whole) and all(_BASKET.fullmatch(line) for line in whole)

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order; all items of a basket have its line's number."""
        counted = _is_counted(first_lines(path))
        for lines in read_lines(path, options):
            yield batch_of(_parse(lines, counted), LAYOUT, options, lines)


def _is_counted(head: bytes) -> bool:
    """Say whether every line begins with the number of the items that follow, as in CiteULike's users.dat."""
    lines = [line.split() for line in head.split(b"\n")[:SAMPLED_LINES] if line.strip()]
    return len(lines) > 1 and all(line[0].isdigit() and int(line[0]) == len(line) - 1 for line in lines)


def _parse(lines: Lines, counted: bool = False) -> Parsed:
    text = text_lines(lines)
    first = 1 if counted else 0
    sound = pl.col("line").str.contains(r"^[0-9 \t]+$")
    bad = text.frame.filter(~sound)[ROW].to_list()
    baskets = text.frame.filter(sound).select(
        ROW,
        user=pl.col(ROW).cast(pl.String),
        item=pl.col("line")
        .str.replace_all(r"[ \t]+", " ")
        .str.split(" ")
        .list.slice(first)
        .list.unique(maintain_order=True),
    )
    return Parsed(baskets.explode("item"), [(row, Reason.WRONG_TYPE) for row in bad], text.replaced)
