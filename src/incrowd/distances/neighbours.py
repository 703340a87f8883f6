"""Who is nearest, and how far down the list the true match stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from incrowd.distances.question import (
    NO_PAIRS,
    Array,
    Floats,
    Ints,
    Pairs,
    Piece,
    near_row_value,
    start_of,
    starts,
)
from incrowd.distances.tiles import Tile


@dataclass(frozen=True)
class Neighbours:
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

    def finish(self, total: Piece) -> Neighbours:
        """Return the k nearest of every row."""
        return Neighbours(total["indices"], total["distances"])


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
