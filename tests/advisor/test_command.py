"""`incrowd assess` and `incrowd demo` as a person meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.running import incrowd

import incrowd as front_door
from incrowd.advisor.answer import PersonReport
from incrowd.crowd import Crowd


def test_the_answer_comes_in_the_order_in_which_to_read_it(
    tiny_crowd: Crowd, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    outcome = incrowd(capsys, "assess", tiny_crowd.path, "--user", "alex", "--quick")
    assert outcome.code == 0
    order = [
        "You are at risk",
        "Can your profiles be linked?",
        "Why",
        "What to do",
        "What could not be told",
        "Fine print",
    ]
    places = [outcome.out.index(words) for words in order]
    assert places == sorted(places)
    assert "because of" in outcome.out
    assert tiny_crowd.data_hash in outcome.out


def test_json_report_and_label_say_the_same(
    tiny_crowd: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, label = tmp_path / "alex.html", tmp_path / "alex.svg"
    outcome = incrowd(
        capsys, "assess", tiny_crowd.path, "--user", "alex", "--quick", "--json", "--html", page, "--label", label
    )  # fmt: skip
    plain = json.loads(outcome.out)
    assert plain["verdict"]["level"] == "at risk"
    assert plain["verdict"]["sentence"] in page.read_text("utf-8")
    assert "at risk" in label.read_text("utf-8")
    assert all(post["text"] is None for post in plain["posts"])


def test_a_second_look_loads_nothing_that_takes_long(tiny_crowd: Crowd, alex: PersonReport) -> None:
    code = (
        "import sys; from incrowd.cli import main\n"
        "sys.argv = ['incrowd', 'assess', sys.argv[1], '--user', 'alex', '--json']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ('numba', 'duckdb', 'narwhals', 'jinja2', 'sklearn', 'scipy.optimize', 'incrowd.cli.gateway')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tiny_crowd.path)], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert json.loads(done.stdout)["verdict"]["sentence"] == alex.verdict.sentence


def test_a_risk_above_the_line_ends_with_one(tiny_crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("assess", tiny_crowd.path, "--user", "alex", "--adversary", "three-items", "--json")
    risk = json.loads(incrowd(capsys, *asked).out)["risk"]
    assert incrowd(capsys, *asked, "--fail-above", str(risk - 0.01)).code == 1
    assert incrowd(capsys, *asked, "--fail-above", str(risk + 0.01)).code == 0


@pytest.mark.parametrize(
    "wrong",
    [("--adversary", "neighbour"), ("--people", "0"), ("--radius", "3"), ("--user", "nobody")],
)
def test_a_mistake_is_one_line_and_exit_code_two(
    tiny_crowd: Crowd, capsys: pytest.CaptureFixture[str], wrong: tuple[str, str]
) -> None:
    outcome = incrowd(capsys, "assess", tiny_crowd.path, "--user", "alex", *wrong)
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1
    assert wrong[0].strip("-") in outcome.err or wrong[0] == "--user"
    assert outcome.out == ""


def test_the_front_door_leads_to_the_advisor() -> None:
    from incrowd.advisor.assess import assess

    assert front_door.assess is assess


def test_the_demonstration_ends_in_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = incrowd(capsys, "demo", "--out", tmp_path, "--users", "50", "--no-open")
    assert outcome.code == 0
    assert "incrowd ingest" in outcome.out.strip().splitlines()[-1]
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "alex" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
