"""Numbers for the distinct rows of tables, in little memory."""

from __future__ import annotations

import numpy as np
import polars as pl

from incrowd.text.strings import Ints, StringTable


class RowTable:
    """Distinct rows, numbered in order of arrival.

    Each column has its own numbers for its distinct values; a row is the few numbers of its values. So a name that
    occurs in many rows is kept once.

    >>> table = RowTable()
    >>> table.numbers_of(pl.DataFrame({"user": ["a", "b", "a"], "community": ["x", "x", "x"]})).tolist()
    [0, 1, 0]
    """

    def __init__(self) -> None:
        self._columns: dict[str, _Values] = {}
        self._rows = StringTable()

    def __len__(self) -> int:
        return len(self._rows)

    def numbers_of(self, table: pl.DataFrame) -> Ints:
        """Return the rows' numbers, giving new ones to new rows."""
        for name in table.columns:
            self._columns.setdefault(name, _Values())
        parts = [self._columns[name].numbers_of(table[name]) for name in table.columns]
        packed = np.ascontiguousarray(np.column_stack(parts), np.int32)
        ends = np.arange(1, len(table) + 1, dtype=np.int64) * packed.itemsize * len(parts)
        return self._rows.numbers_of_bytes(packed.view(np.uint8).ravel(), ends)

    def rows(self) -> pl.DataFrame:
        """Return the distinct rows, by number."""
        packed = self._rows.bytes().view(np.int32).reshape(len(self), -1)
        values = zip(self._columns.items(), packed.T, strict=True)
        return pl.DataFrame({name: column.values().gather(numbers) for (name, column), numbers in values})


class _Values:
    """The distinct values of a column, numbered in order of arrival."""

    def __init__(self) -> None:
        self._strings = StringTable()
        self._others: list[pl.Series] = []

    def numbers_of(self, values: pl.Series) -> Ints:
        known = len(self._strings)
        numbers = self._strings.numbers_of(values.cast(pl.String).fill_null(""))
        if values.dtype != pl.String:
            distinct, first = np.unique(numbers, return_index=True)
            self._others.append(values.gather(first[distinct >= known]))
        return numbers

    def values(self) -> pl.Series:
        return pl.concat(self._others) if self._others else self._strings.strings()
