"""What a reader is: one file format turned into batches of rows, bounded in memory.

A reader yields :class:`Batch` values. It reports a row it cannot parse in ``rejects`` and goes on; it raises
:class:`~incrowd.errors.UnreadableSource` or :class:`~incrowd.errors.SchemaError` when the whole source cannot
be trusted (truncated, corrupt, wrong columns), and then nothing of that source is kept. What holds for every
format (deleted authors, absurd times, over-long texts, duplicates, pseudonyms) is the store's work, not the
reader's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import polars as pl

from incrowd.crowd.schema import COLUMNS, ROW_COLUMNS, Kind


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read a source."""

    kind: Kind | None = None
    """None: the format's own kind."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our column -> the source's column, e.g. ``{"user": "author"}``."""
    community: str | None = None
    """The community of every row, for sources that have none of their own."""
    user: str | None = None
    """The user of every row, for a person's own export."""
    batch_bytes: int = 32 * 2**20
    """About how much decompressed input one batch holds."""
    max_output_bytes: int = 2**40
    """Decompression stops here: nobody's export is larger, a bomb's is."""
    max_ratio: int = 1000
    """Largest believable ratio of decompressed to compressed size, beyond the first 64 MiB."""
    max_line_bytes: int = 16 * 2**20
    """A longer record is set aside as too long, without being held in memory."""
    keep_complete: bool = False
    """Keep the complete records of a truncated source, marked incomplete, instead of refusing it."""


@dataclass(frozen=True)
class Batch:
    """Some rows of a source, in order, and the rows that could not be parsed."""

    rows: pl.DataFrame
    """Columns of :data:`ROW_COLUMNS` and of the kind's table; `user`, `community`, ... may be null."""
    rejects: pl.DataFrame
    """Columns `row` (UInt64) and `reason` (String)."""
    replaced: int = 0
    """Rows in which invalid bytes were replaced (U+FFFD)."""
    skipped: int = 0
    """Records that are sound but not this table's: retweets, boosts, messages not meant for the public."""
    incomplete: bool = False
    """The source ended early and `keep_complete` was asked for."""

    @property
    def kind(self) -> Kind:
        """The table the rows belong to, told by their columns."""
        columns = self.rows.columns
        return "posts" if "text" in columns else "items" if "item" in columns else "attributes"


class Reader(Protocol):
    """One format."""

    name: str
    kind: Kind

    def recognises(self, path: Path, head: bytes) -> bool:
        """Say by name and content (first decompressed bytes) whether this reader can take the source."""
        ...

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        ...


def empty_rows(kind: Kind) -> pl.DataFrame:
    """Return no rows, with the right columns."""
    return pl.DataFrame(schema={**ROW_COLUMNS, **COLUMNS[kind]})


def empty_rejects() -> pl.DataFrame:
    """Return no rejects, with the right columns."""
    return pl.DataFrame(schema={"row": pl.UInt64(), "reason": pl.String()})
