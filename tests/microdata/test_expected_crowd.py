"""The expected crowd: the polynomials, the classes, and recovery where the truth is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import spearmanr

from incrowd.measures.microdata import anonymity_set
from incrowd.measures.microdata.definition import known_sizes
from incrowd.measures.microdata.expected_crowd import (
    ActivityGroups,
    activity_class,
    class_probabilities,
    expected_others,
    expected_others_of_all,
    fit_activity,
    independent,
    reading,
    symmetric_means,
)
from incrowd.measures.microdata.spec import Knowledge

from .conftest import Draw

probabilities = st.lists(st.floats(0.01, 0.99), min_size=1, max_size=9)


@given(probabilities, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_symmetric_means_average_over_all_choices_in_any_order(p: list[float], random: object) -> None:
    sizes = np.arange(1, len(p) + 1)
    want = [np.mean([math.prod(choice) for choice in itertools.combinations(p, int(s))]) for s in sizes]
    assert np.exp(symmetric_means([p], sizes))[0] == pytest.approx(want, rel=1e-9)
    shuffled = p.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert symmetric_means([shuffled], sizes).tolist() == symmetric_means([p], sizes).tolist()


@given(probabilities)
@settings(max_examples=30, deadline=None)
def test_maclaurin_s_bound_holds(p: list[float]) -> None:
    sizes = np.arange(1, len(p) + 1)
    bound = sizes * math.log(np.mean(p))
    assert np.all(symmetric_means([p], sizes)[0] <= bound + 1e-9)


def test_thousands_of_items_neither_overflow_nor_take_long() -> None:
    p = np.full((1, 6000), 0.5)
    assert symmetric_means(p, np.array([600]))[0, 0] == pytest.approx(600 * math.log(0.5), rel=1e-9)
    assert expected_others(p, [1e6], Knowledge()) == 0  # 1e6 * 0.5^300 people


def test_equal_popularities_give_the_plain_product() -> None:
    sizes, weights = known_sizes(20, Knowledge())
    want = 1000 * float(weights @ 0.3 ** sizes.astype(float))
    assert expected_others(np.full((1, 20), 0.3), [1000.0], Knowledge()) == pytest.approx(want)


def test_whole_crowds_equal_one_person_at_a_time(draw: Draw) -> None:
    matrix = draw(30, 25, seed=1)
    rng = np.random.default_rng(0)
    p, people = rng.uniform(0.05, 0.9, (3, 25)), np.array([10.0, 50.0, 5.0])
    every = expected_others_of_all(matrix, p, people, Knowledge())
    for row in range(30):
        items = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        assert every[row] == pytest.approx(expected_others(p[:, items], people, Knowledge()), rel=1e-9)


def test_classes_together_have_the_published_popularity() -> None:
    activity = ActivityGroups(np.array([0.5, 0.3, 0.2]), np.array([-1.0, 0.0, 2.0]))
    p = np.array([0.001, 0.2, 0.2, 0.97])
    q = class_probabilities(p, activity)
    assert activity.shares @ q == pytest.approx(p)
    assert np.all(np.diff(q, axis=0) > 0)  # the busier, the likelier


def test_activity_levels_explain_the_sizes_of_the_classes() -> None:
    rng = np.random.default_rng(0)
    base, level = rng.normal(-2, 1, 400), np.repeat([-1.0, 0.0, 1.0], 500)
    dense = rng.random((1500, 400)) < 1 / (1 + np.exp(-(base + level[:, None])))
    sizes, popularity = dense.sum(axis=1), dense.mean(axis=0)
    activity = fit_activity(sizes, popularity, 3)
    label = activity_class(sizes, 3)
    for number, row in enumerate(class_probabilities(popularity, activity)):
        assert row.sum() == pytest.approx(sizes[label == number].mean(), rel=1e-6)
    assert np.diff(activity.levels) == pytest.approx([1.0, 1.0], abs=0.15)


def test_people_of_one_size_are_one_class() -> None:
    activity = fit_activity(np.full(50, 10), np.full(20, 0.5), 8)
    assert activity.shares.tolist() == [1.0]
    assert activity_class(np.full(50, 10), 8).tolist() == [0] * 50


def test_independent_items_are_estimated_right() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 30)
    matrix = sparse.csr_matrix((rng.random((1500, 30)) < p).astype(np.int8))
    truth = anonymity_set.expected_others(matrix[:100], matrix, Knowledge())
    q, share = independent(np.asarray(matrix.mean(axis=0)).ravel())
    estimate = expected_others_of_all(matrix[:100], q, share * 1499, Knowledge())
    assert np.median(np.abs(np.log(estimate / truth))) < 0.05


def test_where_some_have_much_of_everything_classes_beat_independence() -> None:
    rng = np.random.default_rng(2)
    base, level = rng.normal(-2.5, 1, 120), rng.normal(0, 1.2, 1200)
    dense = rng.random((1200, 120)) < 1 / (1 + np.exp(-(base + level[:, None])))
    matrix = sparse.csr_matrix(dense[dense.sum(axis=1) >= 8].astype(np.int8))
    people = matrix.shape[0]
    truth = anonymity_set.expected_others(matrix, matrix, Knowledge())
    popularity = np.asarray(matrix.mean(axis=0)).ravel()
    activity = fit_activity(np.diff(matrix.indptr), popularity, 8)
    classes = expected_others_of_all(
        matrix, class_probabilities(popularity, activity), people * activity.shares, Knowledge()
    )
    alike, share = independent(popularity)
    plain = expected_others_of_all(matrix, alike, share * people, Knowledge())
    assert spearmanr(classes, truth)[0] > spearmanr(plain, truth)[0]
    assert np.median(np.abs(np.log1p(classes) - np.log1p(truth))) < 0.5 * np.median(
        np.abs(np.log1p(plain) - np.log1p(truth))
    )


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (0.0, "nobody else would fit"),
        (0.2, "hardly anybody else would fit"),
        (1.2, "about one other person would fit"),
        (12.4, "about 12 other people would fit"),
        (1234.0, "about 1,200 other people would fit"),
    ],
)
def test_the_number_is_read_out_in_words(others: float, words: str) -> None:
    assert reading(others) == words
