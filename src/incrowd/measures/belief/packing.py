"""Several small attributes looked up as one: fewer steps a row when many people are weighed at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.belief.space import Floats, Ints

CELLS = 1024
"""A packed column takes at most so many values, so that a person's factors stay near the processor."""


@dataclass(frozen=True, eq=False)
class Packing:
    """Columns to look up, each made of one or more attributes."""

    codes: NDArray[np.uint32]
    """(rows, columns): where a row's values lie in the packed factors."""
    groups: tuple[tuple[int, ...], ...]
    starts: Ints
    """Where each column's values begin."""

    def factors(self, parts: Sequence[Floats]) -> Floats:
        """Multiply the factors of the attributes of each group out; `parts` holds an (n, values) table each."""
        if not self.groups:
            return np.ones((len(parts[0]), 0))
        return np.concatenate(
            [_multiplied([parts[place] for place in group]) for group in self.groups], axis=1
        )


def packing(
    columns: Sequence[Ints], sizes: Sequence[int], plain: Sequence[int], alone: Sequence[int]
) -> Packing:
    """Pack the plain attributes into as few columns as fit, and keep the others as they are, in last place."""
    groups = (*grouped(plain, sizes), *((place,) for place in alone))
    widths = [int(np.prod([sizes[place] for place in group])) for group in groups]
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    codes = np.empty((len(columns[0]), len(groups)), dtype=np.uint32)
    for number, group in enumerate(groups):
        joined = columns[group[0]]
        for place in group[1:]:
            joined = joined * sizes[place] + columns[place]
        codes[:, number] = joined + starts[number]
    return Packing(codes, groups, starts)


def grouped(places: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Put attributes into groups whose values multiply to at most CELLS: the largest first, wherever they fit."""
    groups: list[tuple[list[int], int]] = []
    for place in sorted(places, key=lambda p: (-sizes[p], p)):
        for number, (members, width) in enumerate(groups):
            if width * sizes[place] <= CELLS:
                groups[number] = ([*members, place], width * sizes[place])
                break
        else:
            groups.append(([place], sizes[place]))
    return [tuple(members) for members, _ in groups]


def _multiplied(parts: list[Floats]) -> Floats:
    product = parts[0]
    for part in parts[1:]:
        product = (product[:, :, None] * part[:, None, :]).reshape(len(product), -1)
    return product
