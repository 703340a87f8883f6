from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def test_a_report_on_everybody(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    def planned(people: int) -> dict[str, Any]:
        outcome = incrowd(capsys, "plan", "--json", "crowd-report", crowd.path, "--people", str(people))
        assert outcome.code == 0, outcome.err
        found: dict[str, Any] = json.loads(outcome.out)
        return found

    few, all_of_them = planned(3), planned(100)
    assert few["rows"] == 90
    assert few["worst"]["what"] == "assess 3 people one by one"
    assert all_of_them["worst"]["what"] == "assess 12 people one by one"
    assert few["worst"]["seconds"] < all_of_them["worst"]["seconds"]


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


def test_only_what_can_be_planned_is_offered(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    offered = incrowd(capsys, "plan").err.split("(")[1].split(")")[0].split(", ")
    for name in ("ingest", "assess", "crowd-report", "linkability", "microdata"):
        assert name in offered
    for name in ("info", "serve", "forget", "gateway", "plan"):
        assert name not in offered
    assert "'gateway' cannot be planned" in incrowd(capsys, "plan", "gateway").err
    below = incrowd(capsys, "plan", "microdata").err
    assert "(assess, evaluate, publish)" in below


def test_an_export_needs_no_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_jsonl(tmp_path / "mine.jsonl", [post("ann", "hello")] * 7)
    outcome = incrowd(capsys, "plan", "assess", source)
    assert outcome.code == 2
    assert "'assess' of an export needs no plan" in " ".join(outcome.err.split())


def test_one_person_in_a_crowd(crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    person = incrowd(capsys, "plan", "--json", "assess", crowd.path, "--user", "u1")
    assert person.code == 0, person.err
    assert json.loads(person.out)["rows"] > 0


def test_an_answer_about_a_person_asks_for_their_name(
    crowd: Crowd, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = incrowd(capsys, "plan", "assess", crowd.path)
    assert outcome.code == 2
    assert "expected the name of the person in this crowd (--user), got none" in outcome.err


def test_an_audit_counts_its_cards_and_says_who_is_too_few(
    crowd: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = incrowd(capsys, "plan", "card", "audit", crowd.path)
    assert outcome.code == 2
    assert "this audit cannot run: it splits people and needs 240, and here are 12." in outcome.err
    rows = [post(f"u{n}", f"some words about subject {n}", "books", n) for n in range(204)]
    many = Crowd.from_frame(pl.DataFrame(rows), path=tmp_path / "many")
    steps = {}
    for cards in (10, 40):
        command = ["card", "audit", many.path, "--planted", "4", "--cards", str(cards)]
        found = json.loads(incrowd(capsys, "plan", "--json", *command).out)["steps"]
        steps[cards] = {one["what"]: one["seconds"] for one in found}
    assert steps[40]["make and attack 40 cards"] == pytest.approx(4 * steps[10]["make and attack 10 cards"])
