"""q for a million users, against the paper's own way and a packaged ZDD; the paper's size under a budget; real answers.

Bars: 1M users and the 10 commonest of 20,000 Zipf values under 1 s from a prepared index and under 5 s cold, 8
values under 100 ms prepared; at least 1,000 times multiply-and-absorb on the largest answer that finishes in
60 s; at the paper's size (700 users) p99 under 50 ms and never over the budget, nor for answers made to be hard.
Real data are used where they lie beside the project, and left out otherwise.
"""

from __future__ import annotations

import json
import lzma
import time
from collections.abc import Iterator
from itertools import combinations, islice
from pathlib import Path

import numpy as np

from benchmarks._timing import best
from incrowd.measures.release import (
    Budget,
    HolderIndex,
    PatternCounts,
    SuppressOptions,
    measure_q,
    suppress,
    verify,
    warm_up,
)
from incrowd.measures.release.definition import Component, count_with, multiply_and_absorb
from incrowd.measures.release.spec import Deadline

DATA = Path(__file__).parents[2] / "shared" / "data"


def zipf_pairs(
    users: int, values: int, listed: int, seed: int = 0, exponent: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Users who list values drawn by Zipf's law; column 0 users, column 1 values (0 = the commonest)."""
    draw = np.random.default_rng(seed)
    chance = 1 / np.arange(1, values + 1) ** exponent
    edges = np.cumsum(chance / chance.sum())
    what = np.searchsorted(edges, draw.random(users * listed)).astype(np.int32)
    return np.repeat(np.arange(users, dtype=np.int32), listed), what


def million() -> dict[str, object]:
    users, values = zipf_pairs(1_000_000, 20_000, 10)
    start = time.perf_counter()
    index = HolderIndex.from_pairs(users, values)
    prepared = time.perf_counter() - start
    report: dict[str, object] = {"pairs": len(users), "prepare_index_s": prepared}
    for count in (8, 10):
        chosen = list(range(count))
        seconds = best(lambda chosen=chosen: measure_q(index.patterns(chosen)))
        measured = measure_q(index.patterns(chosen))
        report[f"{count}_values"] = {
            "prepared_s": seconds,
            "n_digits": len(str(measured.n)),
            "q": float(measured.q),
            "lcv": measured.lcv,
            "p_min": measured.p_min,
            "method": str(measured.method),
        }
    some = values < 10
    start = time.perf_counter()
    measure_q(HolderIndex.from_pairs(users[some], values[some]))
    report["10_values_cold_s"] = time.perf_counter() - start
    return report


def against_multiplying() -> dict[str, float]:
    """The paper's way on growing answers of 8 common values, until one takes more than 60 s."""
    largest: dict[str, float] = {}
    for users in (20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 160):
        who, what = zipf_pairs(users, 8, 3, seed=1, exponent=0.5)
        holders = {int(v): who[what == v].tolist() for v in range(8)}
        clauses = [sum({1 << user for user in set(listed)}) for listed in holders.values()]
        start = time.perf_counter()
        terms = multiply_and_absorb(clauses)
        seconds = time.perf_counter() - start
        if seconds > 60:
            break
        ours = best(lambda h=holders: measure_q(h), times=10)
        assert terms is not None
        assert measure_q(holders).n == len(terms)
        largest = {
            "users": users,
            "terms": len(terms),
            "multiply_and_absorb_s": seconds,
            "measure_q_s": ours,
            "ratio": seconds / ours,
        }
    return largest


def against_packaged_diagram() -> dict[str, float]:
    """Our diagram against the same recursion on oxidd, users as single variables there as well."""
    who, what = zipf_pairs(60, 8, 3, seed=1, exponent=0.5)
    patterns = PatternCounts.from_holders({int(v): who[what == v].tolist() for v in range(8)})
    part = Component(patterns)
    ours = best(lambda: count_with("diagram", part, Deadline(60), 2**30))
    found = count_with("diagram", part, Deadline(60), 2**30)
    start = time.perf_counter()
    groups = oxidd_groups(patterns)
    theirs = time.perf_counter() - start
    assert found is not None
    assert found.groups == groups
    return {"ours_s": ours, "oxidd_s": theirs, "ratio": theirs / ours}


def oxidd_groups(patterns: PatternCounts) -> int:
    """Minimal groups by the same recursion on a packaged library, weighted at the end."""
    from oxidd.zbdd import ZBDDManager

    manager = ZBDDManager(4_000_000, 2_000_000, 1)
    manager.add_vars(len(patterns.weights))
    empty, base = manager.empty(), manager.base()
    clauses = empty
    for column in patterns.table.T:
        clause = base
        for i in np.flatnonzero(column).tolist():
            clause = clause.change(i)
        clauses |= clause
    weights = patterns.weights.tolist()
    found: dict[object, object] = {}
    sums: dict[object, int] = {empty: 0, base: 1}

    def hitting(f):
        if f == empty:
            return base
        if (f & base) != empty:
            return empty
        if f not in found:
            x = f.node_var()
            low = f.subset0(x)
            none = hitting(low | f.subset1(x))
            found[f] = none | (hitting(low) - none).change(x)
        return found[f]

    def weigh(f):
        if f not in sums:
            x = f.node_var()
            sums[f] = weigh(f.subset0(x)) + weights[x] * weigh(f.subset1(x))
        return sums[f]

    return weigh(hitting(clauses))


def reach(seconds: float = 1.0) -> dict[str, object]:
    """The largest part counted exactly in the time: dense crowds, and sparse ones with many values."""
    draw = np.random.default_rng(3)
    dense = sparse = 0
    for k in range(8, 17):
        table = draw.random((100_000, k)) < 0.3
        patterns = PatternCounts.from_holders({i: np.flatnonzero(table[:, i]) for i in range(k)})
        if best(lambda p=patterns: count_with("sum", Component(p), Deadline(60), 2**30), 1) > seconds:
            break
        dense = k
    for k in range(20, 401, 20):
        counts = {1 << i: 20 for i in range(k)}
        for i in range(k - 1):  # neighbours and neighbours' neighbours share users
            counts[1 << i | 1 << i + 1] = 3
            counts[(1 << i | 1 << min(i + 3, k - 1))] = 2
        patterns = PatternCounts.from_counts(counts)
        if best(lambda p=patterns: count_with("sweep", Component(p), Deadline(60), 2**30), 1) > seconds:
            break
        sparse = k
    return {"seconds": seconds, "dense_values": dense, "sparse_values": sparse}


def paper_size(queries: int = 3000, limit: float = 0.04) -> dict[str, object]:
    """700 users and their favourites, any class, all values or those with ten holders: time under a budget.

    Wall time is what a client waits; processor time is what it would be on a machine that does nothing else.
    """
    warm_up()
    draw = np.random.default_rng(5)
    measured, thinned = Stopwatch(), Stopwatch()
    methods: dict[str, int] = {}
    over, really, answered = 0, 0, 0
    for query in range(queries):
        values, listed = int(draw.integers(50, 3000)), int(draw.integers(2, 12))
        who, what = zipf_pairs(700, values, listed, query, float(draw.choice([0.8, 1.0, 1.2])))
        few = who < draw.integers(5, 701)
        index = HolderIndex.from_pairs(who[few], what[few])
        common = [value for value, users in zip(index.values, index.supports, strict=True) if users >= 10]
        asked = index.patterns(common if query % 2 else None)
        with measured:
            found = measure_q(asked, budget=Budget(seconds=limit))
        over += measured.runs[-1][0] > limit
        really += measured.runs[-1][1] > limit
        methods[str(found.method)] = methods.get(str(found.method), 0) + 1
        with thinned:
            released = suppress(index, 10, options=SuppressOptions(budget=Budget(seconds=10 * limit)))
        answered += not released.reason.startswith("over_budget")
    return {
        "queries": queries,
        "measure": {
            "budget_s": limit,
            "over_budget_wall": over,
            "over_budget_processor": really,
            "methods": methods,
            **measured.percentiles(),
        },
        "suppress": {"budget_s": 10 * limit, "answered": answered / queries, **thinned.percentiles()},
    }


def hostile(limits: tuple[float, ...] = (0.04, 0.2, 1.0)) -> dict[str, object]:
    """Answers made to be hard, each under several budgets: none may pass one."""
    warm_up()
    report: dict[str, object] = {}
    shapes = dict(hard_answers())
    for limit in limits:
        watch = Stopwatch()
        for answer in shapes.values():
            with watch:
                measure_q(answer, budget=Budget(seconds=limit))
        wall, processor = np.array(watch.runs).T
        report[f"budget_{limit:g}_s"] = {
            "answers": len(shapes),
            "over_budget_wall": int((wall > limit).sum()),
            "over_budget_processor": int((processor > limit).sum()),
            "longest_wall_s": float(wall.max()),
            "longest_processor_s": float(processor.max()),
            "longest_processor": list(shapes)[int(processor.argmax())],
        }
    return report


def hard_answers() -> Iterator[tuple[str, PatternCounts]]:
    """Long chains and rings, grids, dense crowds, all subsets of a size, very many values, very many people."""
    draw = np.random.default_rng(0)
    for k in (50, 300, 1000, 3000):
        place = np.arange(k)
        ring = np.zeros((k, k), np.bool_)
        ring[place, place] = ring[place, (place + 1) % k] = True
        yield f"ring of {k}", grouped(ring)
        yield f"chain of {k}", grouped(np.vstack([ring[:-1], np.eye(k, dtype=np.bool_)]))
        yield f"wide ring of {k}", grouped(ring | np.roll(ring, 7, axis=1))
    for side in (8, 16, 40):
        cells = np.arange(side * side).reshape(side, side)
        below, beside = (cells[1:], cells[:-1]), (cells[:, 1:], cells[:, :-1])
        pairs = np.hstack([np.reshape(both, (2, -1)) for both in (below, beside)])
        grid = np.zeros((pairs.shape[1], side * side), np.bool_)
        grid[np.arange(pairs.shape[1]), pairs] = True
        yield f"grid of {side} x {side}", grouped(grid)
    for k in (8, 10, 12, 14, 16, 20, 30, 60, 120):
        for share in (0.05, 0.2, 0.5, 0.9):
            for users in (100, 700, 5000):
                yield (
                    f"{k} values, {users} people, {share:.0%} each",
                    grouped(draw.random((users, k)) < share),
                )
    for users, size in ((16, 8), (30, 3), (30, 15), (60, 2), (200, 2)):
        some = list(islice(combinations(range(users), size), 3000))
        table = np.zeros((users, len(some)), np.bool_)
        table[np.ravel(some), np.repeat(np.arange(len(some)), size)] = True
        yield f"subsets of {size} of {users}", grouped(table)
    for values, users in ((1000, 700), (5000, 700), (10_000, 700), (5000, 5000)):
        table = np.zeros((users, values), np.bool_)
        table[draw.integers(0, users, 3 * values), np.repeat(np.arange(values), 3)] = True
        yield f"{values} values of 3 of {users} people", grouped(table)
    yield "everything but one", grouped(~np.eye(700, dtype=np.bool_))
    yield "each a part of the next", grouped(np.tri(700, dtype=np.bool_))
    blocks = np.kron(np.eye(150, dtype=np.bool_), np.ones((45, 10), np.bool_))
    yield "150 parts of ten", grouped(blocks & (draw.random(blocks.shape) < 0.3))
    huge = {int(mask): int(people) for mask, people in draw.integers(1, (2**14, 10**14), (3000, 2))}
    yield "14 values, 10^17 people", PatternCounts.from_counts(huge)


def grouped(table: np.ndarray) -> PatternCounts:
    """People by values, as patterns; values that nobody lists are left out."""
    users, values = np.nonzero(table)
    return HolderIndex.from_pairs(users, values).patterns()


class Stopwatch:
    """Wall and processor time of each of many runs."""

    def __init__(self) -> None:
        self.runs: list[tuple[float, float]] = []

    def __enter__(self) -> None:
        self.start = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.runs.append((time.perf_counter() - self.start[0], time.process_time() - self.start[1]))

    def percentiles(self) -> dict[str, float]:
        rows = np.array(self.runs) * 1000
        return {
            f"{kind}_p{p}_ms": float(np.percentile(rows[:, i], p))
            for i, kind in enumerate(("wall", "processor"))
            for p in (50, 99, 100)
        }


def deezer(seconds: float = 2.0) -> dict[str, object]:
    """One country, every genre: measured and thinned out, each within its budget."""
    report: dict[str, object] = {}
    for path in sorted((DATA / "deezer_genres").glob("*_genres.json.xz")):
        with lzma.open(path, "rt") as file:
            lists = json.load(file)
        users = np.repeat(np.arange(len(lists)), [len(genres) for genres in lists.values()])
        values = np.array([genre for genres in lists.values() for genre in genres])
        index = HolderIndex.from_pairs(users, values)
        holders = {value: index.holders(i).tolist() for i, value in enumerate(index.values)}
        budget = Budget(seconds=seconds)
        found = measure_q(index, budget=budget)
        country: dict[str, object] = {
            "users": found.users,
            "values": found.values,
            "method": str(found.method),
            "q": None if found.q is None else float(found.q),
            "seconds": found.seconds,
            "budget_s": seconds,
        }
        for threshold in (10, 27):
            thinned = suppress(index, threshold, options=SuppressOptions(budget=budget))
            country[f"threshold_{threshold}"] = {
                "released": len(thinned.released),
                "method": str(thinned.method),
                "seconds": thinned.seconds,
                "verified": verify(holders, thinned.certificate).holds,
            }
        country["random_subclasses"] = subclasses(index, seconds)
        report[path.name[:2]] = country
    return report


def subclasses(index: HolderIndex, seconds: float, each: int = 10) -> list[dict[str, object]]:
    """Classes of people drawn at random from one country: every answer within its budget, and how it was found."""
    draw, rows = np.random.default_rng(11), []
    for size in (50, 200, 1000, 5000, 20000):
        watch, thinning, methods, released = Stopwatch(), Stopwatch(), {}, []
        for _ in range(each):
            within = np.zeros(index.users, dtype=np.bool_)
            within[draw.choice(index.users, size, replace=False)] = True
            answer = index.patterns(within=within)
            with watch:
                found = measure_q(answer, budget=Budget(seconds=seconds))
            methods[str(found.method)] = methods.get(str(found.method), 0) + 1
            with thinning:
                thinned = suppress(answer, 10, options=SuppressOptions(budget=Budget(seconds=seconds)))
            assert not thinned.reason.startswith("over_budget")
            released.append(len(thinned.released))
        rows.append(
            {
                "people": size,
                "answers": each,
                "methods": methods,
                "measure_longest_s": max(run[0] for run in watch.runs),
                "suppress_longest_s": max(run[0] for run in thinning.runs),
                "budget_s": seconds,
                "released_median_at_10": float(np.median(released)),
            }
        )
    return rows


def dualization() -> dict[str, object]:
    """Published instances: n must equal the number of listed minimal hitting sets, by each solver that gets through."""
    folder = DATA / "hypergraph_dualization"
    answers = [(rows_of(folder, "mhs2-random30-in"), groups_of(folder, "mhs2-random30-out"))]
    instances = [
        (
            {
                i: [j for j, cell in enumerate(row[:-1]) if cell == "1"]
                for i, row in enumerate(rows)
                if row[-1] == "x"
            },
            n,
        )
        for matrices, counts in answers
        for rows, n in zip(matrices, counts, strict=True)
    ]
    for size, expected in ((1, 30), (2, 435), (3, 4060)):
        with lzma.open(folder / f"TH-{size}-30.dat.xz", "rt") as file:
            instances.append(
                ({i: line.split() for i, line in enumerate(file.read().strip().splitlines())}, expected)
            )
    start = time.perf_counter()
    right = sum(measure_q(holders).n == n for holders, n in instances)
    return {"instances": len(instances), "right": right, "seconds": time.perf_counter() - start}


def rows_of(folder: Path, name: str) -> list[list[list[str]]]:
    with lzma.open(folder / f"{name}.txt.xz", "rt") as file:
        lines = [line.split() for line in file if line.strip()]
    matrices, place = [], 0
    while place < len(lines):
        size = int(lines[place][0])
        matrices.append(lines[place + 1 : place + 1 + size])
        place += 1 + size
    return matrices


def groups_of(folder: Path, name: str) -> list[int]:
    counts = [0]
    with lzma.open(folder / f"{name}.txt.xz", "rt") as file:
        for line in file:
            if line.split() == ["0"]:
                counts.append(0)
            elif line.strip():
                counts[-1] += 1
    return counts[:-1]


def main() -> dict[str, object]:
    warm_up()
    report: dict[str, object] = {
        "million_users": million(),
        "against_multiply_and_absorb": against_multiplying(),
        "reach": reach(),
        "paper_size": paper_size(),
        "hostile": hostile(),
    }
    try:
        report["against_oxidd"] = against_packaged_diagram()
    except ImportError:
        report["against_oxidd"] = "oxidd is not installed"
    there = DATA.is_dir()
    report["deezer"] = deezer() if there else "data not there"
    report["hypergraph_dualization"] = dualization() if there else "data not there"
    return report


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
