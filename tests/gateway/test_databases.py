"""The same statements about DuckDB and PostgreSQL."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from tests.gateway.conftest import Fill
from tests.gateway.making import crowd, person, policy
from tests.gateway.reference import holds, random_predicate, random_row

from incrowd.errors import IncrowdError, InputError
from incrowd.gateway.databases import connect
from incrowd.gateway.databases.common import Database
from incrowd.gateway.predicate import EVERYBODY, Compare, Not, OneOf
from incrowd.gateway.query import checked

POLICY = policy()


def opened(url: str, state: Path) -> Database:
    database = connect(url)
    database.open(state, "label", 5.0)
    return database


def held(database: Database, number: int) -> dict[str, list[int]]:
    return {value: sorted(people.tolist()) for value, people in database.holders(number, "movies")}


def test_conditions_select_whom_plain_logic_selects(fill: Fill, tmp_path: Path) -> None:
    chance = random.Random(3)
    rows = [random_row(chance) for _ in range(150)]
    users = [person(f"{number:04d}") | row for number, row in enumerate(rows)]
    database = opened(fill(users, {"movies": {"0000": ["Alien"]}}), tmp_path)
    database.take(1, POLICY.database, None)
    for _ in range(80):
        condition = checked(random_predicate(chance), POLICY.asking)
        expected = [number for number, row in enumerate(rows) if holds(condition, row)]
        assert database.members(1, condition).tolist() == expected, condition
    database.close()


def test_hostile_literals_are_only_compared(fill: Fill, tmp_path: Path) -> None:
    hostile = "x'; DROP TABLE users; --"
    users = [person("a", city=hostile), person("b", city="%s"), person("c", city='"; SELECT 1')]
    database = opened(fill(users, {"movies": {"a": ["Alien"]}}), tmp_path)
    database.take(1, POLICY.database, None)
    assert database.members(1, Compare("city", "=", hostile)).tolist() == [0]
    assert database.members(1, OneOf("city", ("%s", '"; SELECT 1'))).tolist() == [1, 2]
    assert database.members(1, Not(Compare("city", "=", "' OR 1=1 --"))).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="not checked"):
        database.members(1, Compare("city = '' OR 1=1 --", "=", "x"))
    database.close()


def test_changes_show_in_the_next_snapshot_only_and_numbers_stay(fill: Fill, tmp_path: Path) -> None:
    users, likes = crowd({"Alien": 3, "Heat": 2})
    database = opened(fill(users, {"movies": likes}), tmp_path)
    database.take(1, POLICY.database, None)
    before = held(database, 1)
    fill([*users[1:], person("aaa")], {"movies": {**likes, "aaa": ["Heat"]}})
    assert held(database, 1) == before == {"Alien": [0, 1, 2], "Heat": [3, 4]}
    assert len(database.members(1, EVERYBODY)) == 5
    database.take(2, POLICY.database, None)
    assert held(database, 2) == {"Alien": [1, 2], "Heat": [3, 4, 5]}
    assert database.members(2, EVERYBODY).tolist() == [1, 2, 3, 4, 5]
    assert database.people() == 6
    assert database.snapshots() == [1, 2]
    database.drop(1)
    assert database.snapshots() == [2]
    assert held(database, 2)["Alien"] == [1, 2]
    database.close()


def test_snapshots_outlive_the_process(fill: Fill, tmp_path: Path) -> None:
    users, likes = crowd({"Alien": 3})
    url = fill(users, {"movies": likes})
    database = opened(url, tmp_path)
    database.take(1, POLICY.database, None)
    database.close()
    database = opened(url, tmp_path)
    assert database.snapshots() == [1]
    assert held(database, 1) == {"Alien": [0, 1, 2]}
    database.close()


def test_young_accounts_and_those_of_unknown_age_are_left_out(fill: Fill, tmp_path: Path) -> None:
    users = [
        person("old", created=datetime(2025, 1, 1)),
        person("young", created=datetime(2025, 6, 2)),
        person("unknown", created=None),  # type: ignore[arg-type]
    ]
    likes = {"old": ["Alien"], "young": ["Alien"], "unknown": ["Heat"]}
    database = opened(fill(users, {"movies": likes}), tmp_path)
    database.take(1, POLICY.database, datetime(2025, 6, 1))
    assert len(database.members(1, EVERYBODY)) == 1
    assert {value: len(people) for value, people in held(database, 1).items()} == {"Alien": 1}
    database.close()


def test_values_of_strangers_and_empty_ones_are_left_out(fill: Fill, tmp_path: Path) -> None:
    likes = {"a": ["Alien", "Alien", None], "stranger": ["Alien"], "b": ["Ünïcödé 🎬 ''"]}
    database = opened(fill([person("a"), person("b")], {"movies": likes}), tmp_path)  # type: ignore[arg-type,dict-item]
    database.take(1, POLICY.database, None)
    assert held(database, 1) == {"Alien": [0], "Ünïcödé 🎬 ''": [1]}
    database.close()


def test_class_sizes_of_a_filter(fill: Fill, tmp_path: Path) -> None:
    users = [person("a"), person("b"), person("c", city="Boulder"), person("d", city=None)]  # type: ignore[arg-type]
    database = opened(fill(users, {"movies": {"a": ["x"]}}), tmp_path)
    database.take(1, POLICY.database, None)
    assert np.sort(database.sizes(1, "city")).tolist() == [1, 2]
    database.close()


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"users": "nobody"}, "table 'nobody'"),
        ({"id": "name"}, "name"),
        ({"filters": {"city": {"column": "town", "type": "text"}}}, "town"),
        (
            {"attributes": {"movies": {"table": "films", "user": "user_id", "value": "value"}}},
            "table 'films'",
        ),
        ({"filters": {"city": "integer"}}, "does not fit"),
        ({"id": "city"}, "tell people apart"),
    ],
)
def test_what_cannot_be_copied_is_said_without_quoting_anybody(
    section: dict[str, object], said: str, fill: Fill, tmp_path: Path
) -> None:
    users, likes = crowd({"Secret film": 3}, city="Secret town")
    database = opened(fill(users, {"movies": likes}), tmp_path)
    with pytest.raises(InputError, match=said) as caught:
        database.take(1, policy(database={**_plain_database(), **section}).database, None)
    assert "Secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert database.snapshots() == []
    database.take(2, POLICY.database, None)  # and nothing is left in the way
    assert len(held(database, 2)["Secret film"]) == 3
    database.close()


def _plain_database() -> dict[str, object]:
    attribute = {"table": "movies", "user": "user_id", "value": "value"}
    return {"users": "users", "id": "id", "filters": {"city": "text"}, "attributes": {"movies": attribute}}


def test_what_answers_queries_cannot_write(postgres_server: str, tmp_path: Path) -> None:
    from incrowd.gateway.databases.postgres import Postgres

    database = Postgres(postgres_server)
    database.open(tmp_path, "readonly", 1.0)
    with pytest.raises(IncrowdError, match="ReadOnlySqlTransaction"), database._reading() as own:
        own.execute("CREATE TABLE public.oops (a INTEGER)")
    with pytest.raises(IncrowdError, match="passed its time"), database._reading() as own:
        own.execute("SELECT pg_sleep(30)")
    database.close()


def test_no_file_can_be_reached_through_the_snapshots(tmp_path: Path) -> None:
    import duckdb

    from incrowd.gateway.databases.duckdb import DuckDB

    database = DuckDB(str(tmp_path / "none.db"))
    database.open(tmp_path / "state", "label", 1.0)
    for sql in ("SELECT * FROM read_csv('/etc/hostname')", f"ATTACH '{tmp_path}/x.db'", "SET threads = 1"):
        with pytest.raises(duckdb.Error):
            database._cursor().execute(sql).fetchall()
    with pytest.raises(InputError, match="there is none"):
        database.take(1, POLICY.database, None)
    database.close()


def test_urls_name_the_database_and_hide_passwords() -> None:
    with pytest.raises(InputError, match=r"duckdb:///shop\.db"):
        connect("mysql://host/shop")
    with pytest.raises(InputError):
        connect("shop.db")
    assert "hunter2" not in repr(connect("postgresql://reader:hunter2@host/shop"))
