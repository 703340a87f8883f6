"""Attacks on published popularity: subtract one release from the next, and see who came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from tests.gateway.attacks.worlds import Attack, advantage

from incrowd.measures.microdata.provider import Tally, publish
from incrowd.measures.microdata.spec import ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import ReleaseState
from incrowd.measures.microdata.table import item_table

HERS = [f"item {k}" for k in range(20, 32)]
"""What the victim has."""
EXACT = ReleaseSpec(literal=True)


def ratings(seed: int, present: bool) -> pl.DataFrame:
    """Two hundred people with items of falling popularity; the victim comes, or somebody else does."""
    rng = np.random.default_rng(seed)
    chance = 0.6 / (1 + np.arange(60) / 6)
    has = rng.random((200, 60)) < chance
    others = [f"item {k}" for k in np.flatnonzero(rng.random(60) < chance)]
    rows = [(f"u{user}", f"item {item}") for user, item in zip(*np.nonzero(has), strict=True)]
    if seed >= 0:
        rows += [("new", item) for item in ([*HERS, "one of a kind"] if present else [*others, "item 0"])]
    return pl.DataFrame(rows, schema=["user", "item"], orient="row")


def subtraction(release: ReleaseSpec) -> Attack:
    """Two releases, before and after one person came: which items went up?"""

    def attack(number: int, present: bool) -> Sequence[float]:
        after = ratings(number, present)
        state, told = ReleaseState.fresh(bytes([number]) * 32), []
        for frame in (after.filter(pl.col("user") != "new"), after):
            statistics, state = publish(
                Tally.of(item_table(frame), ScoreSpec()), state=state, release=release
            )
            told.append(statistics.popularity)
        rose = [told[1].get(item, 0) > told[0].get(item, 0) for item in HERS]
        return [sum(rose), *rose, "one of a kind" in told[1]]

    return attack


def test_exact_counts_show_who_came() -> None:
    assert advantage(subtraction(EXACT), worlds=10).named == 1


def test_banded_counts_do_not() -> None:
    assert advantage(subtraction(ReleaseSpec()), worlds=30).best < 0.35


def test_what_one_person_has_is_never_listed() -> None:
    attack = subtraction(ReleaseSpec())
    assert not any(attack(number, True)[-1] for number in range(10))
