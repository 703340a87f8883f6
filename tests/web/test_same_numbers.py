"""What `assess` says is the same in the terminal, in JSON, on the page and in the web."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from benchmarks.same_numbers import missing, views

from incrowd.crowd import Crowd

PEOPLE = ("alex", "biso_55", "dofa_56")


@pytest.fixture(scope="module", params=PEOPLE)
def told(request: pytest.FixtureRequest, tiny_crowd: Crowd) -> tuple[dict[str, Any], dict[str, str]]:
    return views(tiny_crowd.path, request.param)


def test_text_page_and_web_say_what_the_json_says(told: tuple[dict[str, Any], dict[str, str]]) -> None:
    report, shown = told
    assert {name: [*missing(report, view)] for name, view in shown.items()} == {
        "text": [],
        "page": [],
        "web": [],
    }


def test_another_number_would_be_noticed(told: tuple[dict[str, Any], dict[str, str]]) -> None:
    report, shown = told
    other = copy.deepcopy(report)
    other["verdict"]["sentence"] += " Or not."
    for reason in other["reasons"][:1]:
        for part in reason["evidence"]:
            part["contribution"] *= 1 + 3 * (part is reason["evidence"][0])
    for action in other["actions"][:1]:
        action["effect"]["before"] = action["effect"]["success_before"] = 0.4321
    expected = 1 + bool(other["reasons"]) + bool(other["actions"])
    for view in shown.values():
        assert len([*missing(other, view)]) >= expected
