"""Ctrl-C at any moment of an import: one line, exit code 130, the crowd as it was."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.crowd.making import post, write_jsonl

from incrowd.crowd import Crowd

TRIES = 8
"""`python -m benchmarks.interrupt` tries two hundred times."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = (
        post(f"user {n % 997}", f"{n} {n * 7919} some words to be read", id=f"c{n}") for n in range(60_000)
    )
    return write_jsonl(tmp_path_factory.mktemp("source") / "a.jsonl", rows)


def interrupted(source: Path, crowd: Path, after: float) -> tuple[int, str]:
    command = [sys.executable, "-m", "incrowd", "ingest", str(source), "--crowd", str(crowd)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def test_ctrl_c_ends_an_import_with_one_line(source: Path, tmp_path: Path) -> None:
    chance = random.Random(0)
    for number in range(TRIES):
        crowd = tmp_path / f"crowd{number}"
        existing = number % 2 == 0
        if existing:
            first = Crowd.create(crowd)
            first.ingest(write_jsonl(tmp_path / "first.jsonl", [post("ann", "hi")]))
        code, said = interrupted(source, crowd, chance.uniform(0.35, 1.6))
        assert code in (0, 130), said
        if code == 130:
            assert said.count("\n") == 1, said
            assert "interrupted" in said
            if existing:
                assert Crowd(crowd).info().posts == 1
            else:
                assert not crowd.exists() or Crowd(crowd).info().posts == 0
