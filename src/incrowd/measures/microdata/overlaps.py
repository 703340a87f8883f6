"""How many items each person shares with everybody else, as one histogram per person.

From the histogram every knowledge level follows (``sum over o of count(o) * weight(o)``), so the pairs are
looked at once however many adversaries are asked about, and are never written down.

The work is cut two ways. *Popular* items are bits: 64 of them are compared by one AND and one population
count, for every pair. The remaining items are *posting lists*: only the pairs that share one are touched.
:func:`word_count` draws the line where the two cost the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from incrowd.errors import BudgetExceeded, InputError

Progress = Callable[[float, float | None, str], None]

BITS = 64
WORD_PAYS_FROM = 0.3
"""A word of 64 items is worth it if it saves this many posting entries a pair (measured)."""
MOST_WORDS = 64
BLOCK = 8192
"""People counted at a time: their counters stay in the fastest cache."""


@dataclass(frozen=True)
class Postings:
    """A crowd laid out for counting overlaps."""

    people: int
    items: int
    words: NDArray[np.uint64]
    """One row per person: bit b of word w is popular item 64 w + b."""
    bit_of: NDArray[np.int32]
    """Item -> its bit, or -1 if it has a posting list."""
    starts: NDArray[np.int64]
    holders: NDArray[np.int32]
    """holders[starts[i]:starts[i + 1]]: who has item i, ascending; empty for popular items."""
    marks: NDArray[np.float32]
    """One row per property that has to agree (rating, day), aligned with `holders`."""


@dataclass(frozen=True)
class OverlapHistograms:
    """For person r, ``counts[starts[r] + o]`` people share exactly o items."""

    starts: NDArray[np.int64]
    counts: NDArray[np.uint32]

    def of(self, row: int) -> NDArray[np.uint32]:
        """Return one person's histogram, overlaps 0..n."""
        return self.counts[self.starts[row] : self.starts[row + 1]]


def clean(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the table as sorted rows without repeats or explicit zeros."""
    matrix = sparse.csr_matrix(matrix)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz and not np.all(matrix.data):
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix


def word_count(popularity: NDArray[np.int64], people: int) -> int:
    """Return how many words of 64 popular items pay for themselves in a crowd of this shape."""
    share = np.sort(popularity)[::-1] / max(people, 1)
    padded = np.pad(share**2, (0, -len(share) % BITS))
    saved = padded.reshape(-1, BITS).sum(axis=1)
    return int(min((saved >= WORD_PAYS_FROM).sum(), MOST_WORDS))


def postings(crowd: sparse.csr_matrix, marks: NDArray[np.float32] | None = None) -> Postings:
    """Lay a crowd out for counting. With `marks` (rows aligned with its entries) all items are lists."""
    from incrowd.measures.microdata import kernels as cpu  # Numba takes a third of a second to load

    crowd = clean(crowd)
    people, items = crowd.shape
    popularity = np.bincount(crowd.indices, minlength=items)
    words = 0 if marks is not None else word_count(popularity, people)
    popular = np.argsort(-popularity, kind="stable")[: words * BITS]
    bit_of = np.full(items, -1, dtype=np.int32)
    bit_of[popular] = np.arange(len(popular), dtype=np.int32)
    starts = np.zeros(items + 1, dtype=np.int64)
    np.cumsum(np.where(bit_of < 0, popularity, 0), out=starts[1:])
    marks = np.zeros((0, crowd.nnz), dtype=np.float32) if marks is None else np.asarray(marks, np.float32)
    holders = np.empty(starts[-1], dtype=np.int32)
    sorted_marks = np.empty((len(marks), len(holders)), dtype=np.float32)
    bits = np.zeros((people, words), dtype=np.uint64)
    indptr, indices = crowd.indptr.astype(np.int64), crowd.indices.astype(np.int32, copy=False)
    cpu.lay_out(indptr, indices, marks, bit_of, starts[:-1].copy(), holders, sorted_marks, bits)
    return Postings(people, items, bits, bit_of, starts, holders, sorted_marks)


def histograms(
    profiles: sparse.csr_matrix,
    crowd: Postings,
    *,
    marks: NDArray[np.float32] | None = None,
    within: tuple[float, ...] = (),
) -> OverlapHistograms:
    """Return for every profile how many people of the crowd share 0, 1, 2, ... of its items.

    With `marks` (one row per property, aligned with the profiles' entries) an item counts as shared only if
    every property differs by at most its `within`.
    """
    from incrowd.measures.microdata import kernels as cpu  # Numba takes a third of a second to load

    profiles = clean(profiles)
    if profiles.shape[1] != crowd.items:
        raise InputError(f"profiles: expected {crowd.items} items as in the crowd, got {profiles.shape[1]}")
    indptr, indices = profiles.indptr.astype(np.int64), profiles.indices.astype(np.int32, copy=False)
    starts = indptr + np.arange(len(indptr))
    counts = np.zeros(starts[-1], dtype=np.uint32)
    marks = np.zeros((0, profiles.nnz), dtype=np.float32) if marks is None else np.asarray(marks, np.float32)
    tolerance = np.asarray(within, dtype=np.float32)
    laid = (crowd.people, crowd.words, crowd.bit_of, crowd.starts, crowd.holders, crowd.marks)
    own = (indptr, indices, marks, tolerance)
    in_threads(
        lambda rows: cpu.count_overlaps(*own, rows, *laid, starts, counts, BLOCK), shares_of(np.diff(indptr))
    )
    return OverlapHistograms(starts, counts)


def shares_of(sizes: NDArray[np.int64], rows: int = 16) -> list[NDArray[np.int64]]:
    """Deal rows out in small shares, heavy and light ones in each, so that all cores finish together."""
    order = np.argsort(-np.asarray(sizes), kind="stable")
    count = -(-len(order) // rows)
    return [
        np.ascontiguousarray(order[share::count]) for share in range(count)
    ]  # one layout, one compilation


def in_threads(task: Callable[[NDArray[np.int64]], None], shares: list[NDArray[np.int64]]) -> None:
    """Run compiled work, which lets go of the interpreter, on all cores. Shares never write to one place."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for _ in threads.map(task, shares):
            pass


def batches(profiles: sparse.csr_matrix, memory: int, rows: int = 4096) -> Iterator[slice]:
    """Cut the profiles into ranges whose histograms fit the memory budget."""
    indptr = np.asarray(profiles.indptr, dtype=np.int64)
    fits = max(memory // 16, 1)
    start, people = 0, profiles.shape[0]
    while start < people:
        reach = int(np.searchsorted(indptr, indptr[start] + fits, side="right")) - 1
        if reach <= start:
            need = (int(indptr[start + 1] - indptr[start]) + 1) * 16
            raise BudgetExceeded(
                f"memory: one profile needs {need:,} bytes, got {memory:,}; give more memory"
            )
        stop = min(reach, start + rows, people)
        yield slice(start, stop)
        start = stop


def work(profiles: sparse.csr_matrix, crowd: sparse.csr_matrix) -> dict[str, Any]:
    """Estimate the cost before it is paid: pairs, list entries touched, words compared."""
    popularity = np.bincount(crowd.indices, minlength=crowd.shape[1])
    asked = np.bincount(profiles.indices, minlength=profiles.shape[1])
    words = word_count(popularity, crowd.shape[0])
    listed = np.argsort(-popularity, kind="stable")[words * BITS :]
    pairs = profiles.shape[0] * crowd.shape[0]
    touched = int(asked[listed].astype(np.float64) @ popularity[listed].astype(np.float64))
    return {"pairs": pairs, "entries": touched, "words": pairs * words}
