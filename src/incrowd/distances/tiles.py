"""All pairs, cut into tiles that fit a memory budget.

A tile is a rectangle of the (never written) distance matrix: a range of rows times a range of columns.
When a crowd is compared with itself only the tiles on and above the diagonal are computed; a tile above
it stands for its mirror image too.

::

        columns →                 symmetric plan of 3 x 3
      ┌────┬────┬────┐            D  diagonal: a full square
      │ D  │ M  │ M  │            M  mirrored: counts for its rows and for its columns
      ├────┼────┼────┤
      │    │ D  │ M  │
      ├────┼────┼────┤
      │    │    │ D  │
      └────┴────┴────┘
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from incrowd.errors import BudgetExceeded

LARGEST_SIDE = 2048
"""Beyond this a tile gains no speed (its set-up cost is below 1 %) and only costs memory."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of the distance matrix."""

    number: int
    rows: range
    columns: range
    symmetric: bool = False
    """True if rows and columns are the same people (X against itself)."""

    @property
    def diagonal(self) -> bool:
        """The square in which people meet themselves."""
        return self.symmetric and self.rows == self.columns

    @property
    def mirrored(self) -> bool:
        """The tile also stands for its mirror image: its columns must be served as rows, too."""
        return self.symmetric and self.rows != self.columns

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.rows), len(self.columns)

    @property
    def pairs(self) -> int:
        """How many distances have to be computed for it."""
        height, width = self.shape
        return height * (height + 1) // 2 if self.diagonal else height * width


@dataclass(frozen=True, slots=True, kw_only=True)
class TilePlan:
    """How an all-pairs job is cut. The cut never changes a result, only memory and parallelism."""

    rows: int
    columns: int
    symmetric: bool
    height: int
    width: int

    def __iter__(self) -> Iterator[Tile]:
        number = 0
        for rows in _ranges(self.rows, self.height):
            for columns in _ranges(self.columns, self.width):
                if self.symmetric and columns.start < rows.start:
                    continue
                yield Tile(number, rows, columns, self.symmetric)
                number += 1

    def __len__(self) -> int:
        down, across = math.ceil(self.rows / self.height), math.ceil(self.columns / self.width)
        return down * (down + 1) // 2 if self.symmetric else down * across

    @property
    def pairs(self) -> int:
        """How many distances the whole plan computes."""
        return sum(tile.pairs for tile in self)


def plan_tiles(
    rows: int,
    columns: int,
    *,
    symmetric: bool,
    memory: int,
    bytes_per_pair: int = 32,
    bytes_per_side: int = 0,
    workers: int = 1,
    largest: int = LARGEST_SIDE,
) -> TilePlan:
    """Choose the largest square tiles that keep `workers` of them inside `memory` bytes.

    `bytes_per_side` is what a tile needs for each of its rows and columns (postings, counts for many
    radii), `bytes_per_pair` for each of its pairs. Small jobs are cut finer, so that every worker has a
    few tiles.

    >>> len(plan_tiles(5000, 5000, symmetric=True, memory=2**30))
    6
    """
    share = memory // max(workers, 1)
    a, b = bytes_per_pair, 2 * bytes_per_side
    fits = int((-b + math.sqrt(b * b + 4 * a * share)) / (2 * a))
    if fits < 1:
        raise BudgetExceeded(
            f"distances: one tile of a single pair needs about {a + b} bytes for each of {workers} workers; "
            f"the memory budget is {memory} bytes. Raise memory, or ask for fewer radii at once."
        )
    # n workers share n strips evenly: of a triangle of two strips, one worker takes the square off the
    # diagonal, the other the two half squares on it.
    side = max(1, min(fits, largest))
    height = min(side, max(64, math.ceil(rows / workers)))
    width = height if symmetric else min(side, max(columns, 1))
    return TilePlan(rows=rows, columns=columns, symmetric=symmetric, height=height, width=width)


def _ranges(total: int, step: int) -> Iterator[range]:
    for start in range(0, total, step):
        yield range(start, min(start + step, total))
