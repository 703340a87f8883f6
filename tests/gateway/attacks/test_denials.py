"""Attacks on what is not said: denials, empty answers, order, and everything an attacker could learn from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.gateway.attacks.worlds import ALL, SECRET, SPY, Attack, World, advantage, standing, states
from tests.gateway.weakened import Defences

from incrowd.gateway.query import And, Client, Compare, OneOf
from incrowd.measures.release import suppress

LEAST = 12
IN_TOWN = Compare("city", "=", "Aspen")
KNOWN = 4
"""Seed of the people in worlds where the attacker knows everybody but the victim."""
STRANGER = Client("nobody", "unheard-of")


def town(lists: dict[str, list[int]], inside: int = 60, size: int = 100) -> World:
    columns = {
        "city": np.where(np.arange(size) < inside, "Aspen", "Boulder"),
        "age": np.full(size, 30),
        "zone": np.zeros(size, np.int64),
    }
    return World(columns, {"states": lists})


def silence(folder: Path, holders: int, defences: Defences = ALL) -> Attack:
    """Look only at whether there is an answer at all; the town lists nothing but the secret."""

    def attack(number: int, present: bool) -> Sequence[float]:
        lists = {SECRET: [*([0] if present else []), *range(1, holders + 1)]}
        with standing(town(lists), folder, number, defences) as gateway:
            return [bool(gateway.answer(SPY, states(IN_TOWN)).values)]

    return attack


def test_a_denial_by_an_exact_threshold_is_an_answer(folder: Path) -> None:
    assert advantage(silence(folder, LEAST - 1, Defences(noise=False)), worlds=8).named == 1


@pytest.mark.parametrize("holders", [14, 17])
def test_a_denial_says_little_about_the_victim(folder: Path, holders: int) -> None:
    assert advantage(silence(folder, holders), worlds=60).best < 0.35


def neighbours(folder: Path, defences: Defences = ALL) -> Attack:
    """Ask many overlapping questions and learn from every bit of every answer, denials included.

    The victim's value competes with others for release, and with earlier answers: whether another value
    appears may depend on the victim.
    """
    names = [SECRET, "flu", "cold", "gout"]

    def attack(number: int, present: bool) -> Sequence[float]:
        rng = np.random.default_rng(KNOWN)
        listed = rng.random((160, 4)) < np.array([0.3, 0.45, 0.35, 0.3])
        listed[0] = [present, False, False, False]
        columns = {"city": np.full(160, "Aspen"), "age": np.full(160, 30), "zone": np.arange(160) // 20}
        columns["age"][0] = 99
        world = World(
            columns, {"states": {n: np.flatnonzero(listed[:, k]).tolist() for k, n in enumerate(names)}}
        )
        seen: list[bool] = []
        with standing(world, folder, number, defences) as gateway:
            for zones in ((0, 1), (0, 2), (1, 2), (0, 3), (0, 1, 2, 3), (0, 4, 5)):
                for where in (OneOf("zone", zones), And((OneOf("zone", zones), Compare("age", "<", 99)))):
                    values = gateway.answer(SPY, states(where)).values
                    seen += [not values, *(name in values for name in names)]
        return [sum(seen[1::5]), *seen]

    return attack


def test_every_bit_of_every_answer_together_wins_without_defences(folder: Path) -> None:
    open_to_all = Defences(differencing=False, joint=False, noise=False, known_users=False)
    assert advantage(neighbours(folder, open_to_all), worlds=6).best > 0.9


def test_every_bit_of_every_answer_together_says_little(folder: Path) -> None:
    assert advantage(neighbours(folder), worlds=32).best < 0.4


def test_denied_empty_and_over_budget_are_one_answer(folder: Path) -> None:
    world = town({SECRET: [0, 1, 2], "flu": list(range(60))})
    with standing(world, folder, 1, budget={"queries": 3}) as gateway:
        too_small = gateway.answer(SPY, states(Compare("city", "=", "Nowhere")))
        nothing = gateway.answer(SPY, states(Compare("age", ">", 40)))
        stranger = gateway.answer(STRANGER, states(IN_TOWN))
        gateway.answer(SPY, states(Compare("age", "<", 40)))
        spent = gateway.answer(SPY, states(IN_TOWN))
    assert {one.body for one in (too_small, nothing, stranger, spent)} == {b'{"values":[]}'}


# Order: what stands first.


def standing_order(folder: Path, defences: Defences = ALL) -> Attack:
    """Five values with equally many holders besides the victim: the victim's stands first if order tells."""

    def attack(number: int, present: bool) -> Sequence[float]:
        rng = np.random.default_rng([number, 3])
        people = (1 + rng.permutation(175)).reshape(5, 35).tolist()
        lists = dict(zip(["cold", "cough", "flu", "gout", SECRET], people, strict=True))
        lists[SECRET] += [0] if present else []
        with standing(town(lists, inside=176, size=176), folder, number, defences) as gateway:
            values = gateway.answer(SPY, states(IN_TOWN)).values
            return [values.index(SECRET) == 0 if SECRET in values else 0.5]

    return attack


def test_the_commonest_first_tells_who_is_common(folder: Path) -> None:
    off = Defences(order=False)
    with_victim = standing_order(folder, off)
    assert all(with_victim(number, True) == [1.0] for number in range(5))
    assert advantage(with_victim, worlds=20).named > 0.5


def test_a_keyed_order_tells_nothing(folder: Path) -> None:
    attack = standing_order(folder)
    assert [attack(n, True) for n in range(30)] == [attack(n, False) for n in range(30)]


def test_answers_hold_no_number(folder: Path) -> None:
    lists = {SECRET: list(range(40)), "flu": list(range(40, 60))}
    with standing(town(lists), folder, 1) as gateway:
        body = gateway.answer(SPY, states(IN_TOWN)).body
    assert not any(character.isdigit() for character in body.decode())
    assert set(suppress(lists, 12).released) == {SECRET, "flu"}
