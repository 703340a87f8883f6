"""Means, extremes, and the matrix itself for those who can afford it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from incrowd.distances.question import NO_PAIRS, Array, Floats, Ints, Pairs, Piece, start_of, starts
from incrowd.distances.tiles import Tile

# Distances are summed as integers (units of 2**-40): integer sums do not depend on the order of tiles.
_UNIT = 2.0**40


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

    @property
    def row_means(self) -> Floats:
        """Mean distance from each row to the columns; NaN where there is none."""
        undefined = np.full(len(self.row_sums), np.nan)
        means = np.divide(self.row_sums, self.row_counts, out=undefined, where=self.row_counts > 0)
        return np.asarray(means)


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
        values, units = distances[0], np.rint(distances[0] * _UNIT).astype(np.int64)
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
            "sums": np.zeros(self.rows, np.int64),
            "counts": np.zeros(self.rows, np.int64),
            "minimum": np.array([np.inf]),
            "maximum": np.array([-np.inf]),
        }

    def absorb(self, total: Piece, piece: Piece) -> None:
        """Add the sums of one tile."""
        for side in ("row", "column"):
            if f"{side}_start" in piece:
                start, sums = start_of(piece, f"{side}_start"), piece[f"{side}_sums"]
                total["sums"][start : start + len(sums)] += sums
                total["counts"][start : start + len(sums)] += piece[f"{side}_counts"]
        total["minimum"][:] = np.minimum(total["minimum"], piece["minimum"])
        total["maximum"][:] = np.maximum(total["maximum"], piece["maximum"])

    def finish(self, total: Piece) -> DistanceSummary:
        """Return the summary over all ordered pairs."""
        count = int(total["counts"].sum())
        mean = int(total["sums"].sum()) / _UNIT / count if count else np.nan
        return DistanceSummary(
            pairs=count,
            mean=float(mean),
            minimum=float(total["minimum"][0]) if count else np.nan,
            maximum=float(total["maximum"][0]) if count else np.nan,
            row_sums=total["sums"] / _UNIT,
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
