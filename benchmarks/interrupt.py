"""Ctrl-C at two hundred random moments of an import: how each ended. ``python -m benchmarks.interrupt [TRIES [SEED]]``.

Moments lie between where incrowd's first function begins and where an undisturbed import ends. A tenth as many more lie
before, while Python loads that function's module (some milliseconds): Python answers those itself, with its own lines,
and ends by the signal, which a shell shows as 130; nothing of a crowd can have been touched by then.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from incrowd.crowd import Crowd

BEGIN = "import sys; print(flush=True); from incrowd.cli import main; print(flush=True); main()"
"""Says that Python is there, then that incrowd is, and does what ``python -m incrowd`` does."""


def _started(source: Path, crowd: Path, *, loaded: bool = True) -> subprocess.Popen[str]:
    """Start an import and wait until incrowd is there, or only Python."""
    command = [sys.executable, "-c", BEGIN, "ingest", str(source), "--crowd", str(crowd)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(1 + loaded):
        process.stdout.readline()
    return process


def _loading(source: Path, crowd: Path) -> float:
    """Return how long Python takes to load the first module."""
    process = _started(source, crowd, loaded=False)
    start = time.perf_counter()
    assert process.stdout is not None
    process.stdout.readline()
    seconds = time.perf_counter() - start
    process.kill()
    process.communicate()
    return seconds


def _seconds(source: Path, crowd: Path) -> float:
    process = _started(source, crowd)
    start = time.perf_counter()
    process.communicate()
    return time.perf_counter() - start


def main(tries: int = 200, seed: int = 0) -> None:
    chance = random.Random(seed)
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "a.csv"
        lines = (f"user {n % 997},tea,{n},words {n} {n * 7919} to be read and sorted" for n in range(60_000))
        source.write_text("user,community,time,text\n" + "\n".join(lines) + "\n", encoding="utf-8")
        crowd = Path(name) / "crowd"
        first = Path(name) / "first.csv"
        first.write_text("user,community,time,text\nann,tea,7,hi\n", encoding="utf-8")
        Crowd.create(crowd).ingest(first)
        whole = _seconds(source, Path(name) / "undisturbed")
        for _ in range(tries):
            process = _started(source, crowd)
            time.sleep(chance.uniform(0, whole))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
            if process.returncode not in (0, 130):
                print(said[-1500:])
            posts = Crowd(crowd).info().posts
            ends[f"exit {process.returncode}, {said.count(chr(10))} lines, {posts:,} posts"] += 1
            if posts > 1:
                Crowd(crowd).verify()
                shutil.rmtree(crowd)
                Crowd.create(crowd).ingest(first)
        before = Path(name) / "before"
        loading = min(_loading(source, before) for _ in range(3))
        for _ in range(tries // 10):
            process = _started(source, before, loaded=False)
            time.sleep(chance.uniform(0, loading))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
            touched = "touched" if before.exists() else "untouched"
            ends[f"while Python loads incrowd: exit {process.returncode}, crowd {touched}"] += 1
            shutil.rmtree(before, ignore_errors=True)
    for end, count in ends.most_common():
        print(f"{count:>4}  {end}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
