"""Which identities are worth a profile, and why the others are not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from incrowd.errors import InputError


class Dropped(StrEnum):
    """Why an identity has no counts. The codes are stable: other programs count them."""

    EMPTY_PROFILE = "empty_profile"
    """Nothing was left of its posts but stop words."""
    TOO_FEW_POSTS = "too_few_posts"
    SMALL_COMMUNITY = "small_community"
    LARGE_COMMUNITY = "large_community"


@dataclass(frozen=True, kw_only=True)
class Filters:
    """How much an identity and its community must have to be kept."""

    min_posts: int = 1
    """Posts of an identity."""
    min_profiles: int = 1
    """Identities of a community, counted before `min_posts` is applied."""
    drop_largest: int = 0
    """How many of the communities with the most identities to leave out."""

    def __post_init__(self) -> None:
        for name, least in (("min_posts", 1), ("min_profiles", 1), ("drop_largest", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InputError(f"counts: {name} must be a whole number of at least {least}, got {value!r}.")


def reasons(identities: pl.DataFrame, filters: Filters) -> pl.Series:
    """Return, for each row of `identities` (user, community, posts), why it is dropped; null: it is kept.

    >>> table = pl.DataFrame({"user": ["a", "b"], "community": ["x", "x"], "posts": [1, 9]})
    >>> reasons(table, Filters(min_posts=5)).to_list()
    ['too_few_posts', None]
    """
    profiles = identities.group_by("community").agg(profiles=pl.col("user").n_unique())
    # Ties in size are broken by name, so that the same data give the same answer.
    by_size = profiles.sort(["profiles", "community"], descending=[True, False])
    largest = by_size["community"].head(filters.drop_largest)
    small = profiles.filter(pl.col("profiles") < filters.min_profiles)["community"]
    community = pl.col("community")
    return identities.select(
        pl.when(community.is_in(largest.implode()))
        .then(pl.lit(Dropped.LARGE_COMMUNITY.value))
        .when(community.is_in(small.implode()))
        .then(pl.lit(Dropped.SMALL_COMMUNITY.value))
        .when(pl.col("posts") < filters.min_posts)
        .then(pl.lit(Dropped.TOO_FEW_POSTS.value))
        .alias("reason")
    )["reason"]
