"""Every question against its definition, written out on the full matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import incrowd.distances as distances
from incrowd.distances import Compute
from incrowd.distances.reductions import UNIT, Summary
from incrowd.errors import BudgetExceeded, InputError

from .strategies import METRICS, crowd, normalise, profiles

REFERENCE = Compute(kernel="reference")
CROWD = crowd(60, seed=1)
PEOPLE, OTHERS = CROWD[:35], CROWD[35:]
RADII = np.linspace(0, 1, 1001)
computes = st.builds(
    Compute, kernel=st.sampled_from(["reference", "cpu"]), tile=st.sampled_from([5, 16, None])
)


def exact(x, y=None, metric="jensen-shannon"):
    """The full matrix, in double precision."""
    x, y = np.asarray(x), np.asarray(x if y is None else y)
    return distances.METRICS[metric].distance(x[:, None], y[None])


def matrix(x, y=None, metric="jensen-shannon"):
    return distances.pairwise(x, y, metric=metric, compute=REFERENCE)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("include_self", [True, False])
@given(rows=profiles(), compute=computes)
@settings(max_examples=15, deadline=None)
def test_ball_sizes_count_those_within_reach(metric, include_self, rows, compute):
    d = matrix(rows, metric=metric)
    radii = np.unique(np.append(d, [0, 0.3, 1]))  # on the very distances: thresholds are inclusive
    options = {"radii": radii, "metric": metric, "include_self": include_self}
    found = distances.ball_sizes(rows, **options, compute=compute)
    if not include_self:
        np.fill_diagonal(d, np.inf)
    slack = 1e-12  # two formulas in double precision
    assert (found >= (d[:, :, None] <= radii - slack).sum(axis=1)).all()
    assert (found <= (d[:, :, None] <= radii + slack).sum(axis=1)).all()


@given(compute=computes)
@settings(max_examples=8, deadline=None)
def test_ball_sizes_at_1001_radii_are_the_same_on_every_kernel(compute):
    expected = (matrix(PEOPLE, OTHERS)[:, :, None] <= RADII).sum(axis=1)
    assert (distances.ball_sizes(PEOPLE, OTHERS, radii=RADII, compute=compute) == expected).all()
    expected = (matrix(CROWD)[:, :, None] <= RADII).sum(axis=1)
    assert (distances.ball_sizes(CROWD, radii=RADII, compute=compute) == expected).all()


def test_radii_may_come_in_any_order_and_twice():
    found = distances.ball_sizes(PEOPLE, radii=[1.0, 0.5, 1.0, -1.0, 2.0])
    assert (found[:, 0] == found[:, 2]).all()
    assert (found[:, 0] == len(found)).all()
    assert (found[:, 3] == 0).all()
    assert (found[:, 4] == len(found)).all()


@given(compute=computes, k=st.integers(1, 25))
@settings(max_examples=12, deadline=None)
def test_nearest_are_in_order_and_ties_go_to_the_lower_number(compute, k):
    d = matrix(PEOPLE, OTHERS)
    found = distances.nearest(PEOPLE, OTHERS, k=k, compute=compute)
    assert (found.indices == np.argsort(d, axis=1, kind="stable")[:, :k]).all()
    assert found.distances == pytest.approx(np.sort(d, axis=1)[:, :k], abs=1e-12)


@given(compute=computes, include_self=st.booleans())
@settings(max_examples=12, deadline=None)
def test_nearest_among_themselves(compute, include_self):
    twins = normalise(np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]]))
    d = matrix(twins)
    if not include_self:
        np.fill_diagonal(d, 9)
    found = distances.nearest(twins, k=5, include_self=include_self, compute=compute)
    assert (found.indices == np.argsort(d, axis=1, kind="stable")[:, :5]).all()


def test_k_must_be_possible():
    with pytest.raises(InputError, match="from 1 to 2"):
        distances.nearest(np.eye(3), k=3)
    assert distances.nearest(np.eye(3), k=3, include_self=True).indices[1].tolist() == [1, 0, 2]


@given(compute=computes, seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_ranks_count_nearer_targets_and_ties(compute, seed):
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(0, 35, 20), rng.integers(0, 25, 20)], axis=1)
    d = matrix(PEOPLE, OTHERS)
    found = distances.ranks(PEOPLE, OTHERS, pairs, compute=compute)
    for (s, t), nearer, ties in zip(pairs, found.nearer, found.ties, strict=True):
        assert nearer == (d[s] < d[s, t]).sum()
        assert ties == (d[s] == d[s, t]).sum() - 1


@pytest.mark.parametrize("kernel", ["reference", "cpu"])
def test_ties_by_hand(kernel):
    # The target has two twins, one candidate is nearer, and the source is nobody's candidate.
    rows = [[1.0, 0, 0], [0.9, 0.1, 0], [0.5, 0.5, 0], [0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1.0]]
    found = distances.ranks(rows, None, [[0, 3]], compute=Compute(kernel=kernel))
    assert (found.nearer[0], found.ties[0]) == (1, 2)
    assert (found.best[0], found.expected[0], found.worst[0]) == (2, 3.0, 4)
    assert [found.precision_at(k) for k in (1, 2, 3, 4, 9)] == [
        0,
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
        1,
        1,
    ]


def test_no_pairs_give_no_precision():
    assert np.isnan(distances.ranks(PEOPLE, OTHERS, np.empty((0, 2))).precision_at(1))


@given(compute=computes, seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_local_matching_sets_follow_their_definition(compute, seed):
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(0, 35, 20), rng.integers(0, 25, 20)], axis=1)
    d, among = matrix(PEOPLE, OTHERS), matrix(OTHERS)
    found = distances.within_both(PEOPLE, OTHERS, pairs, compute=compute)
    for n, (s, t) in enumerate(pairs):
        m, a = d[s] <= d[s, t], among[t] <= d[s, t]
        assert (found.matching[n], found.anonymity[n], found.both[n]) == (m.sum(), a.sum(), (m & a).sum())


@given(rows=profiles(people=8), data=st.data())
@settings(max_examples=25, deadline=None)
def test_local_matching_sets_keep_their_bounds(rows, data):
    sources, targets = rows[:1], rows[1:]
    t = data.draw(st.integers(0, len(targets) - 1))
    found = distances.within_both(sources, targets, [[0, t]], compute=Compute(kernel="cpu"))
    assert 1 <= found.both[0] <= min(found.matching[0], found.anonymity[0])
    d = found.distances[0] + 1e-9
    ball = distances.ball_sizes(np.vstack([sources, targets[t]]), targets, radii=[2 * d])
    assert found.matching[0] <= ball[1, 0]  # M(d) lies in A(2d)
    assert found.anonymity[0] <= ball[0, 0]  # A(d) lies in M(2d)


@given(compute=computes, include_self=st.booleans())
@settings(max_examples=10, deadline=None)
def test_histograms_count_every_two_people_once(compute, include_self):
    edges = np.linspace(0, 1, 11)
    d = matrix(CROWD)[np.triu_indices(60, k=0 if include_self else 1)]
    found = distances.histogram(CROWD, edges=edges, include_self=include_self, compute=compute)
    assert found.sum() == len(d)
    assert found.tolist() == np.diff([(d <= edge).sum() if edge else 0 for edge in edges]).tolist()


def test_a_histogram_leaves_out_what_lies_outside_its_edges():
    assert distances.histogram(np.eye(3), edges=[0.2, 0.8]).tolist() == [0]
    assert distances.histogram(np.eye(3), edges=[1.0, 2.0]).tolist() == [3]


@given(compute=computes, include_self=st.booleans())
@settings(max_examples=10, deadline=None)
def test_means_and_extremes(compute, include_self):
    d = matrix(CROWD)
    keep = np.ones_like(d, bool) if include_self else ~np.eye(60, dtype=bool)
    found = distances.mean_distance(CROWD, include_self=include_self, compute=compute)
    assert found.pairs == keep.sum()
    assert found.mean == pytest.approx(d[keep].mean(), abs=1e-6)
    assert (found.minimum, found.maximum) == (pytest.approx(d[keep].min(), abs=1e-6), 1.0)
    assert found.row_sums / found.row_counts == pytest.approx(
        np.nanmean(np.where(keep, d, np.nan), axis=1), abs=1e-6
    )


def test_the_mean_of_a_large_crowd_does_not_overflow():
    strangers = sparse.identity(2897, format="csr")  # 2,897² distances of 1 pass 2**63 units of 2**-40
    found = distances.mean_distance(strangers)
    assert found.mean == 1.0
    assert (found.row_sums == 2896).all()


def test_the_mean_of_a_million_people_is_exact():
    people, part = 10**6, 250_000
    question = Summary(people, include_self=True)
    total = question.empty()
    for _ in range(4):
        question.absorb(
            total,
            {
                "row_start": np.array([0]),
                "row_sums": np.full(people, int(0.75 * part * UNIT), np.int64),
                "row_counts": np.full(people, part, np.int64),
                "minimum": np.array([0.75]),
                "maximum": np.array([0.75]),
            },
        )
    found = question.finish(total)
    assert (found.mean, found.pairs) == (0.75, people**2)
    assert (found.row_sums == 0.75 * found.row_counts).all()


def test_a_single_person_has_no_mean_distance():
    found = distances.mean_distance(np.eye(3)[:1])
    assert found.pairs == 0
    assert np.isnan([found.mean, found.minimum, found.maximum]).all()
    assert found.row_counts.tolist() == [0]


def test_means_do_not_depend_on_the_order_of_tiles():
    one, many = (
        distances.mean_distance(CROWD, compute=Compute(kernel="cpu", tile=tile)) for tile in (None, 7)
    )
    assert one.mean == many.mean
    assert (one.row_sums == many.row_sums).all()


def test_a_matrix_beyond_the_budget_is_refused_with_a_way_out():
    with pytest.raises(BudgetExceeded, match="ball_sizes"):
        distances.pairwise(CROWD, compute=Compute(memory=8 * 60 * 60 - 1))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 0.0], [0.0, 0.0]], "1 of 2 rows are empty.*row 1"),
        ([[1.0, 1.0]], "row 0 sums to 2"),
        ([[1.5, -0.5]], "none below 0"),
        ([[np.nan, 1.0]], "finite"),
    ],
)
def test_unusable_rows_are_named(rows, message):
    with pytest.raises(InputError, match=message):
        distances.ball_sizes(rows, radii=[0.5])


def test_other_mistakes_are_named():
    with pytest.raises(InputError, match="same columns"):
        distances.pairwise(np.eye(2), np.eye(3))
    with pytest.raises(InputError, match="from 0 to 2 in column 1"):
        distances.ranks(np.eye(3), None, [[0, 3]])
    with pytest.raises(InputError, match="radii"):
        distances.ball_sizes(np.eye(3), radii=[])
    with pytest.raises(InputError, match="rising"):
        distances.histogram(np.eye(3), edges=[1.0, 0.0])


def test_scale_does_not_matter_to_the_angle():
    rows = np.array([[1.0, 2.0], [3.0, 1.0]])
    assert distances.pairwise(rows, metric="angular-cosine") == pytest.approx(
        distances.pairwise(rows * [[10], [0.1]], metric="angular-cosine")
    )
