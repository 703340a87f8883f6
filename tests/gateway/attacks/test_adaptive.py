"""Somebody who adapts: how far they get against the q-only rule, and that the private one keeps them to the budget.

The same attacks run over HTTP on both databases, in more worlds, in benchmarks/gateway_adaptive.py.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gateway.attacks.adaptive import (
    CANDIDATES,
    Ask,
    Block,
    Measured,
    after_change,
    before_change,
    exactly_right,
    find_the_edge,
    how_many,
    most,
    most_right,
    naming,
    rehearse,
    swap_strangers,
    world_of,
)
from tests.gateway.attacks.worlds import ALL, SPY, standing
from tests.gateway.weakened import Defences

from incrowd.gateway.query import Query

Attack = Callable[[Ask, Block, int, int], float]
WORLDS, SIZE, NUMBERS = 16, 300, 7
DRAWN_AGAIN = Defences(swapping=False)
"""As the q-only rule was: other strangers draw other amounts."""


def settings(folder: Path, mechanism: str) -> dict[str, Any]:
    (folder / "candidates.json").write_text(json.dumps(CANDIDATES), "utf-8")
    attribute = {"table": "states", "user": "person", "value": "value"}
    attribute |= {"candidates": str(folder / "candidates.json")} if mechanism == "private" else {}
    return {
        "database": {"attributes": {"states": attribute}},
        "release": {"mechanism": mechanism},
        "budget": {"scope": "everyone", "queries": 10**6},
        "limits": {"choices": 500, "solver_seconds": 5.0},
        "allow_weak": True,
    }


def blocks_of(planted: int, worlds: int = 2 * WORLDS, targets: int = 1, rivals: int = 0) -> list[Block]:
    return [
        Block(first=SIZE * n, planted=planted, size=SIZE, targets=targets, rivals=rivals)
        for n in range(worlds)
    ]


def scores(
    folder: Path,
    attack: Attack,
    blocks: Sequence[Block],
    truths: Sequence[int],
    mechanism: str,
    questions: int,
    defences: Defences = ALL,
    also: float = 0.0,
) -> list[float]:
    """Attack many worlds, all of them blocks of one database before one gateway."""
    world = world_of(blocks, truths, 1, also)
    with standing(world, folder, 1, defences, **settings(folder, mechanism)) as gateway:

        def ask(people: Sequence[int]) -> frozenset[str]:
            return frozenset(gateway.answer(SPY, Query("states", naming(people))).values)

        return [attack(ask, block, questions, number) for number, block in enumerate(blocks)]


def measured(
    folder: Path, attack: Attack, planted: int, mechanism: str, questions: int, rivals: int = 0, **more: Any
) -> Measured:
    truths = [int(number < WORLDS) for number in range(2 * WORLDS)]
    found = scores(folder, attack, blocks_of(planted, rivals=rivals), truths, mechanism, questions, **more)
    return Measured.of(found[:WORLDS], found[WORLDS:])


def changed(folder: Path, mechanism: str, defences: Defences = ALL) -> Measured:
    """Two days: nine accounts change, and the victim does or not."""
    blocks, truths = blocks_of(20), [number < WORLDS for number in range(2 * WORLDS)]
    world = world_of(blocks, [0] * len(blocks), 1)
    with standing(world, folder, 1, defences, **settings(folder, mechanism)) as gateway:

        def ask(people: Sequence[int]) -> frozenset[str]:
            return frozenset(gateway.answer(SPY, Query("states", naming(people))).values)

        seen = [before_change(ask, block, 12, number) for number, block in enumerate(blocks)]
        world.lists = world_of(blocks, [0] * len(blocks), 1, changed=truths).lists
        gateway.refresh()
        found = [after_change(ask, one) for one in seen]
    return Measured.of(found[:WORLDS], found[WORLDS:])


def counted(folder: Path, mechanism: str, first: int, questions: int, defences: Defences = ALL) -> float:
    blocks = blocks_of(60, 4 * NUMBERS, targets=30)
    truths = np.random.default_rng(43).permutation(np.arange(len(blocks)) % NUMBERS).tolist()
    attack = partial(how_many, first=first)
    return exactly_right(scores(folder, attack, blocks, truths, mechanism, questions, defences), truths)[0]


def test_whoever_draws_again_beats_the_q_only_rule(folder: Path) -> None:
    assert measured(folder, swap_strangers, 18, "q", 25, defences=DRAWN_AGAIN).advantage > 0.8


def test_swapping_strangers_draws_nothing_new(folder: Path) -> None:
    assert measured(folder, swap_strangers, 18, "q", 25).advantage < 0.5


def test_who_changed_is_found_where_every_question_draws_again(folder: Path) -> None:
    assert changed(folder, "q", DRAWN_AGAIN).advantage > 0.6


def test_questions_that_differ_in_others_say_nothing_about_who_changed(folder: Path) -> None:
    assert changed(folder, "q").advantage < 0.5


def test_with_more_accounts_the_q_only_rule_is_beaten_still(folder: Path) -> None:
    """What the docs and `gateway check` say: no keyed amounts end this."""
    assert measured(folder, swap_strangers, 60, "q", 40).advantage > 0.6


@pytest.mark.parametrize(
    ("attack", "planted", "also", "rivals"),
    [
        (swap_strangers, 18, 0.0, 0),
        (partial(swap_strangers, used=33), 40, 0.0, 0),
        (swap_strangers, 30, 0.5, 0),
        (find_the_edge, 60, 0.0, 0),
        (partial(rehearse, draws=100), 60, 0.0, 30),
    ],
    ids=["15 of 18 accounts", "33 of 40 accounts", "known lists", "learner", "rehearsed"],
)
def test_no_attack_gets_further_than_the_budget_allows(
    folder: Path, attack: Attack, planted: int, also: float, rivals: int
) -> None:
    found = measured(folder, attack, planted, "private", 12, rivals, also=also)
    assert found.low <= most(1.0, 1e-8)
    assert found.advantage <= most(1.0, 1e-8) + 0.1  # so few worlds: the benchmark has more


def test_within_the_budget_nobody_learns_who_changed(folder: Path) -> None:
    assert changed(folder, "private").advantage <= most(1.0, 1e-8)


def test_within_the_budget_nobody_counts_thirty_people(folder: Path) -> None:
    assert counted(folder, "private", first=31, questions=12) <= most_right(1.0, NUMBERS)


def test_the_bound_on_guessing_a_number_by_hand() -> None:
    """Two numbers: the best guess is right with e / (1 + e). No budget: chance."""
    assert most_right(1.0, 2) == pytest.approx(np.e / (1 + np.e))
    assert most_right(0.0, 7) == pytest.approx(1 / 7)


@pytest.mark.parametrize("database", ["duckdb", "postgres"])
def test_over_http_it_is_the_same_on_both_databases(database: str) -> None:
    """The benchmark in small: four worlds each way."""
    from benchmarks.gateway_adaptive import PLANS, row

    warnings.simplefilter("ignore", UserWarning)  # about folders of the user, of no concern here
    cells = [cell.strip() for cell in row(PLANS["edge"], database, "private", 4).strip("|").split("|")]
    assert cells[:2] == [database, "private"]
    assert float(cells[4].split(" to ")[0]) <= most(1.0, 1e-8)
    assert float(cells[5]) == pytest.approx(most(1.0), abs=0.01)
