"""Fast twins agree with the reference, whatever the input's shape, order, layout or extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from incrowd.distances import Compute, ball_sizes, pair_distances, pairwise
from incrowd.distances.all_pairs import Threads

from .strategies import METRICS, crowd, profiles

REFERENCE, CPU = Compute(kernel="reference"), Compute(kernel="cpu")
CLOSE = 1e-6
CROWD = crowd(70)


@pytest.mark.parametrize("metric", METRICS)
@given(rows=profiles())
@settings(max_examples=40, deadline=None)
def test_small_awkward_profiles_agree_with_the_reference(metric, rows):
    expected = pairwise(rows, metric=metric, compute=REFERENCE)
    assert np.abs(pairwise(rows, metric=metric, compute=CPU) - expected).max() <= CLOSE


@pytest.mark.parametrize("metric", METRICS)
def test_a_crowd_with_rare_words_and_twins_agrees_with_the_reference(metric):
    expected = pairwise(CROWD, metric=metric, compute=REFERENCE)
    found = pairwise(CROWD, metric=metric, compute=CPU)
    assert np.abs(found - expected).max() <= CLOSE
    assert found[0, 1] == 0
    assert 0 < found[0, 2] < 0.15


def test_many_blocks_of_words_agree_with_the_reference():
    rows = crowd(24, words=8000, tokens=6000)
    assert np.abs(pairwise(rows, compute=CPU) - pairwise(rows, compute=REFERENCE)).max() <= CLOSE


@pytest.mark.parametrize("metric", METRICS)
def test_two_crowds_agree_with_the_reference(metric):
    x, y = CROWD[:40], CROWD[40:]
    expected = pairwise(x, y, metric=metric, compute=REFERENCE)
    assert np.abs(pairwise(x, y, metric=metric, compute=CPU) - expected).max() <= CLOSE


@pytest.mark.parametrize("metric", METRICS)
def test_listed_pairs_are_exact_and_the_same_both_ways(metric):
    pairs = np.array([[0, 1], [0, 2], [3, 4], [10, 60]])
    expected = pairwise(CROWD, metric=metric, compute=REFERENCE)[pairs[:, 0], pairs[:, 1]]
    there = pair_distances(CROWD, None, pairs, metric=metric, compute=CPU)
    back = pair_distances(CROWD, None, pairs[:, ::-1], metric=metric, compute=CPU)
    assert there == pytest.approx(expected, abs=1e-12)
    assert (there == back).all()
    assert there[0] == 0


def test_nearly_equal_profiles_keep_their_tiny_distance():
    p = np.full(1000, 1e-3)
    q = p.copy()
    q[:2] += [1e-9, -1e-9]
    expected = pairwise([p, q], compute=REFERENCE)[0, 1]
    assert 0 < expected < 1e-4
    assert pairwise([p, q], compute=CPU)[0, 1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", ["reference", "cpu"])
def test_an_empty_profile_has_no_distance(kernel):
    d = pairwise([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], compute=Compute(kernel=kernel))
    assert np.isnan(d[1]).all()
    assert np.isnan(d[:, 1]).all()
    assert d[0, 2] == 1


@pytest.mark.parametrize("kernel", ["reference", "cpu"])
def test_extremes_twin_single_word_and_nothing_in_common(kernel):
    rows = [[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0.5, 0.5]]
    d = pairwise(rows, compute=Compute(kernel=kernel))
    assert d.tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]


@given(tile=st.integers(1, 80), workers=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_tiles_and_threads_do_not_change_a_bit(tile, workers):
    cut = Compute(kernel="cpu", tile=tile, engine=Threads(workers))
    assert (pairwise(CROWD, compute=cut) == _WHOLE()).all()


def _WHOLE(cache={}):  # noqa: B006
    if not cache:
        cache["d"] = pairwise(CROWD, compute=Compute(kernel="cpu", engine=Threads(1)))
    return cache["d"]


@given(seed=st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_the_order_of_people_and_words_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    people, words = rng.permutation(CROWD.shape[0]), rng.permutation(CROWD.shape[1])
    shuffled = CROWD[people][:, words]
    assert np.abs(pairwise(shuffled, compute=CPU) - _WHOLE()[np.ix_(people, people)]).max() <= CLOSE
    radii = np.linspace(0, 1, 101)
    there = ball_sizes(shuffled, radii=radii, compute=CPU)
    assert (there == ball_sizes(CROWD, radii=radii, compute=REFERENCE)[people]).all()


def _wide(rows):
    rows = rows.copy()
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def _unsorted(rows):
    order = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]
    )
    return sparse.csr_matrix((rows.data[order], rows.indices[order], rows.indptr), rows.shape)


def _repeated(rows):
    halves = (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), rows.indptr * 2)
    return sparse.csr_matrix(halves, rows.shape)


def _with_zeros(rows):
    table = rows.tocoo()
    row, column = np.append(table.row, [0, 1]), np.append(table.col, [0, 1])
    empty = sparse.coo_matrix((np.append(table.data, [0.0, 0.0]), (row, column)), rows.shape)
    return sparse.csr_matrix((empty.data, (empty.row, empty.col)), rows.shape)


LAYOUTS = {
    "dense": lambda rows: rows.toarray(),
    "Fortran order": lambda rows: np.asfortranarray(rows.toarray()),
    "lists": lambda rows: rows.toarray().tolist(),
    "CSC": lambda rows: rows.tocsc(),
    "COO": lambda rows: rows.tocoo(),
    "sparse array": sparse.csr_array,
    "64-bit indices": _wide,
    "unsorted indices": _unsorted,
    "repeated entries": _repeated,
    "stored zeros": _with_zeros,
    "single precision": lambda rows: rows.astype(np.float32),
}


@pytest.mark.parametrize("kernel", ["reference", "cpu"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_storage_layout_does_not_matter(layout, kernel):
    some = CROWD[:12]
    given = LAYOUTS[layout](some)
    expected = pairwise(some, compute=REFERENCE)
    assert np.abs(pairwise(given, compute=Compute(kernel=kernel)) - expected).max() <= CLOSE


def test_the_input_is_left_as_it_was():
    messy = _unsorted(CROWD)
    before = messy.indices.copy()
    pairwise(messy, compute=CPU)
    assert (messy.indices == before).all()
