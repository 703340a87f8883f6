"""Dask on this machine against threads: the same speed, and right when workers are killed.

    python benchmarks/engine.py [--people 10000] [--kills 40] [--out engine.json]

Times ball sizes at 21 radii with two threads and with two Dask worker processes on the same tiles, then runs
the job again and again, each time killing one worker midway, and counts the right answers. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from incrowd.distances import Compute, ball_sizes
from incrowd.engine import connect

RADII = np.linspace(0, 1, 21)


def zipf_crowd(people: int, words: int = 60_000, length: int = 3000, seed: int = 0) -> sparse.csr_matrix:
    """People who draw words from Zipf's law: about 1,500 distinct ones each."""
    rng = np.random.default_rng(seed)
    weights = (np.arange(words) + 3.7) ** -1.0
    rise = np.cumsum(weights / weights.sum())
    tokens = np.minimum(np.searchsorted(rise, rng.random(people * length)), words - 1)
    person = np.repeat(np.arange(people), length)
    rows = sparse.coo_matrix((np.full(len(tokens), 1 / length), (person, tokens)), shape=(people, words))
    return rows.tocsr()


def seconds(rows, engine, **options) -> tuple[float, np.ndarray]:
    begin = time.perf_counter()
    sizes = ball_sizes(rows, radii=RADII, compute=Compute(engine=engine, **options))
    return time.perf_counter() - begin, sizes


def cpu_seconds(cluster) -> float:
    """CPU time this process and the workers have used so far."""
    return time.process_time() + sum(cluster._client.run(time.process_time).values())


def speed(rows, cluster, tile: int, kernel: str, repeats: int) -> dict:
    """Best of some runs each, in turn; the first of each is a warm-up (compiling, opening)."""
    threads = connect("threads:2")
    best, busy = {"threads": np.inf, "dask": np.inf}, {"threads": np.inf, "dask": np.inf}
    answers = []
    for turn in range(repeats + 1):
        for name, engine in (("threads", threads), ("dask", cluster)):
            before = cpu_seconds(cluster)
            took, sizes = seconds(rows, engine, tile=tile, kernel=kernel)
            used = cpu_seconds(cluster) - before
            print(f"{name}: {took:.1f} s, {used:.1f} s of CPU", file=sys.stderr, flush=True)
            answers.append(sizes)
            if turn:
                best[name], busy[name] = min(best[name], took), min(busy[name], used)
    tiles = -(-rows.shape[0] // tile)
    return {
        "people": rows.shape[0],
        "tiles": tiles * (tiles + 1) // 2,
        "seconds": best,
        "seconds_a_tile": 2 * best["threads"] / (tiles * (tiles + 1) / 2),
        "dask_share_of_local_speed": best["threads"] / best["dask"],
        "cpu_seconds": busy,
        "threads_cpu_over_dask_cpu": busy["threads"] / busy["dask"],  # the same, however busy the machine is
        "equal": all(np.array_equal(sizes, answers[0]) for sizes in answers),
    }


def kills(cluster, runs: int, seed: int = 0) -> dict:
    """Kill one of two workers at a random moment of each run; nothing to compile, so that workers are back soon."""
    rng, how = random.Random(seed), {"tile": 20, "kernel": "reference"}
    rows = zipf_crowd(300, words=300, length=200)
    _, known = seconds(rows, connect("threads:2"), **how)
    right, killed, took = 0, 0, []
    for _ in range(runs):
        cluster._client.wait_for_workers(2, timeout=120)
        victims = [rng.choice(list(cluster._client.run(os.getpid).values()))]
        moment = rng.uniform(0.2, 0.8)

        def kill(done, total, what, victims=victims, moment=moment):
            if victims and done >= moment * total:
                os.kill(victims.pop(), signal.SIGKILL)

        spent, sizes = seconds(rows, cluster, progress=kill, **how)
        killed += not victims
        right += np.array_equal(sizes, known)
        took.append(spent)
        print(f"killed {killed}, right {right}, {spent:.1f} s", file=sys.stderr, flush=True)
    return {"runs": runs, "workers_killed": killed, "right": right, "median_seconds": float(np.median(took))}


def main() -> None:
    """Time, kill, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--kernel", default="cpu")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the JSON here, too")
    options = parser.parse_args()
    rows = zipf_crowd(options.people if options.repeats else 2)
    with connect("dask:2") as cluster:
        report = {
            "killed_workers": kills(cluster, options.kills) if options.kills else None,
            "speed": speed(rows, cluster, 2048, options.kernel, options.repeats) if options.repeats else None,
        }
    text = json.dumps(report, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
