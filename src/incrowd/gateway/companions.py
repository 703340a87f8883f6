"""Counting companions: who else could account for a clause, and for nothing that this person could not.

Two tests of one rule. The quick one sees only people who could account for a single value; the full one sees
everybody. Where the quick one says yes, so does the full one (NOTES.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_CELLS = 2**24
"""People times clauses in one table; beyond, a value is not released."""
EFFORT = 2**30
"""Multiplications that one decision may take; beyond, further values are not released."""
Ids = NDArray[np.int64]


class Effort:
    """Work that is left, counted and not timed: the same data always give the same answer."""

    def __init__(self, left: int = EFFORT) -> None:
        self._left = left

    def take(self, cost: int) -> bool:
        """Use some up, unless there is not so much left."""
        if cost > self._left:
            return False
        self._left -= cost
        return True


@dataclass(frozen=True, eq=False)
class Listing:
    """Which clauses people could account for, one triple each: row of the person, value, number of the answer."""

    people: int
    answers: int
    rows: Ids
    values: Ids
    numbers: Ids


def alone_suffice(clauses: NDArray[np.bool_], alone: Ids, least: Ids, effort: Effort) -> bool:
    """Test one value by people who list it alone.

    Parameters
    ----------
    clauses
        Rows are kinds of membership among the holders, columns the answers that released the value.
    alone
        For each row, how many could account for this value and no other.
    least
        How many companions each column needs.
    """
    rows, place = _distinct(clauses)
    weights = np.bincount(place, weights=alone, minlength=len(rows))
    return _suffice(rows, weights, np.arange(rows.shape[1]), least, effort)


def companions_suffice(listing: Listing, value: int, least: Ids, effort: Effort) -> bool:
    """Test one value by everybody who lists it (the people of the listing); `least` is by number of answer."""
    clause = listing.values * listing.answers + listing.numbers
    kinds, column = np.unique(clause, return_inverse=True)
    if listing.people * len(kinds) > MOST_CELLS:
        return False
    table = np.zeros((listing.people, len(kinds)), dtype=np.bool_)
    table[listing.rows, column] = True
    about = np.flatnonzero(kinds // max(listing.answers, 1) == value)
    needed = least[kinds[about] % max(listing.answers, 1)]
    rows, place = _distinct(table)
    return _suffice(rows, np.bincount(place), about, needed, effort)


def _distinct(table: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Ids]:
    """Return the distinct rows, and for each row which of them it is."""
    packed = np.packbits(table, axis=1)
    rows, place = np.unique(packed, axis=0, return_inverse=True)
    return np.unpackbits(rows, axis=1, count=table.shape[1]).astype(np.bool_), place.ravel()


def _suffice(
    rows: NDArray[np.bool_], weights: NDArray[np.number], about: Ids, least: Ids, effort: Effort
) -> bool:
    """For each row and each of its clauses in `about`: the rows within it that share the clause weigh enough."""
    if not effort.take(len(rows) ** 2 * (rows.shape[1] + len(about))):
        return False
    as_numbers = rows.astype(np.float32)
    within = as_numbers @ (1 - as_numbers).T == 0  # [x, P]: x holds nothing that P does not
    shared = rows[:, about]
    companions = within.T.astype(np.float32) @ (weights[:, None] * shared).astype(np.float32)
    return bool((companions >= least)[shared].all())
