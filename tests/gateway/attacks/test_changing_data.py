"""Attacks that wait for the data to change: one person comes, leaves, or lists something new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.gateway.attacks.worlds import ALL, SECRET, Attack, World, advantage, has, standing
from tests.gateway.weakened import Defences

from incrowd.gateway.query import Compare

LEAST = 12
IN_TOWN = Compare("city", "=", "Aspen")
LIVE = Defences(batching=False, noise=False, swapping=False)


def town(holders: int) -> World:
    columns = {
        "city": np.where(np.arange(90) < 60, "Aspen", "Boulder"),
        "age": np.full(90, 30),
        "zone": np.zeros(90, np.int64),
    }
    return World(columns, {"states": {SECRET: list(range(1, holders + 1))}})


def lists_it(world: World) -> None:
    world.lists["states"][SECRET].append(0)


def moves_in(world: World) -> None:
    """The victim lived elsewhere, and listed it there."""
    world.columns["city"][0] = "Aspen"


def waiting(folder: Path, holders: int, change: Callable[[World], None], defences: Defences = ALL) -> Attack:
    """Ask, let the victim do something or not, ask again in the next period."""

    def attack(number: int, present: bool) -> Sequence[float]:
        world = town(holders)
        if change is moves_in:
            world.columns["city"][0] = "Boulder"
            lists_it(world)
        with standing(world, folder, number, defences) as gateway:
            before = has(gateway, IN_TOWN)
            if present:
                change(world)
            gateway.refresh()
            after = has(gateway, IN_TOWN)
        return [after != before, before, after]

    return attack


@pytest.mark.parametrize("change", [lists_it, moves_in])
def test_whoever_watches_live_data_sees_the_change(folder: Path, change: Callable[[World], None]) -> None:
    assert advantage(waiting(folder, LEAST - 1, change, LIVE), worlds=6).named == 1


@pytest.mark.parametrize("change", [lists_it, moves_in])
@pytest.mark.parametrize("holders", [LEAST - 1, 17])
def test_an_answer_stays_until_enough_people_have_changed(
    folder: Path, change: Callable[[World], None], holders: int
) -> None:
    assert advantage(waiting(folder, holders, change), worlds=20).best == 0


MARKER = "the attacker's own value"


def crowd_of_changes(folder: Path, sybils: int, defences: Defences = ALL) -> Attack:
    """Sybils drop a value of theirs; if the victim changes as well, there may be enough for a new answer."""

    def attack(number: int, present: bool) -> Sequence[float]:
        world = town(30)
        world.lists["states"][MARKER] = list(range(40, 60))
        with standing(world, folder, number, defences) as gateway:
            before = has(gateway, IN_TOWN, value=MARKER)
            world.lists["states"][MARKER] = list(range(40, 60 - sybils))
            if present:
                lists_it(world)
            gateway.refresh()
            return [before and not has(gateway, IN_TOWN, value=MARKER), before]

    return attack


def test_an_exact_number_of_changes_could_be_tested_with_own_accounts(folder: Path) -> None:
    """Nine accounts of the attacker's change: the victim is the tenth, or not."""
    assert advantage(crowd_of_changes(folder, 9, Defences(noise=False)), worlds=8).named == 1


@pytest.mark.parametrize("sybils", [9, 11])
def test_how_many_must_change_is_secret(folder: Path, sybils: int) -> None:
    assert advantage(crowd_of_changes(folder, sybils), worlds=40).best < 0.35


def test_an_answer_does_change_with_many_people(folder: Path) -> None:
    world = town(8)
    with standing(world, folder, 1) as gateway:
        assert not has(gateway, IN_TOWN)
        world.lists["states"][SECRET] = list(range(1, 50))
        gateway.refresh()
        assert has(gateway, IN_TOWN)


def test_within_a_period_nothing_changes(folder: Path) -> None:
    world = town(40)
    with standing(world, folder, 1) as gateway:
        assert has(gateway, IN_TOWN)
        world.lists["states"][SECRET] = []
        assert has(gateway, IN_TOWN)
        assert has(gateway, Compare("age", "=", 30))


def patient(folder: Path, asks: int, defences: Defences = ALL) -> Attack:
    """Nothing changes, but between questions everything that was told is forgotten."""

    def attack(number: int, present: bool) -> Sequence[float]:
        columns = {
            "city": np.full(90, "Aspen"),
            "age": np.full(90, 30),
            "zone": np.zeros(90, np.int64),
        }
        world = World(columns, {"states": {SECRET: [*range(20), *([50] if present else [])]}})
        seen = 0
        with standing(world, folder, number, defences, snapshots={"history": 2}) as gateway:
            for _ in range(asks):
                seen += has(gateway, IN_TOWN)
                for _ in range(3):
                    gateway.refresh()
        return [seen]

    return attack


def test_waiting_until_an_answer_is_forgotten_teaches_nothing(folder: Path) -> None:
    """That amounts drawn anew are averaged out is shown with repeats (test_many_answers)."""
    once, often = patient(folder, 1), patient(folder, 5)
    for number in range(12):
        for present in (True, False):
            assert often(number, present) == [5 * once(number, present)[0]]
