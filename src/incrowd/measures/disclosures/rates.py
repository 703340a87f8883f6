"""A whole crowd: how many people tell what, never who."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from incrowd.crowd import Crowd
from incrowd.measures.disclosures.assess import disclosed
from incrowd.measures.disclosures.spec import DisclosureOptions
from incrowd.result import Result

FEWEST = 10
"""A rate of fewer people would be about somebody."""
MOST_PEOPLE = 1_000
"""A larger crowd is sampled: rates need no more."""


@dataclass(frozen=True, kw_only=True, repr=False)
class DisclosureRates(Result):
    """What the people of a crowd tell."""

    people: int
    """Whose posts were read."""
    sampled: bool
    told: dict[str, float]
    """By attribute, the share of people who tell it; attributes that fewer than ten tell are left out."""
    named: float
    """The share of people whose posts hold a direct identifier."""
    few: float
    """The share of people whose told facts fit fewer than ten people."""

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        return (
            f"Of {self.people:,} people, {self.named:.0%} name themselves in a post, and for {self.few:.0%} what they "
            "have told fits fewer than ten people."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            "people": self.people,
            "sampled": self.sampled,
            "told": dict(self.told),
            "named": self.named,
            "few": self.few,
        }

    def bars(self) -> list[tuple[str, float]]:
        """Return the shares, the largest first."""
        return sorted(self.told.items(), key=lambda part: -part[1])


def measure(crowd: Crowd, options: DisclosureOptions | None = None, *, seed: int = 0) -> DisclosureRates:
    """Read the posts of a crowd's people, or of a sample, and count who tells what."""
    options = options or DisclosureOptions()
    users = crowd.posts().select("user").unique().sort("user").collect()["user"]
    chosen = np.sort(np.random.default_rng(seed).permutation(len(users))[:MOST_PEOPLE])
    some = users.gather(chosen)
    posts = (
        crowd.posts().filter(pl.col("user").is_in(some.to_list())).select("user", "time", "text").collect()
    )
    told: Counter[str] = Counter()
    named = few = 0
    for mine in posts.partition_by("user"):
        rows = mine.select("time", "text").iter_rows()
        found = disclosed(((number, time, text) for number, (time, text) in enumerate(rows)), options)
        told.update({fact.attribute for fact in found.told})
        named += bool(found.identifiers)
        few += bool(found.identifiers) or (bool(found.told) and found.together.people < FEWEST)
    people = max(len(some), 1)
    return DisclosureRates(
        people=len(some),
        sampled=len(users) > len(some),
        told={name: count / people for name, count in sorted(told.items()) if count >= FEWEST},
        named=named / people if named >= FEWEST or named == 0 else float("nan"),
        few=few / people if few >= FEWEST or few == 0 else float("nan"),
    )
