"""The formulas, by hand and by axiom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.spatial.distance import jensenshannon

from incrowd.distances import METRICS, Compute, Metric, RowKind, ball_sizes, pairwise, register
from incrowd.distances.reference import (
    angular_cosine,
    hellinger,
    jensen_shannon,
    metric_named,
    total_variation,
)
from incrowd.errors import InputError

from .strategies import METRICS as NAMES
from .strategies import profiles

HALF, LEFT, RIGHT = np.array([0.5, 0.5]), np.array([1.0, 0.0]), np.array([0.0, 1.0])


def test_jensen_shannon_by_hand():
    # m = (3/4, 1/4): ½ log2(4/3) + ½ (½ log2(2/3) + ½ log2 2) = 0.311278...
    assert jensen_shannon(LEFT, HALF) ** 2 == pytest.approx(0.3112781244591328)
    assert jensen_shannon(LEFT, RIGHT) == 1.0
    assert jensen_shannon(HALF, HALF) == 0.0


def test_base_two_reaches_one_where_base_e_would_stop_at_0_8326():
    assert jensenshannon(LEFT, RIGHT) == pytest.approx(0.8326, abs=1e-4)
    assert jensen_shannon(LEFT, RIGHT) == jensenshannon(LEFT, RIGHT, base=2) == 1.0


def test_the_other_metrics_by_hand():
    assert angular_cosine(LEFT, HALF) == pytest.approx(0.25)
    assert angular_cosine(LEFT, 7 * LEFT) == 0.0
    assert total_variation(LEFT, HALF) == 0.5
    assert hellinger(LEFT, HALF) == pytest.approx(np.sqrt(1 - np.sqrt(0.5)))


def test_one_minus_cosine_is_no_metric_and_the_angle_is():
    diagonal = np.array([1.0, 1.0])

    def gap(p, q):
        return 1 - p @ q / np.linalg.norm(p) / np.linalg.norm(q)

    assert gap(LEFT, RIGHT) == 1.0
    assert gap(LEFT, diagonal) + gap(diagonal, RIGHT) == pytest.approx(0.586, abs=1e-3)
    angles = angular_cosine(LEFT, diagonal) + angular_cosine(diagonal, RIGHT)
    assert angles == pytest.approx(angular_cosine(LEFT, RIGHT))


@given(rows=profiles())
@settings(max_examples=50, deadline=None)
def test_jensen_shannon_agrees_with_scipy(rows):
    ours = pairwise(rows, compute=Compute(kernel="reference"))
    theirs = [[0.0 if (p == q).all() else jensenshannon(p, q, base=2) for q in rows] for p in rows]
    assert ours == pytest.approx(np.clip(np.nan_to_num(theirs), 0, 1), abs=3e-8)


@pytest.mark.parametrize("kernel", ["reference", "cpu"])
@pytest.mark.parametrize("metric", NAMES)
@given(rows=profiles())
@settings(max_examples=25, deadline=None)
def test_every_metric_on_every_kernel_is_a_metric(metric, kernel, rows):
    d = pairwise(rows, metric=metric, compute=Compute(kernel=kernel))
    assert (d >= 0).all()
    assert (d <= 1).all()
    assert (np.diag(d) == 0).all()
    assert (d == d.T).all()
    assert (d[:, None, :] <= d[:, :, None] + d[None, :, :] + 3e-6).all()


def test_a_new_metric_is_one_function_and_one_registration():
    register(Metric(name="jaccard", distance=_jaccard, rows=RowKind.NONZERO))
    try:
        rows = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [2.0, 1.0, 0.0]]
        third = pytest.approx(2 / 3)
        assert pairwise(rows, metric="jaccard").tolist() == [[0, third, 0], [third, 0, third], [0, third, 0]]
        assert ball_sizes(rows, radii=[0.5], metric="jaccard").ravel().tolist() == [2, 1, 2]
    finally:
        del METRICS["jaccard"]


def _jaccard(p, q):
    both, either = ((p > 0) & (q > 0)).sum(axis=-1), ((p > 0) | (q > 0)).sum(axis=-1)
    return 1 - both / either


def test_an_unknown_metric_is_named_with_those_there_are():
    with pytest.raises(InputError, match=r"jensen-shannon.*got 'euclid'"):
        metric_named("euclid")
