"""The provider's side (paper 002, algorithm 1): count, score everybody, group, publish."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from incrowd.arrays import Floats
from incrowd.errors import InputError
from incrowd.measures.microdata.definition import privacy_score, risk_raw
from incrowd.measures.microdata.expected_crowd import ActivityGroups, activity_class, fit_activity
from incrowd.measures.microdata.spec import GroupSpec, Knowledge, ProfileFilter, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import (
    ReleaseState,
    RiskGroup,
    Statistics,
    Taste,
    release_counts,
    release_number_of,
)
from incrowd.measures.microdata.table import ItemTable

# Cuts scores into groups of like risk: X-means on a line, each cluster trimmed before its centre is taken.
#
# X-means (Pelleg and Moore 2000) starts with few clusters and splits one in two where the Bayesian
# information criterion says that two explain it better. On a line every step has an exact answer: the best
# split of a sorted run is a scan over prefix sums, so nothing is random and no seed is needed.

COARSE = 1024
"""The exact start is found on at most so many averaged points, then refined on all."""


@dataclass(frozen=True)
class Groups:
    """Groups of people with like scores, riskiest first."""

    centres: Floats
    """Average score of each group without its outliers."""
    members: NDArray[np.int64]
    """How many people are nearest to each: those who are told that they belong to it."""

    @classmethod
    def around(cls, centres: Floats, scores: Floats) -> Groups:
        """Give everybody to the nearest centre, as a client does."""
        alone = cls(centres, np.zeros(len(centres), np.int64))
        return cls(centres, np.bincount(alone.of(scores), minlength=len(centres)))

    @property
    def borders(self) -> Floats:
        """Scores half-way between neighbouring centres: where one group ends and the next begins."""
        return np.asarray((self.centres[1:] + self.centres[:-1]) / 2)

    def of(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of the nearest group, 0 = riskiest; a tie goes to the riskier one."""
        return np.searchsorted(self.borders, scores, side="left").astype(np.int64)


def find_groups(scores: NDArray[np.float64], spec: GroupSpec | None = None, *, smallest: int = 1) -> Groups:
    """Cut scores into groups; the number of groups is found unless the spec fixes it.

    No centre is the average of fewer than `smallest` people: of one or two it would be their own score.
    """
    spec = spec or GroupSpec()
    values = np.sort(np.asarray(scores, dtype=np.float64))
    if not len(values) or np.isnan(values[-1]):
        raise InputError(
            "scores: expected at least one and no undefined ones, got none or NaN; check the profiles"
        )
    distinct = len(np.unique(values))
    if spec.exactly is not None:
        centres = k_means(values, min(spec.exactly, distinct))
    else:
        centres = x_means(values, min(spec.fewest, distinct), min(spec.most, distinct))
    return _trimmed(values, _joined(values, centres, spec, smallest), spec)


def x_means(values: Floats, fewest: int, most: int) -> Floats:
    """Return the centres of as many clusters as the information criterion wants."""
    centres = k_means(values, fewest)
    while len(centres) < most:
        runs = np.split(values, _cuts(values, centres))
        pieces = [_split_if_better(run) for run in runs]
        room = most - len(centres)
        grown: list[float] = []
        for run, halves in zip(runs, pieces, strict=True):
            take = halves is not None and room > 0
            grown += halves if take and halves else [float(run.mean())]
            room -= int(take)
        if len(grown) == len(centres):
            break
        centres = _refine(values, np.array(grown))
    return centres


def k_means(values: Floats, k: int) -> Floats:
    """Return the centres of the best k clusters of sorted values (exact up to 1,024 values, then refined)."""
    if k <= 1:
        return np.array([values.mean()])
    points = np.array_split(values, min(COARSE, len(values)))
    weight = np.array([len(part) for part in points], dtype=np.float64)
    mean = np.array([part.mean() for part in points])
    return _refine(values, _best_runs(mean, weight, k))


def _best_runs(mean: Floats, weight: Floats, k: int) -> Floats:
    """Cut weighted sorted points into k runs of least squares, by dynamic programming over all cuts."""
    w, s, q = (np.concatenate([[0.0], np.cumsum(part)]) for part in (weight, weight * mean, weight * mean**2))
    size = w[None, :] - w[:, None]  # [i, j]: points i..j-1
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = (q[None, :] - q[:, None]) - (s[None, :] - s[:, None]) ** 2 / size
    cost = np.where(size > 0, np.maximum(cost, 0.0), np.inf)
    best, cut_before = cost[0].copy(), []
    for _ in range(k - 1):
        total = best[:, None] + cost
        cut_before.append(np.argmin(total, axis=0))
        best = np.min(total, axis=0)
    cuts = [len(mean)]
    for row in reversed(cut_before):
        cuts.append(int(row[cuts[-1]]))
    edges = np.array([0, *reversed(cuts)])
    return np.asarray((s[edges[1:]] - s[edges[:-1]]) / (w[edges[1:]] - w[edges[:-1]]))


def _cuts(values: Floats, centres: Floats) -> NDArray[np.int64]:
    """Where each cluster ends in the sorted values."""
    return np.searchsorted(values, (centres[1:] + centres[:-1]) / 2, side="right")


def _refine(values: Floats, centres: Floats) -> Floats:
    """Lloyd's steps until nothing moves; on a line a step is a search and a difference of prefix sums."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    for _ in range(1000):
        edges = np.concatenate([[0], _cuts(values, centres), [len(values)]])
        filled = np.diff(edges) > 0
        moved = np.diff(sums[edges])[filled] / np.diff(edges)[filled]
        if len(moved) == len(centres) and np.allclose(moved, centres, rtol=0, atol=1e-12):
            break
        centres = moved
    return centres


def _split_if_better(run: Floats) -> list[float] | None:
    """Return the centres of the two halves of a sorted run if they explain it better than one."""
    if len(run) < 4 or run[0] == run[-1]:
        return None
    centred = run - run.mean()  # the sums below cancel less
    sums = np.cumsum(centred)[:-1]
    left = np.arange(1, len(run))
    between = sums**2 / left + sums**2 / (len(run) - left)
    cut = int(np.argmax(between)) + 1
    whole, halves = [len(run)], [cut, len(run) - cut]
    squares = float(centred @ centred)
    if _bic(halves, squares - float(between[cut - 1])) <= _bic(whole, squares):
        return None
    return [float(run[:cut].mean()), float(run[cut:].mean())]


def _bic(members: list[int], squares: float) -> float:
    """Bayesian information criterion of clusters with one common variance (Pelleg and Moore, section 3.2)."""
    n, k = sum(members), len(members)
    if n <= k:
        return -math.inf
    variance = max(squares / (n - k), 1e-18)
    likelihood = sum(m * math.log(m / n) for m in members)
    likelihood -= n / 2 * math.log(2 * math.pi * variance) + (n - k) / 2
    return likelihood - k * math.log(n)  # k - 1 shares, k centres, one variance: 2k parameters, half each


def _joined(values: Floats, centres: Floats, spec: GroupSpec, smallest: int) -> Floats:
    """Join a cluster whose centre would be of too few people with the nearest one, until there is none."""
    while len(centres) > 1:
        sizes = np.diff([0, *_cuts(values, centres), len(values)])
        small = int(np.argmin(sizes))
        if sizes[small] - 2 * _outliers(int(sizes[small]), spec) >= smallest:
            break
        gaps = np.diff(centres)
        left = small - 1 if small and (small == len(gaps) or gaps[small - 1] <= gaps[small]) else small
        both = np.average(centres[left : left + 2], weights=sizes[left : left + 2])
        centres = _refine(values, np.concatenate([centres[:left], [both], centres[left + 2 :]]))
    return centres


def _outliers(members: int, spec: GroupSpec) -> int:
    """How many people are left out at either end of a group of this size."""
    return math.floor(spec.trim * members) if members >= spec.trim_from else 0


def _trimmed(values: Floats, centres: Floats, spec: GroupSpec) -> Groups:
    """Take the outliers out of each group and its centre anew; they stay members of the group they are nearest to."""
    runs = [run for run in np.split(values, _cuts(values, centres)) if len(run)]
    cut = [_outliers(len(run), spec) for run in runs]
    kept = [run[c : len(run) - c] for run, c in zip(runs, cut, strict=True)]
    return Groups.around(np.array([run.mean() for run in kept]), values)


Holders = Callable[[pl.Series], pl.DataFrame]
"""Given items, returns the rows (user, item) of the people who had them before the update."""
PAIR = ["user", "item"]


@dataclass(frozen=True)
class Tally:
    """What a provider counts and keeps to itself: people per item, items and rare items per person."""

    items: pl.DataFrame
    """item, people."""
    users: pl.DataFrame
    """user, items, rare."""
    spec: ScoreSpec

    def __repr__(self) -> str:
        return f"Tally({self.users.height:,} people, {self.items.height:,} items)"

    @property
    def threshold(self) -> int:
        """Below how many people an item is rare."""
        return self.spec.threshold(self.users.height)

    @classmethod
    def count(cls, entries: pl.DataFrame | pl.LazyFrame, spec: ScoreSpec | None = None) -> Tally:
        """Count everything in one pass over who has what."""
        spec = spec or ScoreSpec()
        pairs = entries.lazy().select(PAIR).unique()
        items = pairs.group_by("item").agg(people=pl.len().cast(pl.Int64)).sort("item").collect()
        people = pairs.select(pl.col("user").n_unique()).collect().item()
        flags = items.lazy().select("item", rare=pl.col("people") < spec.threshold(people))
        users = (
            pairs.join(flags, on="item")
            .group_by("user")
            .agg(items=pl.len().cast(pl.Int64), rare=_count("rare"))
        )
        return cls(items, users.sort("user").collect(), spec)

    @classmethod
    def of(cls, table: ItemTable, spec: ScoreSpec | None = None) -> Tally:
        """Return the tally of a table that is in memory already."""
        spec = spec or ScoreSpec()
        rare = (table.popularity < spec.threshold(len(table.users))).astype(np.int64)
        per_user = np.asarray(table.matrix @ rare).ravel().astype(np.int64)
        return cls(
            pl.DataFrame({"item": table.items, "people": table.popularity}),
            pl.DataFrame({"user": table.users, "items": table.sizes, "rare": per_user}),
            spec,
        )

    def updated(
        self, added: pl.DataFrame, removed: pl.DataFrame | None = None, *, holders: Holders | None = None
    ) -> Tally:
        """Return the tally after a day: new pairs of user and item, and pairs that went.

        Old profiles are touched only where an item turned from rare to popular or back; `holders` is asked
        who had those items, and is not needed if none did. Equal to counting everything anew.
        """
        removed = removed if removed is not None else added.head(0)
        plus, minus = added.select(PAIR).unique(), removed.select(PAIR).unique()
        items = _add(self.items, "item", _sizes(plus, "item", "people"), _sizes(minus, "item", "people", -1))
        sizes = _add(
            self.users.select("user", "items"),
            "user",
            _sizes(plus, "user", "items"),
            _sizes(minus, "user", "items", -1),
        )
        after = self.spec.threshold(sizes.height)
        turned = self._turned(items, after)
        rare_now, rare_then = _rare(items, after), _rare(self.items, self.threshold)
        changes = [
            plus.join(rare_now, on="item").select("user", "rare"),
            minus.join(rare_then, on="item").select("user", rare=-pl.col("rare")),
        ]
        if turned.height:
            stayed = _ask(holders, turned["item"]).join(minus, on=PAIR, how="anti")
            changes.append(stayed.join(turned, on="item").select("user", rare="turn"))
        users = sizes.join(
            _add(self.users.select("user", "rare"), "user", *changes, keep_zero=True), on="user", how="left"
        )
        return replace(self, items=items, users=users.select("user", "items", "rare").sort("user"))

    def _turned(self, items: pl.DataFrame, threshold: int) -> pl.DataFrame:
        """Which old items changed sides, and by how much that changes a holder's rare items."""
        both = self.items.join(items, on="item", suffix="_now")
        turn = (pl.col("people_now") < threshold).cast(pl.Int64) - (pl.col("people") < self.threshold).cast(
            pl.Int64
        )
        return both.select("item", turn=turn).filter(pl.col("turn") != 0)


@dataclass(frozen=True)
class ScoredPeople:
    """Everybody's score, before anything is rounded for publication."""

    raw: Floats
    scores: Floats
    raw_min: float
    raw_max: float
    groups: Groups


def score_everybody(
    items: Any, rare: Any, spec: ScoreSpec, groups: GroupSpec | None = None, *, outliers: int = 0
) -> ScoredPeople:
    """Score and group people by their numbers of items and rare items.

    `outliers` people at either end do not set the scale (their scores are clamped), so that the published
    scale is nobody's own value; nor is a group smaller than that.
    """
    raw = risk_raw(items, rare, spec.log_base)
    if not len(raw):
        raise InputError("profiles: expected somebody to score, got nobody")
    end = min(outliers, (len(raw) - 1) // 2)
    ordered = np.sort(raw)
    low, high = float(ordered[end]), float(ordered[-1 - end])
    free = privacy_score(raw, low, high)
    scores = np.clip(free, 0.0, 1.0)
    if high > low:
        centres = find_groups(free, groups, smallest=outliers).centres
        inside = Groups.around(np.clip(centres, 0.0, 1.0), scores)
    else:  # one raw value for all: one group, and no scale
        inside = Groups(np.array([0.5]), np.array([len(raw)]))
    return ScoredPeople(raw, scores, low, high, inside)


def publish(
    tally: Tally,
    *,
    state: ReleaseState | None = None,
    release: ReleaseSpec | None = None,
    groups: GroupSpec | None = None,
    knowledge: Knowledge | None = None,
    profiles: ProfileFilter | None = None,
    date: dt.date | None = None,
    taste: tuple[Taste, ...] = (),
) -> tuple[Statistics, ReleaseState]:
    """Make the next release: statistics for everybody, and the state to keep secret until the one after.

    Every profile counts towards popularity; the scale and the groups come from profiles inside `profiles`.
    """
    release, profiles = release or ReleaseSpec(), profiles or ProfileFilter()
    state = state or ReleaseState.fresh()
    listed, state = release_counts(tally.items, state, tally.threshold, release)
    told = tally.users.filter(pl.col("items").is_between(profiles.fewest, profiles.most))
    if told.is_empty():
        raise InputError(
            f"profiles: expected somebody with {profiles.fewest:,} to {profiles.most:,} items, got nobody; "
            "allow smaller profiles, e.g. --min-items 2"
        )
    outliers = 0 if release.literal else release.crowd
    if told.height <= 2 * outliers:
        raise InputError(
            f"profiles: no number may be about fewer than {outliers:,} people (--smallest), which takes more than "
            f"{2 * outliers:,} with {profiles.fewest:,} to {profiles.most:,} items; got {told.height:,}"
        )
    scored = score_everybody(
        told["items"].to_numpy(), told["rare"].to_numpy(), tally.spec, groups, outliers=outliers
    )
    people = tally.users.height
    sizes, classes = tally.users["items"].to_numpy(), release.activity_classes
    while classes > 1 and np.bincount(activity_class(sizes, classes)).min() < outliers:
        classes -= 1
    activity = fit_activity(sizes, tally.items["people"].to_numpy() / people, classes)
    digits = 15 if release.literal else release.decimals
    return Statistics(
        users=release_number_of(people, release),
        rare_below=tally.threshold,
        log_base=tally.spec.log_base,
        raw_min=round(scored.raw_min, digits),
        raw_max=round(scored.raw_max, digits),
        groups=_groups(scored.groups, release, digits),
        knowledge=knowledge or Knowledge(),
        activity=ActivityGroups(_shares(activity.shares, digits), activity.levels.round(digits)),
        unlisted=_unlisted(tally.items, listed, release),
        popularity=dict(zip(listed["item"].to_list(), listed["people"].to_list(), strict=True)),
        number=state.number,
        date=(date or dt.datetime.now(dt.UTC).date()).isoformat(),
        parameters=_parameters(tally.spec, release, groups or GroupSpec(), profiles),
        taste=taste,
    ), state


def _groups(groups: Groups, release: ReleaseSpec, digits: int) -> tuple[RiskGroup, ...]:
    return tuple(
        RiskGroup(centre=round(float(centre), digits), people=release_number_of(int(members), release))
        for centre, members in zip(groups.centres, groups.members, strict=True)
    )


def _shares(shares: Floats, digits: int) -> Floats:
    rounded = np.maximum(shares.round(digits), 10.0**-digits)
    return np.asarray(rounded / rounded.sum())


def _unlisted(items: pl.DataFrame, listed: pl.DataFrame, release: ReleaseSpec) -> float:
    """How many people share an item that is not listed, as its average holder meets it."""
    rest = items.join(listed, on="item", how="anti")["people"].to_numpy().astype(np.float64)
    if not len(rest):
        return max(1.0, release.crowd / 2)
    return max(1.0, float(np.round((rest**2).sum() / rest.sum())))


def _parameters(
    score: ScoreSpec, release: ReleaseSpec, groups: GroupSpec, profiles: ProfileFilter
) -> dict[str, Any]:
    return {
        "rare_fraction": score.rare_fraction,
        "crowd": release.crowd,
        "step": release.step,
        "decimals": release.decimals,
        "literal": release.literal,
        "groups_fewest": groups.fewest,
        "groups_most": groups.most,
        "groups_exactly": groups.exactly,
        "trim": groups.trim,
        "profiles_fewest": profiles.fewest,
        "profiles_most": profiles.most,
    }


def _count(name: str) -> pl.Expr:
    return pl.col(name).sum().cast(pl.Int64)


def _sizes(pairs: pl.DataFrame, by: str, name: str, sign: int = 1) -> pl.DataFrame:
    return pairs.group_by(by).agg((sign * pl.len().cast(pl.Int64)).alias(name))


def _rare(items: pl.DataFrame, threshold: int) -> pl.DataFrame:
    return items.select("item", rare=(pl.col("people") < threshold).cast(pl.Int64))


def _add(total: pl.DataFrame, by: str, *changes: pl.DataFrame, keep_zero: bool = False) -> pl.DataFrame:
    """Add changes to counts; what comes to nothing goes."""
    name = total.columns[1]
    summed = pl.concat([total, *changes]).group_by(by).agg(pl.col(name).sum()).sort(by)
    if summed.filter(pl.col(name) < 0).height:
        raise InputError(
            "removed: expected pairs that were counted before, got some that were not; count anew"
        )
    return summed if keep_zero else summed.filter(pl.col(name) > 0)


def _ask(holders: Holders | None, items: pl.Series) -> pl.DataFrame:
    if holders is None:
        raise InputError(
            f"holders: expected a way to look up who had {len(items)} items that changed sides, got none. "
            "Give holders=, or count everything anew."
        )
    return holders(items).select(PAIR).unique()


# Groups of people with like taste, for providers who publish more to let clients know more.
#
# Spherical k-means on the leading directions of the (rarity-weighted) table. Only group sizes and counts of at
# least `ReleaseSpec.crowd` people leave the provider, through the same rounding as all counts.

ROUNDS = 50
SEED = 0


def publish_taste(
    table: ItemTable,
    activity: ActivityGroups,
    release: ReleaseSpec,
    threshold: int,
    secret: bytes | None = None,
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
    activity: ActivityGroups,
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
