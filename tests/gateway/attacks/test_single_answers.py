"""Attacks on one answer: planted accounts, logical exclusion, people somebody knows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gateway.attacks.worlds import (
    ALL,
    OLD,
    SECRET,
    SPY,
    YOUNG,
    Attack,
    World,
    advantage,
    has,
    standing,
    states,
)
from tests.gateway.weakened import Defences

from incrowd.gateway.query import Compare
from incrowd.measures.release import measure_q

LEAST = 12
"""The threshold before secret amounts: q = 10, and room for two people somebody knows."""
IN_TOWN = Compare("city", "=", "Aspen")


def town(
    lists: dict[str, list[int]], *, inside: int = 60, size: int = 90, days: np.ndarray | None = None
) -> World:
    """The first `inside` people live in the city asked about."""
    columns = {
        "city": np.where(np.arange(size) < inside, "Aspen", "Boulder"),
        "age": np.full(size, 30),
        "zone": np.zeros(size, np.int64),
    }
    return World(columns, {"states": lists}, np.zeros(0) if days is None else days)


def planted(folder: Path, sybils: int, days: float, defences: Defences = ALL, **changes: Any) -> Attack:
    """Sybils 1 to n list the victim's value; it is released if the victim (0) lists it too."""

    def attack(number: int, present: bool) -> Sequence[float]:
        ages = np.full(90, OLD)
        ages[1 : sybils + 1] = days
        holders = [*([0] if present else []), *range(1, sybils + 1)]
        with standing(town({SECRET: holders}, days=ages), folder, number, defences, **changes) as gateway:
            return [has(gateway, IN_TOWN)]

    return attack


def test_planted_accounts_win_against_an_exact_threshold(folder: Path) -> None:
    off = Defences(noise=False, account_age=False)
    assert advantage(planted(folder, LEAST - 1, YOUNG, off), worlds=10).named == 1


def test_young_planted_accounts_count_for_nothing(folder: Path) -> None:
    assert advantage(planted(folder, LEAST - 1, YOUNG), worlds=20).best == 0


@pytest.mark.parametrize("sybils", [15, 18])
def test_old_planted_accounts_meet_a_secret_threshold(folder: Path, sybils: int) -> None:
    """The chance that the victim is the one who tips it: three secret amounts from 0 to 4, so at most 19/125."""
    assert advantage(planted(folder, sybils, OLD), worlds=100).best < 0.35


def triangle(each: int) -> dict[str, list[int]]:
    """Three values, three groups, each value listed by two groups: {CD, DE, CE} with people in place of letters."""
    c, d, e = (list(range(k * each, (k + 1) * each)) for k in range(3))
    return {"x": c + d, "y": d + e, "z": c + e}


def leave_one_out(each: int) -> dict[str, list[int]]:
    """{2,3}, {0,2,3}, {1,3}: enough with all three values, too little without the first."""
    zero, one, two, three = (list(range(k * each, (k + 1) * each)) for k in range(4))
    return {"x": two + three, "y": zero + two + three, "z": one + three}


@pytest.mark.parametrize(("shape", "each"), [(triangle, 7), (leave_one_out, 7)])
def test_counting_holders_alone_falls_to_logical_exclusion(folder: Path, shape: object, each: int) -> None:
    holders = shape(each)  # type: ignore[operator]
    with standing(town(holders), folder, 1, Defences(q=False, noise=False)) as gateway:
        released = gateway.answer(SPY, states(IN_TOWN)).values
    assert len(released) == 3
    assert smallest_q({value: holders[value] for value in released}) < LEAST


@pytest.mark.parametrize("shape", [triangle, leave_one_out])
@pytest.mark.parametrize("each", [6, 7, 8, 10, 14])
def test_q_stops_logical_exclusion(folder: Path, shape: object, each: int) -> None:
    holders = shape(each)  # type: ignore[operator]
    for seed in range(3):
        with standing(town(holders), folder, seed) as gateway:
            released = gateway.answer(SPY, states(IN_TOWN)).values
        assert not released or smallest_q({value: holders[value] for value in released}) >= LEAST


def smallest_q(holders: dict[str, list[int]]) -> float:
    """q of the values, and without each of them: a recipient can ignore one."""
    sets = [holders, *({v: h for v, h in holders.items() if v != out} for out in holders)]
    return min(float(measure_q(one).q or 0) for one in sets if one)


def q_for_somebody_who_knows(holders: dict[str, list[int]], known: tuple[int, ...]) -> float:
    """q once these people are known completely and taken out."""
    left = {value: [p for p in people if p not in known] for value, people in holders.items()}
    return float(measure_q({value: people for value, people in left.items() if people}).q or 0)


def test_without_room_two_known_people_bring_q_below_its_threshold(folder: Path) -> None:
    holders = {SECRET: list(range(10))}
    with standing(town(holders), folder, 1, Defences(known_users=False, noise=False)) as gateway:
        assert has(gateway, IN_TOWN)
    assert q_for_somebody_who_knows(holders, (0, 1)) < 10


@pytest.mark.parametrize("seed", range(4))
def test_no_two_known_people_bring_q_below_its_threshold(folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    holders = {f"v{k}": np.flatnonzero(rng.random(60) < 0.45).tolist() for k in range(4)}
    with standing(town(holders), folder, seed) as gateway:
        released = gateway.answer(SPY, states(IN_TOWN)).values
    told = {value: holders[value] for value in released}
    assert told
    listed = sorted({p for people in told.values() for p in people})
    pairs = list(combinations(listed, 2))
    chosen = rng.choice(len(pairs), size=min(150, len(pairs)), replace=False)
    assert min(q_for_somebody_who_knows(told, pairs[place]) for place in chosen) >= 10
