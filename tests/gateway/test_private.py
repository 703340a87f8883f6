"""The private mechanism: what it counts, how noisy it is, what it costs whom."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.conftest import Fill
from tests.gateway.making import NOW, crowd, policy
from tests.gateway.test_core import ANN, DENVER, EVE, gateway, question
from tests.gateway.test_joint import group

from incrowd.errors import InputError, UnreadableSource
from incrowd.gateway.people import members_of
from incrowd.gateway.policy import GatewayPolicy, PrivacyPolicy
from incrowd.gateway.private import (
    CHOOSING_L1,
    CHOOSING_L2,
    FAILURE,
    TESTING_L1,
    TESTING_L2,
    PrivateMechanism,
    _library,
    _Listed,
    best_window,
    read_candidates,
    spending_of,
)
from incrowd.gateway.snapshot import AttributeIndex, _indexed

NAMES = tuple("abcdef")
KEY = b"k" * 32
Lists = list[list[int]]
lists = st.lists(st.lists(st.integers(0, 5), unique=True, max_size=6), min_size=1, max_size=12)


def indexed(listed: Lists) -> AttributeIndex:
    """Person i lists the values listed[i]."""
    holders = {NAMES[v]: [p for p, one in enumerate(listed) if v in one] for v in range(6)}
    there = {name: np.array(people, np.int32) for name, people in holders.items() if people}
    return _indexed(there, len(listed), 0)


def looks(listed: Lists, tested: list[int]) -> tuple[list[int], list[int]]:
    found = _Listed.of(indexed(listed), group(*range(len(listed))), NAMES, KEY)
    return [*found.picks().tolist(), found.several()], found.alone(np.array(tested, np.int64)).tolist()


@given(lists, st.lists(st.integers(0, 5), unique=True, min_size=1))
def test_the_counts_are_what_they_are_called(listed: Lists, tested: list[int]) -> None:
    first, alone = looks(listed, tested)
    assert first[-1] == sum(len(one) > 1 for one in listed)
    assert sum(first[:-1]) == sum(map(bool, listed))
    assert all(picked <= sum(v in one for one in listed) for v, picked in enumerate(first[:-1]))
    assert alone == [sum(set(one) & set(tested) == {v} for one in listed) for v in tested]


@settings(max_examples=300)
@given(lists, st.data())
def test_one_persons_list_moves_them_no_further_than_the_proof_says(
    listed: Lists, data: st.DataObject
) -> None:
    person = data.draw(st.integers(0, len(listed) - 1))
    other = [*listed]
    other[person] = data.draw(st.lists(st.integers(0, 5), unique=True))
    tested = data.draw(st.lists(st.integers(0, 5), unique=True, min_size=1))
    (first, alone), (first_now, alone_now) = looks(listed, tested), looks(other, tested)
    moved = np.abs(np.array(first) - first_now)
    assert moved.sum() <= CHOOSING_L1
    assert math.sqrt((moved**2).sum()) <= CHOOSING_L2 + 1e-9
    moved = np.abs(np.array(alone) - alone_now)
    assert moved.sum() <= TESTING_L1
    assert math.sqrt((moved**2).sum()) <= TESTING_L2 + 1e-9


@pytest.mark.parametrize("questions", [1, 2, 3, 10, 40])
@pytest.mark.parametrize("public", [True, False])
def test_all_questions_of_a_window_together_stay_within_the_budget(questions: int, public: bool) -> None:
    rules = PrivacyPolicy(questions=questions)
    spent, library = spending_of(rules, public=public), _library()
    choosing, testing = library.noisy(spent.kind, spent.choosing), library.noisy(spent.kind, spent.testing)
    if spent.kind == "laplace":
        each = choosing.map(CHOOSING_L1) + testing.map(TESTING_L1)
        assert questions * each == pytest.approx(rules.epsilon)
        lost = 0.0 if public else library.laplace_threshold(spent.choosing, spent.threshold).map((2, 2, 1))[1]
    else:
        each = choosing.map(CHOOSING_L2) + testing.map(TESTING_L2)
        assert questions * each == pytest.approx(library.most_rho(rules.epsilon, rules.delta / 2))
        make = library.gaussian_threshold(spent.choosing, max(spent.threshold, 1))
        lost = 0.0 if public else make.map((2, math.sqrt(2), 1.0))[1]
    assert lost * questions <= rules.delta
    assert spent.kind == ("laplace" if questions < 3 else "gaussian")


def test_noise_alone_hardly_ever_lifts_a_value_over_the_threshold() -> None:
    for questions in (1, 10):
        spent = spending_of(PrivacyPolicy(questions=questions), public=True)
        draws = np.array(_library().noisy(spent.kind, spent.testing)([0] * 100_000))
        for values in (1, 60):
            # One below the least count needs a draw of at least one more than the margin.
            expected = FAILURE / values
            seen = float((draws >= spent.margin(values) + 1).mean())
            assert seen <= expected + 4 * math.sqrt(expected / 100_000)


@given(st.lists(st.floats(-50, 1e5), min_size=1, max_size=30), st.floats(-100, 1e5))
def test_a_window_is_chosen_from_noisy_numbers_alone(numbers: list[float], several: float) -> None:
    falling = np.sort(np.array(numbers))[::-1]
    chosen = best_window(falling, several, 12, spending_of(PrivacyPolicy(), public=True))
    assert 1 <= len(chosen) <= len(numbers)
    assert chosen.tolist() == list(range(chosen[0], chosen[-1] + 1))


def test_common_values_leave_and_rare_ones_do_not() -> None:
    chance = np.random.default_rng(1)
    people = 4000
    listed = [
        [int(v) for v in np.flatnonzero(chance.random(6) < [0.4, 0.3, 0.2, 0.1, 0.002, 0])]
        for _ in range(people)
    ]
    for candidates in (NAMES, None):
        spent = spending_of(PrivacyPolicy(), public=candidates is not None)
        made = PrivateMechanism(spending=spent, base=12, most=200, key=KEY, candidates=candidates)
        answer = made.release(indexed(listed), group(*range(people)))
        assert {"b", "c"} <= set(answer.values) <= {"a", "b", "c", "d"}
        expected = made.release(indexed(listed), group(*range(people)), noise=False)
        assert set(expected.values) <= {"a", "b", "c", "d"}
        assert made.release(indexed(listed), group()).values == ()


def private(tmp_path: Path, *, candidates: list[str] | None = None, **changes: object) -> GatewayPolicy:
    attribute = {"table": "movies", "user": "user_id", "value": "value"}
    if candidates is not None:
        (tmp_path / "candidates.json").write_text(json.dumps(candidates), "utf-8")
        attribute["candidates"] = str(tmp_path / "candidates.json")
    return policy(
        release={"mechanism": "private"},
        budget={"scope": changes.pop("scope", "everyone")},
        privacy=changes,  # type: ignore[arg-type]
        database={"attributes": {"movies": attribute}},
    )


FILMS = {"Titanic": 150, "Alien": 120, "Solaris": 3}


def test_everybody_is_counted_once_and_repeats_are_free(fill: Fill, tmp_path: Path) -> None:
    users, likes = crowd(FILMS)
    moment = [NOW]
    rules = private(tmp_path, candidates=[*FILMS, "Nothing"])
    url = fill(users, {"movies": likes})
    with gateway(url, tmp_path / "state", policy=rules, clock=lambda: moment[0]) as made:
        first = made.decide(ANN, question(DENVER))
        assert set(first.answer.values) == {"Titanic", "Alien"}
        again = made.decide(EVE, question(DENVER))
        assert (again.repeated, again.answer) == (True, first.answer)
        # The same people in other words have nothing left; that leaves noise alone.
        other = made.decide(ANN, question("age = 30"))
        assert (other.answer.values, other.rule, other.repeated) == ((), "budget-used-up", False)
        made.refresh()
        assert made.decide(ANN, question(DENVER)).answer == first.answer
        shown = made.explain(question(DENVER), ANN)
        assert shown.repeated
        assert {one.value for one in shown.values if one.released} == {"Titanic", "Alien"}
        assert (shown.decided, shown.mechanism, shown.counted) == (
            "2026-01-01T00:00:00+00:00",
            "private",
            273,
        )
        new = made.explain(question("age < 40"), ANN)
        assert (new.repeated, new.counted, new.class_size, new.rule) == (False, 0, 273, "budget-used-up")
        assert {one.rule for one in new.values} == {"budget-used-up"}
    with gateway(url, tmp_path / "state", policy=rules, clock=lambda: moment[0]) as made:
        assert made.decide(ANN, question(DENVER)).answer == first.answer
        assert made.decide(ANN, question("age < 40")).answer.values == ()
        moment[0] += 31 * 86400
        assert set(made.decide(ANN, question("age < 41")).answer.values) == {"Titanic", "Alien"}


def test_an_empty_answer_costs_as_much_as_a_full_one(tmp_path: Path) -> None:
    from tests.gateway.making import fill_duckdb

    users, likes = crowd({"Solaris": 100})
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    with gateway(url, tmp_path / "state", policy=private(tmp_path, candidates=["Heat"])) as made:
        assert made.answer(ANN, question(DENVER)).values == ()
        counted = made._budget_of("*").with_budget(group(*range(100)), 100, NOW)
        assert len(counted) == 0


def test_people_may_be_counted_as_often_as_the_policy_says_and_by_whom(tmp_path: Path) -> None:
    from tests.gateway.making import fill_duckdb

    users, likes = crowd({"Titanic": 400})
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    asked = [f"age < {age}" for age in range(40, 45)]
    for scope, shared in (("everyone", True), ("organisation", False)):
        rules = private(tmp_path, candidates=["Titanic"], questions=2, scope=scope)
        with gateway(url, tmp_path / scope, policy=rules) as made:
            assert [bool(made.answer(ANN, question(one)).values) for one in asked] == [
                True,
                True,
                False,
                False,
                False,
            ]
            assert bool(made.answer(EVE, question("age < 50")).values) is not shared
        # Other settings do not add up with these: everybody waits until the window has passed.
        other = private(tmp_path, candidates=["Titanic"], questions=1, epsilon=0.9, scope=scope)
        with gateway(url, tmp_path / scope, policy=other) as made:
            assert made.answer(ANN, question("age < 60")).values == ()


def test_what_an_organisation_was_told_by_another_rule_is_told_to_it_alone(tmp_path: Path) -> None:
    from tests.gateway.making import fill_duckdb

    users, likes = crowd({"Titanic": 30})
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    with gateway(url, tmp_path / "state") as made:
        assert made.answer(ANN, question(DENVER)).values == ("Titanic",)
    with gateway(url, tmp_path / "state", policy=private(tmp_path, candidates=["Titanic"])) as made:
        assert made.decide(ANN, question(DENVER)).repeated
        assert not made.decide(EVE, question(DENVER)).repeated


def test_candidates_are_a_list_of_values(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    with pytest.raises(UnreadableSource):
        read_candidates(path)
    for wrong in ("{}", "[]", "[1]"):
        path.write_text(wrong)
        with pytest.raises(InputError, match="list of values"):
            read_candidates(path)
    path.write_text('["b", "a", "b"]')
    assert read_candidates(path) == ("b", "a")


def test_no_output_is_more_than_exp_epsilon_times_as_likely_in_a_neighbouring_world() -> None:
    """A direct look at the guarantee: many draws of the same question in two worlds that differ in one list."""
    base, draws = 5, 2500
    spent = spending_of(PrivacyPolicy(epsilon=1.0), public=True)
    made = PrivateMechanism(spending=spent, base=base, most=200, key=KEY, candidates=("a", "b"))
    near = base + spent.margin(2)  # where one person matters most
    seen = []
    for victim in ([0], [1]):
        index = indexed([[0]] * (near - 1) + [[1]] * (near - 1) + [victim])
        everybody = group(*range(2 * near - 1))
        seen.append(Counter(made.release(index, everybody).values for _ in range(draws)))
    for output in seen[0] | seen[1]:
        one, other = (count[output] / draws for count in seen)
        noise = 4 * math.sqrt(max(one, other) / draws)
        assert one <= math.e * (other + noise) + noise
        assert other <= math.e * (one + noise) + noise


def noise_of(scale: float, difference: int) -> float:
    """How likely discrete Laplace noise is exactly this."""
    return math.tanh(1 / (2 * scale)) * math.exp(-abs(difference) / scale)


def above(scale: float, difference: int) -> float:
    """How likely it is this or more."""
    tail = math.exp(-abs(difference) / scale) / (1 + math.exp(-1 / scale))
    return tail if difference > 0 else 1 - math.exp(-1 / scale) * tail


Windows = dict[tuple[int, ...], tuple[int, ...]]
"""A noisy first look -> what is tested after it."""


def exactly(made: PrivateMechanism, listed: Lists, windows: Windows) -> list[float]:
    """The probability of each first look, as noisy as it is, together with what then passed."""
    spent, found = made.spending, []
    there = _Listed.of(indexed(listed), group(*range(len(listed))), made.candidates, KEY)
    first = [*there.picks().tolist(), there.several()]
    for look, tested in windows.items():
        likely = math.prod(noise_of(spent.choosing, n - m) for n, m in zip(look, first, strict=True))
        threshold = made.base + spent.margin(len(tested))
        far = [threshold - count for count in there.alone(np.array(tested)).tolist()]
        chances = [(above(spent.testing, 1 - one), above(spent.testing, one)) for one in far]
        found += [likely * math.prod(passed) for passed in product(*chances)]
    return found


def test_in_every_small_world_everything_keeps_to_the_budget_exactly() -> None:
    """No draws: all lists of one person against each other, from empty to crowded. The bound is reached."""
    spent = spending_of(PrivacyPolicy(epsilon=4.0), public=True)
    assert spent.kind == "laplace"
    made = PrivateMechanism(spending=spent, base=2, most=200, key=KEY, candidates=NAMES[:3])
    windows: Windows = {}
    for look in product((-3, 6, 20), (-3, 6, 20), (-3, 20), (-3, 20)):
        order = np.argsort(-np.array(look[:3]), kind="stable")
        chosen = best_window(np.array(look[:3], float)[order], look[3], made.base, spent)
        windows[look] = tuple(order[chosen].tolist())
    worst = 0.0
    for each in product((0, 3, 12), (0, 13), (0, 2), (0, 2)):
        others = [one for one, times in zip(([0], [1], [2], [0, 1]), each, strict=True) for _ in range(times)]
        mine = [list(one) for size in range(4) for one in combinations(range(3), size)]
        logs = np.log([exactly(made, [one, *others], windows) for one in mine])
        worst = max(worst, *(np.abs(one - other).max() for one, other in combinations(logs, 2)))
    assert worst == pytest.approx(spent.epsilon)


@pytest.mark.parametrize("questions", [1, 10])
def test_what_only_one_person_lists_is_found_with_a_probability_of_delta_at_most(questions: int) -> None:
    """Counted here from the noise itself, not by the library's own account."""
    rules = PrivacyPolicy(questions=questions)
    spent = spending_of(rules, public=False)
    draws = np.arange(-100_000, 100_001)
    weights = np.exp(
        -np.abs(draws) / spent.choosing if spent.kind == "laplace" else -((draws / spent.choosing) ** 2) / 2
    )
    found = weights[draws >= spent.threshold - 1].sum() / weights.sum()
    # The value of the list that was, and the value of the list that is.
    assert 0 < 2 * found * questions <= rules.delta / (1 if spent.kind == "laplace" else 2)


def test_whom_a_question_counts_depends_on_no_list_and_nobody_is_counted_too_often(tmp_path: Path) -> None:
    """The same questions at the same moments in two worlds in which one person lists all or nothing."""
    from tests.gateway.making import fill_duckdb, person

    chance = random.Random(3)
    users = [person(f"u{number:03d}", age=20 + number) for number in range(60)]
    asked = [
        (
            chance.choice((ANN, EVE)),
            f"age >= {low} AND age < {low + chance.randrange(1, 60)}",
            chance.random(),
        )
        for low in (chance.randrange(20, 80) for _ in range(40))
    ]
    rules = private(tmp_path, candidates=["Titanic", "Alien"], questions=3)
    charged = []
    for mine in ([], ["Titanic", "Alien"]):
        likes = {one["id"]: ["Titanic"] for one in users} | {"u030": mine}
        moment, state = [NOW], tmp_path / f"state{len(mine)}"
        url = fill_duckdb(tmp_path / f"{len(mine)}.db", users, {"movies": likes})
        with gateway(url, state, policy=rules, clock=lambda moment=moment: moment[0]) as made:
            for client, condition, waited in asked:
                moment[0] += waited * 6 * 86400
                made.decide(client, question(condition))
            charges = [(one.asked, made.ledger.charged(one.entry)) for one in made.ledger.charges("*", 0, 0)]
        charged.append(
            [(when, members_of(people).tolist()) for when, people in charges if people is not None]
        )
    assert charged[0] == charged[1]
    assert any(30 in people for _, people in charged[0])
    for number in range(60):
        moments = np.array([when for when, people in charged[0] if number in people])
        within = [int(((moments >= end - 30 * 86400) & (moments <= end)).sum()) for end in moments]
        assert max(within, default=0) <= 3
    assert sum(len(people) for _, people in charged[0]) > 60 * 3
