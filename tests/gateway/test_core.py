"""What the gateway promises, on both databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from secrets import token_bytes
from typing import Any

import pytest
from tests.gateway.conftest import Fill
from tests.gateway.making import NOW, crowd, fill_duckdb, person, policy
from tests.gateway.weakened import AskedAnew, Defences

from incrowd.errors import InputError
from incrowd.gateway.core import Gateway
from incrowd.gateway.databases import connect
from incrowd.gateway.query import Client, Compare, Query
from incrowd.gateway.state import BrokenState, StateInUse
from incrowd.gateway.text_query import query_from_text
from incrowd.measures.release import Suppression

ANN = Client("ann", "acme")
BOB = Client("bob", "acme")
EVE = Client("eve", "uni")
DENVER = "city = 'Denver'"
FILMS = {"table": "films", "user": "user_id", "value": "value"}


@contextmanager
def gateway(url: str, state: Path, **options: Any) -> Iterator[Gateway]:
    rules = options.pop("policy", None) or policy()
    defences = options.pop("defences", None)
    if defences is not None:
        rules, options["rules"] = defences.policy(rules), defences.rules
    made = Gateway(connect(url), rules, state, clock=options.pop("clock", lambda: NOW), **options)
    try:
        yield made
    finally:
        made.close()


def question(condition: str, attribute: str = "movies") -> Query:
    where = f" WHERE {condition}" if condition else ""
    return query_from_text(f"SELECT {attribute} FROM users{where}", policy().asking)


def ask(made: Gateway, condition: str = DENVER, client: Client = ANN) -> set[str]:
    return set(made.answer(client, question(condition)).values)


@pytest.fixture
def two_cities(tmp_path: Path) -> str:
    """Denver, 30: Titanic 20, Alien 12, Solaris 3. Boulder, 20: Titanic 10, Heat 15."""
    users, likes = crowd({"Titanic": 20, "Alien": 12, "Solaris": 3})
    more, others = crowd({"Titanic": 10, "Heat": 15}, start=100, city="Boulder", age=20)
    return fill_duckdb(tmp_path / "cities.db", users + more, {"movies": {**likes, **others}})


def test_common_values_leave_and_rare_ones_stay(fill: Fill, tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20, "Alien": 12, "Solaris": 4})
    with gateway(fill(users, {"movies": likes}), tmp_path / "state") as made:
        assert ask(made) == {"Titanic", "Alien"}
        assert ask(made, "city = 'Aspen'") == set()
        assert ask(made, "age > 90") == set()


def test_what_nobody_lists_and_where_nobody_is_gets_nothing(fill: Fill, tmp_path: Path) -> None:
    with gateway(fill([], {"movies": {}}), tmp_path / "nobody") as made:
        assert ask(made, "") == set()
        assert made.explain(question("")).values == ()
    users, _ = crowd({"Titanic": 20})
    with gateway(fill(users, {"movies": {}}), tmp_path / "nothing") as made:
        assert ask(made) == set()
        fill(users, {"movies": {users[0]["id"]: ["Alien"]}})
        made.refresh()
        assert ask(made) == set()


def test_everything_is_the_same_on_both_databases_and_after_a_restart(fill: Fill, tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20, "Alien": 12, "Heat": 11})
    url = fill(users, {"movies": likes})
    strict = policy(release={"q": 5, "min_class": 10, "noise": 4, "known_users": 2})
    with gateway(url, tmp_path / "state", policy=strict) as made:
        first = made.answer(ANN, question(DENVER))
    with gateway(url, tmp_path / "state", policy=strict) as made:
        again = made.decide(BOB, question(DENVER))
        assert again.repeated
        assert again.answer.body == first.body
        assert made.snapshot.number == 1


def test_values_that_logic_would_tie_to_people_stay(tmp_path: Path) -> None:
    # Three groups of five: C and D list one film, D and E another, C and E a third. Each has ten
    # holders, but nobody lists one alone.
    users = [person(f"u{number}") for number in range(15)]
    films = {"CD": range(10), "DE": range(5, 15), "CE": [*range(5), *range(10, 15)]}
    likes = {f"u{number}": [name for name, who in films.items() if number in who] for number in range(15)}
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    strict = policy(release={"q": 8, "min_class": 10})
    with gateway(url, tmp_path / "on", policy=strict) as made:
        assert len(ask(made)) <= 1
    with gateway(url, tmp_path / "off", policy=strict, defences=Defences(q=False)) as made:
        assert ask(made) == {"CD", "DE", "CE"}


def test_an_answer_is_json_in_an_order_of_its_own(tmp_path: Path) -> None:
    films = {f"film {holders}": holders for holders in range(20, 6, -1)}
    users, likes = crowd(films)
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    orders = []
    for name in "ab":
        with gateway(url, tmp_path / name) as made:
            document = json.loads(made.answer(ANN, question(DENVER)).body)
            assert document.keys() == {"values"}
            assert set(document["values"]) == set(films)
            orders.append(document["values"])
    assert orders[0] != orders[1]
    with gateway(url, tmp_path / "c", defences=Defences(order=False)) as made:
        assert made.answer(ANN, question(DENVER)).values == tuple(films)


def test_the_same_people_asked_for_in_another_way_get_the_same_answer(
    two_cities: str, tmp_path: Path
) -> None:
    with gateway(two_cities, tmp_path / "state", policy=policy(release={"noise": 4})) as made:
        first = made.answer(ANN, question("city = 'Boulder'")).body
        for other in (
            "age < 25",
            "city != 'Denver'",
            "age = 20 AND city = 'Boulder'",
            "age BETWEEN 1 AND 29",
        ):
            outcome = made.decide(BOB, question(other))
            assert outcome.repeated
            assert outcome.answer.body == first


def test_organisations_have_ledgers_of_their_own_unless_they_share_one(
    two_cities: str, tmp_path: Path
) -> None:
    for scope, shared in (("organisation", False), ("everyone", True)):
        with gateway(two_cities, tmp_path / scope, policy=policy(budget={"scope": scope})) as made:
            ask(made)
            assert made.decide(EVE, question(DENVER)).repeated is shared


def test_whom_the_policy_does_not_name_gets_nothing(two_cities: str, tmp_path: Path) -> None:
    with gateway(two_cities, tmp_path / "state") as made:
        outcome = made.decide(Client("x", "strangers"), question(DENVER))
        assert outcome.answer.values == ()
        assert outcome.rule == "unknown-client"
        assert list(made.ledger.replay()) == []


def test_what_may_not_be_asked_is_refused_before_anything_else(two_cities: str, tmp_path: Path) -> None:
    with gateway(two_cities, tmp_path / "state") as made:
        for query in (Query("passwords"), Query("movies", Compare("id", "=", "u00001"))):
            with pytest.raises(InputError):
                made.answer(ANN, query)
        assert list(made.ledger.replay()) == []


def test_budgets_run_out_look_like_nothing_and_come_back(two_cities: str, tmp_path: Path) -> None:
    moment = [NOW]
    rules = policy(
        budget={"queries": 2, "window_hours": 1}, organisations={"acme": {}, "uni": {"queries": 1}}
    )
    with gateway(two_cities, tmp_path / "state", policy=rules, clock=lambda: moment[0]) as made:
        full = made.answer(ANN, question(DENVER))
        ask(made, "age = 20")
        assert made.decide(BOB, question("")).rule == "over-budget"
        assert made.answer(BOB, question("")).body == b'{"values":[]}'
        assert made.answer(BOB, question(DENVER)) == full  # repeats are free
        assert ask(made, client=EVE)
        assert made.decide(EVE, question("")).rule == "over-budget"
        moment[0] += 3601
        assert made.answer(BOB, question("")).values


def test_classes_that_differ_by_a_few_people_are_refused(tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20})
    users[7] = {**users[7], "age": 77}
    more, others = crowd({"Heat": 20}, start=50, city="Boulder")
    url = fill_duckdb(tmp_path / "a.db", users + more, {"movies": {**likes, **others}})
    without = "city = 'Denver' AND age < 50"
    beside = f"({without}) OR city = 'Boulder'"
    for second in (without, beside):
        with gateway(url, tmp_path / f"on{second == beside}") as made:
            assert ask(made) == {"Titanic"}
            assert made.decide(ANN, question(second)).rule == "too-close"
            assert ask(made, second, EVE)
        off = Defences(differencing=False, joint=False)
        with gateway(url, tmp_path / f"off{second == beside}", defences=off) as made:
            assert ask(made) == {"Titanic"}
            assert ask(made, second)


def test_answers_together_keep_the_threshold(tmp_path: Path) -> None:
    # Denver: four list Titanic, eight Titanic and Heat, ten old people nothing. Boulder: twelve list Heat.
    # Once Titanic was told of Denver, Heat of the young would make it rest on the four.
    users, likes = crowd({"Titanic": 4}, age=60)
    users += [person(f"b{number}") for number in range(8)]
    users += [person(f"n{number}", age=60) for number in range(10)]
    likes |= {f"b{number}": ["Titanic", "Heat"] for number in range(8)}
    more, others = crowd({"Heat": 12}, start=80, city="Boulder", age=20)
    url = fill_duckdb(tmp_path / "a.db", [*users, *more], {"movies": {**likes, **others}})
    rules = policy(release={"q": 10, "min_class": 10})
    with gateway(url, tmp_path / "on", policy=rules) as made:
        assert ask(made) == {"Titanic"}
        assert made.decide(ANN, question("age < 50")).rule == "joint"
        assert ask(made, "age < 50", EVE) == {"Heat"}
        assert ask(made, "city = 'Boulder'") == {"Heat"}  # nobody there has to do with the first answer
    with gateway(url, tmp_path / "off", policy=rules, defences=Defences(joint=False)) as made:
        assert ask(made) == {"Titanic"}
        assert ask(made, "age < 50") == {"Heat"}


def test_people_somebody_knows_do_not_bring_the_rest_down(tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 30, "Alien": 6})
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    with gateway(url, tmp_path / "off", policy=policy(release={"known_users": 0})) as made:
        assert ask(made) == {"Titanic", "Alien"}
    with gateway(url, tmp_path / "on", policy=policy(release={"known_users": 2})) as made:
        assert ask(made) == {"Titanic"}


def test_planted_accounts_do_not_count_until_they_are_old(tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20, "Solaris": 1})
    planted, theirs = crowd({"Solaris": 6}, start=90, created=datetime(2025, 12, 20))
    url = fill_duckdb(tmp_path / "a.db", [*users, *planted], {"movies": {**likes, **theirs}})
    moment = [NOW]
    with gateway(url, tmp_path / "on", clock=lambda: moment[0]) as made:
        assert ask(made) == {"Titanic"}
        assert made.snapshot.users == 21
        moment[0] += 60 * 86400
        made.refresh()
        assert made.snapshot.users == 27
        assert ask(made, "", EVE) == {"Titanic", "Solaris"}
    with gateway(url, tmp_path / "off", defences=Defences(account_age=False)) as made:
        assert ask(made) == {"Titanic", "Solaris"}


def test_secret_amounts_blur_thresholds_but_never_lower_them(tmp_path: Path) -> None:
    users, likes = crowd({f"film {holders:02d}": holders for holders in range(1, 19)})
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    seen = []
    for name in "abc":
        rules = policy(release={"noise": 4})
        with gateway(url, tmp_path / name, policy=rules) as made:
            seen.append({int(value[-2:]) for value in ask(made)})
    assert all(min(one) >= 5 for one in seen)
    assert len({frozenset(one) for one in seen}) > 1
    assert all(18 in one for one in seen)


def test_data_stay_as_they_were_until_the_next_snapshot(fill: Fill, tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20})
    more, others = crowd({"Heat": 20}, start=50)
    moment = [NOW]
    with gateway(fill(users, {"movies": likes}), tmp_path / "state", clock=lambda: moment[0]) as made:
        assert ask(made) == {"Titanic"}
        fill([*users, *more], {"movies": {**likes, **others}})
        assert ask(made) == {"Titanic"}
        assert ask(made, "", EVE) == {"Titanic"}
        assert not made.due
        moment[0] += 86400
        assert made.due
        assert made.refresh() == 2
        assert not made.due
        assert ask(made) == {"Titanic", "Heat"}


@pytest.mark.parametrize("change", ["comes", "leaves", "changes"])
def test_an_answer_stays_until_enough_people_have_changed(change: str, tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20, "Alien": 4})
    source = tmp_path / "a.db"
    url = fill_duckdb(source, users, {"movies": likes})

    def changed(count: int) -> None:
        now, listing = list(users), dict(likes)
        for number in range(count):
            if change == "leaves":
                listing.pop(now.pop(0)["id"])
            elif change == "comes":
                now.append(person(f"new{number}"))
                listing[f"new{number}"] = ["Alien"]
            else:
                listing[users[number]["id"]] = ["Alien"]
        fill_duckdb(source, now, {"movies": listing})

    with gateway(url, tmp_path / "state") as made:
        before = made.answer(ANN, question(DENVER))
        assert before.values == ("Titanic",)
        changed(4)
        made.refresh()
        outcome = made.decide(ANN, question(DENVER))
        assert outcome.answer == before
        assert outcome.repeated
        # Nor does another question show it that selects nearly the same people.
        assert made.decide(ANN, question("city = 'Denver' AND age < 99")).answer.values in ((), before.values)
        changed(6)
        made.refresh()
        after = made.answer(ANN, question(DENVER))
        assert after == before if change == "leaves" else set(after.values) == {"Titanic", "Alien"}
    with gateway(url, tmp_path / "off", defences=Defences(batching=False)) as made:
        ask(made)
        changed(4)
        made.refresh()
        assert not made.decide(ANN, question(DENVER)).repeated


def test_denials_stay_as_well(tmp_path: Path) -> None:
    users, likes = crowd({"Solaris": 4, "Alien": 3, "Heat": 4})
    source = tmp_path / "a.db"
    with gateway(fill_duckdb(source, users, {"movies": likes}), tmp_path / "state") as made:
        assert ask(made) == set()
        fill_duckdb(source, [*users, person("new")], {"movies": {**likes, "new": ["Solaris"]}})
        made.refresh()
        assert made.decide(ANN, question(DENVER)).repeated
        assert ask(made, DENVER, EVE) == {"Solaris"}


def test_answers_are_remembered_over_a_whole_history(tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20})
    source = tmp_path / "a.db"
    url = fill_duckdb(source, users, {"movies": likes})
    with gateway(url, tmp_path / "state", policy=policy(snapshots={"history": 2})) as made:
        ask(made)
        for number in range(6):
            fill_duckdb(
                source, [*users, person(f"new{number}")], {"movies": {**likes, f"new{number}": ["Heat"]}}
            )
            made.refresh()
            assert made.decide(ANN, question(DENVER)).repeated
        assert made.database.snapshots() == [6, 7]
        assert sorted(path.stem for path in (tmp_path / "state" / "prints").glob("*.npz")) == ["1", "6", "7"]
        fill_duckdb(source, users, {"movies": likes})
        made.refresh()
        made.refresh()
        made.refresh()
        assert not made.decide(ANN, question(DENVER)).repeated


def test_spellings_are_brought_together_with_an_alias_file(tmp_path: Path) -> None:
    (tmp_path / "films.json").write_text('{"LOTR": "The Lord of the Rings"}', "utf-8")
    spelt = {"LOTR": 4, "lord of the rings": 3, "The Lord of the Rings": 2, "Heat!": 3, "heat": 2, "HEAT": 2}
    users, likes = crowd(spelt)
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    source = {"table": "movies", "user": "user_id", "value": "value", "aliases": "films.json"}
    plain = policy()
    with gateway(url, tmp_path / "plain") as made:
        assert ask(made) == set()
    films = replace(plain.database.attributes["movies"], aliases=tmp_path / source["aliases"])
    together = replace(plain, database=replace(plain.database, attributes={"movies": films}))
    with gateway(url, tmp_path / "together", policy=together) as made:
        # No spelling of "heat" is in the file: what is shown is the plain form, whichever is commonest.
        assert ask(made) == {"The Lord of the Rings", "heat"}


def test_the_provider_sees_why(two_cities: str, tmp_path: Path) -> None:
    with gateway(two_cities, tmp_path / "state") as made:
        found = made.explain(question(DENVER))
        assert (found.class_size, found.rule, found.threshold) == (35, "", 5)
        assert {one.value: (one.holders, one.released, one.rule) for one in found.values} == {
            "Titanic": (20, True, ""),
            "Alien": (12, True, ""),
            "Solaris": (3, False, "rare"),
        }
        assert found.q == 12
        assert list(made.ledger.replay()) == []
        assert made.explain(question("age > 90")).rule == "too-small"
        ask(made)
        assert made.explain(question(DENVER), ANN).repeated
        assert made.explain(question("city = 'Denver' AND age < 99"), ANN).repeated
        assert not made.explain(question(DENVER), EVE).repeated
        json.dumps(found.to_dict())


def test_a_question_asked_before_is_explained_as_it_was_decided_then(tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20, "Alien": 12})
    likes |= {name: ["Titanic", "Alien"] for name, listed in likes.items() if listed == ["Alien"]}
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    with gateway(url, tmp_path / "state") as made:
        new = made.explain(question(DENVER), ANN)
        assert {one.value: one.rule for one in new.values} == {"Titanic": "", "Alien": "joint"}
        assert (new.repeated, new.decided, new.mechanism) == (False, "", "q")
        ask(made)
        for spelling in (DENVER, "city = 'Denver' AND age < 99"):
            ask(made, spelling)
            again = made.explain(question(spelling), ANN)
            assert again == replace(new, repeated=True, decided="2026-01-01T00:00:00+00:00")


class Slow:
    """A solver that never comes back in time."""

    def suppress(self, holders: Any, threshold: int, options: Any) -> Suppression | None:
        return None


def test_what_takes_too_long_is_denied_counted_and_may_be_asked_again(
    two_cities: str, tmp_path: Path
) -> None:
    once = policy(release={"joint": "once"})
    with gateway(two_cities, tmp_path / "state", policy=once, solver=Slow()) as made:
        for _ in range(2):
            outcome = made.decide(ANN, question(DENVER))
            assert (outcome.answer.values, outcome.rule, outcome.repeated) == ((), "over-time", False)
        assert made.ledger.spent("acme", 0) == 2
    with gateway(two_cities, tmp_path / "state", policy=once) as made:
        assert ask(made) == {"Titanic", "Alien"}


def test_where_each_person_is_in_one_answer_only_it_holds_what_q_allows(tmp_path: Path) -> None:
    """Tags that come in pairs: judged with later answers, one of each pair stays, so that people list one alone."""
    users = [person(f"u{number}", age=20 + number % 2) for number in range(120)]
    likes = {f"u{number}": [f"tag {number // 40}", f"twin {number // 40}"] for number in range(120)}
    url = fill_duckdb(tmp_path / "pairs.db", users, {"movies": likes})
    with gateway(url, tmp_path / "joint") as made:
        assert len(ask(made, "")) == 3
    once = policy(release={"joint": "once"})
    with gateway(url, tmp_path / "once", policy=once) as made:
        assert ask(made, "age = 20") == {f"{kind} {k}" for kind in ("tag", "twin") for k in range(3)}
        assert ask(made, "age = 20 AND city = 'Denver'") == ask(made, "age = 20")  # the same people
        assert ask(made, "") == set()
        assert made.explain(question(""), ANN).rule == "taken"
        assert ask(made, "", EVE)  # another organisation has a ledger of its own
        made.refresh()
        assert ask(made, "age < 50") == set()
        assert ask(made, "age = 21") == ask(made, "", EVE)


def test_many_at_once_get_one_answer_and_one_entry(two_cities: str, tmp_path: Path) -> None:
    with gateway(two_cities, tmp_path / "state", policy=policy(release={"noise": 4})) as made:
        questions = [question(DENVER), question("age = 20"), question("")] * 8
        with ThreadPoolExecutor(8) as pool:
            bodies = list(pool.map(lambda query: made.answer(ANN, query).body, questions))
        assert len(set(zip([query.key for query in questions], bodies, strict=True))) == 3
        assert len(list(made.ledger.replay())) == 3


def test_one_gateway_at_a_time_works_on_a_state(fill: Fill, tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20})
    url = fill(users, {"movies": likes})
    with gateway(url, tmp_path / "state"), pytest.raises(StateInUse, match="in use"):
        Gateway(connect(url), policy(), tmp_path / "state")
    with (
        pytest.raises(InputError, match="films"),
        gateway(url, tmp_path / "state", policy=policy(database={"attributes": {"movies": FILMS}})),
    ):
        pass
    with gateway(url, tmp_path / "state") as made:
        made.database.erase()  # nothing was told yet, so nothing is lost
    with gateway(url, tmp_path / "state") as made:
        assert made.snapshot.number == 2
        assert ask(made) == {"Titanic"}
        made.database.erase()
    with pytest.raises(BrokenState, match="snapshot"), gateway(url, tmp_path / "state"):
        pass


def test_questions_go_on_while_snapshots_are_taken(fill: Fill, tmp_path: Path) -> None:
    users, likes = crowd({"Titanic": 20, "Heat": 20})
    with gateway(fill(users, {"movies": likes}), tmp_path / "state") as made, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, made, f"age < {40 + number}", EVE) for number in range(20)]
        made.refresh()
        asked += [pool.submit(ask, made, f"age < {40 + number}") for number in range(20)]
        made.refresh()
        assert all(one.result() == {"Titanic", "Heat"} for one in asked)


def test_new_tables_in_the_policy_mean_a_new_snapshot(two_cities: str, tmp_path: Path) -> None:
    with gateway(two_cities, tmp_path / "state") as made:
        assert made.snapshot.number == 1
    filters = {"city": "text", "age": "integer"}
    with gateway(two_cities, tmp_path / "state", policy=policy(database={"filters": filters})) as made:
        assert made.snapshot.number == 2


def test_without_repeats_thresholds_could_be_averaged_out(tmp_path: Path) -> None:
    users, likes = crowd({f"film {holders}": holders for holders in range(9, 20)})
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    rules = policy(release={"noise": 4}, budget={"queries": 1000})
    with gateway(url, tmp_path / "on", policy=rules) as made:
        assert len({made.answer(ANN, question(DENVER)).body for _ in range(20)}) == 1
    off = Defences(differencing=False, joint=False)
    anew = AskedAnew(
        lambda state: Gateway(connect(url), rules, state, rules=off.rules, clock=lambda: NOW), token_bytes
    )
    assert len({anew.answer(ANN, question(DENVER)).body for _ in range(20)}) > 5


def test_state_is_for_its_owner_alone(two_cities: str, tmp_path: Path) -> None:
    with gateway(two_cities, tmp_path / "state") as made:
        ask(made)
        made.refresh()
        (tmp_path / "state").chmod(0o755)  # whatever happens to the folder itself
        for path in (tmp_path / "state").iterdir():
            assert path.stat().st_mode & 0o077 == 0, path.name
        assert "Titanic" not in repr(made) + repr(made.snapshot) + repr(made.snapshot.attributes["movies"])
