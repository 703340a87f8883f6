"""Attacks on a policy that answers about each person once: it has the exact engine and no joint rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.gateway.attacks.test_many_answers import OPEN, districts, tracker
from tests.gateway.attacks.test_single_answers import (
    IN_TOWN,
    LEAST,
    leave_one_out,
    planted,
    smallest_q,
    town,
    triangle,
)
from tests.gateway.attacks.test_turned_defences import rivals
from tests.gateway.attacks.worlds import OLD, SPY, advantage, standing, states
from tests.gateway.weakened import Defences

from incrowd.gateway.query import Compare, OneOf

ONCE = {"joint": "once"}


def test_differencing_is_refused(folder: Path) -> None:
    assert advantage(tracker(folder, OPEN, release=ONCE), worlds=16).best > 0.4
    assert advantage(tracker(folder, release=ONCE), worlds=40).best < 0.35


@pytest.mark.parametrize("sybils", [13, 16])
def test_old_planted_accounts_meet_a_secret_threshold(folder: Path, sybils: int) -> None:
    exact = Defences(noise=False)
    assert advantage(planted(folder, LEAST - 1, OLD, exact, release=ONCE), worlds=8).named == 1
    assert advantage(planted(folder, sybils, OLD, release=ONCE), worlds=100).best < 0.35


@pytest.mark.parametrize("shape", [triangle, leave_one_out])
@pytest.mark.parametrize("each", [6, 7, 10, 14])
def test_q_stops_logical_exclusion(folder: Path, shape: object, each: int) -> None:
    holders = shape(each)  # type: ignore[operator]
    for seed in range(3):
        with standing(town(holders), folder, seed, release=ONCE) as gateway:
            released = gateway.answer(SPY, states(IN_TOWN)).values
        assert not released or smallest_q({value: holders[value] for value in released}) >= LEAST


def test_a_blind_choice_between_two_values_tells_nothing(folder: Path) -> None:
    assert advantage(rivals(folder, "tied", 1, joint="once"), worlds=40).best < 0.35


def test_whether_a_class_is_refused_depends_on_who_was_asked_about_and_never_on_what_they_list(
    folder: Path,
) -> None:
    rules = []
    for present in (True, False):
        with standing(districts(3, present), folder, 3, release=ONCE) as gateway:
            assert gateway.answer(SPY, states(OneOf("zone", (0, 1, 2, 3)))).values
            asked = [OneOf("zone", (k, k + 1, k + 2)) for k in range(1, 5)]
            rules.append([gateway.decide(SPY, states(where)).rule == "taken" for where in asked])
            assert not gateway.answer(SPY, states(Compare("age", "<", 99))).values
    assert rules[0] == rules[1] == [True, True, True, False]
