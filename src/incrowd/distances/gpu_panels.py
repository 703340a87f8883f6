"""What the GPU is given: programs for the metrics (folder `cuda`), and profiles as *panels*, ranges of rows laid out.

Every metric is a sum over the words two profiles share, so one set of kernels serves them all; a metric is a
handful of small macros:

==================  ==========================================================================
``TERM``            what one word adds where both profiles sit in a dense block (zero is ``TINY``)
``SHARED``          what one shared word adds where both profiles come from posting lists
``GAP``             from the sum over shared words to a number that is 0 for equal profiles
``DISTANCE``        from the gap to the distance, in single precision
``BAND``            how much an error of the gap can change the distance
``VALUE``           what a stored number means in the sums below
``EXACT``           what one word of the union adds to a sum that is exactly 0 for equal profiles
``OTHER``           the same for a second sum, where a metric needs one
``EXACT_DISTANCE``  from these sums to the distance, in double precision
==================  ==========================================================================

A tile of distances is made in three steps, each a kernel: ``dense_terms`` (frequent words, one logarithm a
term), ``listed_terms`` (all other words, posting lists against posting lists), ``finish`` (distance; pairs
whose single-precision value cannot be trusted are computed again in double precision, one warp for each pair).

In a panel, words are sorted by how many people use them. The few thousand used by a large share of all people go into a
dense block (one logarithm per pair and word, no look-up); all others into posting lists, one list for each
word and each tile of 128 rows, so that only words two tiles share are ever touched. Words nobody shares are
left out: they count through a row's total alone.

Panels are written against an array module (`xp`), NumPy or CuPy, so that the layout can be checked on a machine without
a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

from incrowd.arrays import Floats, Ints
from incrowd.distances.reductions import DECIMALS

TILE = 128
"""Rows and columns one thread block works on; panels are padded to a multiple of it."""
DEPTH = 16
"""Words of a dense block staged in shared memory at once."""
QUEUE = 512
"""Words two tiles share that are gathered before their lists are worked off."""
TINY = 1e-30
"""Stands for zero in a dense block: its logarithm is finite and its terms vanish."""
FIXED_POINT_BITS = 29
"""Posting-list terms are added as integers, so that the order of additions cannot change a result."""

_METRICS = {
    "jensen-shannon": """
        // x is stored as K p; f(Kp, Kq) = K f(p, q), so a power of two K near 1/p keeps logarithms small.
        #define TERM(acc, x, y) { const float s = (x) + (y); acc = fmaf(s, __log2f(s), acc); }
        #define SHARED(x, xlog, y, ylog) fmaf((x) + (y), __log2f((x) + (y)), -((xlog) + (ylog)))
        #define GAP(shared, mx, my) (0.5f * ((mx) + (my)) - 0.5f * (shared))
        #define DISTANCE(gap) sqrtf(fminf(fmaxf(gap, 0.0f), 1.0f))
        #define BAND(error, gap) (0.5f * (error) * rsqrtf(fmaxf(gap, 1e-6f)))
        #define VALUE(p, norm) (p)
        #define EXACT(x, y) (((x) > 0 ? (x) * log2(2 * (x) / ((x) + (y))) : 0.0) \\
                           + ((y) > 0 ? (y) * log2(2 * (y) / ((x) + (y))) : 0.0))
        #define EXACT_DISTANCE(sum, other) sqrt(fmin(fmax(0.5 * (sum), 0.0), 1.0))
    """,
    "total-variation": """
        #define TERM(acc, x, y) acc += fminf(x, y)
        #define SHARED(x, xlog, y, ylog) fminf(x, y)
        #define GAP(shared, mx, my) (0.5f * ((mx) + (my)) - (shared))
        #define DISTANCE(gap) fminf(fmaxf(gap, 0.0f), 1.0f)
        #define BAND(error, gap) (error)
        #define VALUE(p, norm) (p)
        #define EXACT(x, y) fabs((x) - (y))
        #define EXACT_DISTANCE(sum, other) fmin(0.5 * (sum), 1.0)
    """,
    "hellinger": """
        // x is stored as sqrt(p).
        #define TERM(acc, x, y) acc = fmaf(x, y, acc)
        #define SHARED(x, xlog, y, ylog) ((x) * (y))
        #define GAP(shared, mx, my) (0.5f * ((mx) + (my)) - (shared))
        #define DISTANCE(gap) sqrtf(fminf(fmaxf(gap, 0.0f), 1.0f))
        #define BAND(error, gap) (0.5f * (error) * rsqrtf(fmaxf(gap, 1e-6f)))
        #define VALUE(p, norm) sqrt(p)
        #define EXACT(x, y) (((x) - (y)) * ((x) - (y)))
        #define EXACT_DISTANCE(sum, other) sqrt(fmin(0.5 * (sum), 1.0))
    """,
    "angular-cosine": """
        // x is stored as p / |p|. The angle is 2 atan(|x - y| / |x + y|), also near 0.
        #define TERM(acc, x, y) acc = fmaf(x, y, acc)
        #define SHARED(x, xlog, y, ylog) ((x) * (y))
        #define GAP(shared, mx, my) (1.0f - (shared))
        #define DISTANCE(gap) (acosf(fminf(1.0f - (gap), 1.0f)) * 0.318309886f)
        #define BAND(error, gap) (0.318309886f * (error) * rsqrtf(fmaxf((gap) * (2.0f - (gap)), 1e-6f)))
        #define VALUE(p, norm) ((p) / (norm))
        #define EXACT(x, y) (((x) - (y)) * ((x) - (y)))
        #define OTHER(x, y) (((x) + (y)) * ((x) + (y)))
        #define EXACT_DISTANCE(sum, other) (2 * atan2(sqrt(sum), sqrt(other)) / 3.141592653589793)
    """,
}

METRICS = tuple(_METRICS)


_FILES = {
    "dense.cu": ("dense_terms",),
    "listed.cu": ("listed_terms",),
    "finish.cu": ("mirror", "finish", "exact_pairs"),
    "reduce.cu": ("count_between", "kth_smallest"),
}


def listed_shared_bytes() -> int:
    """Return the shared memory `listed_terms` needs: a tile of sums and the queue."""
    return TILE * TILE * 4 + QUEUE * 16


def source(metric: str) -> str:
    """Return the CUDA source of all kernels for one metric."""
    sizes = {"TILE": TILE, "DEPTH": DEPTH, "QUEUE": QUEUE, "DECIMALS": f"1e{DECIMALS}"}
    defined = "".join(f"#define {name} {size}\n" for name, size in sizes.items())
    macros = "\n".join(line.strip() for line in _METRICS[metric].splitlines())
    if "OTHER" not in macros:
        macros += "#define OTHER(x, y) 0.0\n"
    folder = files("incrowd.distances") / "cuda"
    return defined + macros + "\n".join((folder / name).read_text("utf-8") for name in _FILES)


@cache
def kernels(metric: str) -> Any:
    """Compile the kernels of one metric (once a process; CuPy keeps the binary on disk for the next one)."""
    import cupy

    module = cupy.RawModule(code=source(metric), options=("-std=c++17",))
    names = chain.from_iterable(_FILES.values())
    functions = SimpleNamespace(**{name: module.get_function(name) for name in names})
    functions.listed_terms.max_dynamic_shared_size_bytes = listed_shared_bytes()
    return functions


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
