"""How the cost of one person's answer grows with the crowd: a forum of 10^4, 10^5 and 10^6 people, 30 posts each.

    python -m benchmarks linear
    python benchmarks/linear.py [--people 10000 100000 1000000] [--memory 4GiB] [--work DIR]

One community; everybody wrote 30 posts of 25 words, English function words and made-up ones, some of them favourites of
their own. The forum is written as Parquet in parts and imported as a provider would; that is not part of the bar. Then
`incrowd assess` runs for one member in a process of its own: with an empty cache, again, and for another member. Wall
and processor time are of the whole process tree; memory is the highest sum of the resident memory of its processes,
looked at twenty times a second, and no less than what the system recorded for the largest of them.

Needs about 12 GB of disk for 10^6 people (under `--work`, a temporary folder otherwise), taken away at the end; with
`--work` the crowds stay, and a second run does not make them again.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from incrowd.crowd.synthetic.words import FUNCTION_WORDS, made_up_words

POSTS, WORDS = 30, 25
FAVOURITES = 60
"""Words somebody comes back to."""
FAVOURED = 0.15
"""How many of the words come from there."""
FUNCTION = 0.45
VOCABULARY = 60_000
TABLE = 2**20
"""Places of the table that words are drawn from: a word has as many as it is frequent."""
AT_ONCE = 10_000
PEOPLE_IN_FILE = 50_000
COMMUNITY = "forum"
SIZES = (10_000, 100_000, 1_000_000)
INCROWD = (sys.executable, "-c", "from incrowd.cli import main; main()")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Return what one answer costs, by the number of people."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, nargs="+", default=SIZES)
    parser.add_argument("--memory", default="4GiB", help="given to assess")
    parser.add_argument("--work", type=Path, help="keeps the crowds")
    chosen = parser.parse_args(arguments if arguments is not None else sys.argv[1:])
    report = {}
    for people in chosen.people:
        with tempfile.TemporaryDirectory() as scratch:
            report[f"{people:,}"] = one_size(people, (chosen.work or Path(scratch)), chosen.memory)
        print(table(report), flush=True)
    return report


def one_size(people: int, work: Path, memory: str) -> dict[str, Any]:
    """Make the forum unless it is there, and ask for one member."""
    crowd = work / f"forum-{people}"
    made = {} if crowd.exists() else make(people, work, crowd)
    shutil.rmtree(crowd / "cache", ignore_errors=True)

    def ask(member: int) -> dict[str, float]:
        return measured("assess", str(crowd), "--user", name(member), "--memory", memory, "--json")

    return {
        **made,
        "first": ask(people // 3),
        "again": ask(people // 3),
        "somebody else": ask(people // 2),
        "cache_mib": sum(path.stat().st_size for path in (crowd / "cache").rglob("*") if path.is_file())
        / 2**20,
    }


def table(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    lines = ["| people | | wall | processor | memory |", "|---:|---|---:|---:|---:|"]
    for people, found in report.items():
        for what in ("first", "again", "somebody else"):
            one = found[what]
            cells = f"{one['wall_s']:,.1f} s | {one['cpu_s']:,.1f} s | {one['peak_mib']:,.0f} MiB"
            lines.append(f"| {people} | {what} | {cells} |")
    return "\n".join(lines)


# The forum


def name(member: int) -> str:
    """Return what somebody is called."""
    return f"member{member}"


def make(people: int, work: Path, crowd: Path) -> dict[str, Any]:
    """Write the posts as Parquet and import them."""
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        begun = time.perf_counter()
        files = list(write(people, Path(scratch)))
        written = time.perf_counter() - begun
        unfinished = work / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        imported = measured("ingest", *map(str, files), "--crowd", str(unfinished), "--yes", "--json")
    unfinished.rename(crowd)
    return {"written_s": written, "import": imported}


def write(people: int, folder: Path, seed: int = 0) -> Iterator[Path]:
    """Write everybody's posts, so many people to a file."""
    for first in range(0, people, PEOPLE_IN_FILE):
        path = folder / f"posts-{first:07d}.parquet"
        last = min(first + PEOPLE_IN_FILE, people)
        with pq.ParquetWriter(path, SCHEMA, compression="zstd") as file:
            for start in range(first, last, AT_ONCE):
                file.write_table(posts(start, min(start + AT_ONCE, last), seed))
        yield path


SCHEMA = pa.schema(
    [("user", pa.string()), ("community", pa.string()), ("time", pa.int64()), ("text", pa.string())]
)


def posts(first: int, last: int, seed: int = 0) -> pa.Table:
    """Make up the posts of some people; the same people write the same, however many others there are."""
    rng = np.random.default_rng([seed, first, last])
    people, shape = last - first, (last - first, POSTS * WORDS)
    vocabulary, drawn = words()
    number = drawn[rng.integers(0, TABLE, shape)]
    liked = np.take_along_axis(
        drawn[rng.integers(0, TABLE, (people, FAVOURITES))], rng.integers(0, FAVOURITES, shape), axis=1
    )
    number = np.where(rng.random(shape, np.float32) < FAVOURED, liked, number)
    said = vocabulary.take(pa.array(number.ravel()))
    lists = pa.ListArray.from_arrays(np.arange(0, number.size + 1, WORDS, dtype=np.int32), said)
    times = 1_600_000_000 + rng.integers(0, 3 * 365 * 86_400, people * POSTS)
    names = pa.array([name(member) for member in range(first, last)])
    return pa.table(
        {
            "user": names.take(pa.array(np.repeat(np.arange(people), POSTS))),
            "community": pa.array([COMMUNITY] * (people * POSTS)),
            "time": pa.array(times),
            "text": pc.binary_join(lists, " "),
        },
        schema=SCHEMA,
    )


def words() -> tuple[pa.Array, Any]:
    """Return all words, and the table they are drawn from: both kinds by Zipf's law."""
    vocabulary = pa.array([*FUNCTION_WORDS, *made_up_words(VOCABULARY).to_list()])
    weights = [1 / np.arange(2, 2 + size) for size in (len(FUNCTION_WORDS), VOCABULARY)]
    share = np.concatenate(
        [part / part.sum() * of for part, of in zip(weights, (FUNCTION, 1 - FUNCTION), strict=True)]
    )
    ends = np.round(np.cumsum(share) * TABLE).astype(np.int64)
    return vocabulary, np.repeat(np.arange(len(share), dtype=np.int32), np.diff(ends, prepend=0))


# The clock


def measured(*command: str) -> dict[str, float]:
    """Run a command of incrowd; return seconds, seconds of processor, and the memory of its whole process tree."""
    begun, used = time.perf_counter(), _processor()
    with tempfile.TemporaryFile() as errors:
        running = subprocess.Popen([*INCROWD, *command], stdout=subprocess.DEVNULL, stderr=errors)
        peak = 0
        while running.poll() is None:
            peak = max(peak, _resident(running.pid))
            time.sleep(0.05)
        if running.returncode not in (0, 1):
            errors.seek(0)
            sys.exit(
                f"incrowd {command[0]} ended with {running.returncode}: {errors.read().decode()[-2000:]}"
            )
    return {
        "wall_s": time.perf_counter() - begun,
        "cpu_s": _processor() - used,
        "peak_mib": peak / 2**20,
    }


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _resident(pid: int) -> int:
    """Return the resident memory of a process and all below it; the highest ever of the process itself."""
    try:
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        own = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, StopIteration):
        return 0
    return own + sum(_resident(int(child)) for child in children)


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
