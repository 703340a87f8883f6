"""Attacks with several questions: differencing, intersection, repeats, and accounts that pool what they got."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp
from tests.gateway.attacks.worlds import (
    ALL,
    SECRET,
    SPY,
    Attack,
    World,
    advantage,
    asked_anew,
    has,
    standing,
    states,
)
from tests.gateway.weakened import Defences

from incrowd.gateway.core import Gateway
from incrowd.gateway.query import And, Between, Client, Compare, OneOf
from incrowd.measures.release import Budget, measure_q

LEAST = 12
PAIRS = 7
OTHERS = (Client("a", "acme"), Client("b", "acme"))
RIVALS = (Client("a", "acme"), Client("b", "uni"))


def districts(seed: int, present: bool) -> World:
    """Twelve zones of twenty people; the victim (0) is the only one aged 99; three in ten list the secret."""
    rng = np.random.default_rng(seed)
    size = 240
    age = rng.integers(20, 60, size)
    age[0] = 99
    ill = 1 + np.flatnonzero(rng.random(size - 1) < 0.3)
    well = np.setdiff1d(np.arange(1, size), ill)
    flu = rng.choice(well, size=len(well) * 2 // 3, replace=False)
    columns = {"city": np.full(size, "Aspen"), "age": age, "zone": np.arange(size) // 20}
    return World(
        columns, {"states": {SECRET: [*([0] if present else []), *ill.tolist()], "flu": flu.tolist()}}
    )


def tracker(
    folder: Path,
    defences: Defences = ALL,
    clients: tuple[Client, Client] = (SPY, SPY),
    **changes: Any,
) -> Attack:
    """Ask for classes with the victim, then for the same without: what disappears was the victim's."""

    def attack(number: int, present: bool) -> Sequence[float]:
        seen = []
        with standing(districts(number, present), folder, number, defences, **changes) as gateway:
            for other in range(1, PAIRS + 1):
                zones = OneOf("zone", (0, other))
                first = has(gateway, zones, clients[0])
                second = gateway.answer(clients[1], states(And((zones, Compare("age", "<", 99))))).values
                gone = first and bool(second) and SECRET not in second
                seen += [first, bool(second), SECRET in second, gone]
        flips = seen[3::4]
        return [10.0 * sum(flips), *seen]

    return attack


OPEN = Defences(differencing=False, joint=False, noise=False)


def test_differencing_wins_if_nothing_stands_against_it(folder: Path) -> None:
    assert advantage(tracker(folder, OPEN), worlds=24).best > 0.4


def test_differencing_is_refused(folder: Path) -> None:
    assert advantage(tracker(folder), worlds=40).best < 0.35


def test_classes_that_differ_by_the_victim_are_both_answered_only_without_the_defence(folder: Path) -> None:
    zones = OneOf("zone", (0, 1, 2))
    without_victim = states(And((zones, Compare("age", "<", 99))))
    with standing(districts(1, True), folder, 1, OPEN) as gateway:
        assert gateway.answer(SPY, states(zones)).values
        assert gateway.answer(SPY, without_victim).values
    for first, second in ((states(zones), without_victim), (without_victim, states(zones))):
        with standing(districts(1, True), folder, 2) as gateway:
            assert gateway.answer(SPY, first).values
            assert not gateway.answer(SPY, second).values


@pytest.mark.parametrize(
    ("clients", "scope", "stopped"),
    [(OTHERS, "organisation", True), (RIVALS, "everyone", True), (RIVALS, "organisation", False)],
)
def test_pooled_answers_are_seen_by_a_shared_ledger(
    folder: Path, clients: tuple[Client, Client], scope: str, stopped: bool
) -> None:
    """Two organisations that conspire are out of scope unless the policy says that everyone may."""
    zones = OneOf("zone", (0, 1, 2))
    with standing(districts(1, True), folder, 1, budget={"scope": scope}) as gateway:
        assert gateway.answer(clients[0], states(zones)).values
        second = gateway.answer(clients[1], states(And((zones, Compare("age", "<", 99))))).values
    assert bool(second) != stopped


def test_a_second_account_gets_no_second_budget(folder: Path) -> None:
    with standing(districts(1, True), folder, 1, budget={"queries": 3}) as gateway:
        for zone, client in zip((1, 2, 3), (OTHERS[0], OTHERS[1], OTHERS[0]), strict=True):
            gateway.answer(client, states(OneOf("zone", (0, zone, zone + 4))))
        late = states(OneOf("zone", (4, 9, 10)))
        assert not gateway.answer(OTHERS[1], late).values
        assert gateway.answer(RIVALS[1], late).values


# Intersection: many overlapping classes, and a solver that looks for who must, or cannot, list the value.

PEOPLE, WINDOW = 46, 28


def line(seed: int, share: float) -> World:
    """People in a row; a share of them, at random, lists the secret."""
    rng = np.random.default_rng(seed)
    ill = np.flatnonzero(rng.random(PEOPLE) < share).tolist()
    columns = {"city": np.full(PEOPLE, "Aspen"), "age": np.arange(PEOPLE), "zone": np.zeros(PEOPLE, np.int64)}
    return World(columns, {"states": {SECRET: ill}})


def windows() -> list[tuple[int, int]]:
    """Overlapping stretches of the row, of three lengths, each moved by one person."""
    return [(low, low + width - 1) for width in (24, 26, WINDOW) for low in range(PEOPLE - width + 1)][:95]


def overheard(gateway: Gateway) -> list[tuple[int, int, bool]]:
    return [(low, high, has(gateway, Between("age", low, high))) for low, high in windows()]


def determined(told: list[tuple[int, int, bool]], silence_means_fewer: bool) -> float:
    """The share of people for whom only one of 'lists it' and 'does not' agrees with all that was told."""
    rows = np.array([[low <= p <= high for p in range(PEOPLE)] for low, high, _ in told], float)
    least = np.array([LEAST if yes else 0 for *_, yes in told], float)
    most = np.array([PEOPLE if yes or not silence_means_fewer else LEAST - 1 for *_, yes in told], float)
    rules = LinearConstraint(rows, least, most)
    fixed = 0
    for person in range(PEOPLE):
        aim = np.zeros(PEOPLE)
        aim[person] = 1
        ends = [
            milp(sign * aim, integrality=np.ones(PEOPLE), bounds=(0, 1), constraints=rules)
            for sign in (1, -1)
        ]
        assert all(end.success for end in ends)
        fixed += round(ends[0].fun) == round(-ends[1].fun)
    return fixed / PEOPLE


def joint_q(told: list[tuple[int, int, bool]], world: World) -> float:
    """q of everything that was told, as one answer: proved lower end."""
    ill = world.lists["states"][SECRET]
    clauses = {(low, high): [p for p in ill if low <= p <= high] for low, high, yes in told if yes}
    found = measure_q(clauses, budget=Budget(seconds=5))
    return float(found.at_least or 0)


def test_a_solver_finds_people_out_from_overlapping_answers(folder: Path) -> None:
    open_to_all = Defences(differencing=False, joint=False, noise=False, swapping=False)
    world = line(3, 0.5)
    with standing(world, folder, 1, open_to_all) as gateway:
        told = overheard(gateway)
    assert determined(told, silence_means_fewer=True) > 0.3
    assert joint_q(told, world) < 10


@pytest.mark.parametrize("seed", [3, 5])
def test_a_solver_finds_nobody_out_once_answers_are_judged_together(folder: Path, seed: int) -> None:
    world = line(seed, 0.75)
    with standing(world, folder, seed) as gateway:
        told = overheard(gateway)
    assert any(yes for *_, yes in told)
    assert determined(told, silence_means_fewer=False) == 0
    assert joint_q(told, world) >= 10


# Repeats: the same question many times.


def town(present: bool, holders: int) -> World:
    columns = {
        "city": np.where(np.arange(90) < 60, "Aspen", "Boulder"),
        "age": np.full(90, 30),
        "zone": np.zeros(90, np.int64),
    }
    return World(columns, {"states": {SECRET: [*([0] if present else []), *range(1, holders + 1)]}})


def repeats(folder: Path, calls: int, *, remembered: bool = True) -> Attack:
    def attack(number: int, present: bool) -> Sequence[float]:
        if not remembered:
            anew = asked_anew(town(present, 17), Defences(joint=False, differencing=False), number)
            return [sum(has(anew, Compare("city", "=", "Aspen")) for _ in range(calls)) / calls]
        with standing(town(present, 17), folder, number) as gateway:
            return [sum(has(gateway, Compare("city", "=", "Aspen")) for _ in range(calls)) / calls]

    return attack


def test_noise_that_is_drawn_anew_is_averaged_out(folder: Path) -> None:
    assert advantage(repeats(folder, 25, remembered=False), worlds=16).named > 0.5


def test_repeated_questions_teach_nothing_new(folder: Path) -> None:
    once, often = (advantage(repeats(folder, calls), worlds=40) for calls in (1, 25))
    assert once == often
    assert often.best < 0.35


def test_a_thousand_repeats_are_the_same_bytes(folder: Path) -> None:
    spellings = [
        states(Compare("city", "=", "Aspen")),
        states(OneOf("city", ("Aspen",))),
        states(And((Compare("city", "=", "Aspen"), Compare("city", "=", "Aspen")))),
    ]
    with standing(town(True, 30), folder, 1) as gateway:
        bodies = {gateway.answer(SPY, spellings[call % 3]).body for call in range(1000)}
    assert len(bodies) == 1
    assert SECRET.encode() in bodies.pop()
