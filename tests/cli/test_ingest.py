from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import incrowd
from tests.crowd.making import post, write_jsonl, write_truncated

from incrowd.crowd import Crowd
from incrowd.crowd.disk import import_lock

ROWS = [post("ann", "hello"), post("bob", "hi"), post("[deleted]", "secret words")]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "a.jsonl", ROWS)


def test_an_import_prints_counts_by_reason(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd")
    assert outcome.code == 0
    assert "2 of 3 rows added" in outcome.out
    assert "deleted_author" in outcome.out
    assert "the author deleted the account" in " ".join(outcome.out.split())
    assert "secret" not in outcome.out + outcome.err


def test_importing_again_says_so(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd")
    outcome = incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd")
    assert outcome.code == 0
    assert "imported before, nothing to do: a.jsonl" in outcome.out


def test_json_for_programs(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd", "--json")
    plain = json.loads(outcome.out)
    assert (plain["rows"], plain["added"], plain["reasons"]) == (3, 2, {"deleted_author": 1})
    assert plain["data_hash"] == Crowd(tmp_path / "crowd").data_hash


def test_columns_community_and_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_jsonl(tmp_path / "mine.jsonl", [{"said": said, "when": 7} for said in ("hello", "bye")])
    outcome = incrowd(
        capsys,
        *("ingest", source, "--crowd", tmp_path / "crowd", "--kind", "posts"),
        *("--columns", "text=said, time=when", "--user", "me", "--community", "books", "--plain-names"),
    )
    assert outcome.code == 0, outcome.err
    rows = Crowd(tmp_path / "crowd").posts().sort("text").collect().rows()
    assert rows == [("me", "books", 7, "bye"), ("me", "books", 7, "hello")]


def test_columns_that_would_not_be_used_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ratings.dat").write_text("1::7::5::960\n2::9::4::961\n")
    outcome = incrowd(
        capsys, "ingest", tmp_path / "ratings.dat", "--crowd", tmp_path / "crowd", "--columns", "item=film"
    )
    assert outcome.code == 2
    assert "recognised as ratings" in outcome.err
    assert "--columns would not be used" in outcome.err


def test_a_first_import_that_brings_nothing_leaves_nothing_behind(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.csv").write_text("user,community,time,text\n")
    outcome = incrowd(capsys, "ingest", tmp_path / "empty.csv", "--crowd", tmp_path / "crowd")
    assert outcome.code == 2
    assert "no rows at all" in outcome.err
    assert not (tmp_path / "crowd").exists()
    incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd")
    assert incrowd(capsys, "ingest", tmp_path / "empty.csv", "--crowd", tmp_path / "crowd").code == 2
    assert Crowd(tmp_path / "crowd").info().posts == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--columns", "user"], "--columns: expected OURS=THEIRS"),
        (["--columns", "user=a,user=b"], "each of ours once"),
        (["--kind", "post"], "--kind: expected one of posts, items, attributes"),
        (["--format", "telepathy"], "no such format"),
        (["--memory", "1MiB"], "at least"),
        (["--memory", "lots"], "--memory takes a size"),
        (["--columns", "user=nobody"], "nobody"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(
    arguments: list[str], message: str, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err


def test_a_missing_file_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = incrowd(capsys, "ingest", tmp_path / "nowhere", "--crowd", tmp_path / "crowd")
    assert outcome.code == 2
    assert "no such file" in outcome.err
    assert not (tmp_path / "crowd").exists()


def test_a_truncated_file_fails_unless_its_complete_records_are_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_truncated(tmp_path / "cut.jsonl.zst")
    assert incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd").code == 2
    outcome = incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd", "--keep-complete")
    assert outcome.code == 0
    assert "cut off, complete records kept: cut.jsonl.zst" in " ".join(outcome.out.split())


def test_a_busy_crowd_is_told(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Crowd.create(tmp_path / "crowd")
    with import_lock(tmp_path / "crowd"):
        outcome = incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd")
    assert outcome.code == 2
    assert "another import is running" in outcome.err


def test_the_key_may_be_forgotten_at_once_or_later(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    incrowd(capsys, "ingest", source, "--crowd", tmp_path / "one", "--forget-key")
    assert Crowd(tmp_path / "one").names == "forgotten"
    incrowd(capsys, "ingest", source, "--crowd", tmp_path / "two")
    assert incrowd(capsys, "ingest", "--crowd", tmp_path / "two", "--forget-key").code == 0
    assert Crowd(tmp_path / "two").names == "forgotten"


def test_nothing_to_import_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = incrowd(capsys, "ingest", "--crowd", tmp_path / "crowd")
    assert outcome.code == 2
    assert "at least one source" in outcome.err


def test_a_file_is_no_folder_for_a_crowd(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = source.read_bytes()
    outcome = incrowd(capsys, "ingest", source, "--crowd", source)
    assert outcome.code == 2
    assert "expected a folder for the crowd, got a file" in outcome.err
    assert source.read_bytes() == before


def test_a_date_in_another_form_is_told_which_forms_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "dates.csv"
    source.write_text("user,community,time,text\nann,tea,the 31st,hello\n")
    outcome = incrowd(capsys, "ingest", source, "--crowd", tmp_path / "crowd")
    assert outcome.code == 2
    assert "1 bad_time (the time is" in outcome.err
    assert "a date such as 2020-12-31" in outcome.err
