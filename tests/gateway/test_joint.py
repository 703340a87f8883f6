"""Everything told to one ledger, held against the release engine and against plain counting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.gateway.alternatives import enough_alternatives, failing_values
from incrowd.gateway.history import Clauses, Joint, LedgerTrial
from incrowd.gateway.people import Selection
from incrowd.gateway.snapshot import AttributeIndex, Snapshot, _indexed
from incrowd.measures.release import measure_q


def group(*people: int) -> Selection:
    return Selection(np.array(sorted(people), dtype=np.int32))


def indexed(lists: Sequence[Sequence[int]], size: int, offset: int = 0) -> AttributeIndex:
    """Value i is listed by the people in lists[i]."""
    named = {f"{place:03d}": np.array(people, dtype=np.int32) for place, people in enumerate(lists)}
    return _indexed(named, size, offset)


def snapshot(lists: Sequence[Sequence[int]], size: int) -> Snapshot:
    return Snapshot(number=1, size=size, users=size, attributes={"movies": indexed(lists, size)})


def random_snapshot(chance: np.random.Generator, people: int, values: int) -> Snapshot:
    """Most people list one value, some list several; two attributes."""
    attributes, offset = {}, 0
    for name in ("movies", "music"):
        more = chance.random((people, values)) < 0.08
        one = np.eye(values, dtype=np.bool_)[chance.integers(0, values, people)]
        table = more | (one & (chance.random(people) < 0.8)[:, None])
        table[0, ~table.any(axis=0)] = True
        attributes[name] = indexed([np.flatnonzero(column).tolist() for column in table.T], people, offset)
        offset += values
    return Snapshot(number=1, size=people, users=people, attributes=attributes)


def clauses_of(snap: Snapshot, told: Sequence[Clauses]) -> dict[tuple[int, int], list[int]]:
    """The joint formula as the engine takes it: answer and value -> who could account for it."""
    found = {}
    for number, answer in enumerate(told):
        index = snap.attributes[answer.attribute]
        for code in answer.codes:
            people = set(index.holders(code).tolist()) & set(answer.group.members.tolist())
            found[number, index.offset + code] = sorted(people)
    return found


def random_class(chance: np.random.Generator, people: int) -> Selection:
    low, high = sorted(chance.integers(0, people, 2).tolist())
    kept = chance.random(people) < chance.choice([0.5, 0.8, 1.0])
    return group(*[p for p in range(low, high + 1) if kept[p]])


def tell(chance: np.random.Generator, snap: Snapshot, base: int, answers: int) -> tuple[Joint, list[Clauses]]:
    """Ask random questions and take in what is allowed."""
    joint, told = Joint(snap, base), []
    for _ in range(answers):
        attribute = str(chance.choice(["movies", "music"]))
        people = random_class(chance, snap.size)
        index = snap.attributes[attribute]
        likely = np.flatnonzero(index.supports(people.members) >= base)
        allowed = joint.allowed(Clauses(people, attribute, tuple(likely.tolist())), base)
        if allowed:
            told.append(Clauses(people, attribute, allowed))
            joint.add(told[-1])
    return joint, told


@given(st.integers(0, 10**9))
@settings(max_examples=40)
def test_q_of_everything_told_reaches_the_threshold(seed: int) -> None:
    chance = np.random.default_rng(seed)
    snap = random_snapshot(chance, people=60, values=3)
    _, told = tell(chance, snap, base=3, answers=4)
    everything = clauses_of(snap, told)
    if everything:
        assert measure_q(everything, threshold=3).at_least >= 3


@given(st.integers(0, 10**9))
@settings(max_examples=25)
def test_q_stays_whatever_is_ignored_and_whoever_is_known(seed: int) -> None:
    chance = np.random.default_rng(seed)
    snap = random_snapshot(chance, people=50, values=3)
    base, known = 5, 2
    _, told = tell(chance, snap, base=base, answers=3)
    everything = clauses_of(snap, told)
    for size in range(len(everything)):
        kept = dict(chance.permutation(np.array(list(everything.items()), dtype=object))[: size + 1].tolist())
        coalition = set(chance.choice(50, known, replace=False).tolist())
        left = {clause: [p for p in people if p not in coalition] for clause, people in kept.items()}
        assert measure_q(left, threshold=base - known).at_least >= base - known


@given(st.integers(0, 10**9))
@settings(max_examples=40)
def test_the_kernel_counts_as_the_readable_version_does(seed: int) -> None:
    chance = np.random.default_rng(seed)
    snap = random_snapshot(chance, people=80, values=4)
    joint, told = tell(chance, snap, base=1, answers=int(chance.integers(0, 5)))
    people = random_class(chance, snap.size)
    answer = Clauses(people, "movies", tuple(sorted(chance.choice(4, 2, replace=False).tolist())))
    trial = LedgerTrial(joint, answer)
    before, threshold = 4, 6
    for value in sorted(trial.own | set(joint.released_by)):
        expected = slow_test(snap, [*told, answer], value, before, threshold)
        assert (value in trial.failing({value}, threshold, before)) == (not expected)


def slow_test(snap: Snapshot, told: Sequence[Clauses], value: int, base: int, threshold: int) -> bool:
    """Person by person, from the definition."""
    held: dict[int, set[tuple[int, int]]] = {}
    for (number, name), people in clauses_of(snap, told).items():
        for person in people:
            held.setdefault(person, set()).add((number, name))
    mine = {p: {number for number, name in clauses if name == value} for p, clauses in held.items()}
    kinds = sorted({frozenset(numbers) for numbers in mine.values() if numbers}, key=sorted)
    if not kinds:
        return True
    alone = [sum(mine[p] == kind and len(held[p]) == len(mine[p]) for p in held) for kind in kinds]
    columns = sorted(set().union(*kinds))
    table = np.array([[column in kind for column in columns] for kind in kinds])
    least = np.array([threshold if column == len(told) - 1 else base for column in columns])
    return enough_alternatives(table, np.array(alone), least)


def test_many_answers_need_several_words() -> None:
    lists = [list(range(start, start + 20)) for start in range(0, 2000, 20)]
    snap = snapshot(lists, 2000)
    joint = Joint(snap, 10)
    for place in range(100):
        answer = Clauses(group(*lists[place]), "movies", (place,))
        assert joint.allowed(answer, 10) == (place,)
        joint.add(answer)
    assert joint.cells.shape == (100, 2)
    half = Clauses(group(*range(1990)), "movies", tuple(range(100)))
    assert joint.allowed(half, 10) == tuple(range(100))
    assert joint.allowed(half, 11) == tuple(range(99))


def test_crossing_classes_withhold_what_few_could_account_for() -> None:
    # Denver: 0-49. Young: 40-199; old: everybody else. All list one film.
    snap = snapshot([list(range(400))], 400)
    joint = Joint(snap, 12)
    joint.add(Clauses(group(*range(50)), "movies", (0,)))
    joint.add(Clauses(group(*range(40, 200)), "movies", (0,)))
    old = group(*range(40), *range(200, 400))
    # The ten in Denver who are young could then account for Denver only with each other.
    assert joint.allowed(Clauses(old, "movies", (0,)), 12) == ()
    assert Joint.of(snap, 10, [Clauses(group(*range(50)), "movies", (0,))]).allowed(
        Clauses(old, "movies", (0,)), 10
    ) == (0,)


def test_a_new_value_may_not_take_the_companions_of_an_older_one() -> None:
    # Twelve people list A, eight of them B as well; ten others list B alone.
    snap = snapshot([list(range(12)), [*range(8), *range(12, 22)]], 22)
    joint = Joint(snap, 10)
    joint.add(Clauses(group(*range(22)), "movies", (0,)))
    assert joint.allowed(Clauses(group(*range(22)), "movies", (1,)), 10) == ()
    assert Joint(snap, 10).allowed(Clauses(group(*range(22)), "movies", (1,)), 10) == (1,)


def test_answers_on_other_people_do_not_matter() -> None:
    snap = snapshot([list(range(12)), list(range(12, 24))], 24)
    joint = Joint(snap, 10)
    joint.add(Clauses(group(*range(12)), "movies", (0,)))
    assert joint.allowed(Clauses(group(*range(12, 24)), "movies", (1,)), 10) == (1,)


def test_older_answers_that_people_have_left_are_not_held_against_new_ones() -> None:
    snap = snapshot([list(range(4)), list(range(30))], 30)
    joint = Joint.of(snap, 10, [Clauses(group(*range(30)), "movies", (0,))])
    assert joint.broken == {0}
    assert joint.allowed(Clauses(group(*range(30)), "movies", (1,)), 10) == (1,)
    assert joint.allowed(Clauses(group(*range(30)), "movies", (0,)), 10) == ()


def test_beyond_its_effort_nothing_passes() -> None:
    index = indexed([list(range(20))], 20)
    arguments = {
        "starts": index.index.starts,
        "members": index.index.members,
        "codes": np.zeros(1, np.int64),
        "names": np.zeros(1, np.int64),
        "answers": np.ones((1, 1), np.uint64),
        "cell": np.zeros(20, np.int32),
        "cells": np.zeros((1, 1), np.uint64),
        "inside": np.ones(20, np.bool_),
        "about": np.zeros(20, np.int64),
        "new": 0,
        "base": 10,
        "threshold": 10,
    }
    assert failing_values(**arguments).tolist() == [False]  # type: ignore[arg-type]
    assert failing_values(**arguments, effort=1).tolist() == [True]  # type: ignore[arg-type]


@pytest.mark.parametrize("known", [1, 2, 3])
def test_each_known_person_costs_at_most_one(known: int) -> None:
    """q falls by at most the number of people that are known completely (NOTES.md)."""
    chance = np.random.default_rng(known)
    for _ in range(15):
        lists = {
            v: sorted(chance.choice(9, chance.integers(known + 1, 8), replace=False).tolist())
            for v in range(4)
        }
        q = measure_q(lists).q
        for coalition in combinations(range(9), known):
            left = {value: [p for p in people if p not in coalition] for value, people in lists.items()}
            after = measure_q(left).q
            assert q is not None
            assert after is not None
            assert after >= q - known
