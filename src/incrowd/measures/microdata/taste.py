"""Groups of people with like taste, for providers who publish more to let clients know more.

Spherical k-means on the leading directions of the (rarity-weighted) table. Only group sizes and counts of at
least `ReleaseSpec.crowd` people leave the provider, through the same rounding as all counts.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from incrowd.errors import InputError
from incrowd.measures.microdata.definition import Floats
from incrowd.measures.microdata.expected_crowd import Activity, activity_class
from incrowd.measures.microdata.release import ReleaseState, release_counts, release_number_of
from incrowd.measures.microdata.spec import ReleaseSpec
from incrowd.measures.microdata.statistics import Taste
from incrowd.measures.microdata.table import ItemTable

ROUNDS = 50
SEED = 0


def publish_taste(
    table: ItemTable, activity: Activity, release: ReleaseSpec, threshold: int, secret: bytes | None = None
) -> tuple[Taste, ...]:
    """Return taste groups fit for publication: sizes, activity, and counts, rounded like all counts.

    Publish them once and repeat them in later releases: a second fit of much the same people would be a
    second look at them.
    """
    people, items = table.matrix.shape
    if min(people, items) <= 2 or people < 2 * release.crowd * release.taste_groups:
        raise InputError(
            f"taste_groups: expected at least {2 * release.crowd} people a group, got {people} people "
            f"for {release.taste_groups} groups; ask for fewer"
        )
    label = taste_labels(table.matrix, release.taste_groups, 2 * release.crowd)
    busy = activity_class(table.sizes, len(activity.shares))
    return tuple(
        _taste(table, np.flatnonzero(label == group), busy, activity, release, threshold, secret)
        for group in range(int(label.max()) + 1)
    )


def _taste(
    table: ItemTable,
    rows: NDArray[np.int64],
    busy: NDArray[np.int64],
    activity: Activity,
    release: ReleaseSpec,
    threshold: int,
    secret: bytes | None,
) -> Taste:
    part = table.matrix[rows]
    counts = pl.DataFrame({"item": table.items, "people": np.bincount(part.indices, minlength=part.shape[1])})
    # Each group's secret lines are its own.
    own = None if secret is None else secret + rows[:1].tobytes()
    listed, _ = release_counts(
        counts.filter(pl.col("people") > 0), ReleaseState.fresh(own), threshold, release
    )
    members = np.bincount(busy[rows], minlength=len(activity.shares)) + 0.5
    shares = np.maximum((members / members.sum()).round(release.decimals), 10.0**-release.decimals)
    popularity = dict(zip(listed["item"].to_list(), listed["people"].to_list(), strict=True))
    return Taste(max(release_number_of(len(rows), release), 1), shares / shares.sum(), popularity)


def taste_labels(matrix: sparse.csr_matrix, groups: int, fewest: int) -> NDArray[np.int64]:
    """Return each person's taste group; groups of fewer than `fewest` people join their neighbours."""
    directions = _directions(matrix, groups)
    centres = _spread_out(directions, groups)
    label = np.argmax(directions @ centres.T, axis=1)
    for _ in range(ROUNDS):
        sums = np.zeros_like(centres)
        np.add.at(sums, label, directions)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(norms > 0, sums / np.maximum(norms, 1e-12), centres)
        moved = np.argmax(directions @ centres.T, axis=1)
        if np.array_equal(moved, label):
            break
        label = moved
    large = np.bincount(label, minlength=len(centres)) >= fewest
    nearest = np.argmax(directions @ centres[large].T, axis=1) if large.any() else np.zeros(len(label), int)
    return np.unique(nearest, return_inverse=True)[1].astype(np.int64)


def _directions(matrix: sparse.csr_matrix, groups: int) -> Floats:
    """Place people by the leading singular directions of the table, on the unit sphere."""
    people, items = matrix.shape
    popularity = np.bincount(matrix.indices, minlength=items)
    rarity = np.sqrt(np.log(people / np.maximum(popularity, 1)))
    size = np.sqrt(np.maximum(np.diff(matrix.indptr), 1))
    weighted = sparse.diags(1.0 / size) @ matrix.astype(np.float64) @ sparse.diags(rarity)
    rank = min(groups + 8, min(matrix.shape) - 1)
    left, strength, _ = svds(weighted, k=rank, v0=np.ones(min(matrix.shape)), random_state=SEED)
    placed = left * strength
    return np.asarray(placed / np.maximum(np.linalg.norm(placed, axis=1, keepdims=True), 1e-12))


def _spread_out(directions: Floats, groups: int) -> Floats:
    """Start from people drawn far apart from one another (k-means++), with a fixed seed."""
    rng = np.random.default_rng(SEED)
    chosen = [int(rng.integers(len(directions)))]
    far = np.full(len(directions), np.inf)
    for _ in range(groups - 1):
        far = np.minimum(far, np.maximum(1.0 - directions @ directions[chosen[-1]], 0.0))
        total = far.sum()
        chosen.append(int(rng.choice(len(far), p=far / total if total > 0 else None)))
    return directions[chosen].copy()
