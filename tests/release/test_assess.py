"""An assessment of an answer says the number, its standing, and what to withhold."""

from __future__ import annotations

import math

from incrowd.measures.release.assess import assess
from incrowd.measures.release.patterns import PatternCounts
from incrowd.measures.release.spec import Budget
from incrowd.result import Direction, Standing

PAPER = {"Avatar": ["A", "C", "D"], "Titanic": ["A", "B", "D"], "Terminator": ["B", "C"]}


def test_the_papers_example_in_words():
    found = assess(PAPER, threshold=2)
    assert found.value == 5 / 3
    assert found.exact
    assert (found.unit, found.standing, found.direction) == (
        "q_measured",
        Standing.HEURISTIC,
        Direction.HIGHER_IS_SAFER,
    )
    assert "60.0%" in found.sentence()
    assert "5 groups" in found.sentence()
    assert found.baseline == 4
    assert found.evidence[0].contribution == 5 / 3


def test_an_unsafe_answer_comes_with_what_to_withhold_and_the_measured_effect():
    found = assess(PAPER, threshold=2)
    (advice,) = found.advice
    assert advice.what == "Withhold 1 of 3 values."
    assert advice.before == 5 / 3
    assert advice.after >= 2
    (nothing,) = assess(PAPER, threshold=50).advice
    assert nothing.what == "Release nothing of this answer."


def test_a_safe_answer_needs_no_advice():
    assert assess({"x": list(range(40))}, threshold=10).advice == ()


def test_nothing_released_is_undefined_with_a_reason():
    found = assess({})
    assert math.isnan(found.value)
    assert found.reason.startswith("nothing_released")


def test_over_budget_the_value_is_undefined_and_the_interval_proved(rng):
    crowd = PatternCounts.from_counts({rng.getrandbits(40) | 1 << i: 1 for i in range(40) for _ in range(5)})
    found = assess(crowd, budget=Budget(seconds=0.02))
    assert math.isnan(found.value)
    assert found.interval is not None
    assert found.reason.startswith("over_budget: q is proved to lie between")


def test_no_value_or_user_appears_in_an_assessment():
    text = str(assess({"secret taste": ["Anne", "another"], "x": ["another"]}).to_dict())
    assert "secret" not in text
    assert "Anne" not in text
