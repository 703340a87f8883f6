"""Figures of merit: by hand, and under ties equal to the mean over all orders."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.measures.exposure.evaluation import (
    average_precision,
    mcnemar,
    merit,
    ndcg,
    paired_t_test,
    precision_at,
    r_precision_hits,
    sample_by_score,
)


def plain_average_precision(votes: list[float]) -> float:
    found = [place for place, vote in enumerate(votes, 1) if vote > 0.5]
    return sum(i / place for i, place in enumerate(found, 1)) / len(found)


def plain_ndcg(votes: list[float]) -> float:
    def gain(row: list[float]) -> float:
        return sum(vote / math.log2(place + 1) for place, vote in enumerate(row, 1))

    return gain(votes) / gain(sorted(votes, reverse=True))


def test_average_precision_by_hand() -> None:
    assert average_precision([4, 3, 2, 1], [1, 0, 1, 0]) == pytest.approx((1 + 2 / 3) / 2)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.4, 0.6, 1.0])), min_size=1, max_size=5))
@settings(max_examples=60)
def test_figures_are_expected_values_over_all_orders_of_equals(people: list[tuple[int, float]]) -> None:
    scores, votes = [s for s, _ in people], [v for _, v in people]
    if max(votes) <= 0.5:
        return
    orders = [
        p for p in permutations(range(len(people))) if all(scores[a] >= scores[b] for a, b in pairwise(p))
    ]
    lists = [[votes[i] for i in order] for order in orders]
    r = sum(v > 0.5 for v in votes)
    assert average_precision(scores, votes) == pytest.approx(
        np.mean([plain_average_precision(x) for x in lists])
    )
    assert ndcg(scores, votes) == pytest.approx(np.mean([plain_ndcg(x) for x in lists]))
    expected = np.mean([sum(v > 0.5 for v in x[:r]) for x in lists])
    assert r_precision_hits(scores, votes).sum() == pytest.approx(expected)
    assert precision_at(scores, votes, 2) == pytest.approx(
        np.mean([sum(v > 0.5 for v in x[:2]) / 2 for x in lists])
    )


def test_micro_adds_up_people_and_macro_averages_topics() -> None:
    """Quora's row of the paper: 24 of 67 sensitive people in the first r is .358."""

    def topic(found: int, r: int) -> tuple[np.ndarray, np.ndarray]:
        votes = np.array([1.0] * found + [0.0] * (r - found) + [1.0] * (r - found) + [0.0] * 40)
        return -np.arange(len(votes)), votes

    result = merit({"a": topic(4, 10), "b": topic(8, 17), "c": topic(3, 20), "d": topic(9, 20)})
    assert round(result.r_precision_micro, 3) == 0.358
    assert result.r_precision_macro == pytest.approx(np.mean([0.4, 8 / 17, 0.15, 0.45]))
    assert len(result.hits) == 67
    assert result.to_dict().keys() == {
        "r_precision_micro",
        "r_precision_macro",
        "p_at_5",
        "map",
        "ndcg",
        "per_topic",
    }


def test_undefined_scores_come_last() -> None:
    assert average_precision([math.nan, 0.1], [0, 1]) == 1.0


def test_a_topic_without_sensitive_people_is_left_out() -> None:
    both = merit({"a": ([2, 1], [1, 0]), "b": ([2, 1], [0, 0])})
    assert both.per_topic == {"a": 1.0}
    assert math.isnan(merit({"b": ([2, 1], [0, 0])}).map)


def test_tests_of_significance_by_hand() -> None:
    assert mcnemar([1] * 6 + [0], [0] * 6 + [1]) == pytest.approx(2 * (1 + 7) / 2**7)
    assert paired_t_test([1, 1, 1, 0], [0, 0, 1, 0]) == pytest.approx(0.1817, abs=1e-4)
    assert paired_t_test([1, 0], [1, 0]) == mcnemar([1, 0], [1, 0]) == 1.0


def test_sampling_prefers_high_scores_and_never_repeats() -> None:
    scores = np.repeat([0.0, 1.0], 500)
    chosen = sample_by_score(scores, 100, base=100, seed=3)
    assert len(set(chosen.tolist())) == 100
    assert (chosen >= 500).mean() > 0.9
    even = sample_by_score(scores, 100, base=1, seed=3)
    assert 0.3 < (even >= 500).mean() < 0.7
    assert chosen.tolist() == sample_by_score(scores, 100, base=100, seed=3).tolist()
