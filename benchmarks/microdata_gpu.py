"""Exact E|AS| for every user of a Netflix-prize-sized table on one graphics card.

NumPy, SciPy and CuPy are enough. The counts are first checked against plain NumPy, then timed.
Run: ``PYTHONPATH=src python3 benchmarks/microdata_gpu.py``. On one H200: 5.3 s (2.3e11 pairs, no sampling).
"""

from __future__ import annotations

import argparse
import json
import time

import cupy as cp
import numpy as np
from scipy import sparse

from incrowd.measures.microdata import overlaps_gpu as gpu
from incrowd.measures.microdata.definition import fit_weights
from incrowd.measures.microdata.spec import Knowledge


def table(users: int, items: int, entries: int, seed: int) -> sparse.csr_matrix:
    """Draw a long-tailed 0/1 table on the card: log-normal profile sizes, Zipf-like popularities."""
    cp.random.seed(seed)
    appeal = 1.0 / (cp.arange(1, items + 1) + 40.0) ** 0.9
    edges = cp.cumsum(appeal / appeal.sum())
    sizes = cp.clip(cp.exp(cp.random.standard_normal(users) * 1.1), 0.02, 60.0)
    keys = cp.zeros(0, dtype=cp.int64)
    wanted = 1.0
    for _ in range(8):  # repeats fall together, so draw until the table is full enough
        draws = cp.maximum(8, (sizes / sizes.sum() * entries * wanted).astype(cp.int64))
        draws = cp.minimum(draws, items)
        person = cp.asarray(np.repeat(np.arange(users, dtype=np.int64), cp.asnumpy(draws)))
        item = cp.minimum(cp.searchsorted(edges, cp.random.random(len(person))), items - 1)
        keys = cp.unique(person * items + item)
        if len(keys) >= 0.98 * entries:
            break
        wanted *= 1.03 * entries / len(keys)
        del person, item
    host = cp.asnumpy(keys)
    indptr = np.searchsorted(host, np.arange(users + 1, dtype=np.int64) * items)
    indices = (host % items).astype(np.int32)
    cp.get_default_memory_pool().free_all_blocks()
    return sparse.csr_matrix((np.ones(len(host), np.int8), indices, indptr), shape=(users, items))


def check_layouts(profiles: sparse.csr_matrix, matrix: sparse.csr_matrix, counts: np.ndarray) -> None:
    """Tiny blocks, and histograms too large for fast memory, must not change a count."""
    share, counter = gpu.MEMORY_SHARE, gpu._counter
    try:
        gpu.MEMORY_SHARE = 1e-7
        assert np.array_equal(gpu.histograms(profiles, matrix).counts, counts)
        gpu.MEMORY_SHARE = share
        gpu._counter = lambda: (counter()[0], 0)
        assert np.array_equal(gpu.histograms(profiles, matrix).counts, counts)
    finally:
        gpu.MEMORY_SHARE, gpu._counter = share, counter


def check(seed: int) -> float:
    """Compare with plain NumPy on small tables; return the largest relative error."""
    worst = 0.0
    for users, items, entries in ((70, 33, 900), (1000, 300, 30000), (513, 2000, 60000)):
        matrix = table(users, items, entries, seed)
        profiles = matrix[:: max(1, users // 100)]
        overlap = profiles.astype(np.int32).toarray() @ matrix.astype(np.int32).toarray().T
        sizes = np.diff(profiles.indptr)
        counted = gpu.histograms(profiles, matrix)
        for row, size in enumerate(sizes):
            assert np.array_equal(counted.of(row), np.bincount(overlap[row], minlength=size + 1))
        check_layouts(profiles, matrix, counted.counts)
        levels = [Knowledge(), Knowledge(percents=(), items=(3,)), Knowledge(wrong=1)]
        for inside in (True, False):
            got = gpu.expected_others(profiles, matrix, levels, inside=inside)
            for level, values in zip(levels, got, strict=True):
                want = [
                    fit_weights(int(n), level)[o].sum() - inside for n, o in zip(sizes, overlap, strict=True)
                ]
                worst = max(worst, float(np.max(np.abs(values - want) / np.maximum(1.0, np.abs(want)))))
    return worst


def main() -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=480_189)
    parser.add_argument("--items", type=int, default=17_770)
    parser.add_argument("--entries", type=int, default=100_480_507)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    error = check(options.seed)
    print(json.dumps({"relative_error": error}), flush=True)
    assert error < 1e-9
    start = time.perf_counter()
    matrix = table(options.users, options.items, options.entries, options.seed)
    made = time.perf_counter() - start
    sizes = np.diff(matrix.indptr)
    shape = {
        "users": matrix.shape[0],
        "items": matrix.shape[1],
        "entries": int(matrix.nnz),
        "made_s": round(made, 1),
    }
    shape |= {"median_items": float(np.median(sizes)), "largest_profile": int(sizes.max())}
    popularity = np.bincount(matrix.indices, minlength=options.items)
    shape |= {"largest_popularity": float(popularity.max() / options.users)}
    print(json.dumps(shape), flush=True)
    gpu.expected_others(matrix[:4096], matrix[:4096], [Knowledge()])  # compile, warm up
    times = []
    for _ in range(2):
        start = time.perf_counter()
        others = gpu.expected_others(matrix, matrix, [Knowledge()])[0]
        times.append(round(time.perf_counter() - start, 2))
        print(json.dumps({"exact_all_users_s": times[-1]}), flush=True)
    sample = np.random.default_rng(0).choice(matrix.shape[0], 20, replace=False)
    overlap = (matrix[sample].astype(np.int32) @ matrix.T.astype(np.int32)).toarray()
    want = np.array(
        [fit_weights(int(n), Knowledge())[o].sum() - 1 for n, o in zip(sizes[sample], overlap, strict=True)]
    )
    worst = float(np.max(np.abs(others[sample] - want) / np.maximum(1, want)))
    assert worst < 1e-9
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    result = {
        "device": name,
        "seconds": times,
        "median_crowd": float(1 + np.median(others)),
        "sample_error": worst,
    }
    print(json.dumps(result), flush=True)
    return result


if __name__ == "__main__":
    main()
