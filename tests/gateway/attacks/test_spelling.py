"""Attacks on spellings: which of several one name is shown in must not depend on a single person.

The attacker's accounts list one illness in two spellings, equally often, in a class of their own and the victim's. If
the commoner spelling is shown, or one that enough people chose, the victim tips the scales.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.gateway.attacks.worlds import SPY, Attack, World, advantage, standing, states

from incrowd.gateway.query import Compare
from incrowd.measures.release.canonical import canonicalise

IN_TOWN = Compare("city", "=", "Aspen")
ILL, LOUD = "Illness X", "ILLNESS X!"


def spelt(each: int, present: bool) -> dict[str, list[int]]:
    """Half of the town is planted: so many accounts list one spelling, as many the other; person 100 is the victim."""
    return {
        ILL: [*range(each), *([100] if present else [])],
        LOUD: list(range(each, 2 * each)),
        "cold": list(range(101, 130)),
    }


def shown(folder: Path, each: int) -> Attack:
    def attack(number: int, present: bool) -> list[float]:
        folder.joinpath("aliases.json").write_text('{"flu": "Influenza"}')
        columns = {
            "city": np.full(140, "Aspen"),
            "age": np.full(140, 30),
            "zone": np.zeros(140, np.int64),
        }
        world = World(columns, {"states": spelt(each, present)})
        source = {
            "table": "states",
            "user": "person",
            "value": "value",
            "aliases": str(folder / "aliases.json"),
        }
        database = {
            "users": "users",
            "id": "id",
            "created": "created",
            "filters": {"city": "text", "age": "integer", "zone": "integer"},
            "attributes": {"states": source},
        }
        with standing(world, folder, number, database=database) as gateway:
            values = gateway.answer(SPY, states(IN_TOWN)).values
        return [float(ILL in values), float("illness x" in values)]

    return attack


def test_the_commonest_spelling_tells_whose_it_is() -> None:
    tidied = [set(canonicalise(spelt(30, present))) for present in (True, False)]
    assert ILL in tidied[0]
    assert ILL not in tidied[1]


@pytest.mark.parametrize("each", [11, 30])
def test_the_spelling_that_is_shown_does_not(folder: Path, each: int) -> None:
    attack = shown(folder, each)
    assert attack(0, True) == [0, 1], "it is shown, in its plain form"
    assert advantage(attack, worlds=10).best <= 0.35
