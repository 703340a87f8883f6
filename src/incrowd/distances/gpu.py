"""The GPU kernel (CuPy, extra `gpu`): exact all-pairs distances at the speed of the chip's logarithm unit.

::

    prepare   count words, split the vocabulary                    (gpu_panels.py)
    tile      panels for its rows and columns, made once and kept while device memory lasts
              → dense words → posting lists → distances; doubtful pairs again in double precision
                                                                   (gpu_panels.py)
    fused     reduce the tile on the device; only counts travel    (below)

Needs NumPy, SciPy and CuPy alone. Distances agree with the reference within `TOLERANCE`; counts at radii are
decided in double precision, so they agree exactly.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from incrowd.arrays import Floats, Ints
from incrowd.distances import gpu_panels as cuda
from incrowd.distances.gpu_panels import (
    Device,
    Panel,
    PanelVocabulary,
    build_panel,
    chunks,
    count_users,
    log_scale,
    split_vocabulary,
)
from incrowd.distances.reductions import (
    UNIT,
    Array,
    BallSizes,
    DistanceHistogram,
    Nearest,
    Piece,
    Ranks,
    Reduction,
    Summary,
    WithinBoth,
    starts,
)
from incrowd.distances.reference import Metric
from incrowd.distances.tiles import Tile
from incrowd.errors import BudgetExceeded, MissingExtra

# Keeping to a budget on the device: which panels stay there, and who works when memory is short.

Result = TypeVar("Result")
_PAUSES = (0.0, 0.1, 0.5)


class Panels:
    """The panels of one comparison, kept on the device while they fit, the longest unused dropped first."""

    def __init__(self, build: Callable[[bool, range], Panel], limit: int) -> None:
        self._build, self._limit = build, limit
        self._held: OrderedDict[tuple[bool, range], Future[Panel | None]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, is_y: bool, span: range) -> Panel:
        """Return the panel of some rows; the first thread to ask builds it, others wait."""
        key = (is_y, span)
        with self._lock:
            waiting = self._held.get(key)
            if waiting:
                self._held.move_to_end(key)
            else:
                mine = self._held[key] = Future()
        if waiting:
            return waiting.result() or self.get(is_y, span)
        panel = None
        try:
            panel = self._build(is_y, span)
        finally:
            if panel is None:  # those who waited try for themselves
                with self._lock:
                    del self._held[key]
            mine.set_result(panel)
        self._make_room(key)
        return panel

    def drop(self) -> None:
        """Keep none."""
        with self._lock:
            self._held.clear()

    def _make_room(self, newest: tuple[bool, range]) -> None:
        with self._lock:
            built = {key: held.result() for key, held in self._held.items() if held.done()}
            sizes = {key: panel.nbytes for key, panel in built.items() if panel}
            total = sum(sizes.values())
            for key in sizes:
                if total <= self._limit:
                    return
                if key != newest:
                    total -= sizes[key]
                    del self._held[key]


class Turns:
    """Lets tiles run side by side until device memory runs out once; from then on one at a time."""

    def __init__(self) -> None:
        self._lock, self._one_at_a_time = threading.Lock(), False

    def run(self, work: Callable[[], Result]) -> Result:
        """Do some work that raises MemoryError (as CuPy and its sorting do) if there is not enough."""
        if not self._one_at_a_time:
            with suppress(MemoryError):
                return work()
            self._one_at_a_time = True
        with self._lock:
            for pause in _PAUSES:  # tiles that began side by side end soon
                time.sleep(pause)
                with suppress(MemoryError):
                    return work()
        raise BudgetExceeded(
            "gpu: a tile needs more device memory than it may take. Use smaller tiles (`tile`), or free "
            "memory on the device."
        )


GAP_ERROR = 5e-6
"""Largest error of a gap (Jensen-Shannon divergence, 1 - cosine, …) in single precision: 2e-6 from the chip's
logarithm, the rest for roundings of sums; 1.2e-6 was the largest seen."""
TRUST = 0.02
"""Below this gap a pair is computed again in double precision, because there a small error of the gap is a
large one of the distance: about error / (2 sqrt(gap))."""
TOLERANCE = 2e-5
"""Largest error of a distance: GAP_ERROR / (2 sqrt(TRUST)), rounded up."""
DEVICE_SHARE = 0.45
"""Share of the free device memory one comparison may fill; a question may need two."""
PANEL_SHARE = 0.5
"""Share of that which panels may keep; the rest is for tiles and for making panels."""
_PAIRS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Edges:
    """The thresholds a question compares distances with; pairs near one are settled in double precision."""

    values: Device
    """Rising, shared by all rows; or one for each row."""
    own: bool = False
    """Row i has the one edge values[i]."""


@dataclass(frozen=True)
class GpuState:
    """One comparison, ready for tiles."""

    x: sparse.csr_matrix
    y: sparse.csr_matrix
    symmetric: bool
    metric: str
    vocabulary: PanelVocabulary
    scale: float
    panels: Panels
    memory: Any
    """Where all of it lies on the device; has a limit, and goes when the comparison goes."""
    recomputed: Device
    """How many pairs were computed again in double precision."""
    turns: Turns = field(default_factory=Turns)

    def __del__(self) -> None:
        """Give the memory back now: CuPy's blocks refer to each other and would wait for the collector."""
        self.panels.drop()
        self.memory.free_all_blocks()


@dataclass
class GpuKernel:
    """Fills tiles on a CUDA device."""

    name: str = "gpu"
    tolerance: float = TOLERANCE
    threads: int | None = 3
    """Tiles under way at once: one computes while others upload and count."""
    device_memory: int | None = None
    """Bytes one comparison may take on the device; None: a good part of what is free."""

    def refuses(self, metric: Metric) -> str:
        """Say why not: an unknown metric, no CuPy, no device."""
        if metric.name not in cuda.METRICS:
            return f"the metric {metric.name} has no CUDA kernel"
        return _no_device()

    def bytes_for(self, x: sparse.csr_matrix, y: sparse.csr_matrix) -> tuple[int, int]:
        """A single-precision distance and its transpose a pair; a panel's share a row."""
        words = max(side.nnz / max(side.shape[0], 1) for side in (x, y))
        return 12, int(32 * words) + 1024

    def prepare(self, x: sparse.csr_matrix, y: sparse.csr_matrix | None, metric: Metric) -> GpuState:
        """Count words and split the vocabulary; panels are made when a tile first needs them."""
        xp = _cupy()
        memory = xp.cuda.MemoryPool()
        memory.set_limit(size=self.device_memory or int(DEVICE_SHARE * xp.cuda.Device().mem_info[0]))
        x_users = count_users(x, xp)
        y_users = None if y is None else count_users(y, xp)
        other = x if y is None else y
        vocabulary = split_vocabulary(x_users, x.shape[0], y_users, other.shape[0], xp)
        scale = log_scale(x) if metric.name == "jensen-shannon" else 1.0

        def build(is_y: bool, span: range) -> Panel:
            first = span.start + (x.shape[0] if is_y else 0)
            panel = build_panel(other if is_y else x, span, vocabulary, metric.name, scale, first, xp)
            xp.cuda.get_current_stream().synchronize()
            return panel

        panels = Panels(build, int(PANEL_SHARE * memory.get_limit()))
        recomputed = xp.zeros(1, dtype=np.uint64)
        return GpuState(x, other, y is None, metric.name, vocabulary, scale, panels, memory, recomputed)

    def tile(self, state: GpuState, tile: Tile) -> Array:
        """Return the distances of one tile on the host, in single precision."""
        return state.turns.run(lambda: _to_host(state, tile))

    def exact(self, state: GpuState, rows: Ints, columns: Ints) -> Floats:
        """Return listed pairs in double precision, one warp for each pair."""
        found = np.empty(len(rows))
        with _stream():
            for start in range(0, len(rows), _PAIRS_AT_ONCE):
                part = slice(start, start + _PAIRS_AT_ONCE)
                found[part] = _exact_part(state, rows[part], columns[part])
        return found

    def fused(self, states: tuple[Any, ...], reduction: Reduction, tile: Tile) -> Piece | None:
        """Answer on the device, if the question is one it knows."""

        answer = ANSWERS.get(type(reduction))
        if answer is None:
            return None
        piece: Piece = states[0].turns.run(lambda: _in_stream(answer, states, reduction, tile))
        return piece


_streams: SimpleQueue[Any] = SimpleQueue()


@contextmanager
def _stream() -> Iterator[None]:
    """Work in a stream of one's own, so that tiles overlap; streams are used again, as is their memory."""
    try:
        stream = _streams.get_nowait()
    except Empty:
        stream = _cupy().cuda.Stream(non_blocking=True)
    try:
        with stream:
            yield
    finally:
        _streams.put(stream)


def _in_stream(answer: Callable[..., Piece], *arguments: Any) -> Piece:
    with _stream():
        return answer(*arguments)


def _to_host(state: GpuState, tile: Tile) -> Array:
    with _stream():
        return np.asarray(_cupy().asnumpy(distances(state, tile)))


def distances(state: GpuState, tile: Tile, edges: Edges | None = None) -> Device:
    """Compute one tile of distances on the device: (rows, columns), single precision."""
    xp, run = _cupy(), cuda.kernels(state.metric)
    with xp.cuda.using_allocator(state.memory.malloc):
        a = state.panels.get(False, tile.rows)
        b = state.panels.get(not state.symmetric, tile.columns)
        out = xp.empty((a.padded, b.padded), dtype=np.float32)
    grid = (b.padded // cuda.TILE, a.padded // cuda.TILE)
    _add_dense(state, run, a, b, grid, tile.diagonal, out)
    _add_listed(state, run, a, b, grid, tile.diagonal, out)
    if tile.diagonal:
        run.mirror((-(-b.padded // 256), a.padded), (256,), (out, np.int64(b.padded), np.int32(a.padded)))
    _finish(state, run, a, b, tile.diagonal, edges or Edges(xp.zeros(0)), out)
    xp.cuda.get_current_stream().synchronize()  # from here on another thread may drop the panels
    return out[: a.rows, : b.rows]


def _add_dense(
    state: GpuState, run: Any, a: Panel, b: Panel, grid: tuple[int, int], triangular: bool, out: Device
) -> None:
    if not len(a.dense):
        out.fill(0)
        return
    kernel, unit = run.dense_terms, np.float32(1 / state.scale)
    for number, (start, length) in enumerate(chunks(len(a.dense))):
        sizes = (np.int32(a.padded // 4), np.int32(b.padded // 4), np.int32(length))
        blocks = (a.dense[start:], b.dense[start:])
        flags = (np.int32(number == 0), np.int32(triangular))
        kernel(
            grid,
            (256,),
            (*blocks, *sizes, a.less[number], b.less[number], unit, *flags, out, np.int64(b.padded)),
        )


def _add_listed(
    state: GpuState, run: Any, a: Panel, b: Panel, grid: tuple[int, int], triangular: bool, out: Device
) -> None:
    if not state.vocabulary.listed:
        return
    fixed = 2.0**cuda.FIXED_POINT_BITS
    scales = (np.float32(fixed / state.scale), np.float32(1 / fixed))
    sizes = (np.int32(state.vocabulary.listed), *scales, np.int32(triangular))
    lists = (a.entries, a.starts, b.entries, b.starts)
    run.listed_terms(
        grid, (256,), (*lists, *sizes, out, np.int64(b.padded)), shared_mem=cuda.listed_shared_bytes()
    )


def _finish(state: GpuState, run: Any, a: Panel, b: Panel, diagonal: bool, edges: Edges, out: Device) -> None:
    count = 1 if edges.own else len(edges.values)
    thresholds = (
        np.float32(TRUST),
        np.float32(GAP_ERROR),
        edges.values,
        np.int32(count),
        np.int32(edges.own),
        np.int32(diagonal),
    )
    result = (out, np.int64(b.padded), np.int32(b.rows))
    run.finish(
        (-(-b.rows // 256), a.rows),
        (256,),
        (*result, a.mass, b.mass, *thresholds, *rows_of(a), *rows_of(b), state.recomputed),
    )


def rows_of(panel: Panel) -> tuple[Any, ...]:
    """Return a panel's original rows as the kernels take them."""
    return (panel.row_starts, panel.words, panel.values, panel.norms, np.int32(panel.first))


def exact_pairs(metric: str, a: Panel, b: Panel, rows: Device, columns: Device) -> Device:
    """Return the distances of listed pairs of two panels in double precision."""
    xp = _cupy()
    found = xp.empty(len(rows), dtype=np.float64)
    if len(rows):
        which = (rows.astype(np.int32), columns.astype(np.int32), np.int64(len(rows)))
        cuda.kernels(metric).exact_pairs(
            (-(-len(rows) // 8),), (256,), (*rows_of(a), *rows_of(b), *which, found)
        )
    return found


def _exact_part(state: GpuState, rows: Ints, columns: Ints) -> Floats:
    """Send only the rows that are needed."""
    xp = _cupy()
    if state.symmetric:  # the same order of a pair as in a tile, hence the same bits
        rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
    (rows, a), (columns, b) = (
        _needed(state, state.x, rows, 0),
        _needed(state, state.y, columns, state.x.shape[0]),
    )
    found = exact_pairs(state.metric, a, b, xp.asarray(rows), xp.asarray(columns))
    return np.asarray(xp.asnumpy(found))


def _needed(state: GpuState, matrix: sparse.csr_matrix, rows: Ints, first: int) -> tuple[Ints, Panel]:
    wanted, place = np.unique(rows, return_inverse=True)
    nothing_shared = PanelVocabulary(state.vocabulary.place, 0, 0)
    chosen = matrix[wanted]
    panel = build_panel(chosen, range(len(wanted)), nothing_shared, state.metric, state.scale, first, _cupy())
    return place, panel


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise MissingExtra("computing on a GPU", "gpu") from error
    return cupy


def _no_device() -> str:
    try:
        import cupy

        return "" if cupy.cuda.runtime.getDeviceCount() else "this machine has no CUDA device"
    except ImportError:
        return "CuPy is not installed (pip install 'incrowd[gpu]')"
    except Exception as error:  # CuPy raises CUDARuntimeError without a driver
        return f"CUDA does not answer ({type(error).__name__})"


# Reductions on the device: a few numbers a row travel, never distances.

EDGES_AT_ONCE = 4096
"""Radii whose counters fit the shared memory of a thread block."""


def answer_ball_sizes(states: tuple[GpuState], reduction: BallSizes, tile: Tile) -> Piece:
    """Count on the device, for rows and, in a mirrored tile, for columns."""
    xp = _cupy()

    edges = xp.asarray(reduction.radii)
    found = distances(states[0], tile, Edges(edges))
    by_row = xp.asnumpy(count_between(states[0].metric, found, edges))
    by_column = by_row
    if tile.mirrored:
        by_column = xp.asnumpy(count_between(states[0].metric, xp.ascontiguousarray(found.T), edges))
    return reduction.piece(tile, by_row, by_column)


def answer_histogram(states: tuple[GpuState], reduction: DistanceHistogram, tile: Tile) -> Piece:
    """Count by row on the device."""
    xp = _cupy()

    edges = xp.asarray(reduction.edges)
    found = distances(states[0], tile, Edges(edges))
    return reduction.piece(tile, xp.asnumpy(count_between(states[0].metric, found, edges)))


def answer_nearest(states: tuple[GpuState], reduction: Nearest, tile: Tile) -> Piece:
    """Find who could be among the k nearest in single precision, then order them in double precision."""
    found = distances(states[0], tile)
    if tile.diagonal and not reduction.include_self:
        found = found.copy()
        _set_diagonal(found, np.inf)
    indices, nearest = _nearest(states[0], tile, found, reduction.k, False)
    piece = {"row_start": starts(tile.rows.start), "row_indices": indices, "row_distances": nearest}
    if tile.mirrored:
        indices, nearest = _nearest(states[0], tile, found, reduction.k, True)
        piece |= {
            "column_start": starts(tile.columns.start),
            "column_indices": indices,
            "column_distances": nearest,
        }
    return piece


def answer_ranks(states: tuple[GpuState], reduction: Ranks, tile: Tile) -> Piece:
    """Count columns nearer than, and as near as, each row's true target."""
    xp = _cupy()

    rows = slice(tile.rows.start, tile.rows.stop)
    own = xp.asarray(reduction.distances[rows])
    found = distances(states[0], tile, Edges(own, own=True))
    for skipped in (reduction.targets[rows], reduction.excluded[rows]):
        inside = np.flatnonzero((skipped >= tile.columns.start) & (skipped < tile.columns.stop))
        found[xp.asarray(inside), xp.asarray(skipped[inside] - tile.columns.start)] = np.inf
    edge = own.astype(np.float32)[:, None]
    counts = xp.stack([(found < edge).sum(axis=1), (found == edge).sum(axis=1)], axis=1)
    return {"row_start": starts(tile.rows.start), "row_counts": xp.asnumpy(counts)}


def answer_within_both(states: tuple[GpuState, GpuState], reduction: WithinBoth, tile: Tile) -> Piece:
    """Count targets within each pair's distance of its source, of its target, of both."""
    xp = _cupy()

    own = xp.asarray(reduction.distances[tile.rows.start : tile.rows.stop])
    edge = own.astype(np.float32)[:, None]
    matching, anonymity = (distances(state, tile, Edges(own, own=True)) <= edge for state in states)
    counts = [part.sum(axis=1) for part in (matching, anonymity, matching & anonymity)]
    return {"row_start": starts(tile.rows.start), "row_counts": xp.asnumpy(xp.stack(counts, axis=1))}


def answer_summary(states: tuple[GpuState], reduction: Summary, tile: Tile) -> Piece:
    """Add up by row and, in a mirrored tile, by column; as integers, as everywhere."""
    xp = _cupy()

    found = distances(states[0], tile)
    units = xp.rint(found.astype(np.float64) * UNIT).astype(np.int64)
    height, width = tile.shape
    drop = int(tile.diagonal and not reduction.include_self)
    piece = {
        "row_start": starts(tile.rows.start),
        "row_sums": xp.asnumpy(units.sum(axis=1)),
        "row_counts": np.full(height, width - drop, np.int64),
    }
    if tile.mirrored:
        piece |= {
            "column_start": starts(tile.columns.start),
            "column_sums": xp.asnumpy(units.sum(axis=0)),
            "column_counts": np.full(width, height, np.int64),
        }
    once = _each_once(found, tile, reduction.include_self)
    least, most = float(xp.nanmin(once)), float(xp.nanmax(once))
    if np.isnan(least):  # a single person, not counting themselves
        least, most = np.inf, -np.inf
    return piece | {"minimum": np.array([least]), "maximum": np.array([most])}


ANSWERS: dict[type, Callable[[Any, Any, Tile], Piece]] = {
    BallSizes: answer_ball_sizes,
    DistanceHistogram: answer_histogram,
    Nearest: answer_nearest,
    Ranks: answer_ranks,
    WithinBoth: answer_within_both,
    Summary: answer_summary,
}


def count_between(metric: str, found: Device, edges: Device) -> Device:
    """Return (rows, edges + 1): how many distances first reach each edge; the last column: none."""
    xp = _cupy()

    (rows, columns), placed = found.shape, xp.zeros(len(found), dtype=np.int32)
    parts = []
    for start in range(0, len(edges), EDGES_AT_ONCE):
        some = edges[start : start + EDGES_AT_ONCE]
        counts = xp.empty((rows, len(some) + 1), dtype=np.int32)
        cuda.kernels(metric).count_between(
            (rows,),
            (256,),
            (found, np.int64(found.strides[0] // 4), np.int32(columns), some, np.int32(len(some)), counts),
            shared_mem=4 * (2 * len(some) + 1),
        )
        counts[:, 0] -= placed
        placed += counts[:, :-1].sum(axis=1, dtype=np.int32)
        parts.append(counts[:, :-1])
    return xp.concatenate([*parts, counts[:, -1:]], axis=1)


def _each_once(found: Device, tile: Tile, include_self: bool) -> Device:
    """In a diagonal tile, blank the lower half, so that every two people count once."""
    xp = _cupy()

    if not tile.diagonal:
        return found
    number = xp.arange(len(found))
    upper = number[None] >= number[:, None] if include_self else number[None] > number[:, None]
    return xp.where(upper, found, np.float32(np.nan))


def _set_diagonal(found: Device, value: float) -> None:
    xp = _cupy()

    number = xp.arange(min(found.shape))
    found[number, number] = value


def _nearest(state: GpuState, tile: Tile, found: Device, k: int, transposed: bool) -> tuple[Ints, Floats]:
    xp = _cupy()

    view = xp.ascontiguousarray(found.T) if transposed else found
    rows, columns = view.shape
    kth = xp.empty(rows, dtype=np.float32)
    cuda.kernels(state.metric).kth_smallest(
        (rows,),
        (256,),
        (view, np.int64(view.strides[0] // 4), np.int32(columns), np.int32(min(k, columns)), kth),
    )
    i, j = xp.nonzero((view <= (kth + np.float32(2 * TOLERANCE))[:, None]) & xp.isfinite(view))
    a = state.panels.get(False, tile.rows)
    b = state.panels.get(not state.symmetric, tile.columns)
    exact = exact_pairs(state.metric, a, b, *((j, i) if transposed else (i, j)))
    first = tile.rows.start if transposed else tile.columns.start
    return smallest(xp.asnumpy(i), xp.asnumpy(j), xp.asnumpy(exact), rows, k, first)


def smallest(i: Ints, j: Ints, values: Floats, rows: int, k: int, first: int) -> tuple[Ints, Floats]:
    """Keep the k smallest of each row's candidates by (distance, column), padded with (-1, inf)."""
    order = np.lexsort((j, values, i))
    place: Array = np.arange(len(i)) - np.searchsorted(i[order], i[order], side="left")
    order, place = order[place < k], place[place < k]
    indices, nearest = np.full((rows, k), -1, np.int64), np.full((rows, k), np.inf)
    indices[i[order], place], nearest[i[order], place] = j[order] + first, values[order]
    return indices, nearest
