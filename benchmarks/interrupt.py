"""Ctrl-C at two hundred random moments of an import: how each ended. ``python -m benchmarks.interrupt [TRIES]``."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from incrowd.crowd import Crowd


def main(tries: int) -> None:
    chance = random.Random(0)
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "a.csv"
        lines = (f"user {n % 997},tea,{n},words {n} {n * 7919} to be read and sorted" for n in range(60_000))
        source.write_text("user,community,time,text\n" + "\n".join(lines) + "\n", encoding="utf-8")
        crowd = Path(name) / "crowd"
        first = Path(name) / "first.csv"
        first.write_text("user,community,time,text\nann,tea,7,hi\n", encoding="utf-8")
        Crowd.create(crowd).ingest(first)
        for _ in range(tries):
            command = [sys.executable, "-m", "incrowd", "ingest", str(source), "--crowd", str(crowd)]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(chance.uniform(0.3, 2.5))  # before that it is Python that starts, not incrowd
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
            if process.returncode not in (0, 130):
                print(said[-1500:])
            posts = Crowd(crowd).info().posts
            ends[f"exit {process.returncode}, {said.count(chr(10))} lines, {posts:,} posts"] += 1
            if posts > 1:
                Crowd(crowd).verify()
                import shutil

                shutil.rmtree(crowd)
                Crowd.create(crowd).ingest(first)
    for end, count in ends.most_common():
        print(f"{count:>4}  {end}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
