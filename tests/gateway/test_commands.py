"""`incrowd gateway` on the command line: keys, checks, why, reports; mistakes are explained, not traced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import Outcome, incrowd
from tests.gateway.serving import VICTIM, make_world

from incrowd.gateway.audit import AuditLog
from incrowd.gateway.core import Gateway
from incrowd.gateway.databases import connect
from incrowd.gateway.ledger import Ledger
from incrowd.gateway.policy import load_policy
from incrowd.gateway.query import Client
from incrowd.gateway.state import KeyStore, open_secret
from incrowd.gateway.text_query import query_from_text


class DecisionService:
    """An operator's terminal in the folder of a made-up club."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.url = make_world(folder)

    def run(self, *words: str, policy: bool = True, database: bool = False) -> Outcome:
        options = ["--state", str(self.folder / "state")]
        options += ["--policy", str(self.folder / "policy.toml")] if policy else []
        options += ["--database", self.url] if database else []
        return incrowd(self.capsys, "gateway", *words, *options)


@pytest.fixture
def decisions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> DecisionService:
    monkeypatch.delenv("INCROWD_DATABASE", raising=False)
    return DecisionService(tmp_path, capsys)


def test_a_key_is_made_listed_and_removed(decisions: DecisionService) -> None:
    made = decisions.run("key", "add", "notebook", "--organisation", "lab")
    assert made.code == 0
    found = KeyStore(decisions.folder / "state").find(made.out.strip())
    assert found is not None
    assert found.organisation == "lab"
    listed = json.loads(decisions.run("key", "list", "--json", policy=False).out)
    assert [(one["name"], one["organisation"]) for one in listed] == [("notebook", "lab")]
    assert made.out.strip() not in decisions.run("key", "list", policy=False).out
    assert decisions.run("key", "remove", "notebook", policy=False).code == 0
    assert json.loads(decisions.run("key", "list", "--json", policy=False).out) == []


def test_a_key_for_nobody_the_policy_names_is_refused(decisions: DecisionService) -> None:
    wrong = decisions.run("key", "add", "notebook", "--organisation", "lob")
    assert wrong.code == 2
    assert "(3 in all: lab, press, poor), got 'lob'" in wrong.err


def test_why_for_nobody_the_policy_names_is_refused(decisions: DecisionService) -> None:
    wrong = decisions.run("try", "SELECT movies FROM users", "--organisation", "lob", database=True)
    assert wrong.code == 2
    assert "(3 in all: lab, press, poor), got 'lob'" in wrong.err
    assert "[organisations.NAME]" in wrong.err


def test_a_policy_is_checked_against_the_database(decisions: DecisionService) -> None:
    decisions.run("key", "add", "stray", "--organisation", "gone", policy=False)
    found = json.loads(decisions.run("check", "--json", database=True).out)
    assert found["people"] == 401
    assert found["keys without organisation"] == ["stray"]
    assert found["weak"] == []
    assert "limits.solver_seconds" in found["cautions"][-1]
    policy = decisions.folder / "policy.toml"
    policy.write_text(policy.read_text().replace('table = "likes"', 'table = "lakes"'))
    broken = decisions.run("check", database=True)
    assert broken.code == 2
    assert "'lakes'" in broken.err


def test_check_names_the_folder_it_looked_in(decisions: DecisionService) -> None:
    state = str(decisions.folder / "state")
    none = json.loads(decisions.run("check", "--json").out)
    assert (none["state folder"], none["keys"]) == (f"{state} (there is none yet)", 0)
    decisions.run("key", "add", "notebook", "--organisation", "lab")
    there = json.loads(decisions.run("check", "--json").out)
    assert (there["state folder"], there["keys"]) == (state, 1)


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("q = 5", "q = 1", "release.q: expected 2"),
        ("q = 5", "qq = 5", "release: unknown setting 'qq'"),
        ("q = 5", 'q = "5"', "release.q: expected a whole number"),
        ("[organisations.lab]", "[organisation.lab]", "unknown setting 'organisation'"),
    ],
)
def test_a_mistake_in_a_policy_names_the_file(
    before: str, after: str, where: str, decisions: DecisionService
) -> None:
    path = decisions.folder / "policy.toml"
    path.write_text(path.read_text().replace(before, after, 1))
    wrong = decisions.run("check")
    assert wrong.code == 2
    assert f"{path}: {where}" in wrong.err
    assert "policy: policy" not in wrong.err


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_report_is_legible_on_a_narrow_terminal(
    columns: int, decisions: DecisionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = decisions.folder / "state"
    secret = open_secret(state)
    Ledger(state, secret).close()
    audit = AuditLog(state, secret.key("audit"))
    about = {"client": "dashboard-2", "organisation": "lab", "attribute": "movies", "query": "ab"}
    audit.append({"time": "2026-01-01", **about, "outcome": "empty", "released": 0, "rule": "rare"}).result(9)
    audit.close()
    monkeypatch.setenv("COLUMNS", str(columns))
    said = decisions.run("report", policy=False).out
    assert "…" not in said
    assert all(len(line) <= columns for line in said.splitlines())
    assert {"dashboard-2", "organisation", "refused", "questions"} <= set(said.split())


def test_why_and_the_report_need_no_running_gateway(decisions: DecisionService) -> None:
    question = "SELECT movies FROM users WHERE city = 'Denver'"
    why = decisions.run("try", question, "--json", database=True)
    assert why.code == 0, why.err
    found = json.loads(why.out)
    assert found["class_size"] == 240
    assert {one["value"]: one["released"] for one in found["values"]}[VICTIM] is False
    said = decisions.run("try", question, database=True).out
    assert "too few people of the class list the value" in said
    nowhere = decisions.run("report", policy=False)
    assert (nowhere.code, (decisions.folder / "state").exists()) == (2, False)
    assert "there is none at" in nowhere.err
    decisions.run("key", "add", "notebook", "--organisation", "lab")
    report = decisions.run("report", database=True)
    assert report.code == 0, report.err
    assert "the audit log is whole" in report.out
    assert "what could leave" in report.out
    assert VICTIM not in report.out
    (decisions.folder / "state" / "audit").mkdir(mode=0o700)
    (decisions.folder / "state" / "audit" / "head").write_text("3\n")
    lost = decisions.run("report", policy=False)
    assert lost.code == 1
    assert "DAMAGED at the end: 3 records" in lost.out


def test_try_and_report_say_that_everything_is_closed_since_a_reset(decisions: DecisionService) -> None:
    decisions.run("key", "add", "notebook", "--organisation", "lab")
    assert decisions.run("reset", "--yes", policy=False).code == 0
    said = decisions.run("try", "SELECT movies FROM users", "--organisation", "lab", database=True).out
    assert "all budgets are spent since the reset; nothing is answered until 20" in " ".join(said.split())
    assert "leaves\n" not in said
    report = decisions.run("report").out
    assert "and nothing is answered until 20" in " ".join(report.split())
    assert "(--policy says when)" in " ".join(decisions.run("report", policy=False).out.split())


def test_try_says_what_was_asked_before_and_what_noise_may_change(decisions: DecisionService) -> None:
    question = ("try", "SELECT movies FROM users", "--organisation", "lab")
    policy = decisions.folder / "policy.toml"
    assert "no forecast" not in decisions.run(*question, database=True).out
    policy.write_text(policy.read_text().replace('mechanism = "q"', 'mechanism = "private"'))
    said = " ".join(decisions.run(*question, database=True).out.split())
    assert "no forecast" in said
    assert "401 of them have budget left" in said
    said = " ".join(decisions.run(*question[:-1], "poor", database=True).out.split())
    assert "over-budget the organisation has asked as many new questions" in said
    assert "no forecast" not in said
    rules = load_policy(policy)
    made = Gateway(connect(decisions.url), rules, decisions.folder / "state")
    made.decide(Client("a", "lab"), query_from_text(question[1], rules.asking))
    made.close()
    said = " ".join(decisions.run(*question, database=True).out.split())
    assert "no forecast" not in said
    assert "mechanism private asked before yes decided on 20" in said
    other = ("try", "SELECT movies FROM users WHERE city = 'Denver'", "--organisation", "lab")
    said = " ".join(decisions.run(*other, database=True).out.split())
    assert "counted 0 of them have budget left" in said
    assert "stays: the budgets of all people concerned are used up" in said


@pytest.mark.parametrize("harm", ["empty", "missing"])
def test_a_report_without_what_was_told_says_so_and_changes_nothing(
    harm: str, decisions: DecisionService
) -> None:
    state = decisions.folder / "state"
    decisions.run("key", "add", "notebook", "--organisation", "lab")
    assert decisions.run("report", policy=False).code == 0
    assert not (state / "ledger.sqlite").exists()
    assert decisions.run("report", database=True).code == 0
    (state / "ledger.sqlite").write_bytes(b"")
    if harm == "missing":
        (state / "ledger.sqlite").unlink()
    report = decisions.run("report", policy=False)
    assert report.code == 2
    assert "it is empty" in report.err if harm == "empty" else "there is none" in report.err
    assert "whole" not in report.out
    assert not (state / "ledger.sqlite").exists() or not (state / "ledger.sqlite").stat().st_size


@pytest.mark.parametrize(
    ("words", "policy", "database", "message"),
    [
        ((), False, True, "--policy is missing"),
        ((), True, False, "--database is missing"),
        (("--host", "0.0.0.0"), True, True, "--behind-proxy"),
        (("--port", "7", "--admin-port", "7"), True, True, "another port"),
        (("try", "SELECT movies FROM nowhere"), True, True, "users"),
        (("try", "{"), True, True, "body: expected"),
        (("check",), False, False, "--policy is missing"),
        (("key", "remove", "nobody"), False, False, "there are: none"),
    ],
    ids=range(8),
)
def test_mistakes_are_explained(
    decisions: DecisionService, words: tuple[str, ...], policy: bool, database: bool, message: str
) -> None:
    got = (
        decisions.run(*words, policy=policy, database=database)
        if words[:1] != ("key",)
        else decisions.run(*words, policy=False)
    )
    assert got.code == 2
    assert message in got.err
    assert "Traceback" not in got.err
