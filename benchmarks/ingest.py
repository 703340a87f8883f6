"""Reading, cleaning and counting comments on one core, beside plain `re` + Counter and CountVectorizer.

All read the same compressed JSON lines and count tokens for each (author, subreddit); how far the counts agree is
reported. Each runs in a process of its own, pinned to one core. Ratios are of CPU seconds, which a busy machine
distorts less than the clock. CountVectorizer gets its tokens from the tuned plain-Python steps;
`counting_alone` is its time when reading and cleaning cost nothing, beside ours with everything in it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from backports import zstd

THREADS = ("POLARS_MAX", "NUMBA_NUM", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM")
ONE_THREAD = {f"{name}_THREADS": "1" for name in THREADS}
ROOT = Path(__file__).parent.parent
DATA = ROOT / "build" / "bench" / "data"
BUDGET = 2**30
SIZES = (100_000, 1_000_000, 5_000_000)
REPEATS = 3

Totals = dict[str, int]


def incrowd(path: Path) -> Callable[[], Totals]:
    """Our reader, our counts."""
    from incrowd.crowd.readers import ReadOptions, detect
    from incrowd.text import count_tokens

    rows = (batch.rows for batch in detect(path).read(path, ReadOptions(batch_bytes=2**23)))
    counted = count_tokens(rows, memory=BUDGET)
    return lambda: dict(zip(counted.vocabulary, counted.matrix.sum(axis=0).A1.tolist(), strict=True))


def plain_re(path: Path) -> Callable[[], Totals]:
    """Comment by comment: json, one `re` pattern a step, a Counter for each identity."""
    from benchmarks.plain_text_steps import plain

    return counters(path, plain)


def tuned_re(path: Path) -> Callable[[], Totals]:
    """The same with short cuts."""
    from benchmarks.plain_text_steps import tuned

    return counters(path, tuned)


def counters(path: Path, tokens: Callable[[str], list[str]]) -> Callable[[], Totals]:
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for comment in comments(path):
        counts[comment["author"], comment["subreddit"]].update(tokens(comment["body"]))

    def totals() -> Totals:
        every: Counter[str] = Counter()
        for own in counts.values():
            every.update(own)
        return dict(every)

    return totals


def count_vectorizer(path: Path) -> Callable[[], Totals]:
    """The same tokens into scikit-learn's CountVectorizer, then summed by identity."""
    import numpy as np
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import CountVectorizer

    from benchmarks.plain_text_steps import tuned

    identities: dict[tuple[str, str], int] = {}
    rows: list[int] = []

    def bodies() -> Iterator[str]:
        for comment in comments(path):
            rows.append(identities.setdefault((comment["author"], comment["subreddit"]), len(identities)))
            yield comment["body"]

    vectorizer = CountVectorizer(analyzer=tuned)
    each = vectorizer.fit_transform(bodies())
    owner = sp.csr_matrix((np.ones(len(rows), np.int64), (rows, range(len(rows)))))
    counts = owner @ each
    return lambda: dict(zip(vectorizer.get_feature_names_out(), counts.sum(axis=0).A1.tolist(), strict=True))


def counting_alone(path: Path) -> float:
    """Return the CPU seconds of CountVectorizer when reading and cleaning cost nothing."""
    from sklearn.feature_extraction.text import CountVectorizer

    from benchmarks.plain_text_steps import tuned

    cleaned = [" ".join(tuned(comment["body"])) for comment in comments(path)]
    begin = time.process_time()
    CountVectorizer(token_pattern=r"\S+", lowercase=False).fit_transform(cleaned)
    return time.process_time() - begin


def comments(path: Path) -> Iterator[dict[str, Any]]:
    with zstd.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


WAYS = {way.__name__: way for way in (incrowd, plain_re, tuned_re, count_vectorizer)}


def measure(way: str, path: Path, totals_file: Path) -> dict[str, float]:
    """Run one way in this process."""
    if way == "counting_alone":
        return {"cpu_s": counting_alone(path)}
    if way == "incrowd":
        import polars as pl

        from incrowd.text import count_tokens

        count_tokens(pl.DataFrame({"user": ["a"], "community": ["b"], "text": ["load the kernels"]}))
    wall, cpu = time.perf_counter(), time.process_time()
    totals = WAYS[way](path)
    figures = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    figures["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    totals_file.write_text(json.dumps(totals()))
    return figures


def alone(way: str, rows: int, totals_file: Path) -> dict[str, float]:
    """Run one way in a process of its own, on one core."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.ingest",
        "--way",
        way,
        "--rows",
        str(rows),
        "--totals",
        str(totals_file),
    ]
    pinned = {"preexec_fn": lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False, **pinned
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def best(way: str, rows: int, totals_file: Path, repeats: int) -> dict[str, float]:
    return min((alone(way, rows, totals_file) for _ in range(repeats)), key=lambda figures: figures["cpu_s"])


def agreement(ours: Path, theirs: Path) -> float:
    """Return the share of tokens on which two ways agree."""
    a, b = Counter(json.loads(ours.read_text())), Counter(json.loads(theirs.read_text()))
    return (a & b).total() / max(a.total(), b.total())


def comments_file(rows: int) -> Path:
    from benchmarks import comments as making

    path = DATA / f"comments-{rows}.ndjson.zst"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        making.write(path, rows)
    return path


def compare(rows: int, repeats: int) -> dict[str, Any]:
    """Run every way on the same comments."""
    comments_file(rows)
    with tempfile.TemporaryDirectory() as folder:
        files = {way: Path(folder) / f"{way}.json" for way in WAYS}
        ways: dict[str, dict[str, float]] = {}
        for way, file in files.items():
            ways[way] = best(way, rows, file, repeats if way == "incrowd" else 1)
            print(f"   {way}: {ways[way]}", file=sys.stderr, flush=True)
        for way in list(WAYS)[1:]:
            ways[way]["agreement"] = agreement(files["incrowd"], files[way])
            ways[way]["times_slower"] = ways[way]["cpu_s"] / ways["incrowd"]["cpu_s"]
        ways["counting_alone"] = alone("counting_alone", rows, files["incrowd"])
    return {"rows": rows, **ways}


def growth(sizes: tuple[int, ...], repeats: int) -> dict[str, Any]:
    """Run ours on more and more comments."""
    report = {}
    for rows in sizes:
        comments_file(rows)
        with tempfile.NamedTemporaryFile() as totals:
            figures = best("incrowd", rows, Path(totals.name), repeats)
        figures["rows_per_cpu_s"] = rows / figures["cpu_s"]
        report[f"{rows:,}"] = figures
        print(f"   {rows:,}: {figures}", file=sys.stderr, flush=True)
    return report


def main() -> dict[str, Any] | None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="comments to compare on")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="comments to grow over")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--totals", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.way, comments_file(options.rows), options.totals)))
        return None
    report = {
        "compared": compare(options.rows, options.repeats),
        "growth": growth(options.sizes, options.repeats),
    }
    compared = report["compared"]
    report["bars"] = {
        "6x plain re": compared["plain_re"]["times_slower"] >= 6,
        "4x CountVectorizer": compared["count_vectorizer"]["times_slower"] >= 4,
        "memory within budget": all(f["peak_mib"] * 2**20 <= BUDGET for f in report["growth"].values()),
    }
    return report


if __name__ == "__main__":
    made = main()
    if made:
        print(json.dumps(made, indent=1))
