"""How profiles are laid out for the GPU: a *panel* is a range of rows, ready to be compared with any other.

Words are sorted by how many people use them. The few thousand used by a large share of all people go into a
dense block (one logarithm per pair and word, no look-up); all others into posting lists, one list for each
word and each tile of 128 rows, so that only words two tiles share are ever touched. Words nobody shares are
left out: they count through a row's total alone.

Everything here is written against an array module (`xp`), NumPy or CuPy, so that the layout can be checked on
a machine without a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from incrowd.distances.gpu_kernels import DEPTH, TILE, TINY
from incrowd.distances.reductions import Floats, Ints

Device = Any
"""An array of NumPy or CuPy."""

DENSE_FROM = 0.3
"""Share of people who use a word from which a dense block beats posting lists (measured on an H200)."""
MOST_DENSE = 8192
CHUNK = 128
"""Dense words summed in single precision before the sum is put aside; keeps rounding errors small."""
_UPLOAD = 2**24
"""Entries sent to the device at once while counting words."""


@dataclass(frozen=True)
class PanelVocabulary:
    """Which words go into the dense block, which into posting lists, which are shared by nobody."""

    place: Device
    """Position of every word when sorted by use, most used first."""
    dense: int
    """Words at places below go into the dense block."""
    used: int
    """Words at places below are shared by somebody."""

    @property
    def listed(self) -> int:
        """How many words have posting lists."""
        return self.used - self.dense


@dataclass(frozen=True)
class Panel:
    """A range of rows on the device. Rows are padded to a multiple of `TILE` with people who say nothing."""

    rows: int
    padded: int
    first: int
    """The number of its first row, for telling who comes first in a pair."""
    dense: Device
    """(words, padded): the scaled values of dense words, `TINY` for zero."""
    less: Device
    """(chunks, padded): Σ x log2 x over each chunk of dense words (Jensen-Shannon only, else 0)."""
    entries: Device
    """(entries, 4): scaled value x, x log2 x, row within its tile, nothing."""
    starts: Device
    """(tiles * listed + 1,): where the list of each tile and word begins in `entries`."""
    mass: Device
    """(padded,): each row's sum."""
    row_starts: Device
    words: Device
    values: Device
    norms: Device

    @property
    def nbytes(self) -> int:
        """Device memory it takes."""
        parts = (getattr(self, field.name) for field in fields(self))
        return sum(part.nbytes for part in parts if hasattr(part, "nbytes"))


def count_users(rows: sparse.csr_matrix, xp: Any) -> Ints:
    """Return how many rows hold each word."""
    counts = xp.zeros(rows.shape[1], dtype=np.int64)
    for start in range(0, rows.nnz, _UPLOAD):
        counts += xp.bincount(xp.asarray(rows.indices[start : start + _UPLOAD]), minlength=rows.shape[1])
    return np.asarray(counts if xp is np else xp.asnumpy(counts))


def split_vocabulary(
    x_users: Ints,
    x_rows: int,
    y_users: Ints | None,
    y_rows: int,
    xp: Any = np,
    dense_from: float = DENSE_FROM,
) -> PanelVocabulary:
    """Sort words by how often two people share them (`y_users` None: within one crowd)."""
    shared = x_users > 1 if y_users is None else (x_users > 0) & (y_users > 0)
    other = x_users if y_users is None else y_users
    share = np.sqrt((x_users / max(x_rows, 1)) * (other / max(y_rows, 1)))
    share[~shared] = -1.0
    order = np.argsort(-share, kind="stable")
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    dense = min(int((share >= dense_from).sum()), MOST_DENSE)
    return PanelVocabulary(xp.asarray(place), dense, int(shared.sum()))


def log_scale(rows: sparse.csr_matrix) -> float:
    """Return the power of two that brings a typical probability near 1, where logarithms are most exact."""
    return 2.0 ** round(math.log2(max(rows.nnz / max(rows.shape[0], 1), 1.0)))


def build_panel(
    matrix: sparse.csr_matrix,
    span: range,
    vocabulary: PanelVocabulary,
    metric: str,
    scale: float,
    first: int,
    xp: Any,
) -> Panel:
    """Lay out the rows of `span`; `first` is the number its first row goes by."""
    rows = _slice(matrix, span)
    mass, norms = _sums(rows)
    row_starts, words = xp.asarray(rows.indptr.astype(np.int64)), xp.asarray(rows.indices.astype(np.int32))
    values, row = xp.asarray(rows.data), _row_numbers(row_starts, rows.nnz, xp)
    scaled = _scaled(values, row, xp.asarray(norms), metric, scale, xp)
    place = vocabulary.place[words]
    padded = -(-len(span) // TILE) * TILE
    dense = _dense_block(scaled, row, place, vocabulary.dense, padded, xp)
    entries, starts = _posting_lists(scaled, row, place, vocabulary, padded, metric, xp)
    return Panel(
        rows=len(span),
        padded=padded,
        first=first,
        dense=dense,
        less=_less(dense, metric, xp),
        entries=entries,
        starts=starts,
        mass=_padded(xp.asarray(mass, dtype=np.float32), padded, xp),
        row_starts=row_starts,
        words=words,
        values=values,
        norms=xp.asarray(norms),
    )


def chunks(words: int) -> Iterator[tuple[int, int]]:
    """Cut dense words into chunks (start, length)."""
    for start in range(0, words, CHUNK):
        yield start, min(CHUNK, words - start)


def _slice(matrix: sparse.csr_matrix, span: range) -> sparse.csr_matrix:
    """Rows of a matrix without copying them."""
    start, stop = (int(matrix.indptr[at]) for at in (span.start, span.stop))
    indptr = matrix.indptr[span.start : span.stop + 1] - matrix.indptr[span.start]
    part = (matrix.data[start:stop], matrix.indices[start:stop], indptr)
    return sparse.csr_matrix(part, shape=(len(span), matrix.shape[1]), copy=False)


def _sums(rows: sparse.csr_matrix) -> tuple[Floats, Floats]:
    squares = sparse.csr_matrix((rows.data**2, rows.indices, rows.indptr), shape=rows.shape, copy=False)
    mass, norms = np.asarray(rows.sum(axis=1)).ravel(), np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    norms[norms == 0] = 1.0
    return mass, norms


def _row_numbers(row_starts: Device, entries: int, xp: Any) -> Device:
    return xp.searchsorted(row_starts[1:], xp.arange(entries), side="right").astype(np.int32)


def _scaled(values: Device, row: Device, norms: Device, metric: str, scale: float, xp: Any) -> Device:
    """What the fast kernels store of a value, in double precision."""
    if metric == "jensen-shannon":
        return values * scale
    if metric == "hellinger":
        return xp.sqrt(values)
    if metric == "angular-cosine":
        return values / norms[row]
    return values


def _dense_block(scaled: Device, row: Device, place: Device, words: int, padded: int, xp: Any) -> Device:
    block = xp.full((-(-words // DEPTH) * DEPTH, padded), TINY, dtype=np.float32)
    here = xp.flatnonzero(place < words)
    block[place[here], row[here]] = scaled[here].astype(np.float32)
    return block


def _less(dense: Device, metric: str, xp: Any) -> Device:
    parts = xp.zeros((max(-(-len(dense) // CHUNK), 1), dense.shape[1]), dtype=np.float32)
    if metric == "jensen-shannon":
        for number, (start, length) in enumerate(chunks(len(dense))):
            block = dense[start : start + length].astype(np.float64)
            parts[number] = (block * xp.log2(block)).sum(axis=0)
    return parts


def _posting_lists(
    scaled: Device, row: Device, place: Device, vocabulary: PanelVocabulary, padded: int, metric: str, xp: Any
) -> tuple[Device, Device]:
    listed, lists = vocabulary.listed, (padded // TILE) * vocabulary.listed
    here = xp.flatnonzero((place >= vocabulary.dense) & (place < vocabulary.used))
    key = (row[here] // TILE).astype(np.int64) * listed + (place[here] - vocabulary.dense)
    order = here[xp.argsort(key)]
    x = scaled[order]
    entries = xp.zeros((len(order), 4), dtype=np.float32)
    entries[:, 0] = x
    if metric == "jensen-shannon":
        entries[:, 1] = x * xp.log2(x)
    entries.view(np.int32)[:, 2] = row[order] % TILE
    starts = xp.zeros(lists + 1, dtype=np.int32)
    starts[1:] = xp.cumsum(xp.bincount(key, minlength=lists))
    return entries, starts


def _padded(values: Device, length: int, xp: Any) -> Device:
    longer = xp.zeros(length, dtype=values.dtype)
    longer[: len(values)] = values
    return longer
