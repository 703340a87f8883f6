"""The GPU kernel: right first, then fast. Needs NumPy, SciPy, CuPy and a CUDA device.

    PYTHONPATH=src python benchmarks/gpu.py [--people 58091] [--tune] [--out gpu.json]

Checks every metric and question against the reference kernel, then times ball sizes at 21 radii for a crowd
of the paper's size (58,091 identities of about 1,800 distinct words) from host arrays to host counts, and
says which share of the chip's logarithm rate was reached. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from incrowd.distances import (
    Compute,
    ball_sizes,
    gpu,
    gpu_panels,
    histogram,
    mean_distance,
    nearest,
    pair_distances,
    pairwise,
    ranks,
    within_both,
)
from incrowd.distances.reference import METRICS
from incrowd.distances.tiles import TilePlan

WORDS = 60_000
RADII = np.linspace(0, 1, 21)
LOG_UNITS = (
    16  # logarithms each multiprocessor starts in a clock (CUDA programming guide, compute capability 9.0)
)


def zipf_crowd(xp, people: int, *, words: int = WORDS, mean_length: float = 3450, seed: int = 0):
    """Draw people from Zipf's law: most words from a common list, a quarter from one of 48 communities."""
    rng = xp.random.default_rng(seed)
    weights = (np.arange(words) + 3.7) ** -1.05
    rise = xp.asarray(np.cumsum(weights / weights.sum()))
    orders = xp.asarray(np.argsort(np.random.default_rng(seed).random((48, words)), axis=1).astype(np.int32))
    parts = []
    for start in range(0, people, 2048):
        count = min(2048, people - start)
        lengths = np.random.default_rng((seed, start)).lognormal(np.log(mean_length) - 0.32, 0.8, count)
        lengths = np.clip(lengths, 50, 40_000).astype(np.int64)
        ends = xp.asarray(np.cumsum(lengths))
        tokens = int(lengths.sum())
        who = xp.searchsorted(ends, xp.arange(tokens), side="right")
        word = xp.minimum(xp.searchsorted(rise, rng.random(tokens)), words - 1)
        word = xp.where(rng.random(tokens) < 0.25, orders[(who * 7 + start) % 48, word], word)
        key, times = xp.unique(who * words + word, return_counts=True)
        key, times = (part if xp is np else xp.asnumpy(part) for part in (key, times))
        row = key // words
        starts = np.searchsorted(row, np.arange(count + 1))
        values = times / lengths[row]
        parts.append(
            sparse.csr_matrix((values, (key % words).astype(np.int32), starts), shape=(count, words))
        )
    return sparse.vstack(parts, format="csr")


def awkward_crowd(people: int, words: int, seed: int) -> sparse.csr_matrix:
    """Duplicates, near-duplicates, single words, disjoint people, heavy tails."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.6 / (1 + np.arange(words) / 20.0), (people, words)).astype(float)
    counts *= rng.gamma(2.0, size=counts.shape)  # no two distances are equal by accident
    counts[1], counts[2] = counts[0], counts[0] + (np.arange(words) == 3)
    counts[3:9] = np.eye(words)[:6]
    counts[9] = counts[8] * 1e6 + counts[7]
    counts[counts.sum(axis=1) == 0, -1] = 1
    return sparse.csr_matrix(counts / counts.sum(axis=1, keepdims=True))


def answers(x, y, metric: str, compute: Compute) -> dict:
    """Ask everything."""
    radii = np.unique(np.concatenate([RADII, np.linspace(0.3, 1, 1001)]))
    pairs = np.stack([np.arange(0, x.shape[0], 3), np.arange(0, x.shape[0], 3) % y.shape[0]], axis=1)
    how = {"metric": metric, "compute": compute}
    found: dict = {"pair_distances": pair_distances(x, y, pairs, **how)}
    found["nearer"], found["ties"] = (getattr(ranks(x, y, pairs, **how), part) for part in ("nearer", "ties"))
    both = within_both(x, y, pairs, **how)
    found |= {part: getattr(both, part) for part in ("matching", "anonymity", "both")}
    for name, sides in (("xy", (x, y)), ("xx", (x, None))):
        found[f"pairwise {name}"] = pairwise(*sides, **how)
        found[f"nearest {name}"] = nearest(*sides, k=7, **how).distances
        summary = mean_distance(*sides, **how)
        found[f"summary {name}"] = np.array([summary.mean, summary.minimum, summary.maximum])
        for include in (True, False):
            found[f"balls {name} {include}"] = ball_sizes(*sides, radii=radii, include_self=include, **how)
            found[f"bins {name} {include}"] = histogram(*sides, edges=RADII, include_self=include, **how)
    return found


def allowed(name: str) -> float:
    """Largest difference from the reference."""
    if name.startswith(("pairwise", "summary")):
        return gpu.TOLERANCE
    return 1e-12 if name.startswith(("nearest", "pair_distances")) else 0.0


def check() -> dict:
    """Compare with the reference in one tile and in many."""
    x, y = awkward_crowd(200, 400, 1), awkward_crowd(140, 400, 2)
    y = sparse.vstack([x[:40], y[40:]], format="csr")
    report: dict = {"largest_error": {}, "failures": []}
    for metric in METRICS:
        known = answers(x, y, metric, Compute(kernel="reference"))
        for side in (77, 4096):
            found = answers(x, y, metric, Compute(kernel="gpu", tile=side))
            for name, value in found.items():
                error = float(np.abs(value - known[name]).max())
                if not error <= allowed(name):
                    wrong = int((np.abs(value - known[name]) > allowed(name)).sum())
                    report["failures"].append([metric, side, name, error, f"{wrong} of {value.size}"])
                if name.startswith("pairwise"):
                    report["largest_error"][f"{metric} {name}"] = error
            own = found["pairwise xx"]
            if not ((own == own.T).all() and (np.diag(own) == 0).all() and own[0, 1] == 0):
                report["failures"].append([metric, side, "symmetry or identity"])
        wordy = np.random.default_rng(3).dirichlet(np.full(1500, 0.3), 150)
        known = pairwise(wordy, metric=metric, compute=Compute(kernel="reference"))
        error = np.abs(pairwise(wordy, metric=metric, compute=Compute(kernel="gpu")) - known).max()
        report["largest_error"][f"{metric} dense"] = float(error)
    return report


def independent_sizes(x: sparse.csr_matrix, row: int, radii) -> np.ndarray:
    """One row's Jensen-Shannon ball sizes by NumPy and SciPy alone, in double precision."""
    p = np.zeros(x.shape[1])
    at = slice(x.indptr[row], x.indptr[row + 1])
    p[x.indices[at]] = x.data[at]
    divergences = np.empty(x.shape[0])
    for start in range(0, x.shape[0], 8192):
        part = x[start : start + 8192]
        q, other = part.data, p[part.indices]
        s = q + other
        terms = s * np.log2(s) - q * np.log2(q) - other * np.log2(np.where(other > 0, other, 1))
        terms = sparse.csr_matrix((terms, part.indices, part.indptr), shape=part.shape)
        divergences[start : start + 8192] = 1 - np.asarray(terms.sum(axis=1)).ravel() / 2
    d = np.sqrt(np.clip(divergences, 0, 1))
    d[row] = 0
    return d


def clock_ghz(cp) -> float:
    return cp.cuda.Device().attributes["ClockRate"] / 1e6


def stages(cp, x, side: int, repeats: int = 5) -> dict:
    """Time one tile's kernels by device events, away from the diagonal."""
    kernel = gpu.GpuKernel()
    state = kernel.prepare(x, None, METRICS["jensen-shannon"])
    tile = list(TilePlan(rows=2 * side, columns=2 * side, symmetric=True, height=side, width=side))[1]
    run = gpu_panels.kernels("jensen-shannon")
    a, b = state.panels.get(False, tile.rows), state.panels.get(False, tile.columns)
    out = cp.empty((a.padded, b.padded), dtype=np.float32)
    grid, edges = (b.padded // gpu_panels.TILE, a.padded // gpu_panels.TILE), gpu.Edges(cp.asarray(RADII))
    from incrowd.distances.gpu import count_between

    steps = {
        "dense": lambda: gpu._add_dense(state, run, a, b, grid, False, out),
        "listed": lambda: gpu._add_listed(state, run, a, b, grid, False, out),
        "finish": lambda: gpu._finish(state, run, a, b, False, edges, out),
        "count": lambda: count_between("jensen-shannon", out, edges.values),
    }
    times = {}
    for name, step in steps.items():
        best = np.inf
        for _ in range(repeats):
            if name in ("listed", "finish"):  # these work in place
                steps["dense"]()
                if name == "finish":
                    steps["listed"]()
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            begin.record()
            step()
            end.record()
            end.synchronize()
            best = min(best, cp.cuda.get_elapsed_time(begin, end) / 1e3)
        times[name] = best
    pairs = len(tile.rows) * len(tile.columns)
    terms = len(a.dense) * pairs
    shared = _listed_terms(cp, a, b, state.vocabulary.listed)
    limit = LOG_UNITS * cp.cuda.Device().attributes["MultiProcessorCount"] * clock_ghz(cp) * 1e9
    return {
        "side": side,
        "dense_words": len(a.dense),
        "listed_words": state.vocabulary.listed,
        "listed_terms_a_pair": shared / pairs,
        "seconds": times,
        "dense_terms_per_second": terms / times["dense"],
        "listed_terms_per_second": shared / times["listed"],
        "log2_limit_per_second": limit,
        "dense_share_of_log2_limit": terms / times["dense"] / limit,
        "pairs_per_second": pairs / sum(times.values()),
        "panel_bytes": a.nbytes,
    }


def _listed_terms(cp, a, b, listed: int) -> int:
    """How many shared words the posting lists of two panels hold, over all pairs."""
    if not listed:
        return 0
    lists = [cp.diff(side.starts.astype(np.int64)).reshape(-1, listed).sum(axis=0) for side in (a, b)]
    return int((lists[0] * lists[1]).sum())


def timed(x, radii=RADII, **options) -> tuple[float, np.ndarray]:
    begin = time.perf_counter()
    sizes = ball_sizes(x, radii=radii, compute=Compute(kernel="gpu", **options))
    return time.perf_counter() - begin, sizes


def preparation(cp, x) -> dict:
    """Time what happens before the first distance: checks on the host, word counts, panels."""
    from incrowd.distances.reference import as_rows, check_rows

    times, begin = {}, time.perf_counter()
    rows = as_rows(x)
    check_rows(rows, METRICS["jensen-shannon"])
    times["checks"] = time.perf_counter() - begin
    begin = time.perf_counter()
    state = gpu.GpuKernel().prepare(rows, None, METRICS["jensen-shannon"])
    times["word counts"] = time.perf_counter() - begin
    begin = time.perf_counter()
    for start in range(0, x.shape[0], 2048):
        state.panels.get(False, range(start, min(start + 2048, x.shape[0])))
    times["panels, one thread"] = time.perf_counter() - begin
    return times


def growth(cp, x) -> list[dict]:
    """Pairs a second and memory at growing sizes."""
    found = []
    for people in sorted({size for size in (2048, 8192, 20_000) if size < x.shape[0]} | {x.shape[0]}):
        part = x[:people]
        free = cp.cuda.Device().mem_info[0]
        least = [free]

        def watch(*_, least=least):
            least.append(cp.cuda.Device().mem_info[0])

        seconds = min(timed(part, progress=watch)[0] for _ in range(2))
        pairs = people * (people + 1) // 2
        found.append(
            {
                "people": people,
                "seconds": seconds,
                "pairs_per_second": pairs / seconds,
                "device_bytes": free - min(least),
                "host_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    return found


def tune(cp, x) -> list[dict]:
    """Try other sizes of the moving parts."""
    found = []
    part = x[:16384]

    def note(**what):
        gpu_panels.kernels.cache_clear()
        found.append(what | {k: v for k, v in stages(cp, part, 8192, 3).items() if k != "side"})
        print(json.dumps(what), json.dumps(found[-1]["seconds"]), file=sys.stderr, flush=True)

    for queue in (384, 512, 768, 1024):
        gpu_panels.QUEUE = queue
        note(queue=queue)
    gpu_panels.QUEUE = 512
    for share in (0.1, 0.2, 0.25, 0.3, 0.4, 0.5):
        gpu.split_vocabulary = lambda *a, share=share: gpu_panels.split_vocabulary(*a, dense_from=share)  # type: ignore[attr-defined]
        note(dense_from=share)
    gpu.split_vocabulary = gpu_panels.split_vocabulary  # type: ignore[attr-defined]
    gpu_panels.kernels.cache_clear()
    return found


def main() -> None:
    """Check, time, print."""
    import cupy as cp

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--people", type=int, default=58_091)
    parser.add_argument("--tune", action="store_true", help="also try other sizes of the moving parts")
    parser.add_argument("--out", type=Path, help="write the JSON here, too")
    options = parser.parse_args()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    report: dict = {"device": name, "people": options.people, "radii": len(RADII)}

    def done(stage: str) -> None:
        print(f"{stage}: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)

    begin = time.perf_counter()
    x = zipf_crowd(cp, options.people)
    cp.get_default_memory_pool().free_all_blocks()
    report |= {"entries": int(x.nnz), "distinct_words": x.nnz / options.people}
    done("crowd made")
    report["first_run_seconds"] = timed(x)[0]  # compiles what CuPy has not kept on disk
    done("first run")
    report |= check()
    done(f"checked, {len(report['failures'])} failures")
    print(json.dumps(report), file=sys.stderr, flush=True)
    report["pairs"] = options.people * (options.people + 1) // 2
    runs = []
    for count, radii in ((21, RADII), (1001, np.linspace(0, 1, 1001))):
        for side in (None, None, 4096, 8192):
            seconds, sizes = timed(x, radii, tile=side, memory=2**30 if side is None else 2**33)
            runs.append({"radii": count, "tile": side, "seconds": seconds})
            done(f"{count} radii, tiles of {side}: {seconds:.2f} s")
    report["runs"] = runs
    sizes = timed(x)[1]
    rows = np.random.default_rng(5).choice(options.people, 3, replace=False)
    off = 0
    for row in rows:
        d = independent_sizes(x, row, RADII)
        off += int((np.searchsorted(np.sort(d), RADII, side="right") != sizes[row]).sum())
    report["rows_checked_independently"] = {
        "rows": len(rows),
        "counts": len(rows) * len(RADII),
        "different": off,
    }
    done("verified")
    report["preparation"] = preparation(cp, x)
    report["stages"] = [stages(cp, x, side) for side in (2048, 8192) if 2 * side <= options.people]
    report["growth"] = growth(cp, x)
    done("stages")
    if options.tune:
        report["tuning"] = tune(cp, x)
    text = json.dumps(report, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
