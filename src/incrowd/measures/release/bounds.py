"""What can be said about q without counting anything: proved bounds, quick to compute and to check.

Upper: q is at most the number of holders of the least common value (LCV).
Lower: q is at least the *local bound*: for every user and each value they list, the number of users who
list that value too and nothing that this user does not list. Both are proved in NOTES.md. The local bound
is at least `p_min`, the older certificate, and no withholding of values can lower it.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.release.budget import Deadline
from incrowd.measures.release.patterns import PatternCounts

COMPARISONS, LOADED_COMPARISONS = 10**6, 20_000
"""Patterns squared times values up to which the readable version is quick enough; fewer if the compiler is loaded."""


def least_common(patterns: PatternCounts) -> int:
    """LCV: how many users list the rarest released value. q is at most this."""
    return int(patterns.supports.min())


def only_value(patterns: PatternCounts) -> NDArray[np.int64]:
    """p_i: how many users list value i and no other released value."""
    return patterns.holders_by_value[1]


def p_min(patterns: PatternCounts) -> int:
    """Return the smallest p_i. q is at least this."""
    return int(only_value(patterns).min())


def local_counts(patterns: PatternCounts) -> NDArray[np.int64]:
    """Table [pattern, value]: users who list the value and nothing outside the pattern; -1 off the pattern.

    A user of the pattern accounts for the answer with probability at most one over the smallest entry of
    their row. This is the readable version: patterns squared in memory.
    """
    table = patterns.table
    outside = table.astype(np.int64) @ ~table.T  # [x, P]: values of x that P has not
    within = (outside == 0).T.astype(np.int64)  # [P, x]: x lists nothing outside P
    counts = within @ (patterns.weights[:, None] * table)
    return np.where(table, counts, -1)


def local_bound(patterns: PatternCounts, deadline: Deadline | None = None) -> int:
    """Return the smallest local count of anybody. q is at least this, whatever is withheld in addition."""
    single = p_min(patterns)
    if single > 0:
        # Somebody lists only the value with the smallest p_i, and their local count is p_i.
        return single
    limit = LOADED_COMPARISONS if "numba" in sys.modules else COMPARISONS
    if len(patterns.weights) ** 2 * len(patterns.values) <= limit:
        counts = local_counts(patterns)
        return int(counts[counts >= 0].min())
    from incrowd.measures.release.kernels import compile_local, smallest_local_count

    deadline = deadline or Deadline(math.inf)
    with deadline.not_counting():
        compile_local()
    with deadline.watch(math.inf) as stop:
        return smallest_local_count(patterns.masks, patterns.weights, len(patterns.values), 1, stop)
