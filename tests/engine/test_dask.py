"""A real Dask cluster of two worker processes: same answers as threads, also when workers are killed."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import pytest

from incrowd.distances import (
    Compute,
    ball_sizes,
    histogram,
    mean_distance,
    nearest,
    pairwise,
    ranks,
    within_both,
)
from incrowd.engine import connect
from incrowd.engine.dask import DaskEngine
from incrowd.errors import IncrowdError, InputError, MissingExtra

RADII = np.linspace(0, 1, 11)
PAIRS = [[0, 5], [3, 10], [20, 21]]


def here(**options):
    return Compute(kernel="reference", tile=20, **options)


def process_ids(engine):
    return list(engine._client.run(os.getpid).values())


def test_two_workers_are_there(cluster):
    assert cluster.workers == 2
    assert len(set(process_ids(cluster))) == 2
    assert os.getpid() not in process_ids(cluster)


def test_every_question_has_the_same_answer_as_in_threads(cluster, people):
    def answers(compute):
        neighbours = nearest(people, k=3, compute=compute)
        found = ranks(people, people[::-1], PAIRS, compute=compute)
        both = within_both(people, people[::-1], PAIRS, compute=compute)
        return (
            ball_sizes(people, radii=RADII, compute=compute),
            ball_sizes(people, people[:50], radii=RADII, compute=compute),
            histogram(people, edges=RADII, compute=compute),
            pairwise(people[:30], compute=compute),
            mean_distance(people, compute=compute).row_sums,
            neighbours.indices,
            neighbours.distances,
            np.stack([found.nearer, found.ties]),
            np.stack([both.matching, both.anonymity, both.both]),
        )

    for there, threads in zip(answers(here(engine=cluster)), answers(here()), strict=True):
        assert np.array_equal(there, threads)


def test_progress_counts_every_pair_once(cluster, people):
    seen = []
    ball_sizes(people, radii=RADII, compute=here(engine=cluster, progress=lambda *step: seen.append(step)))
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert seen[-1][0] == seen[-1][1] == 90 * 91 / 2
    assert len(seen) == 15


def test_a_killed_worker_changes_nothing(cluster, people):
    victim = process_ids(cluster)[0]

    def kill_midway(done, total, what):
        if done > total / 3 and victims:
            os.kill(victims.pop(), signal.SIGKILL)

    victims = [victim]
    found = ball_sizes(people, radii=RADII, compute=here(engine=cluster, progress=kill_midway))
    assert not victims
    assert np.array_equal(found, ball_sizes(people, radii=RADII, compute=here()))
    cluster._client.wait_for_workers(2, timeout=60)
    assert victim not in process_ids(cluster)


@pytest.mark.parametrize("joined", [False, True], ids=["own cluster", "joined cluster"])
def test_the_job_reaches_new_workers_if_all_who_held_it_died(cluster, people, joined):
    def kill_all(done, total, what):
        while victims:
            os.kill(victims.pop(), signal.SIGKILL)

    cluster._client.wait_for_workers(2, timeout=60)
    victims = process_ids(cluster)
    engine = connect(cluster._cluster.scheduler_address) if joined else cluster
    found = ball_sizes(people, radii=RADII, compute=here(engine=engine, progress=kill_all))
    assert np.array_equal(found, ball_sizes(people, radii=RADII, compute=here()))
    if joined:
        engine.close()


def test_an_error_in_a_worker_reaches_the_caller_and_leaves_the_cluster_usable(cluster, people):
    from incrowd.distances.all_pairs import TileJob
    from incrowd.distances.tiles import plan_tiles

    job = TileJob(None, "no such metric", "reference", ())  # type: ignore[arg-type]
    plan = plan_tiles(10, 10, symmetric=True, memory=2**20)
    with pytest.raises(InputError, match="metric: expected one of"):
        cluster.run(job, plan, lambda piece: None, None)
    assert ball_sizes(people[:5], radii=[1.0], compute=here(engine=cluster)).tolist() == [[5]] * 5


def test_joining_by_address_uses_the_running_cluster(cluster, people):
    with connect(cluster._cluster.scheduler_address) as joined:
        assert set(process_ids(joined)) == set(process_ids(cluster))
        found = ball_sizes(people, radii=RADII, compute=here(engine=joined))
    assert np.array_equal(found, ball_sizes(people, radii=RADII, compute=here()))
    assert cluster.workers >= 1


def test_an_address_where_nobody_answers_is_an_input_error(monkeypatch):
    monkeypatch.setattr("incrowd.engine.dask._JOIN_SECONDS", 0.2)
    with pytest.raises(InputError, match="none answered"):
        connect("tcp://127.0.0.1:9")


def test_a_cluster_that_goes_away_is_an_error_that_says_what_to_do(people, monkeypatch):
    monkeypatch.setattr("incrowd.engine.dask._JOIN_SECONDS", 1)
    monkeypatch.setattr("incrowd.engine.dask._WORKER_SECONDS", 1)
    with (
        connect("dask:1") as own,
        connect(own._cluster.scheduler_address) as joined,
        pytest.raises(IncrowdError, match="continues where it stopped"),
    ):
        ball_sizes(people, radii=RADII, compute=here(engine=joined, progress=lambda *_: own._cluster.close()))


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"incrowd\[cluster\]"):
        DaskEngine.start()
