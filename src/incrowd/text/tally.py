"""Counting the tokens of each row in bounded memory.

Tokens wait as plain numbers, post by post, in memory or on disk. At the end they are laid out row by row, each
row is sorted, and equal neighbours are counted: some rows at a time where not all fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from incrowd.crowd.array_cache import DiskArray
from incrowd.crowd.flat_texts import Longs
from incrowd.text.tokeniser import Ints

BYTES_PER_TOKEN = 4


@dataclass
class _Batch:
    """Some posts: the row each belongs to, how many tokens it has, and all tokens end to end."""

    rows: Ints
    lengths: Ints
    tokens: Ints | slice
    """A slice says where on disk."""


class TokenTally:
    """Counts how often each row uses each token, within about `memory` bytes.

    >>> tally = TokenTally(memory=10**6)
    >>> tally.add(np.array([1, 0, 1]), np.array([3, 3, 2, 3]), np.array([2, 1, 1]))
    >>> tally.matrix(row_places=np.array([0, 1]), token_places=np.array([-1, -1, 0, 1])).toarray().tolist()
    [[1, 0], [0, 3]]
    """

    def __init__(self, memory: int, folder: Path | None = None) -> None:
        self._share = memory // 3  # one for tokens that wait, one for a block of rows, one for the result
        self._folder = folder
        self._batches: list[_Batch] = []
        self._disk = DiskArray(np.int32, folder)
        self._held = 0

    def add(self, rows: npt.NDArray[np.integer], tokens: Ints, lengths: npt.NDArray[np.integer]) -> None:
        """Add posts: the row each belongs to, their tokens end to end, and how many each has."""
        batch = _Batch(rows.astype(np.int32), lengths.astype(np.int32), tokens.astype(np.int32))
        self._batches.append(batch)
        self._held += len(tokens)
        if self._held * BYTES_PER_TOKEN > self._share:
            self._spill()

    def _spill(self) -> None:
        for batch in self._batches:
            if not isinstance(batch.tokens, slice):
                batch.tokens = self._disk.append(batch.tokens)
        self._held = 0

    def _read(self, row_places: Longs, first: int, last: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield the batches that hold posts of the rows from place `first` up to `last`."""
        for batch in self._batches:
            places = row_places[batch.rows]
            if not ((places >= first) & (places < last)).any():
                continue
            tokens = self._disk[batch.tokens] if isinstance(batch.tokens, slice) else batch.tokens
            yield batch.rows, batch.lengths, tokens

    def tokens_seen(self, row_places: Longs, size: int) -> npt.NDArray[np.bool_]:
        """Say which of `size` tokens occur in a row that has a place."""
        from incrowd.text.kernels import mark_seen  # Numba takes a third of a second to load

        seen = np.zeros(size, np.bool_)
        for batch in self._read(row_places, 0, len(row_places)):
            mark_seen(*batch, row_places, seen)
        return seen

    def matrix(self, row_places: Longs, token_places: Longs) -> sp.csr_matrix:
        """Return the counts with every row and token at its place; a row's place of -1 leaves it out."""
        starts = np.append(0, np.cumsum(self._row_sizes(row_places)))
        if starts[-1] <= self._most:
            block = self._count_rows(row_places, token_places, starts, 0)
        else:
            block = self._count_on_disk(row_places, token_places)
        indptr = np.append(0, np.cumsum(block.lengths))
        index_type = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64
        shape = len(starts) - 1, int(token_places.max(initial=-1)) + 1
        return sp.csr_matrix((block.counts, block.columns, indptr.astype(index_type)), shape=shape)

    def _row_sizes(self, row_places: Longs) -> Longs:
        sizes = np.zeros(int(row_places.max(initial=-1)) + 1, np.int64)
        for batch in self._batches:
            places = row_places[batch.rows]
            kept = places >= 0
            sizes += np.bincount(places[kept], batch.lengths[kept], minlength=len(sizes)).astype(np.int64)
        return sizes

    def _count_rows(self, row_places: Longs, token_places: Longs, starts: Longs, first: int) -> RowBlock:
        """Count the rows from place `first` on whose tokens go between `starts`."""
        from incrowd.text.kernels import count_sorted, lay_out  # Numba takes a third of a second to load

        starts = starts - starts[0]
        columns, cursors = np.empty(starts[-1], np.int32), starts[:-1].copy()
        for batch in self._read(row_places, first, first + len(cursors)):
            lay_out(*batch, row_places, token_places, first, cursors, columns)
        counts, lengths = np.empty(starts[-1], np.int32), np.empty(len(cursors), np.int64)
        size = count_sorted(columns, starts, counts, lengths)
        return RowBlock(columns[:size], counts[:size], lengths)

    def blocks(self, row_places: Longs, token_places: Longs) -> Iterator[RowBlock]:
        """Yield the counts of all rows by place, as many rows at a time as fit."""
        starts = np.append(0, np.cumsum(self._row_sizes(row_places)))
        for first, last in _row_blocks(starts, self._most):
            yield self._count_rows(row_places, token_places, starts[first : last + 1], first)

    @property
    def _most(self) -> int:
        """So many tokens are counted at a time."""
        return self._share // (2 * BYTES_PER_TOKEN)

    def _count_on_disk(self, row_places: Longs, token_places: Longs) -> RowBlock:
        """Count straight into files."""
        columns, counts = DiskArray(np.int32, self._folder), DiskArray(np.int32, self._folder)
        lengths = [np.zeros(0, np.int64)]
        for block in self.blocks(row_places, token_places):
            columns.append(block.columns)
            counts.append(block.counts)
            lengths.append(block.lengths)
        return RowBlock(columns.mapped(), counts.mapped(), np.concatenate(lengths))


@dataclass(frozen=True)
class RowBlock:
    """Some rows of the matrix: columns and counts end to end, and how many each row has."""

    columns: Ints
    counts: Ints
    lengths: Longs


def _row_blocks(starts: Longs, most: int) -> Iterator[tuple[int, int]]:
    """Cut the rows into blocks of at most `most` tokens, but at least one row."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
        yield first, last
        first = last
