"""Answers to the known questions, reduced on the device: a few numbers a row travel, never distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from incrowd.distances import gpu_kernels as cuda
from incrowd.distances.balls import BallSizes, Histogram
from incrowd.distances.gpu import TOLERANCE, Edges, GpuState, distances, exact_pairs
from incrowd.distances.gpu_panels import Device
from incrowd.distances.neighbours import Nearest, Ranks, WithinBoth
from incrowd.distances.question import Array, Floats, Ints, Piece, starts
from incrowd.distances.summary import Summary
from incrowd.distances.tiles import Tile

EDGES_AT_ONCE = 4096
"""Radii whose counters fit the shared memory of a thread block."""
_UNIT = 2.0**40


def answer_ball_sizes(states: tuple[GpuState], question: BallSizes, tile: Tile) -> Piece:
    """Count on the device, for rows and, in a mirrored tile, for columns."""
    import cupy as xp

    edges = xp.asarray(question.radii)
    found = distances(states[0], tile, Edges(edges))
    by_row = xp.asnumpy(count_between(states[0].metric, found, edges))
    by_column = by_row
    if tile.mirrored:
        by_column = xp.asnumpy(count_between(states[0].metric, xp.ascontiguousarray(found.T), edges))
    return question.piece(tile, by_row, by_column)


def answer_histogram(states: tuple[GpuState], question: Histogram, tile: Tile) -> Piece:
    """Count by row on the device."""
    import cupy as xp

    edges = xp.asarray(question.edges)
    found = distances(states[0], tile, Edges(edges))
    return question.piece(tile, xp.asnumpy(count_between(states[0].metric, found, edges)))


def answer_nearest(states: tuple[GpuState], question: Nearest, tile: Tile) -> Piece:
    """Find who could be among the k nearest in single precision, then order them in double precision."""
    found = distances(states[0], tile)
    if tile.diagonal and not question.include_self:
        found = found.copy()
        _set_diagonal(found, np.inf)
    indices, nearest = _nearest(states[0], tile, found, question.k, False)
    piece = {"row_start": starts(tile.rows.start), "row_indices": indices, "row_distances": nearest}
    if tile.mirrored:
        indices, nearest = _nearest(states[0], tile, found, question.k, True)
        piece |= {
            "column_start": starts(tile.columns.start),
            "column_indices": indices,
            "column_distances": nearest,
        }
    return piece


def answer_ranks(states: tuple[GpuState], question: Ranks, tile: Tile) -> Piece:
    """Count columns nearer than, and as near as, each row's true target."""
    import cupy as xp

    rows = slice(tile.rows.start, tile.rows.stop)
    own = xp.asarray(question.distances[rows])
    found = distances(states[0], tile, Edges(own, own=True))
    for skipped in (question.targets[rows], question.excluded[rows]):
        inside = np.flatnonzero((skipped >= tile.columns.start) & (skipped < tile.columns.stop))
        found[xp.asarray(inside), xp.asarray(skipped[inside] - tile.columns.start)] = np.inf
    edge = own.astype(np.float32)[:, None]
    counts = xp.stack([(found < edge).sum(axis=1), (found == edge).sum(axis=1)], axis=1)
    return {"row_start": starts(tile.rows.start), "row_counts": xp.asnumpy(counts)}


def answer_within_both(states: tuple[GpuState, GpuState], question: WithinBoth, tile: Tile) -> Piece:
    """Count targets within each pair's distance of its source, of its target, of both."""
    import cupy as xp

    own = xp.asarray(question.distances[tile.rows.start : tile.rows.stop])
    edge = own.astype(np.float32)[:, None]
    matching, anonymity = (distances(state, tile, Edges(own, own=True)) <= edge for state in states)
    counts = [part.sum(axis=1) for part in (matching, anonymity, matching & anonymity)]
    return {"row_start": starts(tile.rows.start), "row_counts": xp.asnumpy(xp.stack(counts, axis=1))}


def answer_summary(states: tuple[GpuState], question: Summary, tile: Tile) -> Piece:
    """Add up by row and, in a mirrored tile, by column; as integers, as everywhere."""
    import cupy as xp

    found = distances(states[0], tile)
    units = xp.rint(found.astype(np.float64) * _UNIT).astype(np.int64)
    height, width = tile.shape
    drop = int(tile.diagonal and not question.include_self)
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
    once = _each_once(found, tile, question.include_self)
    least, most = float(xp.nanmin(once)), float(xp.nanmax(once))
    if np.isnan(least):  # a single person, not counting themselves
        least, most = np.inf, -np.inf
    return piece | {"minimum": np.array([least]), "maximum": np.array([most])}


ANSWERS: dict[type, Callable[[Any, Any, Tile], Piece]] = {
    BallSizes: answer_ball_sizes,
    Histogram: answer_histogram,
    Nearest: answer_nearest,
    Ranks: answer_ranks,
    WithinBoth: answer_within_both,
    Summary: answer_summary,
}


def count_between(metric: str, found: Device, edges: Device) -> Device:
    """Return (rows, edges + 1): how many distances first reach each edge; the last column: none."""
    import cupy as xp

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
    import cupy as xp

    if not tile.diagonal:
        return found
    number = xp.arange(len(found))
    upper = number[None] >= number[:, None] if include_self else number[None] > number[:, None]
    return xp.where(upper, found, np.float32(np.nan))


def _set_diagonal(found: Device, value: float) -> None:
    import cupy as xp

    number = xp.arange(min(found.shape))
    found[number, number] = value


def _nearest(state: GpuState, tile: Tile, found: Device, k: int, transposed: bool) -> tuple[Ints, Floats]:
    import cupy as xp

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
