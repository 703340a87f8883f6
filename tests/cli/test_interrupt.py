"""Ctrl-C at any moment of an import: one line, exit code 130, the crowd as it was. And a reader who goes away."""

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


BEGIN = "print(flush=True); from incrowd.cli import main; main()"
"""Says that Python is there, then does what ``python -m incrowd`` does: before that nobody of ours could answer."""
SLOW_TO_LEAVE = """
import os, sys, time
class Late:
    def __del__(self, write=os.write, sleep=time.sleep):
        write(1, b"leaving\\n")
        sleep(0.3)
sys.modules["late"] = Late()
"""
"""Makes Python say that it takes the modules apart, and take its time, as on a busy machine."""


LATE = """
import os, signal
from incrowd.crowd import ingest
save = ingest.save
def save_and_be_interrupted(*arguments):
    save(*arguments)
    os.kill(os.getpid(), signal.SIGINT)
ingest.save = save_and_be_interrupted
"""
"""Presses Ctrl-C right after the new state has taken the place of the old."""


def started(begin: str, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", begin, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def interrupted(source: Path, crowd: Path, after: float) -> tuple[int, str]:
    process = started(BEGIN, "ingest", str(source), "--crowd", str(crowd))
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
        code, said = interrupted(source, crowd, chance.uniform(0, 1.6))
        assert code in (0, 130), said
        if code == 130:
            assert said.count("\n") == 1, said
            assert "interrupted" in said
            if existing:
                assert Crowd(crowd).info().posts == 1
            else:
                assert not crowd.exists() or Crowd(crowd).info().posts == 0


def test_ctrl_c_while_leaving_does_not_change_how_it_ended() -> None:
    with started(SLOW_TO_LEAVE + BEGIN, "--version") as process:
        assert process.stdout is not None
        while process.stdout.readline() != "leaving\n":
            pass
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0


def test_ctrl_c_that_comes_too_late_is_no_interruption(source: Path, tmp_path: Path) -> None:
    with started(LATE + BEGIN, "ingest", str(source), "--crowd", str(tmp_path / "crowd")) as process:
        said, complained = process.communicate(timeout=60)
    assert (process.returncode, complained) == (0, "")
    assert "60,000 of 60,000 rows added" in said
    assert Crowd(tmp_path / "crowd").info().posts == 60_000


@pytest.mark.parametrize(("more", "code"), [((), 0), (("--fail-above", "1"), 1)])
def test_a_reader_who_goes_away_is_no_risk_unless_one_was_asked_for(
    tmp_path: Path, more: tuple[str, ...], code: int
) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text('{"a": ["u1", "u2"]}', "utf-8")
    process = started(BEGIN, "release", "q", str(answer), "--json", *more)
    assert process.stdout is not None
    process.stdout.close()  # as in `| head`, before the answer is there
    process.stdout = None
    _, complained = process.communicate(timeout=60)
    assert (process.returncode, complained) == (code, "")
