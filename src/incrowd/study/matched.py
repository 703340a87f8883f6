"""Everybody who is in two communities, over all pairs of communities: the rows of two papers' figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.distances import Compute, ball_sizes, mean_distance, ranks, within_both
from incrowd.errors import InputError
from incrowd.measures.protocol import Progress
from incrowd.profiles import Profiles, unigram
from incrowd.text.counting import Counts, counts
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    from incrowd.crowd import Crowd


@dataclass(frozen=True, kw_only=True)
class PairStudyOptions:
    """Which identities and which pairs of communities take part."""

    min_posts: int = 20
    min_profiles: int = 10
    """Identities of a community, counted before `min_posts`."""
    drop_largest: int = 0
    min_pairs: int = 5
    """People a pair of communities must share."""
    radius: float = 0.8
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0
    memory: int = 2**30

    @classmethod
    def of_the_papers(cls, memory: int = 2**30) -> PairStudyOptions:
        """Return what papers 000 and 003 say they did: 100 comments, 100 profiles, without the three largest."""
        return cls(min_posts=100, min_profiles=100, drop_largest=3, min_pairs=1, memory=memory)


@dataclass(frozen=True)
class Matched:
    """Profiles of all communities, and a row for every directed pair of one person's profiles."""

    profiles: Profiles
    counts: Counts
    """How often each of these identities used each word."""
    rows: pl.DataFrame
    """source, target, person, distance, stranger (mean distance to non-matching targets; NaN where there is none),
    matching, anonymity, local, fixed (anonymity set at the fixed radius), nearer (targets nearer than the match), ties
    (others just as near), targets."""
    communities: int

    @property
    def with_strangers(self) -> pl.DataFrame:
        """The pairs whose target community holds anybody but the match; nobody is nearer than no stranger."""
        return self.rows.filter(pl.col("stranger").is_not_nan())


def matched_pairs(
    crowd: Crowd,
    options: PairStudyOptions,
    progress: Progress | None = None,
    compute: Compute | None = None,
) -> Matched:
    """Measure every person who is in two communities against everybody in the second."""
    counted = counts(
        crowd,
        options=options.text,
        min_posts=options.min_posts,
        min_profiles=options.min_profiles,
        drop_largest=options.drop_largest,
        memory=options.memory,
        progress=progress,
    )
    if not counted.matrix.shape[0]:
        raise InputError(
            f"no identity has {options.min_posts} posts in a community of {options.min_profiles} profiles; "
            "lower --min-posts or --min-profiles"
        )
    profiles = unigram(counted)
    where = rows_by_community(profiles)
    links = list(_shared(profiles, options.min_pairs))
    if not links:
        raise InputError(
            f"no two communities share {options.min_pairs} people with {options.min_posts} posts in both; "
            "lower --min-pairs or --min-posts"
        )
    compute = compute or Compute(memory=options.memory)
    frames, fixed = [], _FixedCrowds(profiles, where, options.radius, compute)
    for done, (source, target, pairs, people) in enumerate(links):
        if progress:
            progress(done, len(links), "comparing communities")
        frames.append(_measure(profiles, where, source, target, pairs, people, fixed, compute))
    return Matched(profiles, counted, pl.concat(frames), len(where))


def _measure(
    profiles: Profiles,
    where: dict[str, Any],
    source: str,
    target: str,
    pairs: Any,
    people: Any,
    fixed: _FixedCrowds,
    compute: Compute,
) -> pl.DataFrame:
    x, y = profiles.matrix[where[source][pairs[:, 0]]], profiles.matrix[where[target]]
    own = np.column_stack([np.arange(len(pairs)), pairs[:, 1]])
    sets = within_both(x, y, own, compute=compute)
    places = ranks(x, y, own, compute=compute)
    across = mean_distance(x, y, compute=compute)
    strangers = across.row_counts - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        stranger = np.where(strangers > 0, (across.row_sums - sets.distances) / strangers, np.nan)
    return pl.DataFrame(
        {
            "source": [source] * len(pairs),
            "target": [target] * len(pairs),
            "person": people,
            "distance": sets.distances,
            "stranger": stranger,
            "matching": sets.matching,
            "anonymity": sets.anonymity,
            "local": sets.both,
            "fixed": fixed.of(target)[pairs[:, 1]],
            "nearer": places.nearer,
            "ties": places.ties,
            "targets": [y.shape[0]] * len(pairs),
        }
    )


class _FixedCrowds:
    """Crowd sizes at one radius, measured once a community."""

    def __init__(self, profiles: Profiles, where: dict[str, Any], radius: float, compute: Compute) -> None:
        self._profiles, self._where, self._radius, self._compute = profiles, where, radius, compute
        self._known: dict[str, Any] = {}

    def of(self, community: str) -> Any:
        if community not in self._known:
            rows = self._profiles.matrix[self._where[community]]
            self._known[community] = ball_sizes(rows, radii=[self._radius], compute=self._compute)[:, 0]
        return self._known[community]


def rows_by_community(profiles: Profiles) -> dict[str, Any]:
    """Return the rows of each community's identities."""
    grouped = (
        profiles.ids.select("community")
        .with_row_index("row")
        .group_by("community", maintain_order=True)
        .agg(pl.col("row"))
    )
    return {name: np.asarray(rows, np.int64) for name, rows in grouped.iter_rows()}


def _shared(profiles: Profiles, min_pairs: int) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield directed pairs of communities with enough people in both, and those people's places."""
    places = profiles.ids.select("user", "community").with_columns(
        place=pl.int_range(pl.len()).over("community")
    )
    joined = places.join(places, on="user", suffix="_target").filter(
        pl.col("community") != pl.col("community_target")
    )
    grouped = (
        joined.sort("community", "community_target", "user")
        .group_by("community", "community_target", maintain_order=True)
        .agg(pl.col("place"), pl.col("place_target"), pl.col("user"))
        .filter(pl.col("user").list.len() >= min_pairs)
    )
    for source, target, a, b, people in grouped.iter_rows():
        yield source, target, np.column_stack([a, b]).astype(np.int64), people
