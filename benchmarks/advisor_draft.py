"""How long a draft takes to check: the command as a person runs it, process start included.

``python -m benchmarks.advisor_draft [--crowd DIR]``: on a given crowd, or on a made-up one of 10,000 identities and
1M posts. The person with the most communities writes in the largest one: the most there is to compare.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RUNS = 7
DRAFT = (
    "I have been thinking about my debt and the loan again. Does anybody here know how people get out of that? "
    "What I write about otherwise is kettles, gardens and the long way to work, as you know."
)


def main() -> dict[str, Any]:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--crowd", type=Path)
    chosen = arguments.parse_args()
    if chosen.crowd is not None:
        return measure(chosen.crowd)
    with tempfile.TemporaryDirectory() as scratch:
        return measure(make(Path(scratch) / "crowd"))


def make(folder: Path) -> Path:
    from incrowd import synthetic

    posts = synthetic.posts(
        users=6_000, communities=12, identities=10_000, posts=1_000_000, fewest_posts=10, seed=1
    )
    posts.crowd(folder)
    return folder


def measure(folder: Path) -> dict[str, Any]:
    user, community, facts = busiest(folder)
    command = [
        sys.executable, "-c", "from incrowd.cli import main; main()",
        "draft", str(folder), "--user", user, "--community", community, DRAFT,
    ]  # fmt: skip
    first, _ = seconds(command)
    again, cpu = (sorted(part) for part in zip(*(seconds(command) for _ in range(RUNS)), strict=True))
    return {
        **facts,
        "first_s": first,
        "again_best_s": again[0],
        "again_median_s": again[len(again) // 2],
        "again_cpu_best_s": cpu[0],
    }


def busiest(folder: Path) -> tuple[str, str, dict[str, Any]]:
    """Return the person with the most communities and the largest community they write in."""
    import polars as pl

    from incrowd.crowd import Crowd

    crowd = Crowd(folder)
    identities = crowd.posts().group_by("user", "community").len().collect()
    people = identities.group_by("user").agg(places=pl.len(), posts=pl.col("len").sum())
    user = people.sort("places", "posts", "user", descending=True)["user"][0]
    theirs = identities.filter(pl.col("user") == user)["community"].to_list()
    community = next(name for name in crowd.communities()["community"] if name in theirs)
    facts = {
        "identities": identities.height,
        "posts": crowd.info().to_dict()["posts"],
        "communities": len(theirs),
    }
    return user, community, facts


def seconds(command: list[str]) -> tuple[float, float]:
    """Return the time a command takes, on the wall and of all cores: on a busy machine only the latter says much."""
    start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    then = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = then.ru_utime + then.ru_stime - used.ru_utime - used.ru_stime
    return time.perf_counter() - start, cpu


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name:20} {value}")
