"""FIMI transactions: a line is one person's basket, integers parted by blanks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from incrowd.crowd.readers.base import Batch, Layout, ReadOptions
from incrowd.crowd.readers.rows import ROW, Parsed, batch_of, text_lines
from incrowd.crowd.readers.source import Lines, read_lines
from incrowd.crowd.schema import Kind, Reason

LAYOUT = Layout(kind="items", columns={"user": ("user",), "item": ("item",)})
SAMPLED_LINES = 100
_BASKET = re.compile(rb"[0-9]+(?: +[0-9]+)* *\r?")


class Fimi:
    """Baskets without names: a person is the line's number."""

    name = "fimi"
    kind: Kind = "items"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Say whether the first lines hold integers and blanks only."""
        lines = head.split(b"\n", SAMPLED_LINES)
        whole = [line for line in (lines[:-1] if len(lines) > 1 else lines) if line.strip()]
        return bool(whole) and all(_BASKET.fullmatch(line) for line in whole)

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order; all items of a basket have its line's number."""
        for lines in read_lines(path, options):
            yield batch_of(_parse(lines), LAYOUT, options, lines)


def _parse(lines: Lines) -> Parsed:
    text = text_lines(lines)
    sound = pl.col("line").str.contains(r"^[0-9 \t]+$")
    bad = text.frame.filter(~sound)[ROW].to_list()
    baskets = text.frame.filter(sound).select(
        ROW,
        user=pl.col(ROW).cast(pl.String),
        item=pl.col("line").str.replace_all(r"[ \t]+", " ").str.split(" ").list.unique(maintain_order=True),
    )
    return Parsed(baskets.explode("item"), [(row, Reason.WRONG_TYPE) for row in bad], text.replaced)
