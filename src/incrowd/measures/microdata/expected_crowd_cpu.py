"""Compiled loop of :mod:`expected_crowd` for whole crowds."""

# Numba types these loops when it compiles them.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,assignment,misc"
from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True)
def expected_crowds(
    rows, indptr, indices, probabilities, people, level_starts, sizes, weights, negligible, out
):  # fmt: skip
    """Fill the expected number of others of the given rows.

    The mean product m_s of s out of j + 1 items mixes two cases, item j left out or taken:
    m_s = (1 - s/(j+1)) m_s + s/(j+1) p_j m_(s-1).
    """
    for row in rows:
        first, n = indptr[row], indptr[row + 1] - indptr[row]
        if n == 0:
            continue
        low, high = level_starts[n], level_starts[n + 1]
        total = 0.0
        for c in range(len(people)):
            average = 0.0
            for j in range(n):
                average += probabilities[indices[first + j], c]
            log_average = np.log(average / n)
            most = 0
            for level in range(low, high):
                if np.log(people[c]) + sizes[level] * log_average >= negligible:
                    most = max(most, sizes[level])
            means = np.zeros(most + 1)
            means[0] = 1.0
            if most > 0:
                for j in range(n):
                    p = probabilities[indices[first + j], c]
                    for s in range(min(most, j + 1), 0, -1):
                        taken = s / (j + 1)
                        means[s] = (1.0 - taken) * means[s] + taken * p * means[s - 1]
            for level in range(low, high):
                if sizes[level] <= most:
                    total += people[c] * weights[level] * means[sizes[level]]
        out[row] = total
