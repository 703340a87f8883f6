from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.crowd.making import new_crowd, post, texts, write_jsonl

from incrowd.crowd import Crowd
from incrowd.crowd.disk import import_lock
from incrowd.errors import CrowdBusy


def test_a_second_import_fails_clearly(tmp_path: Path) -> None:
    crowd = new_crowd(tmp_path / "crowd")
    source = write_jsonl(tmp_path / "a.jsonl", [post("ann", "hi")])
    with import_lock(crowd.path), pytest.raises(CrowdBusy, match="pass wait"):
        crowd.ingest(source)
    crowd.ingest(source)
    assert texts(crowd) == ["hi"]


def test_a_second_import_waits_if_asked(tmp_path: Path) -> None:
    crowd = new_crowd(tmp_path / "crowd")
    source = write_jsonl(tmp_path / "a.jsonl", [post("ann", "hi")])
    waiting = threading.Thread(target=lambda: crowd.ingest(source, wait=True))
    with import_lock(crowd.path):
        waiting.start()
        waiting.join(timeout=0.2)
        assert waiting.is_alive()
    waiting.join()
    assert texts(crowd) == ["hi"]


def test_an_import_starts_from_what_others_have_imported_since(tmp_path: Path) -> None:
    mine = new_crowd(tmp_path / "crowd")
    other = Crowd(mine.path)
    other.ingest(write_jsonl(tmp_path / "a.jsonl", [post("ann", "theirs")]))
    mine.ingest(write_jsonl(tmp_path / "b.jsonl", [post("ann", "mine")]))
    assert texts(mine) == ["mine", "theirs"]


def test_reading_needs_no_lock(tmp_path: Path) -> None:
    crowd = new_crowd(tmp_path / "crowd")
    crowd.ingest(write_jsonl(tmp_path / "a.jsonl", [post("ann", "hi")]))
    with import_lock(crowd.path):
        assert texts(Crowd(crowd.path)) == ["hi"]
