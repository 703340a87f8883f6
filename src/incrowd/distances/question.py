"""What can be asked of all pairs without ever holding them: the shape every question shares.

A question is a small, picklable value. It sees one tile of distances at a time, reduces it to a *piece*
(a few arrays), and adds pieces up in any order:

    total = question.empty()
    for tile in plan:                                    # anywhere, in any order, on any machine
        question.absorb(total, question.look(tile, D))   # absorb commutes: order never matters
    answer = question.finish(total)

Kernels are fast and slightly inexact (`Kernel.tolerance`). `doubtful` names the pairs a kernel's error
could put on the wrong side of a threshold; they are computed again in double precision before `look`, so
that every kernel counts the same people.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from incrowd.distances.tiles import Tile

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Piece = dict[str, Array]
"""Plain arrays only, so that a piece can be pickled, written to a file and read back."""
Pairs = tuple[Ints, Ints]
"""Local row and column numbers inside a tile."""


class Question(Protocol):
    """A reduction over all pairs."""

    @property
    def bytes_per_row(self) -> int:
        """Size of a piece for each row or column of a tile, for the memory plan."""
        ...

    def doubtful(self, tile: Tile, side: int, distances: Array, tolerance: float) -> Pairs:
        """Pairs of the tile whose part in the answer an error of `tolerance` could change."""
        ...

    def look(self, tile: Tile, *distances: Array) -> Piece:
        """Reduce one tile. Most questions get one block of distances, `WithinBoth` gets two."""
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
