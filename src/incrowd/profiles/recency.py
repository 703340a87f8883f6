"""Profiles that forget: what was written lately counts more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from incrowd.errors import InputError

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.text.counts import Counts
    from incrowd.text.options import TextOptions

DAY = 86_400
PERIOD_DAYS = 7


def recent_counts(
    crowd: Crowd,
    half_life: float,
    *,
    communities: Iterable[str] | None = None,
    options: TextOptions | None = None,
    min_posts: int = 1,
    memory: int = 2**30,
) -> Counts:
    """Count words week by week and halve their weight for every `half_life` days before the last post.

    Posts without a time have no place in this; identities that have only such posts are left out.
    """
    import polars as pl

    from incrowd.text.counts import counts

    week = (pl.col("time") // (PERIOD_DAYS * DAY)).alias("week")
    by_week = counts(
        crowd,
        communities=communities,
        options=options,
        min_posts=min_posts,
        period=week,
        memory=memory,
    )
    return fade(by_week, half_life)


def fade(by_week: Counts, half_life: float) -> Counts:
    """Add up an identity's weeks, each weighed by ``2 ** (-age / half_life)``, age in days."""
    import polars as pl
    import scipy.sparse as sp

    if not half_life > 0:
        raise InputError(f"half-life must be a number of days above 0, got {half_life:g}")
    dated = by_week.identities["period"].is_not_null().to_numpy()
    ids = by_week.identities.filter(dated).with_columns(pl.col("period").cast(pl.Int64))
    if not ids.height:
        raise InputError("half-life: no post has a time, so none is more recent than another")
    week = ids["period"].to_numpy()
    age = (week.max() - week) * float(PERIOD_DAYS)
    weight = np.exp2(-age / half_life)
    owner = ids.select(pl.struct("community", "user").rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    rows = by_week.matrix[np.flatnonzero(dated)]
    gather = sp.csr_matrix((weight, (owner, np.arange(ids.height))), shape=(owner.max() + 1, ids.height))
    identities = (
        ids.group_by("community", "user").agg(pl.col("posts").sum()).sort("community", "user")
    ).select("user", "community", "posts")
    return replace(by_week, matrix=sp.csr_matrix(gather @ rows), identities=identities)
