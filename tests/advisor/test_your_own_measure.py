"""A measure in one file, registered by one line, shows up everywhere; the tutorial teaches that file."""

from __future__ import annotations

import json
import math
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import incrowd
from tests.web.visiting import form_key, options_for, visitor, wait_for

import incrowd as front
from incrowd.cli.commands import build
from incrowd.crowd import Crowd
from incrowd.measures import REGISTERED
from incrowd.report.person import person_report_page

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"


@pytest.fixture
def hours() -> Iterator[type[Any]]:
    """The tutorial's measure, registered for one test."""
    measure: type[Any] = runpy.run_path(str(TUTORIALS / "posting_hours.py"))["PostingHours"]
    front.register(measure)
    yield measure
    del REGISTERED["hours"]


def only() -> front.AdvisorOptions:
    """Ask this measure's adversary alone."""
    return front.AdvisorOptions(adversaries=("clock",), advice=False)


def test_the_tutorial_teaches_the_file() -> None:
    page = (TUTORIALS / "your-own-measure.md").read_text("utf-8")
    taught = "".join(re.findall(r"```python\n(.*?)```", page, re.S))
    for line in (TUTORIALS / "posting_hours.py").read_text("utf-8").splitlines():
        assert line in taught


def test_it_is_short() -> None:
    lines = (TUTORIALS / "posting_hours.py").read_text("utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith('"""')]
    assert len(code) <= 50


@pytest.mark.usefixtures("hours")
def test_it_is_assessed_and_on_the_report_page(tiny_crowd: Crowd) -> None:
    report = front.assess(tiny_crowd, "alex", options=only())
    assert {one.measure for one in report.assessments} == {"hours"}
    singled_out = next(one for one in report.themes if one.name is front.ThemeName.SINGLED_OUT)
    assert all("post at about the hours you do" in one.sentence() for one in singled_out.assessments)
    assert "post at about the hours you do" in person_report_page(report)
    assert report.to_dict()["fine_print"]["adversaries"] == ["someone who sees when people post"]


@pytest.mark.usefixtures("hours")
def test_it_answers_what_if(tiny_crowd: Crowd) -> None:
    posts = front.own_posts(tiny_crowd, "alex")
    gone = frozenset(posts.filter(community="cycling")["number"].to_list())
    after = front.what_if(tiny_crowd, "alex", front.Changes(delete_posts=gone), options=only())
    assert [one.subject for one in after.assessments] == ["you in gardening"]


@pytest.mark.usefixtures("hours")
def test_it_checks_drafts(tiny_crowd: Crowd) -> None:
    night = front.draft(tiny_crowd, "alex", "cycling", "Cannot sleep.", options=only(), time=3 * 3600)
    (change,) = night.changes
    assert change.measure == "hours"
    assert not math.isnan(change.before)
    assert not math.isnan(change.after)


@pytest.mark.usefixtures("hours")
def test_it_is_in_the_crowd_report(tiny_crowd: Crowd) -> None:
    assert "hours" in {
        one.name for one in front.crowd_report(tiny_crowd, options=front.CrowdOptions(sampled=5)).spreads
    }


@pytest.mark.usefixtures("hours")
def test_it_has_a_command(tiny_crowd: Crowd, capsys: pytest.CaptureFixture[str]) -> None:
    assert "hours" in {one.name for one in build().registered_commands}
    told = incrowd(capsys, "hours", tiny_crowd.path, "--user", "alex", "--json")
    plain = json.loads(told.out)
    assert {one["measure"] for one in plain["assessments"]} == {"hours"}
    assert {"risk", "level", "theme"} <= set(plain["assessments"][0])
    assert "below 10" in incrowd(capsys, "hours", tiny_crowd.path).out


@pytest.mark.usefixtures("hours")
def test_it_has_its_place_in_the_web_tabs(tiny_crowd: Crowd) -> None:
    with visitor(options_for(tiny_crowd.path)) as client:
        ended = wait_for(client, client.post("/assess", data={"form_key": form_key(client), "name": "alex"}))
        assert ended["state"] == "done", ended
        assert "post at about the hours you do" in client.get(f"{ended['url']}/singled-out").text
