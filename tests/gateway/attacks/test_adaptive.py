"""Somebody who adapts wins against the q-only rule, and stays below what the budget allows against the private one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.attacks.adaptive import (
    CANDIDATES,
    Ask,
    Block,
    Measured,
    find_the_edge,
    most,
    naming,
    swap_strangers,
    world_of,
)
from tests.gateway.attacks.worlds import SPY, has, standing

Attack = Callable[[Ask, Block, int, int], float]
WORLDS = 20


def measured(folder: Path, attack: Attack, planted: int, questions: int, mechanism: str) -> Measured:
    """Attack many worlds, all of them blocks of one database before one gateway."""
    presents = [number < WORLDS for number in range(2 * WORLDS)]
    blocks = [Block(first=400 * number, planted=planted, size=400) for number in range(2 * WORLDS)]
    (folder / "candidates.json").write_text(json.dumps(CANDIDATES), "utf-8")
    attribute = {"table": "states", "user": "person", "value": "value"}
    attribute |= {"candidates": str(folder / "candidates.json")} if mechanism == "private" else {}
    changes: dict[str, Any] = {
        "database": {"attributes": {"states": attribute}},
        "release": {"mechanism": mechanism},
        "budget": {"scope": "everyone", "queries": 10**6},
        "limits": {"choices": 500, "solver_seconds": 5.0},
        "allow_weak": True,
    }
    scores: list[float] = []
    with standing(world_of(blocks, presents, 1), folder, 1, **changes) as gateway:
        for number, block in enumerate(blocks):

            def ask(people: Sequence[int]) -> bool:
                return has(gateway, naming(people), SPY)

            scores.append(attack(ask, block, questions, number))
    return Measured.of(scores[:WORLDS], scores[WORLDS:])


def test_swapping_strangers_beats_the_q_only_rule(folder: Path) -> None:
    assert measured(folder, swap_strangers, 18, 60, "q").advantage > 0.6


@pytest.mark.parametrize(
    ("attack", "planted"), [(swap_strangers, 18), (swap_strangers, 40), (find_the_edge, 60)]
)
def test_no_attack_gets_further_than_the_budget_allows(folder: Path, attack: Attack, planted: int) -> None:
    if attack is swap_strangers and planted == 40:

        def used_33(ask: Ask, block: Block, questions: int, seed: int) -> float:
            return swap_strangers(ask, block, questions, seed, used=33)

        attack = used_33
    found = measured(folder, attack, planted, 30, "private")
    assert found.advantage <= most(1.0, 1e-8)
    assert found.low <= most(1.0, 1e-8)
