"""Lays out who uses which word in a community, by person and by word, in bounded memory.

Rows come in blocks and are appended to files as they come. The lists of who uses a word are made from these files: as
many words at a time as fit, so that every list is written once, from its beginning to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.arrays import Floats, Ints
from incrowd.crowd.array_cache import DiskArray

Numbers = NDArray[np.int32]
Block = tuple[Numbers, Numbers, Ints]
"""Words (as places, ascending in each row) and their counts, row after row, and how many of them each row has."""

ENTRY = 8
"""Bytes of a word and its count, or of a row and its count."""
READ_ENTRIES = 2**22


def lay_out(
    blocks: Iterable[Block], words: int, memory: int, folder: Path | None = None
) -> dict[str, NDArray[Any] | DiskArray]:
    """Return the arrays of a :class:`~incrowd.distances.profile_index.CommunityIndex` that hold counts."""
    row_words, row_counts, word_rows, word_counts = (
        DiskArray(np.int32, folder, may_be_kept=True) for _ in range(4)
    )
    lengths, totals = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    holders, shares = np.zeros(words, np.int64), np.zeros(words)
    for columns, counts, sizes in blocks:
        row_words.append(columns)
        row_counts.append(counts)
        lengths.append(sizes)
        totals.append(np.zeros(len(sizes), np.int64))
        _add_rows(columns, counts, sizes, totals[-1], holders, shares)
    row_starts = np.append(0, np.cumsum(np.concatenate(lengths)))
    word_starts = np.append(0, np.cumsum(holders))
    for low, high in _spans(word_starts, max(memory // ENTRY, 1)):
        size = int(word_starts[high] - word_starts[low])
        rows, uses = np.empty((2, size), np.int32)
        cursors = word_starts[low:high] - word_starts[low]
        for first, last in _spans(row_starts, READ_ENTRIES):
            part = slice(int(row_starts[first]), int(row_starts[last]))
            sizes = np.diff(row_starts[first : last + 1])
            _list_rows(row_words[part], row_counts[part], sizes, first, low, cursors, rows, uses)
        word_rows.append(rows)
        word_counts.append(uses)
    return {
        "totals": np.concatenate(totals),
        "row_starts": row_starts,
        "row_words": row_words,
        "row_counts": row_counts,
        "word_starts": word_starts,
        "word_shares": shares,
        "word_rows": word_rows,
        "word_counts": word_counts,
    }


def _spans(starts: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Cut rows (or words) into ranges of at most `most` entries, but at least one row."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
        yield first, last
        first = last


@njit(cache=True, nogil=True)
def _add_rows(
    columns: Numbers, counts: Numbers, sizes: Ints, totals: Ints, holders: Ints, shares: Floats
) -> None:
    """Add up each row's words, how many rows hold each word, and their shares of it."""
    start = 0
    for row in range(len(sizes)):
        end = start + sizes[row]
        total = 0
        for k in range(start, end):
            total += counts[k]
        totals[row] = total
        for k in range(start, end):
            holders[columns[k]] += 1
            shares[columns[k]] += counts[k] / total
        start = end


@njit(cache=True, nogil=True)
def _list_rows(
    columns: Numbers,
    counts: Numbers,
    sizes: Ints,
    first: int,
    low: int,
    cursors: Ints,
    rows: Numbers,
    uses: Numbers,
) -> None:
    """Write each row into the lists of its words, for the words from `low` on that have a cursor."""
    start = 0
    for row in range(len(sizes)):
        end = start + sizes[row]
        for k in range(start, end):
            word = columns[k] - low
            if 0 <= word < len(cursors):
                at = cursors[word]
                rows[at], uses[at] = first + row, counts[k]
                cursors[word] = at + 1
        start = end
