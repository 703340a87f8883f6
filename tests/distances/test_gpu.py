"""The GPU kernel against the reference. Most of it needs a CUDA device and is skipped without one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from incrowd.distances import (
    Compute,
    ball_sizes,
    histogram,
    mean_distance,
    nearest,
    pair_distances,
    pairwise,
    ranks,
    within_both,
)
from incrowd.distances.gpu import GpuKernel, Panels, Turns, _no_device, smallest
from incrowd.distances.gpu_panels import METRICS, build_panel, count_users, split_vocabulary
from incrowd.distances.reference import METRICS as REFERENCE
from incrowd.distances.reference import Metric, RowKind
from incrowd.errors import BudgetExceeded, InputError

NO_DEVICE = _no_device()
on_device = pytest.mark.skipif(bool(NO_DEVICE), reason=f"no CUDA device: {NO_DEVICE}")


def crowd(people, words, seed):
    """Duplicates, near-duplicates, single words, disjoint people, heavy tails."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.6 / (1 + np.arange(words) / 20.0), (people, words)).astype(float)
    counts *= rng.gamma(2.0, size=counts.shape)
    counts[1], counts[2] = counts[0], counts[0] + (np.arange(words) == 3)
    counts[3:9] = np.eye(words)[:6]
    counts[counts.sum(axis=1) == 0, -1] = 1
    return sparse.csr_matrix(counts / counts.sum(axis=1, keepdims=True))


X, Y = crowd(150, 300, 1), sparse.vstack([crowd(150, 300, 1)[:20], crowd(90, 300, 2)[20:]], format="csr")
PAIRS = np.stack([np.arange(0, 90), np.arange(0, 90)], axis=1)
RADII = np.unique(np.concatenate([np.linspace(0, 1, 21), np.linspace(0.5, 1, 333)]))


def both_ways(function, *sides, tile=None, **options):
    found = function(*sides, compute=Compute(kernel="gpu", tile=tile), **options)
    return found, function(*sides, compute=Compute(kernel="reference"), **options)


@on_device
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("tile", [50, None])
def test_distances_agree_with_the_reference(metric, tile):
    found, known = both_ways(pairwise, X, Y, tile=tile, metric=metric)
    assert np.abs(found - known).max() < 2e-5
    found, known = both_ways(pairwise, X, tile=tile, metric=metric)
    assert np.abs(found - known).max() < 2e-5
    assert (found == found.T).all()
    assert (np.diag(found) == 0).all()
    assert found[0, 1] == 0


@on_device
@pytest.mark.parametrize("metric", METRICS)
def test_long_profiles_keep_their_precision(metric):
    rows = np.random.default_rng(3).dirichlet(np.full(1500, 0.3), 140)
    found, known = both_ways(pairwise, rows, metric=metric)
    assert np.abs(found - known).max() < 2e-5


@on_device
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("tile", [50, None])
@pytest.mark.parametrize("y", [Y, None], ids=["x against y", "x against itself"])
def test_counts_are_exactly_those_of_the_reference(metric, tile, y):
    for include_self in (True, False):
        options = {"tile": tile, "metric": metric, "include_self": include_self}
        found, known = both_ways(ball_sizes, X, y, radii=RADII, **options)
        assert (found == known).all()
        found, known = both_ways(histogram, X, y, edges=np.linspace(0, 1, 11), **options)
        assert (found == known).all()


@on_device
@pytest.mark.parametrize("tile", [50, None])
@pytest.mark.parametrize("y", [Y, None], ids=["x against y", "x against itself"])
def test_neighbours_and_means_are_those_of_the_reference(tile, y):
    found, known = both_ways(nearest, X, y, k=5, tile=tile)
    assert (found.indices == known.indices).all()
    assert np.allclose(found.distances, known.distances, rtol=0, atol=1e-12)
    found, known = both_ways(mean_distance, X, y, tile=tile)
    assert found.mean == pytest.approx(known.mean, abs=1e-6)
    assert (found.minimum, found.maximum) == pytest.approx((known.minimum, known.maximum), abs=2e-5)
    assert found.pairs == known.pairs


@on_device
def test_questions_about_pairs_are_answered_like_the_reference():
    found, known = both_ways(pair_distances, X, Y, PAIRS)
    assert np.allclose(found, known, rtol=0, atol=1e-12)
    found, known = both_ways(ranks, X, Y, PAIRS)
    assert (found.nearer == known.nearer).all()
    assert (found.ties == known.ties).all()
    found, known = both_ways(within_both, X, Y, PAIRS)
    assert (found.matching == known.matching).all()
    assert (found.anonymity == known.anonymity).all()
    assert (found.both == known.both).all()


@on_device
def test_empty_rows_have_no_distance():
    rows = sparse.csr_matrix(np.array([[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]]))
    found, known = both_ways(pairwise, rows)
    assert np.array_equal(np.isnan(found), np.isnan(known))


@on_device
def test_little_device_memory_changes_nothing(monkeypatch):
    import incrowd.distances.gpu as gpu

    known = ball_sizes(X, radii=RADII, compute=Compute(kernel="gpu", tile=30))
    monkeypatch.setattr(gpu, "PANEL_SHARE", 0)  # every panel is dropped as soon as the next is made
    assert (ball_sizes(X, radii=RADII, compute=Compute(kernel="gpu", tile=30)) == known).all()


@on_device
def test_a_tight_limit_makes_tiles_take_turns_and_a_tighter_one_is_refused(monkeypatch):
    import cupy

    import incrowd.distances.gpu as gpu

    free, known = (
        cupy.cuda.Device().mem_info[0],
        ball_sizes(X, radii=RADII, compute=Compute(kernel="reference")),
    )
    refused = []
    for limit in (2**14, 2**16, 2**17, 3 * 2**16, 2**18, 2**19, 2**20, 2**24):  # one tile alone takes 2**16
        monkeypatch.setattr(gpu, "DEVICE_SHARE", limit / free)
        try:
            found = ball_sizes(X, radii=RADII, compute=Compute(kernel="gpu", tile=40))
        except BudgetExceeded:
            refused.append(limit)
        else:
            assert (found == known).all()
    assert 2**14 in refused
    assert 2**24 not in refused


@on_device
def test_device_memory_is_given_back(monkeypatch):
    import cupy

    ball_sizes(X, radii=RADII, compute=Compute(kernel="gpu"))
    before = cupy.cuda.Device().mem_info[0]
    for _ in range(5):
        ball_sizes(X, radii=RADII, compute=Compute(kernel="gpu"))
    assert cupy.cuda.Device().mem_info[0] >= before - 2**22


def test_a_metric_without_a_cuda_kernel_is_refused():
    strange = Metric(name="strange", distance=lambda p, q: p[..., 0] - q[..., 0], rows=RowKind.NONZERO)
    assert "strange" in GpuKernel().refuses(strange)


@pytest.mark.skipif(not NO_DEVICE, reason="this machine has a CUDA device")
def test_without_a_device_the_kernel_steps_aside_and_says_why():
    assert GpuKernel().refuses(REFERENCE["hellinger"])
    with pytest.raises(InputError, match="kernel: 'gpu' was asked for"):
        ball_sizes(X, radii=[0.5], compute=Compute(kernel="gpu"))


def panels_of(x, limit):
    """Panels in NumPy arrays, and a log of what was built."""
    vocabulary, built = split_vocabulary(count_users(x, np), x.shape[0], None, x.shape[0]), []

    def build(is_y, span):
        built.append(span)
        return build_panel(x, span, vocabulary, "hellinger", 1.0, span.start, np)

    return Panels(build, limit), built


def test_panels_are_built_once_while_they_fit():
    panels, built = panels_of(X, limit=2**30)
    for _ in range(3):
        for start in (0, 50, 100):
            assert panels.get(False, range(start, start + 50)).first == start
    assert len(built) == 3


def test_panels_beyond_the_limit_are_dropped_longest_unused_first():
    size = panels_of(X, 2**30)[0].get(False, range(50)).nbytes
    panels, built = panels_of(X, limit=int(2.5 * size))
    spans = [range(50), range(50, 100), range(100, 150)]
    panels.get(False, spans[0])
    panels.get(False, spans[1])
    panels.get(False, spans[0])
    panels.get(False, spans[2])  # drops spans[1]
    panels.get(False, spans[0])
    assert len(built) == 3
    panels.get(False, spans[1])
    assert len(built) == 4


def test_threads_asking_for_one_panel_get_the_same_one():
    panels, built = panels_of(X, limit=2**30)
    found = []
    threads = [threading.Thread(target=lambda: found.append(panels.get(False, range(150)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert all(panel is found[0] for panel in found)


def test_a_panel_that_could_not_be_built_is_tried_again():
    panels, built = panels_of(X, limit=2**30)
    build, failures = panels._build, [MemoryError("full"), MemoryError("full")]

    def failing_first(is_y, span):
        if failures:
            raise failures.pop()
        return build(is_y, span)

    panels._build = failing_first
    for _ in range(2):
        with pytest.raises(MemoryError):
            panels.get(False, range(50))
    assert panels.get(False, range(50)).rows == 50
    assert len(built) == 1


def test_work_that_runs_out_of_memory_is_done_again_alone():
    turns, busy = Turns(), []

    def work():
        busy.append(1)
        time.sleep(0.01)
        crowded = len(busy) > 1
        busy.pop()
        if crowded:
            raise MemoryError
        return "done"

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: turns.run(work), range(9)))
    assert found == ["done"] * 9


def test_work_that_never_fits_is_refused_with_a_remedy():
    def never():
        raise MemoryError

    with pytest.raises(BudgetExceeded, match="smaller tiles"):
        Turns().run(never)


def test_candidates_are_cut_to_the_k_smallest_by_distance_then_column():
    i, j = np.array([1, 0, 0, 0, 1]), np.array([4, 9, 2, 5, 1])
    values = np.array([0.5, 0.1, 0.1, 0.0, 0.7])
    indices, distances = smallest(i, j, values, rows=3, k=2, first=100)
    assert indices.tolist() == [[105, 102], [104, 101], [-1, -1]]
    assert distances.tolist() == [[0.0, 0.1], [0.5, 0.7], [np.inf, np.inf]]
