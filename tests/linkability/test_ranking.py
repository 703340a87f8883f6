"""The consistent ranking: by hand, and indifferent to the order of its input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.measures.linkability.definition import consistent_ranking, rank_sets, rank_weights


def test_ties_receive_the_set_of_ranks_they_could_occupy() -> None:
    first, last = rank_sets([7, 3, 7, 7, 9])
    assert first.tolist() == [2, 1, 2, 2, 5]
    assert last.tolist() == [4, 1, 4, 4, 5]


def test_weights_by_hand() -> None:
    # d1: a < b = c; d2: all tied.
    weights = rank_weights([[1, 5], [2, 5], [2, 5]])
    assert weights.tolist() == [[2, 1, 1], [1, 2, 2], [1, 2, 2]]
    shared = rank_weights([[1, 5], [2, 5], [2, 5]], share_ties=True)
    assert shared.sum() == pytest.approx(6.0)


def test_an_all_tied_radius_changes_nothing() -> None:
    generator = np.random.default_rng(3)
    sizes = generator.integers(1, 6, (8, 5))
    more = np.column_stack([sizes, np.full(8, 8)])
    names = list("abcdefgh")
    assert consistent_ranking(sizes, names).ranks.tolist() == consistent_ranking(more, names).ranks.tolist()


@settings(max_examples=40)
@given(st.integers(2, 6), st.integers(1, 5), st.integers(0, 10**6))
def test_the_matching_has_the_largest_weight_of_all_rankings(n: int, radii: int, seed: int) -> None:
    sizes = np.random.default_rng(seed).integers(1, n + 1, (n, radii))
    weights = rank_weights(sizes)
    best = max(sum(weights[i, r] for i, r in enumerate(p)) for p in itertools.permutations(range(n)))
    ranks = consistent_ranking(sizes).ranks
    assert sorted(ranks) == list(range(1, n + 1))
    assert weights[np.arange(n), ranks - 1].sum() == pytest.approx(best)


@settings(max_examples=60)
@given(st.integers(2, 12), st.integers(1, 6), st.integers(0, 10**6), st.sampled_from([5_000, 1]))
def test_input_order_never_matters(n: int, radii: int, seed: int, limit: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 4, (n, radii))  # few distinct sizes: many ties
    names = np.array([f"identity-{i}" for i in range(n)])
    shuffle = generator.permutation(n)
    straight = consistent_ranking(sizes, names, matching_limit=limit).ranks
    shuffled = consistent_ranking(sizes[shuffle], names[shuffle], matching_limit=limit).ranks
    assert straight[shuffle].tolist() == shuffled.tolist()


def test_beyond_the_limit_the_result_says_so() -> None:
    sizes = np.array([[1, 1], [2, 3], [3, 2]])
    assert consistent_ranking(sizes).method == "matching"
    fallback = consistent_ranking(sizes, matching_limit=2)
    assert fallback.method == "mean-rank"
    assert fallback.ranks[0] == 1


def test_one_identity_and_none() -> None:
    assert consistent_ranking([[3, 4]]).ranks.tolist() == [1]
    assert consistent_ranking(np.zeros((0, 3))).ranks.size == 0
