"""Matching sets and rates by hand, and what must hold for all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.measures.linkability.definition import (
    best_threshold,
    clustered_mean,
    conformity,
    guess_at,
    hits_at,
    precision_recall,
    shuffled_pairs,
)
from incrowd.statistics import spearman


def test_ties_share_the_places_that_are_left() -> None:
    assert hits_at([0, 0, 5], 1, tied=[0, 3, 0]).tolist() == [1.0, 0.25, 0.0]
    assert hits_at([8], 10, tied=[3]).tolist() == [0.5]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), min_size=1), st.integers(1, 40))
def test_a_longer_list_never_loses_a_hit(pairs: list[tuple[int, int]], k: int) -> None:
    nearer, tied = map(np.array, zip(*pairs, strict=True))
    assert (hits_at(nearer, k, tied) <= hits_at(nearer, k + 1, tied)).all()


def test_a_guess_is_right_in_one_of_n() -> None:
    assert guess_at(1, 200) == 0.005
    assert guess_at(10, 5) == 1.0
    assert math.isnan(guess_at(1, 0))


def test_precision_and_recall_by_hand() -> None:
    # True pairs at .2 and .6; within .1: nothing, within .5: 2 pairs, within .9: 10 pairs.
    curve = precision_recall([0.2, 0.6], [0, 2, 10], [0.1, 0.5, 0.9])
    assert math.isnan(curve.precision[0])
    assert curve.precision[1:].tolist() == [0.5, 0.2]
    assert curve.recall.tolist() == [0.0, 0.5, 1.0]
    assert best_threshold(curve) == 0.5  # F1 .5 against .333


def test_without_true_pairs_rates_are_undefined() -> None:
    curve = precision_recall([], [3], [0.5])
    assert curve.precision[0] == 0.0
    assert math.isnan(curve.recall[0])
    assert math.isnan(best_threshold(curve))
    assert math.isnan(clustered_mean([], []).mean)


def test_one_persons_pairs_count_as_one_observation() -> None:
    values = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    apart = clustered_mean(values, list("abcdef"))
    together = clustered_mean(np.repeat(values, 10), np.repeat(list("abcdef"), 10))
    assert together.mean == apart.mean
    assert together.low == pytest.approx(apart.low)
    assert (together.pairs, together.people) == (60, 6)


def test_intervals_stay_honest_at_the_extremes() -> None:
    nobody = clustered_mean(np.zeros(30), np.arange(30))
    assert nobody.low == 0.0
    assert nobody.high == pytest.approx(1 - 0.025 ** (1 / 30))  # both ends at 97.5 %: a little more than 3/n
    alone = clustered_mean([1.0, 1.0], ["a", "a"])
    assert (alone.low, alone.high) == (0.0, 1.0)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(11)
    covered = 0
    for _ in range(400):
        people = np.repeat(np.arange(60), 2)
        rate = np.repeat(generator.beta(2, 3, 60), 2)
        interval = clustered_mean(generator.random(120) < rate, people)
        covered += interval.low <= 0.4 <= interval.high
    assert 0.91 < covered / 400 < 0.985


def test_conformity_and_spearman() -> None:
    assert conformity([1, 3], [2, 3]).tolist() == [0.5, 1.0]
    assert spearman([1, 2, 3, 4], [2, 4, 6, 9]) == pytest.approx(1.0)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))
    assert math.isnan(spearman([1, 2], [1, 2]))


@given(st.integers(2, 40), st.integers(0, 999))
def test_the_control_moves_everybody(n: int, seed: int) -> None:
    moved = shuffled_pairs(np.arange(n), seed)
    assert sorted(moved) == list(range(n))
    assert (moved != np.arange(n)).all()
