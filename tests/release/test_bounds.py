"""What is proved about q: p_min <= local bound <= q <= LCV, and withholding never lowers the local bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.release.cases import answers

from incrowd.measures.release import Budget, Method, PatternCounts, measure_q
from incrowd.measures.release import solve as bounds_module
from incrowd.measures.release.kernels import smallest_local_count
from incrowd.measures.release.solve import least_common, local_bound, local_counts, only_value, p_min


@settings(max_examples=300, deadline=None)
@given(answers)
def test_q_lies_between_the_local_bound_and_the_least_common_value(answer):
    patterns = PatternCounts.from_holders(answer)
    q = measure_q(patterns).q
    assert 1 <= max(p_min(patterns), 1) <= local_bound(patterns) <= q <= least_common(patterns)


@settings(max_examples=200, deadline=None)
@given(answers)
def test_each_persons_posterior_is_at_most_one_over_their_local_count(answer):
    patterns = PatternCounts.from_holders(answer)
    posteriors = measure_q(patterns, posteriors=True).posteriors
    for row, counts in zip(patterns.table, local_counts(patterns), strict=True):
        listed = tuple(value for value, held in zip(patterns.values, row, strict=True) if held)
        assert posteriors[listed] * int(counts[row].min()) <= 1


@settings(max_examples=200, deadline=None)
@given(answers)
def test_withholding_values_never_lowers_the_local_bound(answer):
    patterns = PatternCounts.from_holders(answer)
    everything = np.arange(len(patterns.values))
    for left_out in everything[: len(everything) - 1]:
        assert local_bound(patterns.select(np.delete(everything, left_out))) >= local_bound(patterns)


def test_the_local_bound_sees_companions_where_nobody_lists_a_value_alone():
    # Ten people list both values, five more list three: nobody lists one alone.
    pairs = PatternCounts.from_counts({0b011: 10, 0b110: 7, 0b111: 5})
    assert p_min(pairs) == 0
    assert local_bound(pairs) == 7
    assert local_counts(pairs).tolist() == [[10, 10, -1], [-1, 7, 7], [15, 22, 12]]


def test_the_compiled_local_bound_is_the_readable_one(rng):
    stop = np.zeros(1, dtype=np.int64)
    for _ in range(100):
        values = rng.choice([3, 5, 70])
        counts = {rng.getrandbits(values) | 1: rng.randint(1, 9) for _ in range(12)} | {2**values - 1: 1}
        patterns = PatternCounts.from_counts(counts, range(values))
        table = local_counts(patterns)
        found = smallest_local_count(patterns.masks, patterns.weights, values, 0, stop)
        assert found == table[table >= 0].min()


def test_many_patterns_take_the_compiled_path_to_the_same_bound(rng, monkeypatch):
    counts = {rng.getrandbits(9) | 0b11: rng.randint(1, 5) for _ in range(400)}
    patterns = PatternCounts.from_counts(counts, range(9))
    assert only_value(patterns).max() == 0
    readable = local_counts(patterns)
    assert local_bound(patterns) == readable[readable >= 0].min()


def test_a_threshold_that_the_bound_reaches_is_certified_without_counting():
    crowd = {1 << i: 30 for i in range(40)} | {2**40 - 1: 1}
    found = measure_q(PatternCounts.from_counts(crowd), threshold=25)
    assert found.method is Method.CERTIFIED
    assert (found.n, found.q) == (None, None)
    assert found.interval == (30, 31)
    assert found.at_least == 30


def test_out_of_budget_the_answer_is_a_proved_interval(rng):
    crowd = PatternCounts.from_counts({rng.getrandbits(40) | 1 << i: 1 for i in range(40) for _ in range(5)})
    found = measure_q(crowd, budget=Budget(seconds=0.05))
    assert found.method is Method.INTERVAL
    assert found.q is None
    assert found.n is None
    assert found.interval == (local_bound(crowd), least_common(crowd))


def test_among_many_values_one_with_a_single_holder_decides_q():
    answer = {value: [value, value + 1] for value in range(300)} | {"rare": [7]}
    found = measure_q(answer)
    assert (found.method, found.q, found.n) == (Method.EXACT, 1, None)


@pytest.mark.parametrize("function", [bounds_module.least_common, bounds_module.p_min])
def test_bounds_are_plain_integers(function):
    assert type(function(PatternCounts.from_counts({0b1: 3, 0b10: 4}))) is int
