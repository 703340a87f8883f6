"""How few items it takes: against every possible choice of items, one by one, from the definition alone."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import polars as pl
import pytest

from incrowd.measures.microdata.explain import few_items_meaning
from incrowd.measures.microdata.known_items import KnownItems, known_items
from incrowd.measures.microdata.set_sizes import Effort
from incrowd.measures.microdata.spec import FEW_ITEMS
from incrowd.measures.microdata.table import ItemTable, item_table


def small_crowd(seed: int, *, dated: bool = True) -> pl.DataFrame:
    """Return twelve people with up to seven of nine items, some bought on about the same days."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(12):
        for item in rng.choice(9, rng.integers(3, 8), replace=False).tolist():
            rows.append(
                (f"p{person:02}", f"i{item}", float(rng.integers(1, 6)), int(rng.integers(0, 60)) * 86_400)
            )
    frame = pl.DataFrame(rows, schema=["user", "item", "value", "time"], orient="row")
    return frame if dated else frame.with_columns(time=pl.lit(None, pl.Int64))


def success(
    frame: pl.DataFrame,
    user: str,
    known: tuple[str, ...],
    days: float = math.inf,
    back: frozenset[str] = frozenset(),
) -> float:
    """Return how likely the person is named: the most likely list by Bayes' rule, ties broken by chance.

    An item counts if it was bought within some days of the person's own date; `back` are items the person took back.
    """
    when = {(u, i): t / 86_400 for u, i, _, t in frame.iter_rows()}
    lists = {u: set(own) for u, own in frame.group_by("user").agg("item").iter_rows()}
    own_date = {i: when[user, i] for i in known}
    lists[user] -= back
    listed = Counter(item for own in lists.values() for item in own)

    def likelihood(other: str) -> float:
        held = [i in lists[other] and abs(when[other, i] - own_date[i]) <= days for i in known]
        wrong = [0.05 * max(listed[i], 1) / listed.total() for i in known]
        length = max(len(lists[other]), 1)
        return math.prod(0.95 * has / length + slip for has, slip in zip(held, wrong, strict=True))

    likely = {other: likelihood(other) for other in lists}
    nothing = math.prod(0.05 * max(listed[i], 1) / listed.total() for i in known)
    if math.isclose(likely[user], nothing) or max(likely.values()) > likely[user] * (1 + 1e-9):
        return 0.0
    return 1 / sum(math.isclose(one, likely[user]) for one in likely.values())


def chance(
    frame: pl.DataFrame,
    user: str,
    count: int,
    days: float = math.inf,
    back: frozenset[str] = frozenset(),
) -> float:
    """Return how often the person is named over all choices of so many items."""
    own = sorted(frame.filter(pl.col("user") == user)["item"])
    choices = itertools.combinations(own, count)
    return float(np.mean([success(frame, user, some, days, back) for some in choices]))


def rarest(frame: pl.DataFrame, user: str, count: int) -> float:
    holders = dict(frame.group_by("item").len().iter_rows())
    own = sorted(frame.filter(pl.col("user") == user)["item"], key=lambda item: (holders[item], item))
    return success(frame, user, tuple(own[:count]))


def never_worse(chances: list[float]) -> list[float]:
    """Return the same if the adversary may go by one or by three of the items known."""
    return [
        max(one, *(chances[less - 1] for less in (1, 3) if less <= k)) for k, one in enumerate(chances, 1)
    ]


def fewest(chances: list[float]) -> float:
    return next((k for k, one in enumerate(chances, start=1) if one >= 0.5), math.inf)


@pytest.mark.parametrize("seed", range(4))
def test_every_choice_of_items_one_by_one(seed: int) -> None:
    frame = small_crowd(seed)
    table = item_table(frame)
    for user in ("p00", "p05", "p11"):
        found = known_items(table, table.row_of(user))
        numbers = range(1, found.items + 1)
        by_definition = {
            "random": [chance(frame, user, k) for k in numbers],
            "rarest": [rarest(frame, user, k) for k in numbers],
            "dated": [chance(frame, user, k, days=14) for k in numbers],
        }
        for way, chances in ((way, never_worse(told)) for way, told in by_definition.items()):
            assert found.takes[way] == (fewest(chances),) * 3
            for k in (1, 3, 10):
                told = found.probability[way][k]
                assert told.value == pytest.approx(chances[min(k, found.items) - 1])
                assert told.low == told.high == told.value
                assert found.parts[way][k].sum() == pytest.approx(told.value)


@pytest.mark.parametrize("seed", range(4))
def test_what_was_learnt_elsewhere_stays_known_when_items_are_taken_back(seed: int) -> None:
    frame = small_crowd(seed)
    for user in ("p01", "p07"):
        before = item_table(frame)
        row = before.row_of(user)
        own = before.items.gather(before.profile(row).tolist()).to_list()
        back = frozenset(own[:2])
        gone = pl.col("item").is_in(list(back)) & (pl.col("user") == user)
        after = item_table(frame.filter(~gone))
        elsewhere = np.array([after.items.index_of(item) for item in own], np.int32)
        found = known_items(after, row, elsewhere=elsewhere)
        chances = never_worse([chance(frame, user, k, back=back) for k in (1, 2, 3)])
        for k in (1, 3):
            assert found.probability["random"][k].value == pytest.approx(chances[k - 1])


def test_knowing_more_is_never_worse_for_the_adversary() -> None:
    # Half of a list is taken back: the shortest list is named for any one item of it that is left, and hardly ever for
    # three, of which most often one is gone.
    lists = {f"p{n}": range(20) for n in range(5)} | {"me": range(10)}
    rows = [(who, f"i{item:02}") for who, own in lists.items() for item in own]
    table = item_table(pl.DataFrame(rows, schema=["user", "item"], orient="row"))
    elsewhere = np.arange(20, dtype=np.int32)
    told = known_items(table, table.row_of("me"), elsewhere=elsewhere).probability["random"]
    assert told[1].value == told[3].value == told[10].value == 0.5


def test_a_short_list_is_found_sooner_than_a_long_one_that_holds_the_same() -> None:
    rows = [("short", item) for item in "abc"] + [("long", item) for item in "abcdefg"]
    rows += [(f"other{n}", item) for n in range(5) for item in "xyz"]
    table = item_table(pl.DataFrame(rows, schema=["user", "item"], orient="row"))
    short, long = (
        known_items(table, table.row_of(who)).probability["random"][3] for who in ("short", "long")
    )
    assert short.value == 1.0
    assert long.value == pytest.approx(
        1 - 1 / 35
    )  # one choice of three in 35 is all that the short list holds


def test_sampling_says_so_and_encloses_the_truth() -> None:
    rng = np.random.default_rng(0)
    lists = [rng.choice(14, rng.integers(9, 12), replace=False).tolist() for _ in range(30)]
    rows = [(f"p{person:02}", f"i{item:02}") for person, own in enumerate(lists) for item in own]
    table = item_table(pl.DataFrame(rows, schema=["user", "item"], orient="row"))
    for row in range(30):
        exact, sampled = (known_items(table, row, Effort(rounds=rounds)) for rounds in (500, 60))
        truth, told = (found.probability["random"][3] for found in (exact, sampled))
        assert truth.low == truth.high
        assert told.low <= truth.value <= told.high
        assert told.high - told.low > 0.05
        low, high = sampled.takes["random"][1:]
        assert low <= exact.takes["random"][0] <= high


def test_twins_are_never_told_apart_and_dates_need_dates() -> None:
    alike = pl.DataFrame({"user": ["a"] * 3 + ["b"] * 3 + ["c"] * 3, "item": ["x", "y", "z"] * 3})
    table = item_table(alike)
    found = known_items(table, table.row_of("a"))
    assert found.takes == {"random": (math.inf,) * 3, "rarest": (math.inf,) * 3}
    assert found.to_dict()["takes"] == {"random": None, "rarest": None}
    assert not found.tells("dated")
    assert not known_items(item_table(small_crowd(0, dated=False)), 0).tells("dated")


def test_what_is_kept_is_what_was_found(table: ItemTable) -> None:
    found = known_items(table, 4)
    again = KnownItems.from_arrays(found.items, found.arrays())
    assert (again.probability, again.takes) == (found.probability, found.takes)
    assert again.parts["random"][3].tolist() == found.parts["random"][3].tolist()


@pytest.mark.parametrize(
    ("takes", "said"),
    [
        (
            {"random": 2, "rarest": 1, "dated": 1},
            "takes 2 items picked at random, 1 of your rarest, or 1 with dates",
        ),
        ({"random": 1}, "takes 1 item picked at random"),
        (
            {"random": math.inf, "rarest": 3, "dated": math.inf},
            "takes 3 items of your rarest, or more than you have if they are picked at random or known with dates",
        ),
        (
            {"random": math.inf, "rarest": math.inf},
            "takes more items than you have",
        ),
    ],
)
def test_how_few_it_takes_reads_as_a_sentence(takes: dict[str, float], said: str) -> None:
    known = KnownItems(
        items=9, probability={}, takes={way: (count,) * 3 for way, count in takes.items()}, parts={}
    )
    who = few_items_meaning(0.7, 60, FEW_ITEMS["three-items"], known, known.items)
    assert who.endswith(f"To be right half of the time it {said}.")


def test_what_it_takes_after_items_were_taken_back_counts_those_that_may_have_become_known() -> None:
    takes = {"random": (18.0,) * 3, "rarest": (39.0,) * 3, "dated": (math.inf,) * 3}
    known = KnownItems(items=41, probability={}, takes=takes, parts={})
    said = few_items_meaning(0.3, 60, FEW_ITEMS["three-items"], known, 21)
    assert said.endswith(
        "To be right half of the time it takes, of the 41 items you had, 18 picked at random, 39 of your rarest, or "
        "more than these if they are known with dates."
    )
