"""(k, d)-anonymity by hand, by property, and by the numbers of the specification."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.distances.choice import (
    RULES,
    Rule,
    choice_probabilities,
    linkage_bound,
    printed_bound,
    raw_score,
)
from incrowd.measures.anonymity.definition import (
    crowd_ranks,
    crowd_size,
    is_anonymous,
    is_convergent,
    matches,
    smallest_radius,
    unlinkable,
)

ROW = [0.0, 0.3, 0.3, 0.8]
distances = st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=30)


def test_a_row_by_hand() -> None:
    assert crowd_size(ROW, 0.3) == 3  # inclusive
    assert crowd_size(ROW, 0.29) == 1
    assert is_anonymous(ROW, 3, 0.3)
    assert not is_anonymous(ROW, 4, 0.3)
    assert is_convergent(ROW, 0.8)
    assert not is_convergent(ROW, 0.79)
    assert smallest_radius(ROW, 3) == 0.3
    assert math.isnan(smallest_radius(ROW, 5))
    assert matches(0.3, 0.3)


@given(distances, st.floats(0, 1), st.floats(0, 1))
def test_a_crowd_never_shrinks_with_distance_or_members(
    others: list[float], d: float, newcomer: float
) -> None:
    row = [0.0, *others]
    assert crowd_size(row, d) <= crowd_size(row, d + 0.1)
    assert crowd_size(row, d) <= crowd_size([*row, newcomer], d)  # corollary 3
    k = crowd_size(row, d)
    assert smallest_radius(row, k) <= d


@pytest.mark.parametrize(("n", "total"), [(2, 1.0), (3, 2.0), (10, 9.0)])
def test_the_printed_choice_rule_sums_to_one_less_than_the_candidates(n: int, total: float) -> None:
    generator = np.random.default_rng(n)
    assert raw_score(generator.random(n)).sum() == pytest.approx(total)


@given(distances, st.sampled_from(RULES))
def test_the_corrected_rules_are_distributions_that_prefer_the_nearer(row: list[float], rule: Rule) -> None:
    p = choice_probabilities(row, rule)
    assert p.sum() == pytest.approx(1.0)
    assert (p >= 0).all()
    order = np.argsort(row)
    assert (np.diff(p[order]) <= 1e-12).all()


def test_zero_distances_share_everything() -> None:
    assert choice_probabilities([0.0, 0.0, 0.4]).tolist() == [0.5, 0.5, 0.0]
    assert choice_probabilities([0.7]).tolist() == [1.0]


def test_a_perfect_match_under_the_normalised_rule_gets_only_one_in_n_minus_one() -> None:
    assert choice_probabilities([0.0, 0.5, 0.5, 0.5], "normalised")[0] == pytest.approx(1 / 3)


def test_bad_distances_are_refused() -> None:
    for bad in ([], [[1.0]], [-1.0], [math.nan]):
        with pytest.raises(ValueError, match="distances must be"):
            choice_probabilities(bad)
    with pytest.raises(ValueError, match="rule must be one of"):
        choice_probabilities([0.1, 0.2], "nearest")  # type: ignore[arg-type]


def test_more_candidates_raise_the_printed_score() -> None:
    # Three candidates at distance 1, 2 and 1 from the entity; the first scores .75. With two more it scores .9.
    assert raw_score([1.0, 1.0, 2.0])[0] == pytest.approx(0.75)
    assert raw_score([1.0, 1.0, 2.0, 3.0, 3.0])[0] == pytest.approx(0.90)


def planar_cases(count: int) -> tuple[np.ndarray, ...]:
    """Random points: an entity e', its match e*, and a crowd of k - 1 around e* plus strangers."""
    generator = np.random.default_rng(20_000)
    for _ in range(count):
        n = int(generator.integers(2, 12))
        points = generator.random((n, 2)) / math.sqrt(2)
        observer = generator.random(2) / math.sqrt(2)
        yield np.linalg.norm(points - observer, axis=1), np.linalg.norm(points - points[0], axis=1)  # type: ignore[misc]


@pytest.mark.parametrize("rule", RULES)
def test_the_corrected_bounds_hold_in_twenty_thousand_cases(rule: Rule) -> None:
    generator = np.random.default_rng(7)
    for to_observer, to_match in planar_cases(20_000):
        d = float(generator.choice(to_match))
        k = crowd_size(to_match, d)
        bound = linkage_bound(to_observer[0], d, k, rule)
        assert choice_probabilities(to_observer, rule)[0] <= bound + 1e-12


def test_the_printed_bound_breaks_in_many_cases() -> None:
    broken = 0
    generator = np.random.default_rng(7)
    for to_observer, to_match in planar_cases(2_000):
        d = float(generator.choice(to_match))
        k = crowd_size(to_match, d)
        broken += bool(raw_score(to_observer)[0] > printed_bound(to_observer[0], d, k) + 1e-12)
    assert broken > 200


def test_the_printed_bound_ignores_that_a_match_may_be_nearer_than_c() -> None:
    # distance .1, c = .5, d = .2, k = 5: four others at c + d from the observer at most.
    assert printed_bound(0.5, 0.2, 5) == pytest.approx(0.848, abs=5e-4)
    assert raw_score([0.1, 0.3, 0.3, 0.3, 0.3])[0] == pytest.approx(0.923, abs=5e-4)


def test_limits_of_the_bounds() -> None:
    assert linkage_bound(0.4, 0.0, 8) == pytest.approx(1 / 8)  # d = 0: one in k
    assert printed_bound(0.4, 0.0, 8) == pytest.approx(1 - 1 / 8)  # as printed: the wrong way round
    assert linkage_bound(0.0, 0.3, 5) == 1.0  # the observer is the match itself
    assert linkage_bound(0.0, 0.0, 5) == pytest.approx(0.2)
    assert linkage_bound(0.4, 0.0, 8, "softmax") == pytest.approx(1 / 8)
    with pytest.raises(ValueError, match="rule must be"):
        linkage_bound(0.1, 0.1, 2, "raw")  # type: ignore[arg-type]


@given(distances, st.floats(0, 1))
def test_lemma_one_the_crowd_of_a_match_is_within_c_plus_d(others: list[float], d: float) -> None:
    generator = np.random.default_rng(len(others))
    points = np.column_stack([np.asarray([0.0, *others]), generator.random(len(others) + 1)])
    observer = generator.random(2)
    to_match = np.linalg.norm(points - points[0], axis=1)
    c = float(np.linalg.norm(points[0] - observer))
    crowd = points[to_match <= d]
    assert (np.linalg.norm(crowd - observer, axis=1) <= c + d + 1e-9).all()


def test_a_pair_is_unlinkable_if_the_match_is_not_too_probable() -> None:
    row = [0.2, 0.4, 0.4]
    assert unlinkable(row, 0, 0.5)  # inverse: 1/2, 1/4, 1/4
    assert not unlinkable(row, 0, 0.49)
    assert unlinkable(row, 1, 0.25)


def test_the_smallest_crowd_ranks_first_and_equals_share() -> None:
    assert crowd_ranks([3, 3, 1, 7]).tolist() == [2, 2, 1, 4]
