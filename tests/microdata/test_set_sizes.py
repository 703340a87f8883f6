"""The distribution of |AS|: exact by search, or estimated with an honest interval."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from tests.microdata.simulation import simulate

from incrowd.measures.microdata.anonymity_set import expected_others
from incrowd.measures.microdata.definition import known_sizes
from incrowd.measures.microdata.set_sizes import Effort, SetSizeFinder, SetSizes, bernstein_reach, risks
from incrowd.measures.microdata.spec import Knowledge

from .conftest import Draw

SMALL = Knowledge(percents=(20, 35, 50))


def by_enumeration(matrix: sparse.csr_matrix, row: int, knowledge: Knowledge) -> dict[int, float]:
    dense = matrix.toarray().astype(bool)
    items = np.flatnonzero(dense[row])
    found: Counter[int] = Counter()
    for size, weight in zip(*known_sizes(len(items), knowledge), strict=True):
        samples = list(itertools.combinations(items, int(size)))
        for sample in samples:
            missing = (~dense[:, list(sample)]).sum(axis=1)
            found[int((missing <= knowledge.wrong).sum())] += float(weight) / len(samples)
    return dict(found)


def items_of(matrix: sparse.csr_matrix, row: int) -> np.ndarray:
    return matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]].astype(np.int32)


@pytest.mark.parametrize(("people", "items"), [(3, 8), (12, 10), (90, 11), (200, 9)])
def test_the_search_equals_enumeration(draw: Draw, people: int, items: int) -> None:
    matrix = draw(people, items, seed=people)
    finder = SetSizeFinder(matrix, SMALL)
    for row in range(min(people, 12)):
        sizes = finder.find(items_of(matrix, row), member=row)
        assert sizes.exact
        want = by_enumeration(matrix, row, SMALL)
        assert sizes.sizes.tolist() == sorted(want)
        assert sizes.probabilities == pytest.approx([want[k] for k in sorted(want)], abs=1e-12)


def test_the_mean_of_the_distribution_is_the_closed_form(matrix: sparse.csr_matrix) -> None:
    others = expected_others(matrix, matrix, Knowledge())
    finder = SetSizeFinder(matrix, Knowledge())
    for row in range(20):
        sizes = finder.find(items_of(matrix, row), member=row)
        assert sizes.exact
        assert sizes.mean == pytest.approx(1 + others[row], rel=1e-9)
        assert sizes.probabilities.sum() == pytest.approx(1)


def test_one_over_the_average_understates_the_risk(matrix: sparse.csr_matrix) -> None:
    finder = SetSizeFinder(matrix, Knowledge())
    for row in range(20):
        sizes = finder.find(items_of(matrix, row), member=row)
        assert sizes.found.value >= 1 / sizes.mean - 1e-12
        assert sizes.alone.value <= sizes.found.value + 1e-12


def test_an_outsider_is_nobody_s_company(matrix: sparse.csr_matrix) -> None:
    finder = SetSizeFinder(matrix[1:], SMALL)
    inside = SetSizeFinder(matrix, SMALL)
    outside = finder.find(items_of(matrix, 0))
    member = inside.find(items_of(matrix, 0), member=0)
    assert outside.sizes.tolist() == member.sizes.tolist()
    assert outside.probabilities == pytest.approx(member.probabilities)


def test_nobody_alike_means_always_alone_and_twins_never() -> None:
    apart = sparse.csr_matrix(np.kron(np.eye(4), np.ones((1, 8))).astype(np.int8))
    assert SetSizeFinder(apart, Knowledge()).find(items_of(apart, 0), member=0).alone.value == 1
    twins = sparse.csr_matrix(np.ones((2, 8), dtype=np.int8))
    sizes = SetSizeFinder(twins, Knowledge()).find(items_of(twins, 0), member=0)
    assert (sizes.sizes.tolist(), sizes.found.value) == ([2], 0.5)


@pytest.mark.parametrize("wrong", [0, 1])
def test_without_steps_it_draws_samples_and_says_so(matrix: sparse.csr_matrix, wrong: int) -> None:
    knowledge = Knowledge(percents=(), items=(3,), wrong=wrong)
    finder = SetSizeFinder(matrix, knowledge, Effort(steps=0, rounds=4000, seed=5))
    misses = 0
    for row in range(12):
        sizes = finder.find(items_of(matrix, row), member=row, number=row)
        want = by_enumeration(matrix, row, knowledge)
        assert not sizes.exact
        truth = sum(share / size for size, share in want.items())
        misses += not sizes.found.low <= truth <= sizes.found.high
        misses += not sizes.alone.low <= want.get(1, 0.0) <= sizes.alone.high
    assert misses <= 1  # 24 intervals that each miss at most one time in twenty


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(matrix: sparse.csr_matrix) -> None:
    def draw_once(seed: int) -> SetSizes:
        return SetSizeFinder(matrix, Knowledge(), Effort(steps=0, rounds=500, seed=seed)).find(
            items_of(matrix, 3)
        )

    assert draw_once(1).probabilities.tobytes() == draw_once(1).probabilities.tobytes()
    assert draw_once(1).probabilities.tolist() != draw_once(2).probabilities.tolist()


def test_risks_of_many_people_equal_those_of_each(matrix: sparse.csr_matrix) -> None:
    rows = np.arange(10)
    many = risks(matrix[rows], matrix, SMALL, rows=rows)
    finder = SetSizeFinder(matrix, SMALL)
    for row in rows:
        one = finder.find(items_of(matrix, int(row)), member=int(row), number=int(row))
        assert many.found[row].tolist() == list(one.found.triple)
        assert many.alone[row].tolist() == list(one.alone.triple)
    assert many.exact.all()


@pytest.mark.parametrize("row", [0, 7, 19])
def test_the_paper_s_simulation_agrees_within_three_standard_errors(
    matrix: sparse.csr_matrix, row: int
) -> None:
    simulated = simulate(matrix[row], matrix, Knowledge(), rounds=4000, seed=row)
    exact = 1 + expected_others(matrix, matrix, Knowledge())[row]
    sizes = SetSizeFinder(matrix, Knowledge()).find(items_of(matrix, row), member=row)
    assert abs(simulated.mean - exact) <= 3 * simulated.standard_error
    assert simulated.found == pytest.approx(sizes.found.value, abs=0.03)
    assert simulated.alone == pytest.approx(sizes.alone.value, abs=0.04)


def test_the_interval_needs_two_rounds_and_shrinks_with_more() -> None:
    assert bernstein_reach(0.1, 1) == 1
    assert bernstein_reach(0.1, 10_000) < bernstein_reach(0.1, 100) < 1


def test_the_documentation_s_example_is_right() -> None:
    people = [{"a", "b", "c", "d"}, {"a", "b", "x"}, {"c", "d"}, {"y"}]
    items = sorted(set().union(*people))
    dense = np.array([[item in one for item in items] for one in people], dtype=np.int8)
    sizes = SetSizeFinder(sparse.csr_matrix(dense), Knowledge(percents=(), items=(2,))).find(
        np.arange(4, dtype=np.int32), member=0
    )
    assert sizes.exact
    assert (round(sizes.mean, 2), round(sizes.alone.value, 2), round(sizes.found.value, 2)) == (
        1.33,
        0.67,
        0.83,
    )
