"""From an export of 5,000 posts to the report, with no crowd, cold: a new process for every run.

python -m benchmarks export
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from incrowd import default_card
from incrowd.cards.laws import Community

POSTS, RUNS = 5_000, 3
COMMAND = "from incrowd.cli import main; main()"


def write_export(path: Path, posts: int = POSTS) -> None:
    """Make up one prolific person, who uses words as often as people on Reddit do."""
    community = Community.of(default_card(), "Reddit")
    rng = np.random.default_rng(0)
    words = rng.choice(np.array(community.words), (posts, 30), p=community.base)
    with path.open("w", encoding="utf-8") as file:
        for number, said in enumerate(words):
            line = {"author": "me", "subreddit": "x", "created_utc": 1_500_000_000 + 7_200 * number}
            file.write(json.dumps(line | {"body": " ".join(said.tolist())}) + "\n")


def main() -> dict[str, Any]:
    """Return wall and processor seconds of the quickest run."""
    with tempfile.TemporaryDirectory() as folder:
        export, page = Path(folder) / "export.jsonl", Path(folder) / "report.html"
        write_export(export)
        runs = []
        for _ in range(RUNS):
            before, start = os.times(), time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", COMMAND, "assess", str(export), "--html", str(page), "--json"],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            after = os.times()
            used = after.children_user + after.children_system - before.children_user - before.children_system
            runs.append((time.perf_counter() - start, used))
        assert page.stat().st_size > 10_000
    wall, processor = min(runs)
    return {"posts": POSTS, "wall_s": wall, "processor_s": processor, "load_before": os.getloadavg()[0]}


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
