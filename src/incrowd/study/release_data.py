"""The table that release queries are put to: what is asked for, what selects a class, and how values are spelt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.arrays import Ints
from incrowd.errors import InputError
from incrowd.measures.release import Budget, HolderIndex, SuppressOptions, suppress
from incrowd.measures.release.canonical import Aliases, canonicalise, propose

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

ITEMS = "items"
"""Name of the items table where an attribute of interest is asked for."""
AT_RANDOM = "people drawn at random"
RANDOM_SIZES = (25, 50, 100, 200, 400, 800, 1600)
LOOK_ALIKE_NAMES = 3000
"""Above this many names look-alikes are not compared: the work grows with the square."""


@dataclass(frozen=True, kw_only=True)
class ReleaseStudyOptions:
    """What is asked, and how much is computed."""

    attribute: str | None = None
    """What the queries ask for; None takes the items, or else the attribute with most values, in all and a person."""
    aliases: Aliases = field(default_factory=dict)
    thresholds: tuple[int, ...] = (10, 27)
    select_by: tuple[str, ...] = ()
    """Attributes by which queries select people; none: all but the one asked for."""
    classes: int = 40
    """Classes looked at in detail, at most."""
    seconds: float = 1.0
    """Time budget of one question to the engine."""
    seed: int = 0
    timed: bool = False
    """Also measure speed; the only part that differs from run to run."""


@dataclass(frozen=True, eq=False, repr=False)
class AskedClasses:
    """Who lists what, as numbers, and the classes that queries select."""

    interest: str
    people: int
    user: Ints
    value: Ints
    """With `user`: a row for each person and a value they list."""
    names: tuple[str, ...]
    """The values by number."""
    classes: Mapping[str, tuple[Ints, ...]]
    """Attribute -> the people of each of its values, largest class first."""
    data_hash: str

    def index(self, spelling: Ints | None = None, members: Ints | None = None) -> HolderIndex:
        """Return the answer for these people (None: everybody), values renumbered by a spelling."""
        user, value = self.user, self.value
        if members is not None:
            inside = np.zeros(self.people, dtype=np.bool_)
            inside[members] = True
            user, value = user[inside[user]], value[inside[user]]
        return HolderIndex.from_pairs(user, value if spelling is None else spelling[value])

    @cached_property
    def holders(self) -> Ints:
        """How many people list each value."""
        return np.bincount(self.value, minlength=len(self.names)).astype(np.int64)


def asked_of(crowd: Crowd, options: ReleaseStudyOptions) -> AskedClasses:
    """Read what the study needs from a crowd's items and attributes."""
    items = crowd.items().select("user", pl.col("item").alias("value")).collect()
    attributes = crowd.attributes().select("user", "attribute", "value").collect()
    interest = options.attribute or _most_listed(items, attributes)
    rows = _rows_of(interest, items, attributes)
    users = pl.concat([rows["user"], attributes["user"]]).unique().sort()
    values = rows["value"].unique().sort()
    rows = rows.unique(maintain_order=True)
    return AskedClasses(
        interest=interest,
        people=len(users),
        user=_number(rows["user"], users),
        value=_number(rows["value"], values),
        names=tuple(values.to_list()),
        classes=_classes(_selected_by(attributes, interest, options.select_by), users, options.seed),
        data_hash=crowd.data_hash,
    )


def _selected_by(attributes: pl.DataFrame, interest: str, names: tuple[str, ...]) -> pl.DataFrame:
    others = attributes.filter(pl.col("attribute") != interest)
    known = others["attribute"].unique().to_list()
    if unknown := [name for name in names if name not in known]:
        there = ", ".join(sorted(known)) or "there are none"
        raise InputError(
            f"--select-by: expected attributes other than '{interest}' ({there}), got '{unknown[0]}'"
        )
    return others.filter(pl.col("attribute").is_in(names)) if names else others


def _most_listed(items: pl.DataFrame, attributes: pl.DataFrame) -> str:
    if items.height:
        return ITEMS
    if attributes.is_empty():
        raise InputError(
            "study release: the crowd has neither items nor attributes to ask for; "
            "import some with incrowd ingest --kind items or --kind attributes"
        )
    each, different = pl.len() / pl.col("user").n_unique(), pl.col("value").n_unique()
    given = attributes.group_by("attribute").agg(richness=each * different)
    return str(given.sort(["richness", "attribute"], descending=[True, False])["attribute"][0])


def _rows_of(interest: str, items: pl.DataFrame, attributes: pl.DataFrame) -> pl.DataFrame:
    if interest == ITEMS and items.height:
        return items
    rows = attributes.filter(attribute=interest).select("user", "value")
    if rows.is_empty():
        known = ", ".join(sorted(attributes["attribute"].unique().to_list())) or "none"
        raise InputError(
            f"--attribute: expected an attribute of the crowd ({known}) or '{ITEMS}', got '{interest}'"
        )
    return rows


def _number(column: pl.Series, among: pl.Series) -> Ints:
    return np.asarray(among.search_sorted(column), dtype=np.int64)


def _classes(attributes: pl.DataFrame, users: pl.Series, seed: int) -> dict[str, tuple[Ints, ...]]:
    found: dict[str, tuple[Ints, ...]] = {}
    for name in sorted(attributes["attribute"].unique().to_list()):
        members = attributes.filter(attribute=name).unique().group_by("value").agg("user").sort("value")
        groups = [_number(group, users) for group in members["user"]]
        found[name] = tuple(sorted(groups, key=len, reverse=True))
    if found:
        return found
    shuffled = np.random.default_rng(seed).permutation(len(users))
    sizes = [*(size for size in RANDOM_SIZES if size < len(users)), len(users)]
    return {AT_RANDOM: tuple(np.sort(shuffled[:size]) for size in sizes[::-1])}


@dataclass(frozen=True, eq=False)
class Spelling:
    """One way to tell values apart: as they were written, tidied, or with look-alikes joined."""

    name: str
    number: Ints
    """Value number -> number of the thing it stands for."""

    @property
    def things(self) -> int:
        """How many different things there are."""
        return int(self.number.max()) + 1


def spellings(asked: AskedClasses, aliases: Aliases) -> tuple[Spelling, ...]:
    """Return the values as written, tidied, and (if not too many) with every look-alike joined unseen.

    The last is an upper bound: in a real release a person decides about look-alikes.
    """
    raw = Spelling("as written", np.arange(len(asked.names)))
    tidy = Spelling("tidied", _joined(asked, aliases))
    if tidy.things > LOOK_ALIKE_NAMES:
        return raw, tidy
    sized = {name: range(int(count)) for name, count in zip(asked.names, asked.holders, strict=True)}
    alike = {one.value: one.canonical for one in propose(canonicalise(sized, aliases))}
    return raw, tidy, Spelling("look-alikes joined", _joined(asked, {**alike, **aliases}))


def _joined(asked: AskedClasses, aliases: Aliases) -> Ints:
    groups = canonicalise({name: [place] for place, name in enumerate(asked.names)}, aliases)
    number = np.zeros(len(asked.names), dtype=np.int64)
    for thing, places in enumerate(groups.values()):
        number[np.array(places, dtype=np.int64)] = thing
    return number


SWEEP = (3, 5, 7, 10, 14, 20, 27, 35, 50)
"""Thresholds of the curves; the paper goes up to 50."""
PATIENCE = 10
"""How many times the budget of a measurement thinning may take: it ends by itself, a busy machine makes it late."""


@dataclass(frozen=True, kw_only=True)
class Released:
    """What an answer may release at one threshold; NaN where the budget ended before there was a proof."""

    threshold: int
    values: int
    enough: int
    """Values with as many holders as the threshold; no more can leave."""
    released: float
    entries: float
    """Pairs of a person and a released value."""
    share: float
    """Of all entries."""


def release(index: HolderIndex, threshold: int, options: SuppressOptions) -> Released:
    """Thin an answer out and count what is left."""
    found = suppress(index, threshold, options=options)
    over = found.reason.startswith("over_budget")
    places = [index.position[value] for value in found.released]
    entries = np.nan if over else float(index.supports[places].sum())
    return Released(
        threshold=threshold,
        values=len(index.values),
        enough=int((index.supports >= threshold).sum()),
        released=np.nan if over else float(len(places)),
        entries=entries,
        share=ratio(entries, float(index.supports.sum())),
    )


@dataclass(frozen=True, eq=False)
class Work:
    """The table, the options, and what several sections need."""

    asked: AskedClasses
    options: ReleaseStudyOptions
    spellings: tuple[Spelling, ...]

    def suppression(self, class_size: int | None = None) -> SuppressOptions:
        """Return the engine's options for one question."""
        return SuppressOptions(budget=Budget(seconds=PATIENCE * self.options.seconds), class_size=class_size)

    @property
    def tidying_helps(self) -> bool:
        """False where every value was already spelt one way only."""
        return self.tidied.things < len(self.asked.names)

    @property
    def tidied(self) -> Spelling:
        """The spelling that a real release would use."""
        return self.spellings[1]

    @cached_property
    def everybody(self) -> dict[str, HolderIndex]:
        """For each spelling, who lists what."""
        return {one.name: self.asked.index(one.number) for one in self.spellings}

    @cached_property
    def curves(self) -> dict[str, list[Released]]:
        """For each spelling, what the answer for everybody may release at each threshold of the sweep."""
        thresholds = sorted({*SWEEP, *self.options.thresholds})
        options = self.suppression()
        return {
            name: [release(index, threshold, options) for threshold in thresholds]
            for name, index in self.everybody.items()
        }

    @cached_property
    def chosen(self) -> list[Ints]:
        """Classes looked at in detail: large enough for the lowest threshold; a seeded sample if many."""
        least = min(self.options.thresholds)
        large = [one for classes in self.asked.classes.values() for one in classes if len(one) >= least]
        if len(large) <= self.options.classes:
            return large
        some = np.random.default_rng(self.options.seed).choice(
            len(large), self.options.classes, replace=False
        )
        return [large[place] for place in np.sort(some)]


def ratio(part: float, whole: float) -> float:
    """Divide; nothing of nothing is not known."""
    return part / whole if whole else np.nan


def percent(share: float | np.floating[Any]) -> float:
    """Write a share as percent, with a thousandth of a percent as the finest step."""
    return round(100 * float(share), 3)


def at_threshold(curve: list[Released], threshold: int) -> Released:
    """Return the point of a curve."""
    return next(one for one in curve if one.threshold == threshold)


def count(number: float) -> int | float:
    """Write a whole number as one; NaN stays."""
    return number if np.isnan(number) else int(number)
