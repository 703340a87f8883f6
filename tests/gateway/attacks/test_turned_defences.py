"""Attacks that turn a defence into a tool: the ledger's memory, and secret amounts that are averaged out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.gateway.attacks.worlds import ALL, SECRET, YOUNG, Attack, World, advantage, has, standing
from tests.gateway.weakened import Defences

from incrowd.gateway.query import Compare, OneOf, Or

LEAST = 12
VICTIMS_OWN = Compare("age", "=", 99)


def cast(groups: dict[str, int]) -> tuple[dict[str, np.ndarray], World]:
    """The victim (0), and groups of the attacker's accounts, a zone each."""
    people, first = {}, 1
    zone = [0]
    for number, (name, size) in enumerate(groups.items(), start=1):
        people[name] = np.arange(first, first + size)
        zone += [number] * size
        first += size
    columns = {"city": np.full(first, "Aspen"), "age": np.full(first, 30), "zone": np.array(zone)}
    columns["age"][0] = 99
    return people, World(columns, {"states": {}})


def last_companion(folder: Path, left: int, defences: Defences = ALL) -> Attack:
    """Leave an earlier answer with so many alternatives that the victim's next value takes one too many.

    The victim is known to list W. All but `left` of the others who list W are given a second value; then
    the secret is asked for among the victim and thirty accounts: if the victim lists it, too, the ledger
    must refuse, for W's sake.
    """

    def attack(number: int, present: bool) -> Sequence[float]:
        halves = {"go a": 10, "go b": 31 - left - 10}
        people, world = cast({"stay": left - 1, **halves, "a": 30, "b": 30, "third": 30})
        world.lists["states"] = {
            "W": [0, *people["stay"], *people["go a"], *people["go b"]],
            "X": [*people["go a"], *people["a"]],
            "Y": [*people["go b"], *people["b"]],
            SECRET: [*([0] if present else []), *people["third"]],
        }
        with standing(world, folder, number, defences) as gateway:
            first = has(gateway, Or((VICTIMS_OWN, OneOf("zone", (1, 2, 3)))), value="W")
            second = has(gateway, OneOf("zone", (2, 4)), value="X")
            third = has(gateway, OneOf("zone", (3, 5)), value="Y")
            return [has(gateway, Or((VICTIMS_OWN, Compare("zone", "=", 6)))), first, second, third]

    return attack


def test_an_exact_ledger_tells_whether_the_victim_lists_the_value(folder: Path) -> None:
    assert advantage(last_companion(folder, LEAST, Defences(noise=False)), worlds=4).best == 1


@pytest.mark.parametrize("left", [12, 14, 16])
def test_how_many_companions_an_earlier_answer_needs_is_secret(folder: Path, left: int) -> None:
    assert advantage(last_companion(folder, left), worlds=40).best < 0.4


def averaging(folder: Path, classes: int, days: float, defences: Defences = ALL) -> Attack:
    """Ask for the victim with many different crowds of own accounts, and for as many without the victim.

    Each crowd draws its secret amount anew; the difference between both shares is what the victim adds.
    """
    holders, fillers = 18, 8

    def attack(number: int, present: bool) -> Sequence[float]:
        names = [f"{kind}{k}" for k in range(2 * classes) for kind in ("ill", "well")]
        people, world = cast({name: holders if name.startswith("ill") else fillers for name in names})
        ill = [person for name in names if name.startswith("ill") for person in people[name]]
        world.lists["states"] = {SECRET: [*([0] if present else []), *ill]}
        world.days[1:] = days
        told = []
        with standing(world, folder, number, defences) as gateway:
            for k in range(2 * classes):
                crowd = OneOf("zone", (2 * k + 1, 2 * k + 2))
                told.append(has(gateway, Or((VICTIMS_OWN, crowd)) if k < classes else crowd))
        return [np.mean(told[:classes]) - np.mean(told[classes:])]

    return attack


def test_young_accounts_average_nothing_out(folder: Path) -> None:
    assert advantage(averaging(folder, 10, YOUNG), worlds=6).best == 0


def test_a_few_hundred_old_accounts_average_little_out(folder: Path) -> None:
    """Ten classes, 260 accounts. With more accounts and questions the advantage grows: see the document."""
    assert advantage(averaging(folder, 5, 400.0), worlds=24).named < 0.5


def rivals(folder: Path, kind: str, markers: int, defences: Defences = ALL, joint: str = "all") -> Attack:
    """Let the secret compete with values of the attacker's that are listed exactly as often without the victim.

    `full`: the answer has room for one value, and the commoner one gets it. `tied`: the two overlap so much
    that only one of them may leave.
    """
    sizes = {"secret": 30, "marker": 30} if kind == "full" else {"secret": 6, "marker": 6, "both": 25}

    def attack(number: int, present: bool) -> Sequence[float]:
        people, world = cast({f"{part}{k}": size for k in range(markers) for part, size in sizes.items()})
        lists: dict[str, list[int]] = {SECRET: [0] if present else []}
        for k in range(markers):
            both = people.get(f"both{k}", np.zeros(0, np.int64)).tolist()
            lists[SECRET] += people[f"secret{k}"].tolist() + both
            lists[f"a marker {k}"] = people[f"marker{k}"].tolist() + both
        world.lists["states"] = lists
        won = []
        release = {"max_values": 1 if kind == "full" else 50, "joint": joint}
        with standing(world, folder, number, defences, release=release) as gateway:
            for k in range(markers):
                zones = tuple(range(len(sizes) * k + 1, len(sizes) * (k + 1) + 1))
                won.append(has(gateway, Or((VICTIMS_OWN, OneOf("zone", zones)))))
        return [sum(won), *won]

    return attack


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_an_exact_choice_between_two_values_tells_who_tipped_it(folder: Path, kind: str) -> None:
    assert advantage(rivals(folder, kind, 4, Defences(noise=False)), worlds=12).best > 0.6


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_a_blind_choice_between_two_values_does_not(folder: Path, kind: str) -> None:
    assert advantage(rivals(folder, kind, 4), worlds=30).best < 0.4
