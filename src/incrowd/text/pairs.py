"""Counting (row, column) pairs by the billion in bounded memory.

Pairs are gathered as one number each, sorted and summed up block by block; sorted runs that do not fit go to
disk. At the end rows and columns get their final places, and the runs are merged, some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from incrowd.text.spill import DiskArray

if TYPE_CHECKING:
    import scipy.sparse as sp

Keys = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]

BYTES_PER_PAIR = 44
"""What a pair takes while runs are merged: the key three times, its count twice, its place in the order."""
BLOCK = 2**22
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class _Run:
    """Distinct pairs in ascending order, with counts: in memory or on disk."""

    keys: Keys | DiskArray
    """Row in the upper half, column in the lower."""
    counts: npt.NDArray[np.int32] | DiskArray

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, start: int, stop: int) -> _Run:
        return _Run(self.keys[start:stop], self.counts[start:stop])


class PairCounter:
    """Counts how often each (row, column) occurs, holding about `most_pairs` of them in memory.

    >>> counter = PairCounter(most_pairs=1000)
    >>> counter.add(np.array([1, 0, 1]), np.array([0, 2, 0]))
    >>> counter.matrix(np.array([0, 1]), np.array([0, 1, 2])).toarray().tolist()
    [[0, 0, 1], [2, 0, 0]]
    """

    def __init__(self, most_pairs: int, folder: Path | None = None) -> None:
        self._most_pairs = most_pairs
        self._folder = folder
        self._waiting: list[Keys] = []
        self._held: list[_Run] = []
        self._spilled: list[_Run] = []

    def add(self, rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> None:
        """Count one more of each of these pairs."""
        self._waiting.append(_keys(rows, columns))
        if sum(map(len, self._waiting)) >= min(BLOCK, self._most_pairs):
            self._count_waiting()

    def columns_seen(self, row_places: Longs, columns: int) -> npt.NDArray[np.bool_]:
        """Say which columns occur in a row that has a place."""
        seen = np.zeros(columns, np.bool_)
        for run in self._runs():
            keys = run.keys[:]
            seen[_columns(keys[row_places[_rows(keys)] >= 0])] = True
        return seen

    def matrix(self, row_places: Longs, column_places: Longs) -> sp.csr_matrix:
        """Return the counts with every row and column at its place; -1 leaves it out. Call it once, last."""
        import scipy.sparse as sp

        rows, columns = int(row_places.max(initial=-1)) + 1, int(column_places.max(initial=-1)) + 1
        runs = [self._placed(run, row_places, column_places) for run in self._runs()]
        spilled, self._held, self._spilled = bool(self._spilled), [], []
        blocks = self._merged_on_disk(runs, rows) if spilled else _whole(runs, rows)
        index_type = np.int32 if blocks.starts[-1] <= np.iinfo(np.int32).max else np.int64
        return sp.csr_matrix(
            (blocks.counts, blocks.columns, blocks.starts.astype(index_type)), shape=(rows, columns)
        )

    def _runs(self) -> list[_Run]:
        self._count_waiting()
        if len(self._held) > 1:
            self._held = [_merged(self._held)]
        return self._held + self._spilled

    def _count_waiting(self) -> None:
        if self._waiting:
            keys = np.concatenate(self._waiting)
            self._waiting = []
            keys.sort()
            self._held.append(_summed(keys, np.ones(len(keys), np.int32)))
        if sum(map(len, self._held)) > self._most_pairs:
            run, self._held = _merged(self._held), []
            self._spilled.append(self._on_disk(run))

    def _on_disk(self, run: _Run) -> _Run:
        keys, counts = DiskArray(np.uint64, self._folder), DiskArray(np.int32, self._folder)
        keys.append(run.keys[:])
        counts.append(run.counts[:])
        return _Run(keys, counts)

    def _placed(self, run: _Run, row_places: Longs, column_places: Longs) -> _Run:
        keys, counts = run.keys[:], run.counts[:]
        keep = row_places[_rows(keys)] >= 0
        if not keep.all():
            keys, counts = keys[keep], counts[keep]
        keys = _keys(row_places[_rows(keys)], column_places[_columns(keys)])
        placed = _merged([_Run(keys, counts)])
        return self._on_disk(placed) if isinstance(run.keys, DiskArray) else placed

    def _merged_on_disk(self, runs: list[_Run], rows: int) -> _Sums:
        """Merge the runs, about :data:`BLOCK` pairs at a time, straight into files."""
        columns, counts = DiskArray(np.int32, self._folder), DiskArray(np.int32, self._folder)
        lengths = np.zeros(rows, np.int64)
        starts = [_row_starts(run.keys[:], rows) for run in runs]
        for first, last in _row_blocks(np.sum(starts, axis=0), BLOCK):
            parts = [run.part(at[first], at[last]) for run, at in zip(runs, starts, strict=True)]
            block = _merged(parts)
            lengths[first:last] = np.bincount(_rows(block.keys[:]) - first, minlength=last - first)
            columns.append(_columns(block.keys[:]))
            counts.append(block.counts[:])
        return _Sums(columns.mapped(), counts.mapped(), np.append(0, np.cumsum(lengths)))


@dataclass(frozen=True)
class _Sums:
    """Counts as a sparse matrix stores them."""

    columns: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    starts: Longs


def _whole(runs: list[_Run], rows: int) -> _Sums:
    keys, counts = (
        (runs[0].keys[:], runs[0].counts[:]) if runs else (np.empty(0, np.uint64), np.empty(0, np.int32))
    )
    return _Sums(_columns(keys).astype(np.int32), counts, _row_starts(keys, rows))


def _merged(runs: Sequence[_Run]) -> _Run:
    keys = np.concatenate([run.keys[:] for run in runs])
    counts = np.concatenate([run.counts[:] for run in runs])
    order = np.argsort(keys)
    return _summed(keys[order], counts[order])


def _summed(keys: Keys, counts: npt.NDArray[np.int32]) -> _Run:
    """Add up the counts of equal keys, which lie side by side."""
    if not len(keys):
        return _Run(keys, counts)
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    if len(first) == len(keys):
        return _Run(keys, counts)
    return _Run(keys[first], np.add.reduceat(counts, first))


def _row_starts(keys: Keys, rows: int) -> Longs:
    """Return where each row begins among ascending keys, and where the last one ends."""
    return np.searchsorted(keys, np.arange(rows + 1, dtype=np.uint64) << _HALF).astype(np.int64)


def _row_blocks(starts: Longs, size: int) -> Iterator[tuple[int, int]]:
    """Cut the rows into blocks of about `size` pairs; a block has at least one row."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + size, side="right")) - 1)
        yield first, last
        first = last


def _keys(rows: Longs, columns: npt.NDArray[Any]) -> Keys:
    return rows.astype(np.uint64) << _HALF | columns.astype(np.uint64)


def _rows(keys: Keys) -> Longs:
    return (keys >> _HALF).astype(np.int64)


def _columns(keys: Keys) -> Longs:
    return (keys & _LOW).astype(np.int64)
