from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import incrowd
from tests.crowd.making import post, write_jsonl

from incrowd.crowd import Crowd


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    rows = [
        post(f"u{n % 12}", f"some words about subject {n}", "books" if n % 3 else "films", n)
        for n in range(90)
    ]
    return Crowd.from_frame(pl.DataFrame(rows), path=tmp_path_factory.mktemp("plan") / "crowd")


def test_linking_two_communities(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["linkability", crowd.path, "--source", "films", "--target", "books", "--min-posts", "1"]
    outcome = incrowd(capsys, "plan", "--json", *command)
    assert outcome.code == 0, outcome.err
    plan = json.loads(outcome.out)
    assert plan["rows"] == 90
    assert plan["identities"] == 4 + 8
    assert plan["pairs"] == 4 * 8 + 8 * 7 // 2
    assert 0 < plan["seconds"]["low"] < plan["seconds"]["high"]
    assert plan["worst"]["what"] in {step["what"] for step in plan["steps"]}


def test_what_people_see(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = incrowd(capsys, "plan", "anonymity", crowd.path, "--community", "books")
    assert outcome.code == 0, outcome.err
    words = " ".join(outcome.out.split())
    assert "people 8 profiles" in words
    assert "pairs 28" in words
    assert "costs most" in words


def test_an_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [post("ann", "hello")] * 7)
    outcome = incrowd(capsys, "plan", "ingest", source, "--crowd", tmp_path / "crowd")
    assert outcome.code == 0, outcome.err
    assert "rows 7" in " ".join(outcome.out.split())
    assert not (tmp_path / "crowd").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected a command to plan"),
        (["telepathy"], "got 'telepathy'"),
        (["microdata"], "expected a command to plan"),
        (["linkability", "x", "--source", "a"], "--target"),
    ],
)
def test_a_command_that_would_fail_fails_now(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = incrowd(capsys, "plan", *words)
    assert outcome.code == 2
    assert message in outcome.err


def test_what_needs_no_plan_says_so(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = incrowd(capsys, "plan", "info", crowd.path)
    assert outcome.code == 2
    assert "'info' cannot be planned; these can: ingest, measures of a community, assess" in outcome.err
    assert "'study belief' cannot be planned" in incrowd(capsys, "plan", "study", "belief", crowd.path).err
