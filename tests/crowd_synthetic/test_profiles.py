from __future__ import annotations

import numpy as np
import pytest

from incrowd import synthetic
from incrowd.errors import InputError


def test_rows_are_distributions_over_the_stated_number_of_words():
    matrix = synthetic.profiles(200, vocabulary=8_000, distinct=300, seed=1)
    assert matrix.shape == (200, 8_000)
    assert np.allclose(matrix.sum(axis=1), 1)
    assert np.diff(matrix.indptr).mean() == pytest.approx(300, rel=0.1)
    assert matrix.has_canonical_format
    assert (matrix.data > 0).all()


def test_the_same_seed_gives_the_same_profiles_and_each_row_stands_alone():
    first = synthetic.profiles(30, vocabulary=1_000, distinct=50, communities=3)
    again = synthetic.profiles(60, vocabulary=1_000, distinct=50, communities=3)[:30]
    assert (first != again).nnz == 0
    assert (first != synthetic.profiles(30, vocabulary=1_000, distinct=50, communities=3, seed=1)).nnz > 0


def test_members_of_a_community_share_more_words():
    matrix = synthetic.profiles(60, vocabulary=5_000, distinct=200, communities=2)
    shared = ((matrix > 0).astype(np.int32) @ (matrix > 0).astype(np.int32).T).toarray()
    same = np.add.outer(np.arange(60), np.arange(60)) % 2 == 0
    np.fill_diagonal(shared, 0)
    assert shared[same].mean() > 1.2 * shared[~same].mean()


def test_more_distinct_words_than_the_vocabulary_bears_are_refused():
    with pytest.raises(InputError, match="synthetic distinct"):
        synthetic.profiles(10, vocabulary=100, distinct=80)
