"""Values known by hand or by formula, through the front door: n, m and q."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import pytest

from incrowd.measures.release import Method, PatternCounts, measure_q

PERRIN = {4: (2, 1), 5: (5, 3), 7: (7, 4), 10: (17, 10), 12: (29, 17)}
PADOVAN = {4: (3, 2), 5: (4, 3), 7: (7, 5), 10: (16, 11)}
ONE_OF_EACH_PATTERN = {
    1: (1, Fraction(1)),
    2: (2, Fraction(2)),
    3: (8, Fraction(8, 3)),
    4: (49, Fraction(49, 10)),
    5: (462, Fraction(77, 10)),
    6: (6424, Fraction(584, 49)),
    7: (129425, Fraction(129425, 7286)),
    8: (3731508, Fraction(932877, 35725)),
}
FANO = [(0, 1, 2), (0, 3, 4), (0, 5, 6), (1, 3, 5), (1, 4, 6), (2, 3, 6), (2, 4, 5)]


def measured(clauses):
    found = measure_q({f"value {i}": list(users) for i, users in enumerate(clauses)})
    assert found.method is Method.EXACT
    return found.n, found.m, found.q


def test_the_papers_figure_3_has_five_groups_and_q_five_thirds():
    assert measured(["ACD", "ABD", "BC"]) == (5, 3, Fraction(5, 3))


def test_the_papers_query_2_has_q_one_and_a_half():
    assert measured(["CD", "DE", "CE"]) == (3, 2, Fraction(3, 2))


def test_a_value_with_one_holder_has_q_one():
    assert measured(["ABC", "D", "AB"])[2] == 1


@pytest.mark.parametrize(("clauses", "size"), [(1, 4), (2, 3), (3, 2), (5, 4)])
def test_disjoint_values_multiply_groups_and_keep_q(clauses, size):
    disjoint = [[(i, j) for j in range(size)] for i in range(clauses)]
    assert measured(disjoint) == (size**clauses, size ** (clauses - 1), size)


@pytest.mark.parametrize(("people", "r"), [(4, 2), (5, 3), (6, 3), (8, 4)])
def test_all_subsets_of_one_size(people, r):
    expected = comb(people, r - 1), comb(people - 1, r - 1)
    assert measured(combinations(range(people), r)) == (*expected, Fraction(people, people - r + 1))


@pytest.mark.parametrize("length", PERRIN)
def test_cycles_follow_perrin(length):
    n, m = PERRIN[length]
    assert measured([(i, (i + 1) % length) for i in range(length)]) == (n, m, Fraction(n, m))


@pytest.mark.parametrize("length", PADOVAN)
def test_paths_follow_padovan(length):
    n, m = PADOVAN[length]
    assert measured([(i, i + 1) for i in range(length - 1)]) == (n, m, Fraction(n, m))


def test_adding_a_value_can_raise_q():
    path = [(1, 2), (2, 3), (3, 4)]
    assert measured(path)[2] == Fraction(3, 2)
    assert measured([*path, (1, 4)])[2] == 2


def test_dropping_a_value_can_lower_q():
    assert measured([(2, 3), (0, 2, 3), (1, 3)])[2] == 2
    assert measured([(0, 2, 3), (1, 3)])[2] == Fraction(3, 2)


def test_the_fano_plane():
    assert measured(FANO) == (7, 3, Fraction(7, 3))


@pytest.mark.parametrize(("a", "b"), [(1, 4), (2, 3), (4, 4)])
def test_stars_and_complete_bipartite_graphs_have_two_groups(a, b):
    edges = [(f"left {i}", f"right {j}") for i in range(a) for j in range(b)]
    assert measured(edges) == (2, 1, 2)


def test_a_million_users_and_two_values():
    found = measure_q(PatternCounts.from_counts({0b01: 400_000, 0b10: 500_000, 0b11: 100_000}))
    assert (found.n, found.m, found.q) == (200_000_100_000, 500_000, Fraction(2_000_001, 5))
    assert (found.users, found.lcv, found.p_min) == (1_000_000, 500_000, 400_000)


def test_a_sunflower():
    petals = [[*((i, j) for j in range(3)), "core 1", "core 2"] for i in range(3)]
    assert measured(petals) == (29, 9, Fraction(29, 9))


@pytest.mark.parametrize("values", ONE_OF_EACH_PATTERN)
def test_one_user_of_every_pattern(values):
    n, q = ONE_OF_EACH_PATTERN[values]
    found = measure_q(PatternCounts.from_counts(dict.fromkeys(range(1, 2**values), 1)))
    assert (found.n, found.q) == (n, q)
