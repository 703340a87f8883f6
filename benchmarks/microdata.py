"""Exact anonymity sets against the paper's Monte Carlo, Netflix size on two cores, and the client's waiting time.

Bars: all users of the paper's largest table under 10 s and at least 1,000 times its Monte Carlo; 1 % of the
Netflix prize's users against everybody under 5 minutes within 8 GiB; a 10,000-item profile scored under 50 ms;
statistics of a million items loaded under 1 s. The graphics card has its own file (microdata_gpu).
"""

from __future__ import annotations

import argparse
import datetime as dt
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from tests.microdata.simulation import simulate

from benchmarks._timing import best
from incrowd import synthetic
from incrowd.measures.microdata import expected_others
from incrowd.measures.microdata.client import score
from incrowd.measures.microdata.expected_crowd import ActivityGroups
from incrowd.measures.microdata.set_sizes import Effort, SetSizeFinder
from incrowd.measures.microdata.spec import Knowledge
from incrowd.measures.microdata.statistics import RiskGroup, Statistics, load_statistics

ROUNDS = 10_000


def items_of(preset: str) -> sparse.csr_array:
    """Return a synthetic table of who has which items."""
    table = synthetic.preset(preset)
    assert isinstance(table, synthetic.SyntheticItems)
    return table.to_csr()


def paper_size(sample: int = 12) -> dict[str, float]:
    """Exact for everybody, against simulations of a random sample scaled to everybody."""
    matrix = sparse.csr_matrix(items_of("paper-002-music"))
    people = matrix.shape[0]
    knowledge = Knowledge()
    exact = expected_others(matrix, matrix, knowledge)  # compiles
    seconds = best(lambda: expected_others(matrix, matrix, knowledge))
    rows = np.random.default_rng(0).choice(people, sample, replace=False)
    rounds = 1024
    start = time.perf_counter()
    runs = [simulate(matrix[row], matrix, knowledge, rounds=rounds, seed=int(row)) for row in rows]
    vectorised = (time.perf_counter() - start) / sample / rounds * ROUNDS * people
    worst = max(
        abs(run.mean - 1 - exact[row]) / max(run.standard_error, 1e-9)
        for run, row in zip(runs, rows, strict=True)
    )
    finder = SetSizeFinder(matrix, knowledge, Effort(steps=0, rounds=ROUNDS))
    finder.find(matrix[rows[0]].indices, member=int(rows[0]))  # compiles
    start = time.perf_counter()
    for row in rows:
        finder.find(matrix[row].indices, member=int(row))
    compiled = (time.perf_counter() - start) / sample * people
    return {
        "people": people,
        "entries": int(matrix.nnz),
        "exact_all_s": seconds,
        "monte_carlo_vectorised_s": vectorised,
        "monte_carlo_our_compiled_s": compiled,
        "times_vectorised": vectorised / seconds,
        "times_our_compiled": compiled / seconds,
        "largest_error_in_standard_errors": worst,
    }


def netflix_size(share: float = 0.01) -> dict[str, float]:
    """A random 1 % of the people, exactly, against all of them."""
    matrix = sparse.csr_matrix(items_of("netflix-prize"))
    people = matrix.shape[0]
    rows = np.sort(np.random.default_rng(0).choice(people, round(share * people), replace=False))
    start = time.perf_counter()
    others = expected_others(matrix[rows], matrix, Knowledge())
    return {
        "people": people,
        "entries": int(matrix.nnz),
        "asked": len(rows),
        "exact_s": time.perf_counter() - start,
        "peak_memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "median_crowd": float(1 + np.median(others)),
    }


def statistics_of(items: int) -> Statistics:
    counts = np.maximum(11, 2e6 / (np.arange(items) + 3.0))
    bands = 10 * 1.1 ** np.round(np.log(counts / 10) / np.log(1.1))
    return Statistics(
        users=3_000_000, rare_below=100, log_base=float(np.e), raw_min=2.0, raw_max=9.9,
        groups=tuple(RiskGroup(centre, 1_000_000) for centre in (0.2, 0.5, 0.8)), knowledge=Knowledge(),
        activity=ActivityGroups(np.full(8, 1 / 8), np.linspace(-1.5, 1.5, 8)), unlisted=4.0,
        popularity={f"title number {k}": round(float(b), 1) for k, b in enumerate(bands)},
        number=1, date=dt.date(2026, 1, 1).isoformat(),
    )  # fmt: skip


def client() -> dict[str, float]:
    """Loading a million items; scoring 10,000 of them, spread over all popularities or the most popular."""
    statistics = statistics_of(1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "statistics.json"
        statistics.write(path)
        size = path.stat().st_size
        loading = best(lambda: load_statistics(path))
    rng = np.random.default_rng(0)
    spread = [f"title number {k}" for k in rng.choice(1_000_000, 10_000, replace=False)]
    popular = [f"title number {k}" for k in range(10_000)]
    return {
        "file_mib": size / 2**20,
        "load_million_items_s": loading,
        "score_10000_items_ms": 1000 * best(lambda: score(spread, statistics), 5),
        "score_10000_most_popular_ms": 1000 * best(lambda: score(popular, statistics), 5),
    }


def main() -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", help="paper, netflix, client; all if none is named")
    wanted = parser.parse_args().part
    parts = {"client": client, "paper": paper_size, "netflix": netflix_size}
    return {name: part() for name, part in parts.items() if not wanted or name in wanted}


if __name__ == "__main__":
    import json

    print(json.dumps(main(), indent=1))
