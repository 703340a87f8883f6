"""Whatever is asked, in whatever order: what the whole gateway promises about everything it told."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import pytest
from tests.gateway.making import NOW, fill_duckdb, person, policy

from incrowd.gateway.core import Gateway
from incrowd.gateway.databases import connect
from incrowd.gateway.ledger import Entry
from incrowd.gateway.people import members_of
from incrowd.gateway.query import And, Between, Client, Compare, OneOf, Predicate, Query
from incrowd.measures.release import measure_q

CITIES = ("Denver", "Boulder", "Aspen")
FILMS = ("Alien", "Heat", "Titanic", "Solaris")
Q, KNOWN = 4, 1


def random_condition(chance: random.Random) -> Predicate:
    low, high = sorted(chance.choices(range(18, 31), k=2))
    city = OneOf("city", tuple(chance.sample(CITIES, chance.randint(1, 3))))
    ages = Between("age", low, high)
    return chance.choice([city, ages, And((city, ages)), Compare("age", "<", high)])


def told(made: Gateway) -> list[Entry]:
    distinct = {(one.attribute, one.digest): one for one in made.ledger.replay() if not one.rule}
    return list(distinct.values())


@pytest.mark.parametrize("seed", range(4))
def test_everything_told_to_an_organisation_keeps_the_promises(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    users = [person(f"u{n}", chance.choice(CITIES), chance.randint(18, 30)) for n in range(150)]
    likes = {user["id"]: chance.sample(FILMS, chance.choice([0, 1, 1, 1, 2])) for user in users}
    music = {user["id"]: chance.sample(FILMS, chance.choice([0, 1])) for user in users}
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes, "music": music})
    attributes = {name: {"table": name, "user": "user_id", "value": "value"} for name in ("movies", "music")}
    rules = policy(
        release={"q": Q, "min_class": 8, "noise": 1, "known_users": KNOWN, "allow_not": False},
        database={"attributes": attributes},
    )
    made = Gateway(connect(url), rules, tmp_path / "state", clock=lambda: NOW)
    client = Client("ann", "acme")
    questions = [Query(chance.choice(["movies", "music"]), random_condition(chance)) for _ in range(25)]
    bodies = [made.answer(client, one).body for one in questions]
    assert [made.answer(client, one).body for one in questions] == bodies
    entries = told(made)
    assert len(entries) >= 3, "too little was answered to test anything"

    classes = [set(members_of(one.people).tolist()) for one in entries if one.people is not None]
    for (one, here), (other, there) in combinations(zip(entries, classes, strict=True), 2):
        if one.attribute == other.attribute:
            assert not 0 < len(here - there) < Q
            assert not 0 < len(there - here) < Q

    clauses = {}
    for number, (entry, people) in enumerate(zip(entries, classes, strict=True)):
        index = made.snapshot.attributes[entry.attribute]
        for value in entry.values:
            holders = set(index.holders(index.code_of[value]).tolist()) & people
            clauses[number, value] = sorted(holders)
    assert measure_q(clauses, threshold=Q + KNOWN).at_least >= Q + KNOWN
    coalition = set(chance.sample(range(150), KNOWN))
    left = {clause: [p for p in people if p not in coalition] for clause, people in clauses.items()}
    some = dict(chance.sample(sorted(left.items()), max(1, len(left) // 2)))
    assert measure_q(some, threshold=Q).at_least >= Q
    made.close()
