"""What the microdata measure can be asked: options and named adversaries, as plain values."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from incrowd.errors import InputError

Rounding = Literal["half-up", "floor", "ceil"]
ROUNDINGS: tuple[Rounding, ...] = ("half-up", "floor", "ceil")


def _require(ok: bool, what: str, expected: str, got: object) -> None:
    if not ok:
        raise InputError(f"{what}: expected {expected}, got {got!r}")


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """How much of a profile the adversary knows: one of several amounts, drawn by weight.

    The default is the paper's: 5, 6, ... or 20 percent of the items, each as likely, picked at random.
    Fixed numbers of items (``Knowledge(percents=(), items=(5,))``) and mixtures of both work alike.
    """

    percents: tuple[float, ...] = tuple(range(5, 21))
    items: tuple[int, ...] = ()
    """Fixed numbers of known items, beside the percentages."""
    weights: tuple[float, ...] | None = None
    """Of the percentages, then of the numbers; None: all alike."""
    rounding: Rounding = "half-up"
    minimum: int = 1
    """Nobody attacks with less. 0 lets small profiles round down to "knows nothing": everybody fits."""
    wrong: int = 0
    """How many of the known items may be missing from a profile that still counts as fitting."""

    def __post_init__(self) -> None:
        amounts = len(self.percents) + len(self.items)
        _require(amounts > 0, "Knowledge", "at least one percentage or number of items", "none")
        _require(
            all(0 < p <= 100 for p in self.percents), "Knowledge.percents", "0 < p <= 100", self.percents
        )
        _require(all(s >= 1 for s in self.items), "Knowledge.items", "numbers of at least 1", self.items)
        _require(self.rounding in ROUNDINGS, "Knowledge.rounding", f"one of {ROUNDINGS}", self.rounding)
        _require(self.minimum >= 0, "Knowledge.minimum", "0 or more", self.minimum)
        _require(self.wrong >= 0, "Knowledge.wrong", "0 or more", self.wrong)
        if self.weights is not None:
            ok = len(self.weights) == amounts and min(self.weights) >= 0 and sum(self.weights) > 0
            _require(ok, "Knowledge.weights", f"{amounts} weights, none negative, not all zero", self.weights)

    @property
    def words(self) -> str:
        """The adversary in plain words."""
        parts = []
        if self.percents:
            low, high = min(self.percents), max(self.percents)
            parts.append(f"{low:g} %" if low == high else f"{low:g}–{high:g} %")
        if self.items:
            low, high = min(self.items), max(self.items)
            parts.append(f"{low}" if low == high else f"{low} to {high}")
        slips = f", {self.wrong} of them perhaps wrong" if self.wrong else ""
        return f"someone who knows {' or '.join(parts)} of your items{slips}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return {key: list(part) if isinstance(part, tuple) else part for key, part in asdict(self).items()}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Knowledge:
        """Read what :meth:`to_dict` wrote."""
        parts: dict[str, Any] = {
            key: tuple(part) if isinstance(part, list) else part for key, part in plain.items()
        }
        return cls(**parts)


@dataclass(frozen=True, kw_only=True)
class Matching:
    """What has to agree besides having the item at all; None: nothing."""

    rating_within: float | None = None
    days_within: float | None = None

    @property
    def words(self) -> str:
        """What a crowd must hold for it, in plain words; empty for the items alone."""
        needed = {"ratings": self.rating_within, "dates": self.days_within}
        return " or ".join(name for name, within in needed.items() if within is not None)


@dataclass(frozen=True, kw_only=True)
class Adversary:
    """Somebody who attacks: what they know, and how they use it."""

    name: str
    words: str
    knowledge: Knowledge = field(default_factory=Knowledge)
    matching: Matching = field(default_factory=Matching)
    rarest_first: bool = False
    """Knows the rarest items instead of random ones."""


PAPER = Adversary(name="paper", words="someone who knows 5–20 % of your items")
ADVERSARIES: dict[str, Adversary] = {
    adversary.name: adversary
    for adversary in (
        PAPER,
        Adversary(
            name="acquaintance",
            words="someone who knows three of your items, or all if there are fewer",
            knowledge=Knowledge(percents=(), items=(3,)),
        ),
        Adversary(
            name="friend",
            words="someone who knows half of your items",
            knowledge=Knowledge(percents=(50,)),
        ),
        Adversary(
            name="unsure",
            words="someone who knows 5–20 % of your items, one of them perhaps wrong",
            knowledge=Knowledge(wrong=1),
        ),
        Adversary(
            name="ratings",
            words="someone who knows 5–20 % of your items and how you rated them, give or take 1",
            matching=Matching(rating_within=1),
        ),
        Adversary(
            name="dates",
            words="someone who knows 5–20 % of your items and when, give or take 14 days",
            matching=Matching(days_within=14),
        ),
        Adversary(
            name="rarest",
            words="someone who knows your rarest items, 5–20 % of all",
            rarest_first=True,
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class FewItems:
    """Somebody who knows a handful of items and names one of the people who fit: the adversaries of the verdict."""

    name: str
    words: str
    way: str
    """How the items came to be known: random, rarest or dated."""
    count: int


FEW_ITEMS = {
    one.name: one
    for one in (
        FewItems(name="three-items", words="someone who knows three of your items", way="random", count=3),
        FewItems(name="ten-items", words="someone who knows ten of your items", way="random", count=10),
        FewItems(
            name="three-rarest", words="someone who knows your three rarest items", way="rarest", count=3
        ),
        FewItems(
            name="three-dated",
            words="someone who knows three of your items and when, give or take 14 days",
            way="dated",
            count=3,
        ),
    )
}
DECIDES = "three-items"
"""The plausible adversary of a verdict."""


def adversary(name: str) -> Adversary:
    """Return the named adversary."""
    if name not in ADVERSARIES:
        there = ", ".join([*FEW_ITEMS, *ADVERSARIES])
        raise InputError(f"adversary: expected one of {there}; got '{name}'")
    return ADVERSARIES[name]


@dataclass(frozen=True, kw_only=True)
class ScoreSpec:
    """How the paper's score is computed: ``rare/all + log(all)``, then turned so that 1 is safest."""

    rare_below: int = 100
    """An item is rare if fewer people than this have it."""
    rare_fraction: float | None = None
    """If given, the line is this share of the crowd instead, e.g. 0.01."""
    log_base: float = math.e

    def __post_init__(self) -> None:
        _require(self.rare_below >= 1, "--rare-below", "1 or more", self.rare_below)
        _require(self.log_base > 1, "ScoreSpec.log_base", "a number above 1", self.log_base)
        fraction = self.rare_fraction
        _require(fraction is None or 0 < fraction < 1, "--rare-fraction", "0 < share < 1", fraction)

    def threshold(self, users: int) -> int:
        """Below how many people an item is rare in a crowd of this size."""
        return (
            self.rare_below if self.rare_fraction is None else max(1, math.ceil(self.rare_fraction * users))
        )


@dataclass(frozen=True, kw_only=True)
class GroupSpec:
    """How scores are cut into groups: X-means on a line, then trimmed."""

    fewest: int = 2
    most: int = 10
    exactly: int | None = None
    """A fixed number of groups instead of the search."""
    trim: float = 0.05
    """Share cut off at either end of a group before its centre is taken."""
    trim_from: int = 20
    """Smaller groups are not trimmed."""

    def __post_init__(self) -> None:
        ok = 1 <= self.fewest <= self.most
        _require(ok, "GroupSpec", "1 <= fewest <= most", (self.fewest, self.most))
        _require(self.exactly is None or self.exactly >= 1, "GroupSpec.exactly", "1 or more", self.exactly)
        _require(0 <= self.trim < 0.5, "GroupSpec.trim", "0 <= share < 0.5", self.trim)


@dataclass(frozen=True, kw_only=True)
class ReleaseSpec:
    """What keeps published counts from pointing at a person. `literal` publishes the paper's exact ones."""

    crowd: int = 10
    """Fewer people than this never show: as a count, as a step between counts, as a change of one."""
    step: float = 1.1
    """Counts are told as bands this much apart (or `crowd`, if that is wider)."""
    decimals: int = 2
    """Of score borders and centres."""
    activity_classes: int = 8
    """Groups of people by how much they have, used by the expected crowd."""
    taste_groups: int = 0
    """Groups of people by taste, each with its own bands: a sharper expected crowd for more disclosure."""
    literal: bool = False

    def __post_init__(self) -> None:
        _require(self.crowd >= 1, "ReleaseSpec.crowd", "1 or more", self.crowd)
        _require(self.step >= 1, "ReleaseSpec.step", "1 or more", self.step)
        _require(self.decimals >= 0, "ReleaseSpec.decimals", "0 or more", self.decimals)
        _require(
            self.activity_classes >= 1, "ReleaseSpec.activity_classes", "1 or more", self.activity_classes
        )
        _require(self.taste_groups >= 0, "ReleaseSpec.taste_groups", "0 or more", self.taste_groups)


@dataclass(frozen=True, kw_only=True)
class ProfileFilter:
    """Whose profiles take part. The paper leaves out those with fewer than 8 or more than 5,000 items."""

    fewest: int = 8
    most: int = 5000

    def __post_init__(self) -> None:
        _require(self.fewest >= 1, "ProfileFilter.fewest", "1 or more", self.fewest)
        ok = self.fewest <= self.most
        _require(ok, "ProfileFilter.most", f"at least as many as the fewest, {self.fewest}", self.most)
