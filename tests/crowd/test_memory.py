from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from tests.crowd.making import new_crowd, post, write_jsonl

from incrowd.crowd import Crowd

BUDGET = 512 * 2**20
ROWS, WORDS = 24_000, 1_400

IMPORT = """
import re, sys
from pathlib import Path
from incrowd.crowd import Crowd
crowd = Crowd.create(sys.argv[2], plain_names=True)
report = crowd.ingest(sys.argv[1], memory=int(sys.argv[3]))
# Not ru_maxrss: that remembers the size of the process this one was forked from.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(report.added, int(peak[1]) * 1024)
"""


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
    command = [sys.executable, "-c", IMPORT, str(source), str(tmp_path / "crowd"), str(BUDGET)]
    added, peak = map(int, subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())
    assert added == ROWS
    assert peak < BUDGET
    Crowd(tmp_path / "crowd").verify()


def test_an_import_leaves_no_rows_in_memory(tmp_path: Path) -> None:
    crowd = new_crowd(tmp_path / "crowd")
    held = []
    for number in range(3):
        rows = (post(f"u{n % 97}", f"{number} {n}") for n in range(5000))
        crowd.ingest(write_jsonl(tmp_path / f"{number}.jsonl", rows))
        gc.collect()
        held.append(pa.total_allocated_bytes())
    assert held[2] - held[0] < 10_000
