"""Counting companions: who else could account for a clause, and for nothing that this person could not.

Two tests of one rule. The quick one sees only people who could account for a single value; the full one sees
everybody. Where the quick one says yes, so does the full one (NOTES.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_ROWS = 3000
"""Kinds of people among the holders of one value; beyond, the value is not released."""
MOST_CELLS = 2**24
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Listing:
    """Which clauses people could account for, one triple each: row of the person, value, number of the answer."""

    people: int
    answers: int
    rows: Ids
    values: Ids
    numbers: Ids


def alone_suffice(clauses: NDArray[np.bool_], alone: Ids, least: Ids) -> bool:
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
    rows, place = np.unique(clauses, axis=0, return_inverse=True)
    if len(rows) > MOST_ROWS:
        return False
    weights = np.bincount(place.ravel(), weights=alone, minlength=len(rows))
    return _suffice(rows, weights, np.arange(rows.shape[1]), least)


def companions_suffice(listing: Listing, value: int, least: Ids) -> bool:
    """Test one value by everybody who lists it (the people of the listing); `least` is by number of answer."""
    clause = listing.values * listing.answers + listing.numbers
    kinds, column = np.unique(clause, return_inverse=True)
    if listing.people * len(kinds) > MOST_CELLS:
        return False
    table = np.zeros((listing.people, len(kinds)), dtype=np.bool_)
    table[listing.rows, column] = True
    about = np.flatnonzero(kinds // max(listing.answers, 1) == value)
    needed = least[kinds[about] % max(listing.answers, 1)]
    packed, weights = np.unique(np.packbits(table, axis=1), axis=0, return_counts=True)
    if len(packed) > MOST_ROWS:
        return False
    rows = np.unpackbits(packed, axis=1, count=len(kinds)).astype(np.bool_)
    return _suffice(rows, weights, about, needed)


def _suffice(rows: NDArray[np.bool_], weights: NDArray[np.number], about: Ids, least: Ids) -> bool:
    """For each row and each of its clauses in `about`: the rows within it that share the clause weigh enough."""
    as_numbers = rows.astype(np.float32)
    within = as_numbers @ (1 - as_numbers).T == 0  # [x, P]: x holds nothing that P does not
    shared = rows[:, about]
    companions = within.T.astype(np.float64) @ (weights[:, None] * shared)
    return bool((companions >= least)[shared].all())
