"""Users become patterns; values that add nothing go; unconnected values part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.release.cases import answers, random_answer

from incrowd.errors import BudgetExceeded, InputError
from incrowd.measures.release import Budget, HolderIndex, Method, PatternCounts, measure_q
from incrowd.measures.release import patterns as patterns_module
from incrowd.measures.release.patterns import absorb, connected, parts, redundant
from incrowd.measures.release.spec import Deadline, decimal
from incrowd.measures.release.sums import combine, primes_for


def as_counts(patterns):
    return dict(zip(patterns.integers(), patterns.weights.tolist(), strict=True))


def test_users_with_the_same_values_become_one_pattern():
    grouped = PatternCounts.from_holders({"x": ["a", "b", "c"], "y": ["b", "c", "d"]})
    assert as_counts(grouped) == {0b01: 1, 0b10: 1, 0b11: 2}
    assert (grouped.users, grouped.supports.tolist()) == (4, [3, 3])


def test_a_user_named_twice_counts_once():
    assert as_counts(PatternCounts.from_holders({"x": ["a", "a", "b"]})) == {1: 2}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.integers(0, 2**32))
def test_grouping_does_not_depend_on_how_many_values_there_are(values, seed):
    # Up to 20 values are counted in a table, up to 64 fit a word, more need several.
    draw = np.random.default_rng(seed)
    table = draw.random((50, values)) < 0.1
    table[0] = True
    grouped = PatternCounts.from_holders({j: np.flatnonzero(table[:, j]) for j in range(values)})
    expected: dict[int, int] = {}
    for row in table:
        mask = sum(1 << int(j) for j in np.flatnonzero(row))
        expected[mask] = expected.get(mask, 0) + (mask > 0)
    assert as_counts(grouped) == {mask: users for mask, users in expected.items() if mask}


def test_a_prepared_index_answers_for_any_class_and_any_values(rng):
    answer = {value: [rng.randrange(60) for _ in range(20)] for value in range(9)}
    index = HolderIndex.from_holders(answer)
    members = set(rng.sample(range(60), 30))
    within = np.array([name in members for name in index.names])
    chosen = [7, 2, 5]
    direct = {value: [user for user in answer[value] if user in members] for value in chosen}
    assert as_counts(index.patterns(chosen, within)) == as_counts(PatternCounts.from_holders(direct))
    with pytest.raises(InputError, match="got one that it does not have"):
        index.patterns(["secret taste"])


def test_values_that_nobody_in_the_class_lists_are_no_part_of_the_response():
    index = HolderIndex.from_holders({"x": [1, 2], "y": [3], "z": [2, 3]})
    class_of_two = np.array([name in (1, 2) for name in index.names])
    assert index.patterns(within=class_of_two).values == ("x", "z")
    with pytest.raises(InputError, match="one that nobody lists"):
        PatternCounts.from_counts({0b01: 3}, ["x", "y"])


def test_two_columns_make_the_same_index_as_a_mapping(rng):
    answer = {value: [rng.randrange(30) for _ in range(8)] for value in "abcd"}
    users = np.array([user for listed in answer.values() for user in listed])
    values = np.array([value for value, listed in answer.items() for _ in listed])
    index = HolderIndex.from_pairs(users, values)
    assert as_counts(index.patterns("abcd")) == as_counts(PatternCounts.from_holders(answer))
    assert {index.names[i] for i in index.holders(index.position["b"])} == set(answer["b"])
    assert measure_q(HolderIndex.from_pairs(users[:0], values[:0])).method is Method.NOTHING


@pytest.mark.parametrize("words", [3, 100])
def test_selecting_values_merges_patterns(rng, words):
    answer = {value: rng.sample(range(40), 12) for value in range(words)}
    keep = list(range(0, words, 2))
    selected = PatternCounts.from_holders(answer).select(keep)
    assert as_counts(selected) == as_counts(PatternCounts.from_holders({v: answer[v] for v in keep}))


def test_a_mask_of_users_may_be_given_directly():
    counts = {2**70 - 1: 3, 1 << 70: 2}
    assert as_counts(PatternCounts.from_counts(counts)) == counts
    with pytest.raises(InputError, match="at least 71 value labels"):
        PatternCounts.from_counts(counts, ["a", "b"])
    with pytest.raises(InputError, match="negative"):
        PatternCounts.from_counts({1: -1})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"x": []}, "at least one user"),
        ({"x": "abc"}, "list of users, got str"),
        ({"x": 3}, "list of users, got int"),
        ({"x": [["a"]]}, "text or numbers"),
    ],
)
def test_bad_holders_are_refused_by_number_not_by_name(answer, message):
    with pytest.raises(InputError, match=message) as refused:
        measure_q({"fine": ["somebody"]} | answer)
    assert "value number 2" in str(refused.value)
    assert "somebody" not in str(refused.value)


def test_no_repr_shows_values_or_users():
    index = HolderIndex.from_holders({"secret taste": ["somebody"]})
    assert "secret" not in repr(index) + repr(index.patterns())
    assert "somebody" not in repr(index)


def test_an_empty_answer_is_nothing_not_infinite_privacy():
    found = measure_q({})
    assert (found.method, found.n, found.m, found.q, found.interval) == (Method.NOTHING, 0, 0, None, None)


@settings(max_examples=150, deadline=None)
@given(answers)
def test_absorbing_leaves_no_value_whose_holders_contain_anothers(answer):
    kept = absorb(PatternCounts.from_holders(answer)).values
    sets = {value: set(answer[value]) for value in answer}
    assert not any(sets[a] <= sets[b] for a in kept for b in kept if a != b)
    assert all(any(sets[a] <= sets[b] for a in kept) for b in sets)


@settings(max_examples=150, deadline=None)
@given(answers)
def test_parts_share_no_user_and_are_connected(answer):
    patterns = PatternCounts.from_holders(answer)
    found = parts(patterns)
    assert sorted(value for part in found for value in part.values) == sorted(answer)
    people = [{user for value in part.values for user in answer[value]} for part in found]
    assert sum(map(len, people)) == len(set().union(*people))
    assert all(connected(part).max() == 0 for part in found)


def test_absorbed_values_by_hand():
    patterns = PatternCounts.from_holders({"a": [1, 2], "b": [1, 2, 3], "c": [3], "d": [1, 2]})
    assert redundant(patterns).tolist() == [False, True, False, True]


def test_many_values_are_absorbed_a_few_at_a_time(monkeypatch, rng):
    users = {value: [rng.randrange(30) for _ in range(1 + value % 4)] for value in range(150)}
    patterns = PatternCounts.from_holders(users)
    at_once = redundant(patterns)
    monkeypatch.setattr(patterns_module, "SIDE_BY_SIDE", 1)
    assert 20 < at_once.sum() < 140
    assert redundant(patterns).tolist() == at_once.tolist()


def test_relabelling_users_and_values_changes_nothing(rng):
    for _ in range(50):
        answer = random_answer(rng)
        relabelled = {f"v{v}": [f"u{7 * u % 97}" for u in users] for v, users in reversed(answer.items())}
        before, after = measure_q(answer), measure_q(relabelled)
        assert (before.n, before.m, before.q) == (after.n, after.m, after.q)


def test_an_answer_that_does_not_fit_the_memory_says_what_to_do():
    wide = {value: range(value, value + 40) for value in range(400)}
    with pytest.raises(BudgetExceeded, match="withhold rare values first, or give more memory"):
        measure_q(wide, budget=Budget(memory=10_000))


def test_integers_longer_than_python_prints_are_written_out():
    number = 7**12_000 + 12
    written = decimal(number)
    assert len(written) == 10142
    assert written.startswith(str(number // 10**10_100))
    assert written.endswith(str(number % 10**50).zfill(50))
    assert decimal(0) == "0"


def test_remainders_modulo_primes_give_the_integer_back(rng):
    for bits in (1, 26, 27, 28, 200, 1000):
        number = rng.getrandbits(bits)
        moduli = primes_for(bits)
        residues = np.array([[number % p] for p in moduli], dtype=np.uint64)
        assert combine(residues, moduli, Deadline(60)) == [number]
        assert combine(residues, moduli, Deadline(0)) is None
    many = primes_for(400_000)
    assert len(set(many)) == len(many) > 400_000 // 27
    assert all(p < 2**27 and all(p % d for d in range(2, 11600)) for p in many[:5] + many[-5:])
