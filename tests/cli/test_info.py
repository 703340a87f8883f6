from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import incrowd
from tests.crowd.making import post, write_jsonl

from incrowd.crowd import Crowd
from incrowd.crowd.store import harmless

ROWS = [
    post("ann", "a", "books", 1_500_000_000),
    post("ann", "b", "films", 1_600_000_000),
    post("[deleted]", "c"),
    post("bob", ""),
]


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    crowd = Crowd.create(tmp_path / "crowd")
    crowd.ingest(write_jsonl(tmp_path / "=HYPERLINK(1).jsonl", ROWS))
    return crowd


def test_what_people_see(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = incrowd(capsys, "info", crowd.path)
    words = " ".join(outcome.out.split())
    assert outcome.code == 0
    assert "posts 2 in 2 communities" in words
    assert "2017-07-14 to 2020-09-13" in words
    assert "in several communities 1 people" in words
    assert "2 rows in quarantine" in words
    assert "empty_text 1 there is no text" in words
    assert "ann" not in words


def test_what_programs_see(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    plain = json.loads(incrowd(capsys, "info", crowd.path, "--json").out)
    promised = {"posts", "users", "communities", "items", "item_rows", "attributes", "quarantined"}
    assert promised <= plain.keys()
    assert (plain["posts"], plain["users"], plain["communities"], plain["quarantined"]) == (2, 1, 2, 2)
    assert plain["quarantine"] == {"deleted_author": 1, "empty_text": 1}


def test_the_quarantine_as_csv_cannot_act_as_a_formula(
    crowd: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    incrowd(capsys, "info", crowd.path, "--quarantine", tmp_path / "q.csv")
    with (tmp_path / "q.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["file", "row", "reason"],
        ["'=HYPERLINK(1).jsonl", "3", "deleted_author"],
        ["'=HYPERLINK(1).jsonl", "4", "empty_text"],
    ]


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_every_start_of_a_formula_is_made_harmless(cell: str) -> None:
    frame = pl.LazyFrame({"text": [cell, "plain", None], "number": [-1, 2, 3]})
    assert harmless(frame).collect().rows() == [("'" + cell, -1), ("plain", 2), (None, 3)]


def test_a_damaged_part_is_found_on_request(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    assert incrowd(capsys, "info", crowd.path, "--verify").code == 0
    part = next((crowd.path / "parts").iterdir())
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    outcome = incrowd(capsys, "info", crowd.path, "--verify")
    assert outcome.code == 2
    assert "contents differ" in outcome.err


def test_no_crowd_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = incrowd(capsys, "info", tmp_path)
    assert outcome.code == 2
    assert "incrowd ingest" in outcome.err
