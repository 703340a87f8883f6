"""Rows gathered one by one, for formats that are parsed record by record."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from incrowd.crowd.readers.fields import Layout
from incrowd.crowd.readers.shape import ROW, Parsed
from incrowd.crowd.readers.unicode import storable
from incrowd.crowd.schema import Reason

POSTS = Layout(kind="posts", columns={name: (name,) for name in ("id", "user", "community", "time", "text")})
ITEMS = Layout(kind="items", columns={name: (name,) for name in ("user", "item", "value", "time")})
ATTRIBUTES = Layout(kind="attributes", columns={name: (name,) for name in ("user", "attribute", "value")})


class Collector:
    """Holds the rows of one batch: texts in the order of a layout's columns."""

    def __init__(self, layout: Layout, batch_bytes: int) -> None:
        self._names = list(layout.columns)
        self._batch_bytes = batch_bytes
        self._clear()

    def _clear(self) -> None:
        self._rows: list[int] = []
        self._values: list[list[str | None]] = []
        self._rejects: list[tuple[int, Reason]] = []
        self._replaced = 0
        self._skipped = 0
        self._size = 0

    @property
    def full(self) -> bool:
        """Whether a batch is gathered."""
        return self._size >= self._batch_bytes

    def add(self, row: int, values: Sequence[str | None], *, replaced: bool = False) -> None:
        """Add a row; what cannot be stored is replaced, and counted."""
        clean = [None if value is None else storable(value) for value in values]
        self._rows.append(row)
        self._values.append(clean)
        self._replaced += replaced or clean != list(values)
        self._size += 64 + sum(len(value) for value in clean if value is not None)

    def reject(self, row: int, reason: Reason) -> None:
        """Set a row aside."""
        self._rejects.append((row, reason))

    def skip(self) -> None:
        """Count a record that is sound but not this table's."""
        self._skipped += 1

    def take(self) -> Parsed:
        """Return what is gathered, and start anew."""
        columns = {name: [values[i] for values in self._values] for i, name in enumerate(self._names)}
        schema = {ROW: pl.UInt64(), **dict.fromkeys(self._names, pl.String())}
        frame = pl.DataFrame({ROW: self._rows, **columns}, schema=schema)
        parsed = Parsed(frame, self._rejects, self._replaced, self._skipped)
        self._clear()
        return parsed
