"""The loop over the rows of a crowd in plain NumPy, for a few people: what the compiled twin is checked against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.belief.space import Floats, Ints


def weigh(
    codes: NDArray[np.uint32],
    weights: Floats,
    factors: Floats,
    plain: Ints,
    targets: Ints,
    own_rows: Ints,
    sums: Floats,
) -> None:
    """Add up, for each person, the weight of every row by the row's value of each target.

    A row's weight is the product of the factors its values look up; a target's own factor is left out of that
    target's sums. Products and sums are taken in the order of the compiled loop, so that they agree bit by bit.
    """
    others, chosen = codes[:, plain], codes[:, targets]
    for factor, own, total in zip(factors, own_rows.tolist(), sums, strict=True):
        weight = np.multiply.reduce(np.column_stack([weights, factor[others]]), axis=1)
        if own >= 0:
            weight[own] = 0.0
        looked_up = factor[chosen]
        ones = np.ones((len(codes), 1))
        before = np.multiply.accumulate(np.column_stack([ones, looked_up[:, :-1]]), axis=1)
        after = np.multiply.accumulate(np.column_stack([weight, looked_up[:, :0:-1]]), axis=1)[:, ::-1]
        for number in range(len(targets)):
            part = np.bincount(chosen[:, number], before[:, number] * after[:, number], len(total))
            total += part
