"""What can be asked of all pairs without ever holding them: the reductions.

A reduction is a small, picklable value. It sees one tile of distances at a time, reduces it to a *piece*
(a few arrays), and adds pieces up in any order:

    total = reduction.empty()
    for tile in plan:                                    # anywhere, in any order, on any machine
        reduction.absorb(total, reduction.look(tile, D))   # absorb commutes: order never matters
    answer = reduction.finish(total)

Kernels are fast and slightly inexact (`Kernel.tolerance`). `doubtful` names the pairs a kernel's error
could put on the wrong side of a threshold; they are computed again in double precision before `look`, so
that every kernel counts the same people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats, Ints
from incrowd.distances.tiles import Tile

Array = npt.NDArray[Any]
Piece = dict[str, Array]
"""Plain arrays only, so that a piece can be pickled, written to a file and read back."""
Pairs = tuple[Ints, Ints]
"""Local row and column numbers inside a tile."""


class Reduction(Protocol):
    """A reduction over all pairs."""

    @property
    def bytes_per_row(self) -> int:
        """Size of a piece for each row or column of a tile, for the memory plan."""
        ...

    def doubtful(self, tile: Tile, side: int, distances: Array, tolerance: float) -> Pairs:
        """Pairs of the tile whose part in the answer an error of `tolerance` could change."""
        ...

    def look(self, tile: Tile, *distances: Array) -> Piece:
        """Reduce one tile. Most get one block of distances, `WithinBoth` gets two."""
        ...

    def empty(self) -> Piece:
        """Return the total before any tile was seen."""
        ...

    def absorb(self, total: Piece, piece: Piece) -> None:
        """Add a piece to a total, in place. The order of pieces does not matter, bit for bit."""
        ...

    def finish(self, total: Piece) -> Any:
        """Turn the total into the answer."""
        ...


DECIMALS = 12
"""Distances and thresholds are compared after rounding to so many decimals. Digits behind them only tell in
which order words were added up, and would break ties that are none."""

NO_PAIRS: Pairs = (np.empty(0, np.int64), np.empty(0, np.int64))


def start_of(piece: Piece, name: str) -> int:
    """Return where a strip of rows begins."""
    return int(piece[name][0])


def starts(*numbers: int) -> Ints:
    """Pack where strips begin."""
    return np.array(numbers, dtype=np.int64)


def rounded(distances: Array) -> Floats:
    """Return distances as they are compared."""
    return np.asarray(np.round(distances, DECIMALS), dtype=np.float64)


def around(values: Floats, distances: Array, tolerance: float) -> Pairs:
    """Pairs within `tolerance` of any of the sorted `values`."""
    below = np.searchsorted(values, distances - tolerance, side="left")
    above = np.searchsorted(values, distances + tolerance, side="right")
    return _pairs(below != above)


def near_row_value(values: Floats, distances: Array, tolerance: float) -> Pairs:
    """Pairs within `tolerance` of their own row's value."""
    return _pairs(np.abs(distances - values[:, None]) <= tolerance)


def _pairs(mask: npt.NDArray[np.bool_]) -> Pairs:
    i, j = np.nonzero(mask)
    return i, j


# How many people lie within r: ball sizes for many radii at once, and histograms of distances.


@dataclass(frozen=True)
class BallSizes:
    """For every row and radius r: how many columns are at distance <= r."""

    rows: int
    radii: Floats
    """Sorted, without repeats."""
    include_self: bool

    @property
    def bytes_per_row(self) -> int:
        """One counter a radius, and one for those beyond the last."""
        return 4 * (len(self.radii) + 1)

    def doubtful(self, tile: Tile, side: int, distances: Array, tolerance: float) -> Pairs:
        """Pairs close to a radius."""
        return around(self.radii, distances, tolerance)

    def look(self, tile: Tile, *distances: Array) -> Piece:
        """Count, for every row (and column, if mirrored), the smallest radius that reaches each pair."""
        bins = np.searchsorted(self.radii, distances[0], side="left")
        return self.piece(tile, _count_rows(bins, len(self.radii)), _count_rows(bins.T, len(self.radii)))

    def piece(self, tile: Tile, by_row: Array, by_column: Array) -> Piece:
        """Pack the counts of one tile: (rows, radii + 1) and (columns, radii + 1), self pairs included."""
        if tile.diagonal and not self.include_self:
            by_row = by_row.copy()
            by_row[:, np.searchsorted(self.radii, 0.0, side="left")] -= 1
        piece = {"row_start": starts(tile.rows.start), "row_counts": by_row}
        if tile.mirrored:
            piece |= {"column_start": starts(tile.columns.start), "column_counts": by_column}
        return piece

    def empty(self) -> Piece:
        """Nobody counted yet."""
        return {"counts": np.zeros((self.rows, len(self.radii) + 1), np.int32)}

    def absorb(self, total: Piece, piece: Piece) -> None:
        """Add the counts of one tile."""
        for side in ("row", "column"):
            if f"{side}_start" in piece:
                counts, start = piece[f"{side}_counts"], start_of(piece, f"{side}_start")
                total["counts"][start : start + len(counts)] += counts

    def finish(self, total: Piece) -> Ints:
        """Return (rows, radii): the size of each ball."""
        return np.cumsum(total["counts"][:, :-1], axis=1, dtype=np.int64)


@dataclass(frozen=True)
class DistanceHistogram:
    """How many pairs have a distance in each bin; in a symmetric plan every two people count once."""

    edges: Floats
    """Sorted, without repeats. Bin i holds edges[i] < d <= edges[i+1]."""
    include_self: bool

    @property
    def bytes_per_row(self) -> int:
        """Counted by row first."""
        return 4 * (len(self.edges) + 1)

    def doubtful(self, tile: Tile, side: int, distances: Array, tolerance: float) -> Pairs:
        """Pairs close to an edge."""
        return around(self.edges, distances, tolerance)

    def look(self, tile: Tile, *distances: Array) -> Piece:
        """Count the pairs of the tile in each bin."""
        bins = np.searchsorted(self.edges, distances[0], side="left")
        return self.piece(tile, _count_rows(bins, len(self.edges)))

    def piece(self, tile: Tile, by_row: Array) -> Piece:
        """Pack the counts of one tile: (rows, edges + 1), self pairs included."""
        counts = by_row.sum(axis=0, dtype=np.int64)
        if tile.diagonal:
            selves = np.zeros_like(counts)
            selves[np.searchsorted(self.edges, 0.0, side="left")] = len(by_row)
            counts = (counts - selves) // 2 + selves * self.include_self
        return {"counts": counts}

    def empty(self) -> Piece:
        """No pair counted yet."""
        return {"counts": np.zeros(len(self.edges) + 1, np.int64)}

    def absorb(self, total: Piece, piece: Piece) -> None:
        """Add the counts of one tile."""
        total["counts"] += piece["counts"]

    def finish(self, total: Piece) -> Ints:
        """Return one count per bin; pairs outside the edges are left out."""
        return np.asarray(total["counts"][1:-1], dtype=np.int64)


def _count_rows(bins: npt.NDArray[np.intp], radii: int) -> npt.NDArray[np.int32]:
    offsets = np.arange(len(bins))[:, None] * (radii + 1)
    counts = np.bincount((bins + offsets).ravel(), minlength=len(bins) * (radii + 1))
    return counts.reshape(len(bins), radii + 1).astype(np.int32)


# Who is nearest, and how far down the list the true match stands.


@dataclass(frozen=True)
class NearestNeighbours:
    """The k nearest columns of each row, nearest first; ties go to the lower column number."""

    indices: Ints
    distances: Floats


@dataclass(frozen=True)
class Nearest:
    """For every row: its k nearest columns, in double precision, ties by column number."""

    rows: int
    k: int
    include_self: bool

    @property
    def bytes_per_row(self) -> int:
        """A column number and a distance for each neighbour."""
        return 16 * self.k

    def doubtful(self, tile: Tile, side: int, distances: Array, tolerance: float) -> Pairs:
        """Every pair that could be among the k nearest: their order must be exact."""
        i, j = _reach(self._others(tile, distances), self.k, 2 * tolerance)
        if not tile.mirrored:
            return i, j
        back_j, back_i = _reach(distances.T, self.k, 2 * tolerance)
        return np.concatenate([i, back_i]), np.concatenate([j, back_j])

    def look(self, tile: Tile, *distances: Array) -> Piece:
        """Pick the tile's k nearest for its rows (and columns, if mirrored)."""
        values = self._others(tile, distances[0])
        indices, nearest = _smallest(values, self.k, tile.columns.start)
        piece = {"row_start": starts(tile.rows.start), "row_indices": indices, "row_distances": nearest}
        if tile.mirrored:
            indices, nearest = _smallest(values.T, self.k, tile.rows.start)
            piece |= {
                "column_start": starts(tile.columns.start),
                "column_indices": indices,
                "column_distances": nearest,
            }
        return piece

    def _others(self, tile: Tile, distances: Array) -> Array:
        if self.include_self or not tile.diagonal:
            return distances
        others = distances.copy()
        np.fill_diagonal(others, np.inf)
        return others

    def empty(self) -> Piece:
        """Nobody seen yet."""
        shape = (self.rows, self.k)
        return {"indices": np.full(shape, -1, np.int64), "distances": np.full(shape, np.inf)}

    def absorb(self, total: Piece, piece: Piece) -> None:
        """Merge two sorted short lists for every row concerned."""
        for side in ("row", "column"):
            if f"{side}_start" in piece:
                start = start_of(piece, f"{side}_start")
                self._merge(total, start, piece[f"{side}_indices"], piece[f"{side}_distances"])

    def _merge(self, total: Piece, start: int, indices: Ints, distances: Floats) -> None:
        here = slice(start, start + len(indices))
        indices = np.concatenate([total["indices"][here], indices], axis=1)
        distances = np.concatenate([total["distances"][here], distances], axis=1)
        order = np.lexsort((indices, distances), axis=1)[:, : self.k]
        total["indices"][here] = np.take_along_axis(indices, order, axis=1)
        total["distances"][here] = np.take_along_axis(distances, order, axis=1)

    def finish(self, total: Piece) -> NearestNeighbours:
        """Return the k nearest of every row."""
        return NearestNeighbours(total["indices"], total["distances"])


@dataclass(frozen=True)
class Ranks:
    """For every pair (source, true target): how many targets are nearer to the source, how many tie."""

    distances: Floats
    """Distance of each true pair; row i of every tile belongs to pair i."""
    targets: Ints
    excluded: Ints
    """A column that does not count (the source itself), or -1."""

    bytes_per_row = 16

    def doubtful(self, tile: Tile, side: int, distances: Array, tolerance: float) -> Pairs:
        """Targets about as near as the true one."""
        return near_row_value(self.distances[_slice(tile.rows)], distances, tolerance)

    def look(self, tile: Tile, *distances: Array) -> Piece:
        """Count nearer and equally near columns; the target and the excluded column do not count."""
        rows, columns = _slice(tile.rows), tile.columns
        d = self.distances[rows, None]
        values = distances[0].copy()
        for skipped in (self.targets[rows], self.excluded[rows]):
            inside = (skipped >= columns.start) & (skipped < columns.stop)
            values[inside, skipped[inside] - columns.start] = np.inf
        counts = np.stack([(values < d).sum(axis=1), (values == d).sum(axis=1)], axis=1)
        return {"row_start": starts(tile.rows.start), "row_counts": counts}

    def empty(self) -> Piece:
        """Nobody counted yet."""
        return {"counts": np.zeros((len(self.distances), 2), np.int64)}

    def absorb(self, total: Piece, piece: Piece) -> None:
        """Add the counts of one tile."""
        start, counts = start_of(piece, "row_start"), piece["row_counts"]
        total["counts"][start : start + len(counts)] += counts

    def finish(self, total: Piece) -> TrueRanks:
        """Return the ranks of the true targets."""
        return TrueRanks(
            distances=self.distances, nearer=total["counts"][:, 0].copy(), ties=total["counts"][:, 1].copy()
        )


@dataclass(frozen=True, kw_only=True)
class TrueRanks:
    """Where each true target stands in its source's list, 1 = nearest."""

    distances: Floats
    nearer: Ints
    """Targets strictly nearer than the true one."""
    ties: Ints
    """Other targets at exactly the same distance."""

    @property
    def best(self) -> Ints:
        """Rank if the adversary breaks every tie rightly."""
        return self.nearer + 1

    @property
    def worst(self) -> Ints:
        """Rank if the adversary breaks every tie wrongly."""
        return self.nearer + self.ties + 1

    @property
    def expected(self) -> Floats:
        """Rank on average if ties are broken by chance."""
        return self.nearer + self.ties / 2 + 1

    def precision_at(self, k: int) -> float:
        """Chance that the true target is among the k nearest, ties broken by chance; NaN without pairs."""
        if not len(self.nearer):
            return float("nan")
        return float(np.clip((k - self.nearer) / (self.ties + 1), 0, 1).mean())


@dataclass(frozen=True, kw_only=True)
class LocalMatching:
    """Per pair (I_S, I_T) at distance d: sizes of M(d), A(d) and their intersection.

    M(d) are the targets within d of the source, A(d) the targets within d of the true target (which
    counts itself), both the local matching set.
    """

    distances: Floats
    matching: Ints
    anonymity: Ints
    both: Ints


@dataclass(frozen=True)
class WithinBoth:
    """For every pair (I_S, I_T) at distance d: targets within d of the source, of the target, of both."""

    distances: Floats

    bytes_per_row = 24

    def doubtful(self, tile: Tile, side: int, distances: Array, tolerance: float) -> Pairs:
        """Targets at about the distance of the pair."""
        return near_row_value(self.distances[_slice(tile.rows)], distances, tolerance)

    def look(self, tile: Tile, *distances: Array) -> Piece:
        """Count on the distances from the sources and, beside them, from the true targets."""
        d = self.distances[_slice(tile.rows), None]
        matching, anonymity = distances[0] <= d, distances[1] <= d
        counts = [part.sum(axis=1) for part in (matching, anonymity, matching & anonymity)]
        return {"row_start": starts(tile.rows.start), "row_counts": np.stack(counts, axis=1)}

    def empty(self) -> Piece:
        """Nobody counted yet."""
        return {"counts": np.zeros((len(self.distances), 3), np.int64)}

    def absorb(self, total: Piece, piece: Piece) -> None:
        """Add the counts of one tile."""
        start, counts = start_of(piece, "row_start"), piece["row_counts"]
        total["counts"][start : start + len(counts)] += counts

    def finish(self, total: Piece) -> LocalMatching:
        """Return the three set sizes of every pair."""
        matching, anonymity, both = total["counts"].T.copy()
        return LocalMatching(distances=self.distances, matching=matching, anonymity=anonymity, both=both)


def _slice(span: range) -> slice:
    return slice(span.start, span.stop)


def _reach(distances: Array, k: int, margin: float) -> Pairs:
    height, width = distances.shape
    if not height or not width:
        return NO_PAIRS
    k = min(k, width)
    farthest = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    i, j = np.nonzero((distances <= farthest + margin) & np.isfinite(distances))
    return i, j


def _smallest(distances: Array, k: int, first_column: int) -> tuple[Ints, Floats]:
    """The k smallest of each row by (distance, column), padded with (-1, inf)."""
    i, j = _reach(distances, k, 0.0)
    order = np.lexsort((j, distances[i, j], i))
    i, j = i[order], j[order]
    place = np.arange(len(i)) - np.searchsorted(i, i, side="left")
    i, j, place = i[place < k], j[place < k], place[place < k]
    indices, nearest = np.full((len(distances), k), -1, np.int64), np.full((len(distances), k), np.inf)
    indices[i, place], nearest[i, place] = j + first_column, distances[i, j]
    return indices, nearest


# Means, extremes, and the matrix itself for those who can afford it.

# Distances are summed as integers (units of 2**-40): integer sums do not depend on the order of tiles. The sum
# of one tile's row fits 64 bits; the sum over a crowd does not (2,897 strangers are enough), so totals are kept
# as two numbers, multiples of 2**32 units and the rest, and meet only in Python's unbounded integers.
UNIT = 2.0**40
_LOW_BITS = 32
_LOW = 2**_LOW_BITS - 1


@dataclass(frozen=True, kw_only=True)
class DistanceSummary:
    """Minimum, mean and maximum distance over pairs, and each row's own mean."""

    pairs: int
    """Ordered (row, column) pairs; X against itself meets every two people twice, which leaves the mean."""
    mean: float
    """NaN without pairs."""
    minimum: float
    maximum: float
    row_sums: Floats
    row_counts: Ints


@dataclass(frozen=True)
class Summary:
    """Minimum, mean and maximum over all pairs; sums for every row."""

    rows: int
    include_self: bool

    bytes_per_row = 16

    def doubtful(self, tile: Tile, side: int, distances: Array, tolerance: float) -> Pairs:
        """A mean has no threshold, so no pair is doubtful."""
        return NO_PAIRS

    def look(self, tile: Tile, *distances: Array) -> Piece:
        """Add up the tile by row (and by column, if mirrored)."""
        values, units = distances[0], np.rint(distances[0] * UNIT).astype(np.int64)
        drop = int(tile.diagonal and not self.include_self)
        piece = {
            "row_start": starts(tile.rows.start),
            "row_sums": units.sum(axis=1),
            "row_counts": np.full(len(values), values.shape[1] - drop, np.int64),
        }
        if tile.mirrored:
            piece |= {
                "column_start": starts(tile.columns.start),
                "column_sums": units.sum(axis=0),
                "column_counts": np.full(values.shape[1], len(values), np.int64),
            }
        return piece | self._extremes(tile, values)

    def _extremes(self, tile: Tile, values: Array) -> Piece:
        if tile.diagonal:
            values = values[np.triu_indices(len(values), k=0 if self.include_self else 1)]
        return {
            "minimum": np.array([values.min(initial=np.inf)]),
            "maximum": np.array([values.max(initial=-np.inf)]),
        }

    def empty(self) -> Piece:
        """Nothing added yet."""
        return {
            "high": np.zeros(self.rows, np.int64),
            "low": np.zeros(self.rows, np.int64),
            "counts": np.zeros(self.rows, np.int64),
            "minimum": np.array([np.inf]),
            "maximum": np.array([-np.inf]),
        }

    def absorb(self, total: Piece, piece: Piece) -> None:
        """Add the sums of one tile."""
        for side in ("row", "column"):
            if f"{side}_start" in piece:
                start, sums = start_of(piece, f"{side}_start"), piece[f"{side}_sums"]
                here = slice(start, start + len(sums))
                total["high"][here] += sums >> _LOW_BITS
                total["low"][here] += sums & _LOW
                total["counts"][here] += piece[f"{side}_counts"]
        total["minimum"][:] = np.minimum(total["minimum"], piece["minimum"])
        total["maximum"][:] = np.maximum(total["maximum"], piece["maximum"])

    def finish(self, total: Piece) -> DistanceSummary:
        """Return the summary over all ordered pairs."""
        count = int(total["counts"].sum())
        high, low = total["high"] + (total["low"] >> _LOW_BITS), total["low"] & _LOW
        units = (int(high.sum()) << _LOW_BITS) + int(low.sum())
        return DistanceSummary(
            pairs=count,
            mean=units / UNIT / count if count else np.nan,
            minimum=float(total["minimum"][0]) if count else np.nan,
            maximum=float(total["maximum"][0]) if count else np.nan,
            row_sums=high / (UNIT / 2**_LOW_BITS) + low / UNIT,
            row_counts=total["counts"].copy(),
        )


@dataclass(frozen=True)
class Matrix:
    """The whole matrix: only for as many people as fit in memory."""

    rows: int
    columns: int

    bytes_per_row = 0

    def doubtful(self, tile: Tile, side: int, distances: Array, tolerance: float) -> Pairs:
        """Kernels keep to their tolerance without help."""
        return NO_PAIRS

    def look(self, tile: Tile, *distances: Array) -> Piece:
        """Keep the tile as it is."""
        return {
            "start": starts(tile.rows.start, tile.columns.start),
            "block": distances[0],
            "mirrored": np.array([tile.mirrored]),
        }

    def empty(self) -> Piece:
        """Room for the answer."""
        return {"matrix": np.empty((self.rows, self.columns))}

    def absorb(self, total: Piece, piece: Piece) -> None:
        """Put the tile (and its mirror image) in its place."""
        (i, j), block = piece["start"], piece["block"]
        total["matrix"][i : i + block.shape[0], j : j + block.shape[1]] = block
        if piece["mirrored"][0]:
            total["matrix"][j : j + block.shape[1], i : i + block.shape[0]] = block.T

    def finish(self, total: Piece) -> Floats:
        """Return the matrix of distances."""
        return np.asarray(total["matrix"])
