from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.crowd.making import new_crowd, post, texts, write_jsonl, write_truncated

from incrowd.crowd import Crowd
from incrowd.errors import BudgetExceeded, InputError, UnreadableSource


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    return new_crowd(tmp_path / "crowd")


def test_an_empty_file_is_refused(crowd: Crowd, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(UnreadableSource, match="empty"):
        crowd.ingest(tmp_path / "a.jsonl")


def test_a_folder_is_refused(crowd: Crowd, tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="got a folder"):
        crowd.ingest(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_it(crowd: Crowd, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableSource, match="pipe or device"):
        crowd.ingest(tmp_path / "pipe")


def test_a_missing_file_is_told(crowd: Crowd, tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="no such file"):
        crowd.ingest(tmp_path / "a.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_told(crowd: Crowd, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [post("a", "x")])
    source.chmod(0)
    with pytest.raises(UnreadableSource, match="Permission"):
        crowd.ingest(source)


def test_no_source_at_all_is_told(crowd: Crowd) -> None:
    with pytest.raises(InputError, match="at least one source"):
        crowd.ingest([])


def test_an_unknown_kind_is_told(crowd: Crowd, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [post("a", "x")])
    with pytest.raises(InputError, match="posts, items, attributes"):
        crowd.ingest(source, kind="post")  # type: ignore[arg-type]


def test_a_truncated_source_is_refused_or_kept_and_marked(crowd: Crowd, tmp_path: Path) -> None:
    source = write_truncated(tmp_path / "a.jsonl")
    with pytest.raises(UnreadableSource):
        crowd.ingest(source)
    assert crowd.info().posts == 0
    report = crowd.ingest(source, keep_complete=True)
    assert 0 < report.added < 5000
    assert report.sources[0].incomplete
    assert crowd.info().incomplete == 1


def test_one_file_may_be_read_twice_with_other_options(crowd: Crowd, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [{"user": "a", "text": "x"}])
    crowd.ingest(source, community="books")
    assert crowd.ingest(source, community="films").added == 1
    assert texts(crowd) == ["x", "x"]


def test_names_decide_before_places(crowd: Crowd, tmp_path: Path) -> None:
    late = write_jsonl(tmp_path / "a" / "2.jsonl", [post("a", "late", id="1")])
    early = write_jsonl(tmp_path / "b" / "1.jsonl", [post("a", "early", id="1")])
    crowd.ingest([late, early])
    assert texts(crowd) == ["early"]


def test_too_small_a_budget_is_refused(crowd: Crowd, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded, match="at least"):
        crowd.ingest(write_jsonl(tmp_path / "a.jsonl", [post("a", "x")]), memory=2**20)
