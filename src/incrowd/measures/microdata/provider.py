"""The provider's side (paper 002, algorithm 1): count, score everybody, group, publish."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from incrowd.errors import InputError
from incrowd.measures.microdata.definition import Floats, privacy_score, risk_raw
from incrowd.measures.microdata.expected_crowd import Activity, fit_activity
from incrowd.measures.microdata.groups import Groups, find_groups
from incrowd.measures.microdata.release import ReleaseState, release_counts, release_number_of
from incrowd.measures.microdata.spec import GroupSpec, Knowledge, ProfileFilter, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import Group, Statistics, Taste
from incrowd.measures.microdata.table import ItemTable

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
class Scored:
    """Everybody's score, before anything is rounded for publication."""

    raw: Floats
    scores: Floats
    raw_min: float
    raw_max: float
    groups: Groups


def score_everybody(
    items: Any, rare: Any, spec: ScoreSpec, groups: GroupSpec | None = None, *, outliers: int = 0
) -> Scored:
    """Score and group people by their numbers of items and rare items.

    `outliers` people at either end do not set the scale (their scores are clamped), so that the published
    scale is nobody's own value.
    """
    raw = risk_raw(items, rare, spec.log_base)
    if not len(raw):
        raise InputError("profiles: expected somebody to score, got nobody")
    end = min(outliers, (len(raw) - 1) // 2)
    ordered = np.sort(raw)
    low, high = float(ordered[end]), float(ordered[-1 - end])
    free = privacy_score(raw, low, high)
    # With one raw value for all there is one group, and no scale.
    found = find_groups(free, groups) if high > low else Groups(np.array([0.5]), np.array([len(raw)]))
    inside = Groups(np.clip(found.centres, 0.0, 1.0), found.members)
    return Scored(raw, np.clip(free, 0.0, 1.0), low, high, inside)


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
    scored = score_everybody(
        told["items"].to_numpy(), told["rare"].to_numpy(), tally.spec, groups, outliers=outliers
    )
    people = tally.users.height
    activity = fit_activity(
        tally.users["items"].to_numpy(), tally.items["people"].to_numpy() / people, release.activity_classes
    )
    digits = 15 if release.literal else release.decimals
    return Statistics(
        users=release_number_of(people, release),
        rare_below=tally.threshold,
        log_base=tally.spec.log_base,
        raw_min=round(scored.raw_min, digits),
        raw_max=round(scored.raw_max, digits),
        groups=_groups(scored.groups, release, digits),
        knowledge=knowledge or Knowledge(),
        activity=Activity(_shares(activity.shares, digits), activity.levels.round(digits)),
        unlisted=_unlisted(tally.items, listed, release),
        popularity=dict(zip(listed["item"].to_list(), listed["people"].to_list(), strict=True)),
        number=state.number,
        date=(date or dt.datetime.now(dt.UTC).date()).isoformat(),
        parameters=_parameters(tally.spec, release, groups or GroupSpec(), profiles),
        taste=taste,
    ), state


def _groups(groups: Groups, release: ReleaseSpec, digits: int) -> tuple[Group, ...]:
    return tuple(
        Group(centre=round(float(centre), digits), people=release_number_of(int(members), release))
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
