"""One person changes: their row is computed again, nobody else's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from incrowd.distances.question import Ints
from incrowd.distances.questions import DEFAULT, Compute, ball_sizes
from incrowd.distances.rows import as_rows
from incrowd.errors import InputError


def update_ball_sizes(
    sizes: Ints,
    rows: Any,
    person: int,
    profile: Any,
    *,
    radii: npt.ArrayLike,
    include_self: bool = True,
    metric: str = "jensen-shannon",
    compute: Compute = DEFAULT,
) -> Ints:
    """Return everybody's ball sizes after one person's profile changed, without comparing the others again.

    `sizes` are the ball sizes of `rows` (X against itself) for these radii and `include_self`, before the
    change; `profile` is the person's new row. The result equals `ball_sizes(replace_row(rows, person,
    profile))`, at the cost of two rows of distances in place of all pairs.

    >>> X = np.eye(3)
    >>> before = ball_sizes(X, radii=[0.5])
    >>> update_ball_sizes(before, X, 0, [0.0, 1.0, 0.0], radii=[0.5]).ravel().tolist()
    [2, 2, 1]
    """
    x, new = as_rows(rows), as_rows(profile, "profile")
    _check(x, new, sizes, person, np.size(radii))
    options: dict[str, Any] = {"radii": radii, "metric": metric, "compute": compute}
    lost, won = ball_sizes(x, x[[person]], **options), ball_sizes(x, new, **options)
    lost[person], won[person] = 0, 0
    updated = np.asarray(sizes) - lost + won
    alone = ball_sizes(new, include_self=include_self, **options)
    updated[person] = won.sum(axis=0) + alone[0]
    return updated


def replace_row(rows: Any, person: int, profile: Any) -> sparse.csr_matrix:
    """Return the rows with one person's profile replaced."""
    x, new = as_rows(rows), as_rows(profile, "profile")
    return sparse.vstack([x[:person], new, x[person + 1 :]], format="csr")


def _check(x: sparse.csr_matrix, new: sparse.csr_matrix, sizes: Ints, person: int, radii: int) -> None:
    if not 0 <= person < x.shape[0]:
        raise InputError(f"person: expected a row number from 0 to {x.shape[0] - 1}; got {person}.")
    if new.shape != (1, x.shape[1]):
        raise InputError(f"profile: expected one row of {x.shape[1]} columns; got {new.shape}.")
    if np.shape(sizes) != (x.shape[0], radii):
        raise InputError(
            f"sizes: expected what ball_sizes returned for these rows and radii, shape "
            f"{(x.shape[0], radii)}; got {np.shape(sizes)}."
        )
