"""Columns of strings as the kernels see them: bytes end to end, and numbers for distinct strings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

Bytes = npt.NDArray[np.uint8]
Keys = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class StringTable:
    """Distinct strings, numbered in order of arrival; grows as needed.

    >>> StringTable().numbers_of(pl.Series(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """

    def __init__(self) -> None:
        from incrowd.text import kernels

        self._kernels = kernels
        self._slots = np.zeros(2**16, np.uint64)
        self._starts = np.zeros(2**14, np.int64)
        self._arena = np.empty(2**17, np.uint8)
        self._used = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        """Return how much memory the table takes."""
        return self._slots.nbytes + self._starts.nbytes + self._arena.nbytes

    def __len__(self) -> int:
        return int(self._used[0])

    def strings(self, first: int = 0) -> pl.Series:
        """Return the strings from number `first` on."""
        size, end = self._used.tolist()
        return series_of(self._arena[:end], self._starts[first : size + 1])

    def bytes(self) -> Bytes:
        """Return the strings end to end."""
        return self._arena[: int(self._used[1])]

    def numbers_of(self, strings: pl.Series) -> Ints:
        """Return the strings' numbers, giving new ones to new strings."""
        data, offsets = utf8(strings)
        return self.numbers_of_bytes(data, offsets[1:])

    def numbers_of_bytes(self, data: Bytes, ends: Longs) -> Ints:
        """Return the numbers of byte strings that lie end to end."""
        keys, numbers = np.empty(len(ends), np.uint64), np.empty(len(ends), np.int32)
        self._kernels.key_strings(data, ends, keys)
        self.number(data, ends, keys, np.zeros(len(ends), np.uint8), 0, numbers)
        return numbers

    def number(self, data: Bytes, ends: Longs, keys: Keys, hard: Bytes, wanted: int, numbers: Ints) -> None:
        """Number the wanted strings, doubling the table whenever the kernel asks for room."""
        done = 0
        while done < len(ends):
            table = self._slots, self._starts, self._arena, self._used
            done = self._kernels.number_strings(*table, data, ends, keys, hard, wanted, done, numbers)
            if done < len(ends):
                self._double()

    def _double(self) -> None:
        slots = np.zeros(2 * len(self._slots), np.uint64)
        self._kernels.rehash(self._slots, slots)
        self._slots = slots
        self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        self._arena = np.concatenate([self._arena, np.empty_like(self._arena)])


def utf8(texts: pl.Series) -> tuple[Bytes, Longs]:
    """Return a column's bytes, free to be overwritten, and where each string begins, the last end included."""
    import pyarrow as pa

    array = texts.to_arrow().cast(pa.large_string())
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    if data is None:
        return np.empty(0, np.uint8), np.zeros(len(starts), np.int64)
    return np.frombuffer(data, np.uint8)[starts[0] : starts[-1]].copy(), starts - starts[0]


def series_of(data: Bytes, starts: Longs) -> pl.Series:
    """Return the strings that lie end to end in `data`."""
    import pyarrow as pa

    buffers = [None, pa.py_buffer(np.ascontiguousarray(starts)), pa.py_buffer(np.ascontiguousarray(data))]
    return pl.Series(pa.Array.from_buffers(pa.large_string(), len(starts) - 1, buffers), dtype=pl.String)
