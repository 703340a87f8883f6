"""All pairs on ordinary cores, thousands of times faster than one pair at a time.

Only shared words matter. With base-2 logarithms the Jensen-Shannon divergence is

    JSD(p, q) = ½ (Σp + Σq) − ½ Σ over shared words of f(p, q),
    f(p, q)   = (p+q) log₂(p+q) − p log₂ p − q log₂ q,

so a word that only one of two people uses costs nothing. Hellinger (Σ √p√q), total variation (Σ min(p, q))
and the angle (Σ pq) have the same form with another f; one set of loops (`cpu_loops.py`)
serves all four.

1. *Frequent words* (used by more than a fifth of people) are laid out word by word for 64 people at a time.
   One word of one person meets all 64 in eight vector instructions, logarithm included (a polynomial, in
   float32, summed in float64 every 32 words). The person with fewer frequent words of the two plays the row,
   so each pair costs the smaller of the two word counts.
2. *Rare words* meet list by list: the rows that use a word against the columns that use it.
3. f is homogeneous, f(cp, cq) = c f(p, q): each block of words is scaled so that its typical value is 1 and
   its logarithms are near 0, where float32 is most exact.
4. Small distances, where a square root or an arc cosine would magnify the rounding, are computed again
   in double precision. What remains is an error below `tolerance`.

How people stand and in which order words are added depends on the profiles alone, so tiles and threads do
not change a bit.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from incrowd.arrays import Floats, Ints
from incrowd.distances.cpu_loops import (
    BLOCK,
    LANES,
    LOG_UNIT,
    RULES,
    MetricLoop,
    Strip,
    Term,
    add_frequent,
    add_rare,
    count_within,
    count_words,
    exact_pairs,
    fill_strip,
    first_guesses,
    near_radius,
    to_distances,
)
from incrowd.distances.reductions import Array, BallSizes, DistanceHistogram, Piece, Reduction, rounded
from incrowd.distances.reference import Metric, word_users
from incrowd.distances.tiles import Tile

FREQUENT = 0.2
"""Share of people who use a word for it to be laid out densely: where both ways cost the same."""
RARE_TERMS = 32.0
"""Shared words an average pair has in one block of rare words."""
SUBSTRIP = 2048
"""Columns whose posting lists are held at once."""
_SAMPLE = 1000


@dataclass(frozen=True)
class BlockVocabulary:
    """Words sorted into blocks, most used first."""

    block_of: Array
    slot_of: Array
    words: Ints
    """Words in each block."""
    frequent: int
    """How many of the blocks, from the first, hold frequent words."""
    scales: Floats


@dataclass(frozen=True)
class Side:
    """One side of the comparison: CSR arrays with a factor for every row, and what each row sums to."""

    arrays: tuple[Array, Array, Array, Floats]
    mass: Floats


class Strips:
    """The strips made last: neighbouring tiles, and threads side by side, share theirs."""

    def __init__(self, keep: int = 4) -> None:
        self._keep, self._lock = keep, threading.Lock()
        self._made: OrderedDict[tuple[int, range], Strip] = OrderedDict()

    def get(self, key: tuple[int, range], make: Callable[[], Strip]) -> Strip:
        """Return the strip of that name, made if it is not at hand."""
        with self._lock:
            strip = self._made.pop(key, None)
        strip = make() if strip is None else strip
        with self._lock:
            self._made[key] = strip
            while len(self._made) > self._keep:
                self._made.popitem(last=False)
        return strip


@dataclass(frozen=True)
class State:
    """What all tiles of a comparison share."""

    rule: MetricLoop
    vocabulary: BlockVocabulary
    x: Side
    y: Side
    strips: Strips

    @property
    def factor(self) -> float:
        """What a sum over shared words is multiplied with."""
        return 0.5 / LOG_UNIT if self.rule.term == Term.ENTROPY else 1.0


class CpuKernel:
    """Compiled loops over sparse rows; see the module."""

    name = "cpu"
    tolerance = 1e-6
    threads: int | None = None

    def refuses(self, metric: Metric) -> str:
        """Say why not: it knows four metrics. (Without Numba this module does not load, and `kernels` says so.)"""
        if metric.name not in RULES:
            return f"it does not know the metric {metric.name!r}"
        return ""

    def bytes_for(self, x: sparse.csr_matrix, y: sparse.csr_matrix) -> tuple[int, int]:
        """Two copies of the distances; a strip and its posting lists for every person."""
        words = (x.nnz + y.nnz) / max(x.shape[0] + y.shape[0], 1)
        return 24, int(40 * words) + 64

    def prepare(self, x: sparse.csr_matrix, y: sparse.csr_matrix | None, metric: Metric) -> State:
        """Sort the words into blocks."""
        rule = RULES[metric.name]
        sides = [x] if y is None else [x, y]
        of_x = _side(x, rule)
        return State(
            rule=rule,
            vocabulary=_vocabulary(sides, rule),
            x=of_x,
            y=of_x if y is None else _side(y, rule),
            strips=Strips(),
        )

    def tile(self, state: State, tile: Tile) -> Array:
        """Return the distances of one tile."""
        standing = _standing(state, tile)
        distances = np.empty(tile.shape)
        distances[np.ix_(standing.rows.order, standing.columns.order)] = standing.distances
        return distances

    def exact(self, state: State, rows: Ints, columns: Ints) -> Floats:
        """Compute listed pairs in double precision."""
        distances: Floats = exact_pairs(
            state.x.arrays, state.y.arrays, rows, columns, int(state.rule.formula)
        )
        return distances

    def fused(self, states: tuple[Any, ...], reduction: Reduction, tile: Tile) -> Piece | None:
        """Count ball sizes and histograms without putting the distances back in order."""
        if isinstance(reduction, BallSizes):
            by_row, by_column = _counts(states[0], reduction.radii, tile)
            return reduction.piece(tile, by_row, by_column)
        if isinstance(reduction, DistanceHistogram):
            return reduction.piece(tile, _counts(states[0], reduction.edges, tile)[0])
        return None


@dataclass(frozen=True)
class StripDistances:
    """The distances of a tile between people as they stand in their strips."""

    state: State
    tile: Tile
    rows: Strip
    columns: Strip
    distances: Floats

    def settle(self, radii: Floats, guesses: Ints, below: float) -> None:
        """Compute the pairs near a radius, or nearer than `below`, in double precision."""
        triangle = self.tile.diagonal
        a, b = near_radius(self.distances, radii, guesses, CpuKernel.tolerance, below, triangle)
        rows, columns = (
            self.rows.order[a] + self.tile.rows.start,
            self.columns.order[b] + self.tile.columns.start,
        )
        x, y = self.state.x.arrays, self.state.y.arrays
        exact = rounded(exact_pairs(x, y, rows, columns, int(self.state.rule.formula)))
        self.distances[a, b] = exact
        if triangle:
            self.distances[b, a] = exact


def _counts(state: State, radii: Floats, tile: Tile) -> tuple[Array, Array]:
    """Count a tile's pairs by radius, decided in double precision, people in their own order."""
    standing, guesses = _standing(state, tile), first_guesses(radii)
    standing.settle(radii, guesses, below=0.0)
    by_row, by_column = count_within(standing.distances, radii, guesses, tile.diagonal)
    back_row, back_column = np.argsort(standing.rows.order), np.argsort(standing.columns.order)
    return by_row[back_row], by_column[back_column]


def _standing(state: State, tile: Tile) -> StripDistances:
    """Compute a tile: sums over shared words, distances from them, the small ones again."""
    rows = _strip(state, state.x, tile.rows)
    columns = rows if tile.diagonal else _strip(state, state.y, tile.columns)
    shared = np.zeros(tile.shape)
    _add_frequent(state, rows, columns, shared, tile.diagonal)
    _add_rare(state, rows, columns, shared, tile.diagonal)
    row_mass = state.x.mass[tile.rows.start + rows.order]
    column_mass = state.y.mass[tile.columns.start + columns.order]
    to_distances(shared, row_mass, column_mass, state.factor, int(state.rule.shape), tile.diagonal)
    standing = StripDistances(state, tile, rows, columns, shared)
    standing.settle(np.empty(0), np.empty(0, np.int64), below=state.rule.small)
    return standing


def _strip(state: State, side: Side, span: range) -> Strip:
    """Split a range of people's words into blocks, or take the strip made before."""
    return state.strips.get((id(side), span), lambda: _make_strip(state, side, span))


def _make_strip(state: State, side: Side, span: range) -> Strip:
    v, rule = state.vocabulary, state.rule
    counts = count_words(side.arrays, span.start, len(span), v.block_of, len(v.words))
    sizes = counts[: v.frequent].sum(axis=0)
    order = np.argsort(sizes, kind="stable")
    ends = np.cumsum(counts[:, order]).reshape(counts.shape)
    starts = np.column_stack([np.append(0, ends[:-1, -1]), ends])
    words = (v.block_of, v.slot_of, v.scales)
    filled = fill_strip(side.arrays, span.start, order, starts, *words, rule.root, int(rule.term))
    return Strip(order, sizes[order], starts, *filled)


def _add_frequent(state: State, rows: Strip, columns: Strip, out: Floats, triangle: bool) -> None:
    """Let the person with fewer frequent words play the row; if both have as many, the one in the rows."""
    width = len(columns.order)
    if triangle:
        _lead(state, rows, columns, np.arange(1, width + 1), out, (width, 1))
        return
    begin = np.searchsorted(columns.sizes, rows.sizes, side="left")
    _lead(state, rows, columns, begin, out, (width, 1))
    begin = np.searchsorted(rows.sizes, columns.sizes, side="right")
    _lead(state, columns, rows, begin, out, (1, width))


def _lead(
    state: State, leading: Strip, following: Strip, begin: Ints, out: Floats, steps: tuple[int, int]
) -> None:
    v, followers = state.vocabulary, len(following.order)
    ends = np.minimum(np.arange(LANES, followers + LANES, LANES), followers)
    reached = np.searchsorted(begin, ends, side="left")
    flat = out.reshape(-1)
    add_frequent(int(state.rule.term), leading, following, begin, reached, v.frequent, v.scales, flat, *steps)


def _add_rare(state: State, rows: Strip, columns: Strip, out: Floats, triangle: bool) -> None:
    v, width = state.vocabulary, len(columns.order)
    for block in range(v.frequent, len(v.words)):
        for left in range(0, width, SUBSTRIP):
            right = min(left + SUBSTRIP, width)
            add_rare(
                int(state.rule.term), rows, columns, block, left, right, v.words[block], triangle,
                v.scales[block], out,
            )  # fmt: skip


def _side(rows: sparse.csr_matrix, rule: MetricLoop) -> Side:
    mass = np.asarray(rows.sum(axis=1)).ravel()
    factors = np.ones(rows.shape[0])
    if rule.unit_length:
        length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        factors = np.divide(1.0, length, out=factors, where=length > 0)
    indices = rows.indices.astype(np.int32, copy=False)
    return Side((rows.indptr.astype(np.int64), indices, rows.data, factors), mass)


def _vocabulary(sides: list[sparse.csr_matrix], rule: MetricLoop) -> BlockVocabulary:
    """Rank words by how many people use them and cut the ranking into blocks."""
    words = sides[0].shape[1]
    people = sum(side.shape[0] for side in sides)
    users = np.sum([word_users(side) for side in sides], axis=0)
    ranking = np.argsort(-users, kind="stable")
    share = users[ranking] / max(people, 1)
    dense = int((share >= FREQUENT).sum())
    frequent_edges = np.arange(0, dense, BLOCK)
    edges = np.concatenate([frequent_edges, dense + _rare_edges(share[dense:]), [words]])
    rank = np.empty(words, np.int64)
    rank[ranking] = np.arange(words)
    block_of = np.searchsorted(edges, rank, side="right") - 1
    block_of = np.minimum(block_of, len(edges) - 2)
    scales = np.ones(len(edges) - 1)
    if rule.term == Term.ENTROPY:
        scales = _scales(sides, block_of, len(scales))
    return BlockVocabulary(
        block_of=block_of.astype(np.uint16),
        slot_of=(rank - edges[block_of]).astype(np.uint32),
        words=np.diff(edges),
        frequent=len(frequent_edges),
        scales=scales,
    )


def _rare_edges(share: Floats) -> Ints:
    """Cut the rare words so that an average pair shares about RARE_TERMS words of each block."""
    shared = np.cumsum(share**2)
    if not len(shared):
        return np.empty(0, np.int64)
    blocks = max(1, int(np.ceil(shared[-1] / RARE_TERMS)))
    return np.unique(np.searchsorted(shared, shared[-1] * np.arange(blocks) / blocks, side="right"))


def _scales(sides: list[sparse.csr_matrix], block_of: Ints, blocks: int) -> Floats:
    """Return, for every block, the power of two that brings its typical value to 1."""
    weight, logs = np.zeros(blocks), np.zeros(blocks)
    for side in sides:
        some = side[:: max(1, side.shape[0] // _SAMPLE)]
        block = block_of[some.indices]
        weight += np.bincount(block, weights=some.data, minlength=blocks)
        logs += np.bincount(block, weights=some.data * np.log2(some.data), minlength=blocks)
    typical = np.divide(logs, weight, out=np.zeros(blocks), where=weight > 0)
    return np.asarray(2.0 ** -np.rint(typical))
