from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from incrowd.errors import IncrowdError
from incrowd.gateway.ledger import NAME, Entry, Ledger
from incrowd.gateway.query import Answer

BODY = Answer(("Alien", "Ünïcödé 🎬")).body


def entry(key: bytes = b"k", *, snapshot: int = 1, asked: float = 100.0, **changes: object) -> Entry:
    plain: dict[str, object] = {
        "asked": asked,
        "client": "ann",
        "organisation": "acme",
        "scope": "acme",
        "snapshot": snapshot,
        "origin": snapshot,
        "attribute": "movies",
        "key": key,
        "question": "[]",
        "digest": b"d",
        "people": np.array([5, 2**63], dtype=np.uint64),
        "class_size": 3,
        "withheld": 1,
        "rule": "",
        "body": BODY,
    }
    return Entry(**{**plain, **changes})  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path)


def test_what_was_answered_is_found_again_byte_for_byte(ledger: Ledger, tmp_path: Path) -> None:
    ledger.record(entry())
    ledger.close()
    again = Ledger(tmp_path)
    assert again.body("acme", 1, b"k") == BODY
    assert again.body("acme", 2, b"k") is None
    assert again.body("uni", 1, b"k") is None
    (kept,) = again.told("acme", 1)
    assert kept.values == ("Alien", "Ünïcödé 🎬")
    assert kept.people is not None
    assert kept.people.tolist() == [5, 2**63]
    assert "Alien" not in repr(kept)


def test_a_question_is_answered_once_a_snapshot(ledger: Ledger) -> None:
    import sqlite3

    ledger.record(entry())
    with pytest.raises(sqlite3.IntegrityError):
        ledger.record(entry(body=Answer().body))
    ledger.record(entry(snapshot=2))
    assert [one.snapshot for one in ledger.told("acme", 1)] == [1, 2]
    assert [one.snapshot for one in ledger.told("acme", 2)] == [2]


def test_budgets_count_an_organisation_since_a_moment(ledger: Ledger) -> None:
    for number in range(5):
        ledger.record(entry(bytes([number]), asked=float(number)))
    ledger.record(entry(b"other", asked=3.0, organisation="uni", scope="uni"))
    assert ledger.spent("acme", 3.0) == 2
    assert ledger.spent("uni", 0.0) == 1
    assert ledger.spent("nobody", 0.0) == 0


def test_long_ago_classes_are_forgotten_but_not_that_something_was_told(ledger: Ledger) -> None:
    ledger.record(entry(snapshot=1))
    ledger.record(entry(snapshot=5, origin=2))
    assert ledger.forget(3) == {2}
    old, new = ledger.replay()
    assert old.people is None
    assert old.body == BODY
    assert new.people is not None


def test_replay_gives_every_entry_in_order(ledger: Ledger) -> None:
    for number in range(2500):
        ledger.record(entry(number.to_bytes(2, "big"), people=None))
    assert [one.key for one in ledger.replay()] == [number.to_bytes(2, "big") for number in range(2500)]


def test_the_snapshot_in_use_is_known(ledger: Ledger) -> None:
    assert ledger.snapshot() is None
    ledger.begin(1, 10.0, b"a")
    ledger.begin(2, 20.0, b"b")
    assert ledger.snapshot() == (2, 20.0, b"b")


def test_its_file_is_for_the_owner_alone(ledger: Ledger, tmp_path: Path) -> None:
    ledger.record(entry())
    for path in tmp_path.glob(f"{NAME}*"):
        assert path.stat().st_mode & 0o077 == 0, path.name


def test_a_damaged_ledger_is_not_overlooked(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(IncrowdError, match="must not answer"):
        Ledger(tmp_path)


def test_entries_that_were_confirmed_survive_a_kill(tmp_path: Path) -> None:
    writer = f"""
from pathlib import Path
from tests.gateway.test_ledger import entry, Ledger
ledger = Ledger(Path({str(tmp_path)!r}))
for number in range(10**6):
    ledger.record(entry(number.to_bytes(4, "big")))
    print(number, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", writer], stdout=subprocess.PIPE, cwd=Path.cwd())
    assert process.stdout is not None
    confirmed = -1
    for line in process.stdout:
        confirmed = int(line)
        if confirmed == 40:
            os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    keys = [int.from_bytes(one.key, "big") for one in Ledger(tmp_path).replay()]
    assert keys[: confirmed + 1] == list(range(confirmed + 1))
    assert len(keys) <= confirmed + 2
