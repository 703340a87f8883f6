from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import polars as pl
from tests.crowd.making import new_crowd, post, write_jsonl

from incrowd.crowd import Crowd

BUDGET = 512 * 2**20
ROWS, WORDS = 24_000, 1_400

IMPORT = """
import os, re, sys
os.environ["POLARS_MAX_THREADS"] = "1"
from pathlib import Path
from incrowd.crowd import Crowd
from incrowd.crowd import merge
merge.MOST_RUNS = int(sys.argv[4])
path = Path(sys.argv[2])
crowd = Crowd(path) if path.exists() else Crowd.create(path, plain_names=True)
report = crowd.ingest(sys.argv[1], memory=int(sys.argv[3]))
# Not ru_maxrss: that remembers the size of the process this one was forked from.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(report.added, int(peak[1]) * 1024)
"""


def imported(source: Path, crowd: Path, most_runs: int = 8) -> tuple[int, int]:
    """Import in a process of its own; return how many rows came in, and the most memory it had."""
    command = [sys.executable, "-c", IMPORT, str(source), str(crowd), str(BUDGET), str(most_runs)]
    added, peak = map(int, subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())
    return added, peak


def test_memory_stays_within_the_budget_whatever_the_file(tmp_path: Path) -> None:
    source = tmp_path / "large.jsonl"
    words = " ".join(f"{n * 7919 % 100_003:05d}" for n in range(WORDS))
    with source.open("w") as file:
        for n in range(ROWS):
            file.write(
                f'{{"author": "u{n % 97}", "community": "c{n % 5}", "time": {n}, "text": "{n} {words[n % 999 :]}"}}\n'
            )
    # Read whole, the rows alone would take the file's size three times: raw, parsed, sorted.
    assert 3 * source.stat().st_size > BUDGET
    added, peak = imported(source, tmp_path / "crowd")
    assert added == ROWS
    assert peak < BUDGET
    Crowd(tmp_path / "crowd").verify()


def test_the_same_rows_take_no_more_memory_in_a_larger_crowd(tmp_path: Path) -> None:
    few = write_jsonl(tmp_path / "few.jsonl", (post("zoe", f"{n}") for n in range(500)))
    peaks = []
    for size in (40_000, 300_000):
        rows = (post(f"u{n // 50}", f"{n} some more words", id=f"{n}") for n in range(size))
        new_crowd(tmp_path / f"{size}").ingest(write_jsonl(tmp_path / "many.jsonl", rows))
        # One run is the most allowed here, so this import also writes all rows anew.
        added, peak = imported(few, tmp_path / f"{size}", most_runs=1)
        assert added == 500
        assert len(Crowd(tmp_path / f"{size}").state.tables["posts"].parts) == 1
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 24 * 2**20


def test_an_import_leaves_no_rows_in_memory(tmp_path: Path) -> None:
    crowd = new_crowd(tmp_path / "crowd")
    held = []
    for number in range(3):
        rows = (post(f"u{n % 97}", f"{number} {n}") for n in range(5000))
        crowd.ingest(write_jsonl(tmp_path / f"{number}.jsonl", rows))
        gc.collect()
        frames = [found for found in gc.get_objects() if isinstance(found, pl.DataFrame | pl.Series)]
        held.append(sum(frame.estimated_size() for frame in frames))
    assert held[2] - held[0] < 10_000
