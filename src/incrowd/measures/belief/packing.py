"""Several attributes looked up as one: fewer steps a row when many people are weighed at once.

Attributes that depend on each other (zip, city, region) have few combinations that occur, so those are packed by what
occurs in the crowd and not by what could.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.belief.space import Floats, Ints

CELLS = 1024
"""A packed column takes about so many values at most, so that a person's factors stay near the processor."""
SAMPLE = 20_000
"""So many rows decide which attributes are packed together."""


@dataclass(frozen=True, eq=False)
class Packing:
    """Columns to look up, each made of one or more attributes."""

    codes: NDArray[np.uint32]
    """(rows, columns): where a row's values lie in the packed factors."""
    groups: tuple[tuple[int, ...], ...]
    combinations: tuple[Ints, ...]
    """For each column: (combinations, attributes of the group) the values that stand behind each code."""

    @property
    def starts(self) -> Ints:
        """Where each column's values begin."""
        return np.concatenate([[0], np.cumsum([len(one) for one in self.combinations])]).astype(np.int64)

    def factors(self, parts: Sequence[Floats]) -> Floats:
        """Multiply the factors of the attributes of each group out; `parts` holds an (n, values) table each."""
        if not self.groups:
            return np.ones((len(parts[0]), 0))
        return np.concatenate(
            [gathered(parts, group, of) for group, of in zip(self.groups, self.combinations, strict=True)],
            axis=1,
        )


def gathered(parts: Sequence[Floats], group: Sequence[int], combinations: Ints) -> Floats:
    """Return for each person the product of a group's factors, combination by combination."""
    if len(group) == 1 and len(combinations) == parts[group[0]].shape[1]:
        return parts[group[0]]  # every value occurs, in order
    product = parts[group[0]][:, combinations[:, 0]]
    for number, place in enumerate(group[1:], start=1):
        product = product * parts[place][:, combinations[:, number]]
    return product


def apart(codes: NDArray[np.uint32], sizes: Sequence[int]) -> Packing:
    """Pack nothing: every attribute is a column."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.uint32)
    return Packing(codes + starts, tuple((place,) for place in range(len(sizes))), tuple(map(_itself, sizes)))


def packing(
    columns: Sequence[Ints], sizes: Sequence[int], plain: Sequence[int], alone: Sequence[int]
) -> Packing:
    """Pack the plain attributes into as few columns as fit, and keep the others as they are, in last place."""
    together = grouped(columns, sizes, plain)
    groups = (*together, *((place,) for place in alone))
    packed = [joined(columns, sizes, group) for group in together]
    kept = [*packed, *((columns[place], _itself(sizes[place])) for place in alone)]
    codes, start = np.empty((len(columns[0]), len(groups)), dtype=np.uint32), 0
    for number, (column, combinations) in enumerate(kept):
        codes[:, number] = column + start
        start += len(combinations)
    return Packing(codes, groups, tuple(combinations for _, combinations in kept))


def joined(columns: Sequence[Ints], sizes: Sequence[int], group: Sequence[int]) -> tuple[Ints, Ints]:
    """Return each row's combination of a group's values by number, and the combinations that occur."""
    flat = columns[group[0]]
    for place in group[1:]:
        flat = flat * sizes[place] + columns[place]
    occurring, which = np.unique(flat, return_inverse=True)
    return which.astype(np.int64), np.stack(
        np.unravel_index(occurring, [sizes[place] for place in group]), axis=1
    )


def grouped(columns: Sequence[Ints], sizes: Sequence[int], places: Sequence[int]) -> list[tuple[int, ...]]:
    """Put attributes into groups with about CELLS occurring combinations at most, each where it adds fewest."""
    some = [column[:SAMPLE] for column in columns]
    groups: list[tuple[int, ...]] = []
    for place in sorted(places, key=lambda p: (-sizes[p], p)):
        fits = [(_occurring(some, sizes, (*group, place)), at) for at, group in enumerate(groups)]
        fewest, at = min(fits, default=(CELLS + 1, 0))
        if fewest <= CELLS:
            groups[at] = (*groups[at], place)
        else:
            groups.append((place,))
    return groups


def _occurring(columns: Sequence[Ints], sizes: Sequence[int], group: Sequence[int]) -> int:
    if np.prod([float(sizes[place]) for place in group]) > 2**62:
        return CELLS + 1
    return len(joined(columns, sizes, group)[1])


def _itself(size: int) -> Ints:
    return np.arange(size, dtype=np.int64)[:, None]
