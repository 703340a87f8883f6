"""Counting companions: who else could account for a clause, and for nothing that this person could not.

This is the readable version of the test; `companions_kernel.py` is its compiled twin for many values at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def enough_companions(clauses: NDArray[np.bool_], alone: Ids, least: Ids) -> bool:
    """Test one value: does everybody have enough companions for every clause about it?

    Parameters
    ----------
    clauses
        A row for each kind of membership among the people who list the value, a column for each answer that
        released it.
    alone
        For each row, how many of them could account for this value and for no other.
    least
        How many companions each column needs.

    Examples
    --------
    Thirty people are in the first class only, twelve in both; nobody lists another released value.

    >>> both = np.array([[True, False], [True, True]])
    >>> enough_companions(both, np.array([30, 12]), np.array([10, 10]))
    True
    >>> enough_companions(both, np.array([30, 9]), np.array([10, 10]))
    False
    """
    within = ~(clauses[:, None, :] & ~clauses[None, :, :]).any(
        axis=2
    )  # [x, P]: x holds nothing that P does not
    companions = within.T.astype(np.int64) @ (alone[:, None] * clauses)
    return bool((companions >= least)[clauses].all())
