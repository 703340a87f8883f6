"""Five ways to the same integers, checked against the definition and against each other."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.release.cases import random_answer

from incrowd.measures.release.definition import (
    SOLVERS,
    Component,
    count_groups,
    count_with,
    minimal_groups,
    multiply_and_absorb,
    q_from_groups,
)
from incrowd.measures.release.patterns import PatternCounts, absorb, parts
from incrowd.measures.release.solve import measure_q
from incrowd.measures.release.spec import Deadline

FOREVER = Deadline(math.inf)
MEMORY = 2**28
COMPILED = [solver for solver in SOLVERS if solver != "products"]


def by_multiplying(answer):
    """n, m and posteriors by the paper's own way, on single users."""
    people = sorted({user for users in answer.values() for user in users})
    bit = {user: 1 << i for i, user in enumerate(people)}
    terms = multiply_and_absorb(sum(bit[user] for user in set(users)) for users in answer.values())
    counts = {user: sum(bool(term & bit[user]) for term in terms) for user in people}
    return len(terms), max(counts.values()), {user: Fraction(c, len(terms)) for user, c in counts.items()}


def test_multiplying_out_agrees_with_the_definition(rng):
    for _ in range(150):
        answer = random_answer(rng, values=4, users=6)
        assert by_multiplying(answer)[:2] == q_from_groups(minimal_groups(answer))[:2]


def test_measuring_agrees_with_the_papers_way_on_two_thousand_answers(rng):
    for _ in range(2000):
        answer = random_answer(rng)
        n, m, posteriors = by_multiplying(answer)
        found = measure_q(answer, posteriors=True)
        assert (found.n, found.m, found.q) == (n, m, Fraction(n, m)), answer
        assert found.posteriors == posteriors, answer


@pytest.mark.parametrize("solver", SOLVERS)
def test_each_solver_agrees_with_the_papers_way(solver, rng):
    for _ in range(150):
        patterns = PatternCounts.from_holders(random_answer(rng, values=6, users=9))
        weights = np.array([rng.randint(1, 5) for _ in patterns.weights], dtype=np.int64)
        heavier = PatternCounts(patterns.values, patterns.masks, weights)
        for part in parts(absorb(heavier)):
            expected = count_with("products", Component(part), FOREVER, MEMORY)
            found = count_with(solver, Component(part), FOREVER, MEMORY)
            assert (found.groups, found.each) == (expected.groups, expected.each)


def plain_sum(weights, values):
    """The sum over marked, avoided and free values, in fractions, as NOTES.md states it."""
    total = Fraction(0)
    for states in product("XZF", repeat=values):
        marked = {i for i, state in enumerate(states) if state == "X"}
        avoided = {i for i, state in enumerate(states) if state == "Z"}
        exponent = [0] * (values + 1)
        for pattern, users in weights.items():
            listed = {i for i in range(values) if pattern >> i & 1}
            if not listed & avoided and listed & marked:
                exponent[len(listed & marked)] += users
        degree = len(marked) + len(avoided)
        series = [Fraction((-1) ** i * math.comb(len(avoided), i)) for i in range(degree + 1)]
        for power, users in enumerate(exponent):
            series = times_exp(series, power, -users) if users else series
        total += (-1) ** len(marked) * series[degree]
    return total


def times_exp(series, power, factor):
    """Multiply a truncated power series with exp(factor * t^power)."""
    result = list(series)
    for i in range(1, (len(series) - 1) // power + 1):
        share = Fraction(factor) ** i / math.factorial(i)
        for j in range(len(series) - i * power):
            result[j + i * power] += share * series[j]
    return result


def test_the_sum_is_the_formula_of_the_notes(rng):
    for _ in range(25):
        values = rng.randint(1, 4)
        weights = {pattern: rng.randint(0, 3) for pattern in range(1, 2**values)}
        weights |= {1 << i: 1 + weights[1 << i] for i in range(values)}  # every value is held
        part = Component(PatternCounts.from_counts(weights))
        assert count_with("sum", part, FOREVER, MEMORY).groups == plain_sum(weights, values)


@pytest.mark.parametrize("solver", ["sum", "sweep", "enumeration", "diagram"])
def test_counts_of_hundreds_of_bits_are_exact(solver):
    # k petals of p users and a core of c: p^k + c groups, p^(k-1) with a given petal user.
    petals, p, c = 9, 10**9 + 7, 3
    sunflower = {1 << i: p for i in range(petals)} | {2**petals - 1: c}
    count = count_with(solver, Component(PatternCounts.from_counts(sunflower)), FOREVER, MEMORY)
    assert count.groups == p**petals + c
    assert sorted(count.each) == sorted([p ** (petals - 1)] * petals + [1])


def weighted_covers_of_a_ring(weights):
    """Minimal vertex covers of a cycle, weighted: no two neighbours out, no three in a row in."""
    pairs = list(product((0, 1), repeat=2))
    total = 0
    for first in pairs:
        ways = {first: 1}
        for weight in weights:
            following = dict.fromkeys(pairs, 0)
            for (a, b), count in ways.items():
                for c in (0, 1):
                    if (b or c) and not (a and b and c):
                        following[b, c] += count * (weight if c else 1)
            ways = following
        total += ways[first]
    return total


def test_a_hundred_connected_values_are_counted_exactly():
    # A cycle of 100 values with 1,000 users between neighbours: three values open at a time are enough.
    found = measure_q(PatternCounts.from_counts({1 << i | 1 << (i + 1) % 100: 1000 for i in range(100)}))
    rest = [1000] * 99
    assert found.parts[0].solver == "sweep"
    assert found.n == weighted_covers_of_a_ring([1000, *rest])
    assert found.m == weighted_covers_of_a_ring([1, *rest]) - weighted_covers_of_a_ring([0, *rest])


def test_a_raised_flag_stops_every_compiled_solver():
    wide = PatternCounts.from_counts(dict.fromkeys(range(1, 2**11), 1))
    for solver in COMPILED:
        count_with(solver, Component(PatternCounts.from_counts({1: 1, 2: 1, 3: 1})), FOREVER, MEMORY)
        assert count_with(solver, Component(wide), Deadline(0.0), MEMORY) is None


def test_without_memory_no_table_is_built():
    part = Component(PatternCounts.from_counts(dict.fromkeys(range(1, 2**8), 1)))
    assert count_with("sum", part, FOREVER, memory=1000) is None
    assert count_with("sweep", part, FOREVER, memory=1000) is None
    assert count_with("diagram", part, FOREVER, memory=1000) is None


def test_no_solver_within_no_time_is_no_count():
    part = Component(PatternCounts.from_counts(dict.fromkeys(range(1, 2**11), 1)))
    assert count_groups(part, Deadline(0.0), MEMORY) is None
