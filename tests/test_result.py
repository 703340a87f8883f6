"""Assessments carry their doubt, add up, and read the same in every rendering."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from incrowd import Advice, Assessment, Assumptions, Direction, Evidence, Standing, Threat
from incrowd.result import to_frame


def make(**changes: Any) -> Assessment:
    fields: dict[str, Any] = {
        "measure": "anonymity",
        "subject": "you in r/books",
        "value": 12.0,
        "unit": "people",
        "direction": Direction.HIGHER_IS_SAFER,
        "meaning": "12 people in r/books write as you do.",
        "standing": Standing.PROVED,
        "assumptions": Assumptions(adversary="someone who has read the forum", parameters={"d": 0.8}, seed=7),
    }
    return Assessment(**(fields | changes))


def test_an_exact_value_has_no_interval() -> None:
    assert make().exact
    assert not make(interval=(10.0, 14.0)).exact


def test_undefined_needs_a_reason_and_says_it() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        make(value=math.nan)
    undefined = make(value=math.nan, reason="no words are left after cleaning")
    assert undefined.sentence() == "Cannot tell for you in r/books: no words are left after cleaning."
    assert undefined.to_dict()["value"] is None
    assert not undefined.defined


def test_an_interval_is_ordered() -> None:
    with pytest.raises(ValueError, match="low, high"):
        make(interval=(3.0, 1.0))


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20))
def test_evidence_must_add_up(contributions: list[float]) -> None:
    evidence = tuple(Evidence(what=f"word {i}", contribution=c) for i, c in enumerate(contributions))
    total = math.fsum(contributions)
    assert make(evidence=evidence, explained=total).evidence == evidence
    with pytest.raises(ValueError, match="adds up"):
        make(evidence=evidence, explained=total + 0.1)


def test_the_dictionary_is_plain_json() -> None:
    import numpy as np

    whole = make(
        value=np.float64(3.5),
        baseline=0.25,
        crowd_rank=np.int64(2),
        threats=(Threat.LINKABILITY,),
        advice=(Advice(what="drop a post", before=3.5, after=8.0),),
        assumptions=Assumptions(
            adversary="a", parameters={"radii": (0.1, np.float32(0.5)), "worst": math.inf}
        ),
    )
    parsed = json.loads(json.dumps(whole.to_dict(), allow_nan=False))
    assert parsed["value"] == 3.5
    assert parsed["crowd_rank"] == 2
    assert parsed["threats"] == ["linkability"]
    assert (
        parsed["advice"][0]["what"] == parsed["advice"][0]["action"] == "drop a post"
    )  # the latter is 0.1's name
    assert parsed["assumptions"]["parameters"] == {"radii": [0.1, 0.5], "worst": "inf"}
    assert parsed["sentence"] == whole.sentence()


def test_a_frame_has_one_row_an_assessment() -> None:
    frame = to_frame([make(), make(value=3.0, interval=(1.0, 4.0), crowd_rank=5)])
    assert frame.height == 2
    assert frame["low"].to_list() == [12.0, 1.0]
    assert frame["crowd_rank"].to_list() == [None, 5]
    assert make().to_frame().height == 1
    assert to_frame([]).height == 0


def test_the_terminal_shows_sentence_baseline_rank_and_the_rest_of_the_evidence() -> None:
    evidence = tuple(Evidence(what=f"[word] {i}", contribution=1.0) for i in range(12))
    shown = make(
        evidence=evidence,
        explained=12.0,
        baseline=1.0,
        crowd_rank=3,
        crowd_size=1234,
        interval=(11.0, 13.0),
        advice=(Advice(what="delete [one] post", before=12.0, after=20.0),),
    )
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - closed with the test
    console.print(shown)
    text = console.export_text()
    console.file.close()
    for part in (
        "12 people in r/books",
        "3 of 1,234",
        "12 people, from 11 to 13",
        "[word] 0",
        "4 more",
        "delete [one] post",
    ):
        assert part in text
