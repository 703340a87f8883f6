"""A plan of row ranges: for measures that compare some people with everybody, a range at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class RowRange:
    """One task: rows `start` to `stop` (excluded) against everybody."""

    number: int
    start: int
    stop: int
    others: int

    @property
    def rows(self) -> slice:
        """The rows as a slice."""
        return slice(self.start, self.stop)

    @property
    def pairs(self) -> int:
        """Its size, for the progress bar."""
        return (self.stop - self.start) * self.others


@dataclass(frozen=True)
class RowRanges:
    """All ranges of a job.

    >>> RowRanges.of([slice(0, 2), slice(2, 3)], others=10).pairs
    30
    """

    ranges: tuple[RowRange, ...]

    @classmethod
    def of(cls, slices: Iterable[slice], others: int) -> Self:
        """Number the slices; `others` is how many people each row is compared with."""
        return cls(tuple(RowRange(n, part.start, part.stop, others) for n, part in enumerate(slices)))

    def __iter__(self) -> Iterator[RowRange]:
        return iter(self.ranges)

    def __len__(self) -> int:
        return len(self.ranges)

    @property
    def pairs(self) -> int:
        """The size of all ranges together."""
        return sum(part.pairs for part in self.ranges)
