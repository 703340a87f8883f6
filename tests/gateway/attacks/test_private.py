"""Attacks on what surrounds the private mechanism: names of values, switched settings, moved clocks."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.gateway.making import NOW, crowd, fill_duckdb, policy
from tests.gateway.test_core import ANN, DENVER, EVE, gateway, question
from tests.gateway.test_private import KEY, private

from incrowd.errors import InputError
from incrowd.gateway.core import Gateway
from incrowd.gateway.people import Selection, members_of
from incrowd.gateway.policy import PrivacyPolicy
from incrowd.gateway.private import PrivateMechanism, spending_of
from incrowd.gateway.snapshot import _indexed

DAY = 86400.0
ENOUGH = 400
NAMES = ["Titanic\0", "Titanic\0x", "\0", "", "T" * 100_000, "\ud800"]


@pytest.mark.parametrize("victim", NAMES)
@pytest.mark.parametrize("questions", [1, 3])
def test_no_name_that_one_person_lists_changes_what_a_common_one_gets(victim: str, questions: int) -> None:
    """Cut at a NUL, one person's name would stand for a common one, and take its number away: advantage 1."""
    spent = spending_of(PrivacyPolicy(questions=questions), public=False)
    made = PrivateMechanism(spending=spent, base=12, most=200, key=KEY, candidates=None)
    holders = {"Titanic": np.arange(1, 4 * ENOUGH, dtype=np.int32), victim: np.array([0], np.int32)}
    index, everybody = _indexed(holders, 4 * ENOUGH, 0), Selection(np.arange(4 * ENOUGH, dtype=np.int32))
    for _ in range(20):
        assert made.release(index, everybody).values == ("Titanic",)


@pytest.fixture
def url(tmp_path: Path) -> str:
    users, likes = crowd({"Titanic": ENOUGH})
    likes["u00000"] = ["Titanic\0"]
    return fill_duckdb(tmp_path / "a.db", users, {"movies": likes})


def told(made: Gateway, condition: str) -> bool:
    return made.answer(ANN, question(condition)).values == ("Titanic",)


def test_budgets_are_not_forgotten_when_everyone_no_longer_shares_them(url: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with gateway(url, state, policy=private(tmp_path)) as made:
        assert told(made, DENVER)
    with gateway(url, state, policy=private(tmp_path, scope="organisation")) as made:
        assert told(made, DENVER)  # the same answer again
        assert not told(made, "age < 40")
        assert made.answer(EVE, question("age < 41")).values == ()
    with gateway(url, state, policy=private(tmp_path)) as made:
        assert not told(made, "age < 42")


def test_whoever_was_in_an_answer_of_the_q_rule_waits_for_a_window(url: str, tmp_path: Path) -> None:
    state, moment = tmp_path / "state", [NOW]
    with gateway(url, state, policy=policy()) as made:
        assert told(made, DENVER)
    with gateway(url, state, policy=private(tmp_path), clock=lambda: moment[0]) as made:
        assert not told(made, "age < 40")
        moment[0] += 30 * DAY + 1
        assert told(made, "age < 41")


def test_whoever_was_in_one_gets_a_budget_when_the_window_is_over_also_if_the_class_is_forgotten(
    url: str, tmp_path: Path
) -> None:
    state, moment = tmp_path / "state", [NOW]
    with gateway(url, state, policy=policy()) as made:
        assert told(made, DENVER)
    with gateway(url, state, policy=private(tmp_path), clock=lambda: moment[0]) as made:
        assert not told(made, "age < 40")
        for _ in range(8):
            made.refresh()
        moment[0] += 30 * DAY + 1
        assert told(made, "age < 41")


def test_a_question_of_the_same_snapshot_may_be_asked_again_in_the_next_window(
    url: str, tmp_path: Path
) -> None:
    moment = [NOW]
    rules = private(tmp_path, window_days=1)
    with gateway(url, tmp_path / "state", policy=rules, clock=lambda: moment[0]) as made:
        assert not made.decide(ANN, question(DENVER)).repeated
        moment[0] += DAY + 1
        assert not made.decide(ANN, question(DENVER)).repeated
        assert made.decide(EVE, question(DENVER)).repeated
        assert len(made.ledger.charges("*", 0, 0)) == 2


def test_what_everyone_was_told_by_the_q_rule_is_decided_anew_for_others(url: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with gateway(url, state, policy=policy(budget={"scope": "everyone"})) as made:
        assert told(made, DENVER)
    with gateway(url, state, policy=private(tmp_path)) as made:
        decided = made.decide(EVE, question(DENVER))
        assert (decided.answer.values, decided.rule, decided.repeated) == ((), "budget-used-up", False)
        assert made.decide(EVE, question(DENVER)).repeated


def test_if_it_is_forgotten_who_was_in_it_everybody_waits(url: str, tmp_path: Path) -> None:
    state, moment = tmp_path / "state", [NOW]
    with gateway(url, state, policy=policy()) as made:
        assert told(made, DENVER)
        for _ in range(8):
            made.refresh()
    with gateway(url, state, policy=private(tmp_path), clock=lambda: moment[0]) as made:
        assert not told(made, "age < 40")
        moment[0] += 30 * DAY + 1
        assert told(made, "age < 41")


def test_a_question_that_ran_out_of_time_costs_nobody_a_budget(url: str, tmp_path: Path) -> None:
    with gateway(url, tmp_path / "state", policy=private(tmp_path)) as made:
        made._out_of_time(ANN, "*", made.snapshot, question(DENVER))
        assert told(made, "age < 40")


@pytest.mark.parametrize("jump", [-20_000 * DAY, -40 * DAY, 40 * DAY, 20_000 * DAY])
def test_no_jump_of_the_clock_between_two_starts_gives_budgets_back(
    url: str, tmp_path: Path, jump: float
) -> None:
    """A machine that wakes up in 1970, or once in the next century, and is right at the start after that."""
    state, rules, moment = tmp_path / "state", private(tmp_path), [NOW]
    with gateway(url, state, policy=rules, clock=lambda: moment[0]) as made:
        assert told(made, DENVER)
    for moment[0] in (NOW + jump, NOW + 60):
        with gateway(url, state, policy=rules, clock=lambda: moment[0]) as made:
            assert made.decide(ANN, question(DENVER)).repeated
            assert not told(made, f"age < {40 + abs(int(moment[0])) % 1000}")
    with gateway(url, state, policy=rules, clock=lambda: moment[0]) as made:
        moment[0] += 31 * DAY
        assert told(made, "age < 2000")


def test_days_for_which_it_was_stopped_count_as_long_as_they_are_few(url: str, tmp_path: Path) -> None:
    state, rules, moment = tmp_path / "state", private(tmp_path, window_days=1), [NOW]
    for day in (0, 2, 4):
        moment[0] = NOW + day * DAY
        with gateway(url, state, policy=rules, clock=lambda: moment[0]) as made:
            assert told(made, f"age < {40 + day}")


def test_another_column_that_tells_people_apart_is_refused(url: str, tmp_path: Path) -> None:
    """Everybody would get a new number, and with it a new budget."""
    import duckdb

    state = tmp_path / "state"
    with gateway(url, state, policy=private(tmp_path)) as made:
        assert told(made, DENVER)
    with duckdb.connect(url.removeprefix("duckdb:///")) as source:
        source.execute("ALTER TABLE users ADD COLUMN email VARCHAR")
        source.execute("UPDATE users SET email = id || '@example.org'")
    other = private(tmp_path)
    other = policy(
        release={"mechanism": "private"},
        database={"id": "email", "attributes": {"movies": vars(other.database.attributes["movies"])}},
    )
    with pytest.raises(InputError, match="told apart before"), gateway(url, state, policy=other):
        pass


def test_questions_of_the_same_moment_share_one_budget(url: str, tmp_path: Path) -> None:
    """Whoever asks in many ways at once, under two names, is told once."""
    asked = [(client, f"age < {age}") for age in range(40, 52) for client in (ANN, EVE)]
    with gateway(url, tmp_path / "state", policy=private(tmp_path)) as made, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda one: made.decide(one[0], question(one[1])), asked))
        assert len({one.answer for one in answers if one.answer.values}) == 1
        new = [one for one in answers if one.answer.values and not one.repeated]
        assert len(new) == 1
        people = [made.ledger.charged(charge.entry) for charge in made.ledger.charges("*", 0, 0)]
        assert sorted(len(members_of(words)) for words in people if words is not None)[-2:] == [0, ENOUGH]


def test_candidates_are_found_under_the_name_that_values_go_by(tmp_path: Path) -> None:
    users, likes = crowd({"the Lord of the Rings!": ENOUGH})
    url = fill_duckdb(tmp_path / "b.db", users, {"movies": likes})
    (tmp_path / "aliases.json").write_text(json.dumps({"LOTR": "The Lord of the Rings"}), "utf-8")
    (tmp_path / "candidates.json").write_text(json.dumps(["LOTR", "Heat!", "heat"]), "utf-8")
    files = {name: str(tmp_path / f"{name}.json") for name in ("aliases", "candidates")}
    attribute = {"table": "movies", "user": "user_id", "value": "value", **files}
    rules = policy(release={"mechanism": "private"}, database={"attributes": {"movies": attribute}})
    with gateway(url, tmp_path / "state", policy=rules) as made:
        assert made._mechanisms["movies"].candidates == ("The Lord of the Rings", "heat")
        assert made.answer(ANN, question(DENVER)).values == ("The Lord of the Rings",)
