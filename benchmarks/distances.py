"""All-pairs Jensen-Shannon on the CPU beside what a user could pick instead, on the same matrices.

    python -m benchmarks.distances [--growth 2000 8000 16000] [--full] [--out distances.json]

*Contenders*: 2,000 profiles over 100,000 words, about 2,800 distinct words each, drawn from one Zipf law.
Slow contenders get as many of the rows as they finish in seconds; every rate is pairs per second.
*Growth*: ball sizes at 21 radii for crowds of about 1,800 distinct words each; every size in a process of its
own, so that peak memory means something. `--full` adds the paper's 58,091 identities, all 1.69e9 pairs.
The *logarithm limit* is the rate of the same polynomial logarithm on data in the first-level cache. The fraction
reached counts one logarithm for every word two people share and none for wasted lanes, by the time cores worked,
so that other programs on the machine do not enter.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy import sparse

from benchmarks._timing import best
from incrowd.distances import Compute, ball_sizes, pairwise
from incrowd.distances.all_pairs import usable_cores
from incrowd.distances.reference import word_users

RADII = np.linspace(0, 1, 21)
PAPER = 58_091


def zipf_crowd(people: int, words: int, log_length: float, seed: int = 0) -> sparse.csr_matrix:
    """Draw people of lognormal length from one Zipf law (exponent 1.05, shift 20)."""
    rng = np.random.default_rng(seed)
    weights = (np.arange(1, words + 1) + 20.0) ** -1.05
    rise = np.cumsum(weights / weights.sum())
    parts = []
    for start in range(0, people, 2000):
        lengths = rng.lognormal(log_length, 1, min(2000, people - start)).astype(int) + 50
        word = np.minimum(np.searchsorted(rise, rng.random(lengths.sum())), words - 1)
        person = np.repeat(np.arange(len(lengths)), lengths)
        share = np.repeat(1 / lengths, lengths)
        part = sparse.csr_matrix((share, (person, word)), shape=(len(lengths), words))
        part.sum_duplicates()
        parts.append(part)
    return sparse.vstack(parts, format="csr")


def rate(people: int, work, times: int = 3) -> float:
    return people * (people - 1) / 2 / best(work, times)


def scipy_pdist(rows: sparse.csr_matrix) -> float:
    from scipy.spatial.distance import pdist

    dense = rows[:32].toarray()
    return rate(32, lambda: pdist(dense, metric="jensenshannon"))


def scikit_learn(rows: sparse.csr_matrix) -> float:
    """Its name list lacks jensenshannon; it takes SciPy's function."""
    from scipy.spatial.distance import jensenshannon
    from sklearn.metrics import pairwise_distances

    dense = rows[:16].toarray()
    return rate(16, lambda: pairwise_distances(dense, metric=jensenshannon, base=2))


def dense_numpy(rows: sparse.csr_matrix) -> float:
    dense = rows[:16].toarray()

    def work() -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            for i, p in enumerate(dense[:-1]):
                q = dense[i + 1 :]
                m = (p + q) / 2
                terms = np.nan_to_num(p * np.log2(p / m)) + np.nan_to_num(q * np.log2(q / m))
                np.sqrt(np.clip(terms.sum(axis=1) / 2, 0, 1))

    return rate(16, work)


def pynndescent(rows: sparse.csr_matrix) -> float:
    import numba
    from pynndescent.sparse import sparse_jensen_shannon_divergence as divergence

    @numba.njit(parallel=True)
    def all_pairs(indptr, indices, data, people):
        out = np.zeros((people, people), np.float32)
        for i in numba.prange(people):
            for j in range(i + 1, people):
                a, b, c, d = indptr[i], indptr[i + 1], indptr[j], indptr[j + 1]
                out[i, j] = divergence(indices[a:b], data[a:b], indices[c:d], data[c:d])
        return out

    some = rows[:200].astype(np.float32)
    all_pairs(some.indptr, some.indices, some.data, 3)
    return rate(200, lambda: all_pairs(some.indptr, some.indices, some.data, 200))


def contenders() -> dict[str, float]:
    rows = zipf_crowd(2000, 100_000, 8.06)
    pairwise(rows[:100])
    ours = rate(2000, lambda: pairwise(rows), times=5)
    rates = {"incrowd": ours}
    peers = {
        "scikit-learn pairwise_distances, SciPy's jensenshannon": scikit_learn,
        "SciPy pdist, jensenshannon in C": scipy_pdist,
        "pynndescent's sparse divergence, parallel Numba loop": pynndescent,
        "dense NumPy broadcast": dense_numpy,
    }
    for name, peer in peers.items():
        rates[name] = peer(rows)
    return {
        "distinct words": rows.nnz / 2000,
        "pairs per second": rates,
        "times as fast": {name: ours / other for name, other in rates.items() if name != "incrowd"},
    }


def log_limit() -> float:
    """Return polynomial logarithms per second of one core, nothing else in the loop: the yardstick for speed."""
    from incrowd.distances.cpu_loops import f4, jit, log2_units

    @jit
    def log2_rate(repeats: int) -> int:
        x, sums = np.linspace(0.5, 2.0, 1024).astype(f4), np.zeros(1024, f4)
        for _ in range(repeats):
            for k in range(1024):
                sums[k] += x[k] * log2_units(x[k])
        return repeats * 1024 + int(np.isnan(sums[0]))

    log2_rate(1)
    rates = []
    for _ in range(10):
        begin = time.thread_time()
        rates.append(log2_rate(20_000) / (time.thread_time() - begin))
    return max(rates)


def one_size(path: Path) -> dict[str, float]:
    """Time one crowd in this process, which holds nothing else, so that its peak memory means something."""
    rows = sparse.load_npz(path)
    people = rows.shape[0]
    used = word_users(rows) / people
    ball_sizes(rows[:100], radii=RADII)
    begin, cpu = time.perf_counter(), time.process_time()
    sizes = ball_sizes(rows, radii=RADII, compute=Compute(memory=2**30))
    took, cpu = time.perf_counter() - begin, time.process_time() - cpu
    pairs = people * (people - 1) / 2
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    given = (rows.data.nbytes + rows.indices.nbytes) / 2**20
    return {
        "people": people,
        "distinct words": rows.nnz / people,
        "shared words": float((used**2).sum()),
        "seconds": took,
        "cpu seconds": cpu,
        "pairs per second": pairs / took,
        "pairs per core second": pairs / cpu,
        "peak MiB": peak,
        "MiB besides the input": peak - given,
        "mean size at 0.8": float(sizes[:, 16].mean()),
    }


def growth(sizes: list[int]) -> list[dict[str, float]]:
    found = []
    for people in sizes:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "rows.npz"
            sparse.save_npz(path, zipf_crowd(people, 60_000, 7.63, seed=people), compressed=False)
            command = [sys.executable, "-m", "benchmarks.distances", "--one", str(path)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found.append(json.loads(done.stdout))
    return found


def main(sizes: tuple[int, ...] = (2000, 8000, 16_000), *, full: bool = False) -> dict[str, object]:
    limit = log_limit()
    grown = growth([*sizes, *([PAPER] if full else [])])
    for row in grown:
        row["fraction of logarithm limit"] = row["shared words"] * row["pairs per core second"] / limit
    return {
        "cores": usable_cores(),
        "load before": os.getloadavg()[0],
        "logarithms per core second": limit,
        "contenders": contenders(),
        "growth": {f"{row['people']:,}": row for row in grown},
    }


def table(report: dict) -> str:
    """Return the report as Markdown, for the documentation."""
    rates, times = report["contenders"]["pairs per second"], report["contenders"]["times as fast"]
    lines = ["| 2,000 profiles × 100,000 words | pairs/s | incrowd is faster by |", "|---|---:|---:|"]
    lines += [f"| {n} | {r:,.0f} | {f'{times[n]:,.0f} ×' if n in times else ''} |" for n, r in rates.items()]
    lines += [
        "",
        "| identities | pairs/s | pairs/s of a core | seconds | peak memory | besides the input | logarithms |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in report["growth"].values():
        lines.append(
            f"| {row['people']:,} | {row['pairs per second']:,.0f} | {row['pairs per core second']:,.0f} | "
            f"{row['seconds']:,.0f} | {row['peak MiB']:,.0f} MiB | {row['MiB besides the input']:,.0f} MiB | "
            f"{row['fraction of logarithm limit']:.0%} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--growth", type=int, nargs="*", default=[2000, 8000, 16_000])
    parser.add_argument("--full", action="store_true", help="add the paper's 58,091 identities")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one_size(given.one)))
    else:
        report = main(tuple(given.growth), full=given.full)
        print(table(report))
        if given.out:
            given.out.write_text(json.dumps(report, indent=1) + "\n")
