"""How many people lie within r: ball sizes for many radii at once, and histograms of distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.distances.question import Array, Floats, Ints, Pairs, Piece, around, start_of, starts
from incrowd.distances.tiles import Tile


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
class Histogram:
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
        """Return one count a bin; pairs outside the edges are left out."""
        return np.asarray(total["counts"][1:-1], dtype=np.int64)


def _count_rows(bins: npt.NDArray[np.intp], radii: int) -> npt.NDArray[np.int32]:
    offsets = np.arange(len(bins))[:, None] * (radii + 1)
    counts = np.bincount((bins + offsets).ravel(), minlength=len(bins) * (radii + 1))
    return counts.reshape(len(bins), radii + 1).astype(np.int32)
