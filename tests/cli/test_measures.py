"""The commands on people who write: text, JSON, exit codes, one-line errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from incrowd.cli import app
from incrowd.crowd import Crowd

RUN = CliRunner()


def run(*arguments: str, code: int = 0) -> str:
    result = RUN.invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def test_anonymity_of_a_community_and_a_member(tiny_crowd: Crowd, tmp_path: Path) -> None:
    folder = str(tiny_crowd.path)
    found = json.loads(run("anonymity", folder, "--community", "cycling", "--json"))
    assert {"members", "radius", "sizes"} <= set(found)
    picture = tmp_path / "crowd.svg"
    assert "members" in run("anonymity", folder, "--community", "cycling", "--picture", str(picture))
    assert picture.read_text("utf-8").startswith("<svg")
    assert "you in cycling" in run("anonymity", folder, "--community", "cycling", "--user", "alex")
    run("anonymity", folder, "--community", "cycling", "--user", "alex", "--fail-above", "0.001", code=1)


def test_linkability_of_communities_and_a_person(tiny_crowd: Crowd) -> None:
    pair = ("linkability", str(tiny_crowd.path), "--source", "cycling", "--target", "gardening")
    assert json.loads(run(*pair, "--json"))["pairs"] > 5
    assert "guessing" in run(*pair)
    person = json.loads(run(*pair, "--user", "alex", "--json"))
    assert person["measure"] == "linkability"
    run(*pair, "--fail-above", "0.0", code=1)


def test_studies_write_a_page(tiny_crowd: Crowd, tmp_path: Path) -> None:
    for name in ("anonymity", "linkability"):
        out = tmp_path / f"{name}.html"
        run("study", name, str(tiny_crowd.path), "--min-posts", "5", "--min-pairs", "3", "--out", str(out))
        assert out.read_text("utf-8").startswith("<!doctype html>")


def test_the_demo_repeats_byte_for_byte(tmp_path: Path) -> None:
    pages = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        shown = json.loads(run("demo", "--out", str(folder), "--users", "60", "--json"))
        assert len(shown["assessments"]) >= 3
        pages.append((folder / "report.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_mistake_is_one_line_without_a_traceback(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import sys

    from incrowd.cli import main

    before = sys.argv
    sys.argv = ["incrowd", "anonymity", str(tmp_path / "nowhere"), "--community", "x"]
    try:
        with pytest.raises(SystemExit) as stopped:
            main()
    finally:
        sys.argv = before
    assert stopped.value.code == 2
    error = capfd.readouterr().err
    assert error.startswith("incrowd: ")
    assert "Traceback" not in error
