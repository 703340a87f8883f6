"""Overlap histograms equal what plain NumPy counts, however the work is cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from incrowd.errors import BudgetExceeded, InputError
from incrowd.measures.microdata import overlaps
from incrowd.measures.microdata.anonymity_set import Marks, expected_others
from incrowd.measures.microdata.definition import expected_others as reference
from incrowd.measures.microdata.spec import Knowledge

from .conftest import Draw


def plain_histogram(profile: np.ndarray, crowd: np.ndarray) -> np.ndarray:
    return np.bincount(crowd.astype(int) @ profile.astype(int), minlength=int(profile.sum()) + 1)


@given(
    dense=st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=2, max_size=12).map(np.array),
    pays=st.sampled_from([0.0, 0.3, 1e9]),
    block=st.sampled_from([1, 3, 8192]),
)
@settings(max_examples=40, deadline=None)
def test_histograms_equal_plain_counting_for_every_layout(dense: np.ndarray, pays: float, block: int) -> None:
    before = overlaps.WORD_PAYS_FROM, overlaps.BLOCK
    overlaps.WORD_PAYS_FROM, overlaps.BLOCK = pays, block
    try:
        matrix = sparse.csr_matrix(dense.astype(np.int8))
        found = overlaps.histograms(matrix, overlaps.postings(matrix))
    finally:
        overlaps.WORD_PAYS_FROM, overlaps.BLOCK = before
    for row, profile in enumerate(dense):
        assert found.of(row).tolist() == plain_histogram(profile, dense).tolist()


def test_popular_items_become_bits_and_rare_ones_lists() -> None:
    dense = np.zeros((100, 130), dtype=np.int8)
    dense[:, :64] = 1
    dense[:3, 64:] = 1
    laid = overlaps.postings(sparse.csr_matrix(dense))
    assert laid.words.shape == (100, 1)
    assert len(laid.holders) == 3 * 66
    assert (laid.bit_of[:64] >= 0).all()
    assert (laid.bit_of[64:] == -1).all()


@pytest.mark.parametrize("inside", [True, False])
def test_expected_others_equal_the_definition(matrix: sparse.csr_matrix, inside: bool) -> None:
    levels = [
        Knowledge(),
        Knowledge(percents=(), items=(3,)),
        Knowledge(wrong=1),
        Knowledge(minimum=0, rounding="floor"),
    ]
    dense = matrix.toarray().astype(int)
    got = expected_others(matrix, matrix, levels, inside=inside)
    for knowledge, row in zip(levels, got, strict=True):
        want = [reference(dense @ mine, int(mine.sum()), knowledge) - inside for mine in dense]
        assert row == pytest.approx(want, abs=1e-9)


def test_neither_the_batches_nor_the_order_of_people_or_items_matter(draw: Draw) -> None:
    matrix = draw(50, 30, seed=4)
    whole = expected_others(matrix, matrix, Knowledge())
    assert expected_others(matrix, matrix, Knowledge(), memory=16 * 200).tolist() == whole.tolist()
    rng = np.random.default_rng(1)
    people, items = rng.permutation(50), rng.permutation(30)
    shuffled = matrix[people][:, items]
    assert expected_others(shuffled, shuffled, Knowledge()) == pytest.approx(whole[people], abs=1e-12)


def test_a_twin_never_shrinks_your_crowd(draw: Draw) -> None:
    matrix = draw(40, 30, seed=2)
    before = expected_others(matrix, matrix, Knowledge())
    with_twin = sparse.vstack([matrix, matrix[:1]]).tocsr()
    after = expected_others(with_twin, with_twin, Knowledge())
    assert after[0] == pytest.approx(before[0] + 1)
    assert np.all(after[:-1] >= before - 1e-12)


def test_degenerate_crowds() -> None:
    one = sparse.csr_matrix(np.ones((1, 8), dtype=np.int8))
    assert expected_others(one, one, Knowledge()).tolist() == [0]
    same = sparse.csr_matrix(np.ones((5, 8), dtype=np.int8))
    assert expected_others(same, same, Knowledge()).tolist() == [4] * 5
    apart = sparse.csr_matrix(np.kron(np.eye(3), np.ones((1, 8))).astype(np.int8))
    assert expected_others(apart, apart, Knowledge()).tolist() == [0] * 3


def test_repeated_and_zero_entries_count_once_or_not_at_all() -> None:
    rows, columns, values = [0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [1, 1, 1, 1, 0]
    matrix = sparse.coo_matrix((values, (rows, columns)), shape=(2, 3)).tocsr()
    found = overlaps.histograms(matrix, overlaps.postings(matrix))
    assert found.of(0).tolist() == [0, 1, 1]
    assert found.of(1).tolist() == [0, 2]


def test_ratings_have_to_agree(draw: Draw) -> None:
    matrix = draw(30, 20, seed=3)
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, (1, matrix.nnz)).astype(np.float32)
    got = expected_others(matrix, matrix, Knowledge(), marks=Marks(ratings, ratings, (1.0,)))
    rated = np.full(matrix.shape, np.nan)
    coo = matrix.tocoo()
    rated[coo.row, coo.col] = ratings[0]
    for person in range(30):
        agree = (np.abs(rated - rated[person]) <= 1).sum(axis=1)
        size = int(matrix[person].nnz)
        assert got[person] == pytest.approx(reference(agree, size, Knowledge()) - 1, abs=1e-9)


def test_an_unrated_item_of_yours_agrees_with_everybody_who_has_it() -> None:
    matrix = sparse.csr_matrix(np.ones((2, 4), dtype=np.int8))
    unrated = np.array([[np.nan] * 4 + [5.0] * 4], dtype=np.float32)
    one = Knowledge(percents=(), items=(1,))
    got = expected_others(matrix, matrix, one, marks=Marks(unrated, unrated, (1.0,)))
    assert got.tolist() == [1.0, 0.0]


def test_too_little_memory_and_strangers_are_refused(matrix: sparse.csr_matrix) -> None:
    with pytest.raises(BudgetExceeded, match="one profile needs"):
        expected_others(matrix, matrix, Knowledge(), memory=16)
    with pytest.raises(InputError, match="as in the crowd"):
        overlaps.histograms(matrix[:, :5], overlaps.postings(matrix))
    stranger = sparse.csr_matrix(np.eye(1, 40, 39, dtype=np.int8) + np.eye(1, 40, 38, dtype=np.int8))
    crowd = matrix.copy().tolil()
    crowd[:, 38:] = 0
    with pytest.raises(InputError, match="inside=False"):
        expected_others(stranger, crowd.tocsr(), Knowledge())


def test_the_cost_is_known_before_it_is_paid(matrix: sparse.csr_matrix) -> None:
    job = overlaps.work(matrix, matrix)
    assert job["pairs"] == 60 * 60
    assert job["entries"] + job["words"] > 0
