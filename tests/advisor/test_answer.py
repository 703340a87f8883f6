"""The answer's values: they combine, compare, and go to JSON and back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.advisor.answer import Action, Plan, Verdict
from incrowd.errors import InputError
from incrowd.measures.protocol import Changes, Effect, Finding, Level, ThemeName, measure_named
from incrowd.result import Assessment, Assumptions, Direction, Standing

numbers = st.frozensets(st.integers(0, 50), max_size=5)
names = st.frozensets(st.text(max_size=5), max_size=4)
changes = st.builds(
    Changes,
    delete_posts=numbers,
    move_posts=numbers,
    edit_words=names,
    drop_items=names,
    withhold_attributes=names,
)


@given(changes)
def test_changes_survive_json(some: Changes) -> None:
    assert Changes.from_dict(json.loads(json.dumps(some.to_dict()))) == some


@given(changes, changes)
def test_both_changes_at_once_do_what_each_does(a: Changes, b: Changes) -> None:
    both = a | b
    assert both.gone_posts == a.gone_posts | b.gone_posts
    assert both.drop_items == a.drop_items | b.drop_items
    assert not both.delete_posts & both.move_posts


def test_no_changes_are_false() -> None:
    assert not Changes()
    assert Changes(edit_words=frozenset({"hm"}))


@pytest.mark.parametrize("plain", [{"posts": [1]}, {"delete_posts": ["x"]}, {"drop_items": 3}])
def test_changes_that_cannot_be_read_are_refused(plain: dict[str, object]) -> None:
    with pytest.raises(InputError, match="changes"):
        Changes.from_dict(plain)


def test_what_cannot_be_told_ranks_before_well_hidden_and_nothing_is_safe() -> None:
    order = sorted(Level, key=lambda level: -level.severity)
    assert order == [Level.AT_RISK, Level.WATCH, Level.CANNOT_TELL, Level.WELL_HIDDEN]
    assert "safe" not in {str(level) for level in Level}


def effect(**changed: Any) -> Effect:
    plain: dict[str, Any] = {
        "theme": ThemeName.LINKABLE,
        "measure": "linkability",
        "subject": "you in a and b",
        "adversary": "someone",
        "unit": "people",
        "direction": Direction.HIGHER_IS_SAFER,
        "before": 1.0,
        "after": 1.0,
        "level_before": Level.AT_RISK,
        "level_after": Level.WELL_HIDDEN,
    }
    return Effect(**{**plain, **changed})


def test_an_effect_says_when_the_profile_is_gone() -> None:
    gone = effect(after=math.nan, level_after=Level.CANNOT_TELL)
    assert "1 person → no profile left" in gone.sentence()


def test_an_effect_is_one_plain_line_without_the_name_of_a_measure() -> None:
    told = effect(before=1.9731, after=10.668)
    assert told.sentence() == "you in a and b: 2 people → 10.7 people; at risk → well hidden"
    same = effect(level_after=Level.AT_RISK)
    assert same.sentence() == "you in a and b: 1 person → 1 person; still at risk"


def test_a_rank_is_said_as_how_often_somebody_would_be_right() -> None:
    ranks = {"unit": "rank", "before": 1.0, "after": 1.0}
    told = effect(**ranks, success_before=0.94, success_after=0.04)
    assert "94% → 4%" in told.sentence()
    assert "rank 1 → rank 1" in effect(**ranks).sentence(), (
        "where nobody calibrated it, the rank is all there is"
    )


def test_as_many_people_and_a_surer_reader_are_told_apart() -> None:
    surer = effect(
        risk_before=0.55, risk_after=0.84, success_before=0.55, success_after=0.84, level_after=Level.AT_RISK
    )
    assert "1 person, right 55% of the time → 1 person, right 84% of the time" in surer.sentence()
    fewer = effect(before=4.0, risk_before=0.25, risk_after=0.84, success_before=0.25, success_after=0.84)
    assert "4 people → 1 person;" in fewer.sentence(), "the numbers of people say it"


@pytest.mark.parametrize(
    ("recheck", "said", "promised"),
    [(math.nan, "2%", Level.WELL_HIDDEN), (0.01, "2%", Level.WELL_HIDDEN), (0.33, "33%", Level.WATCH)],
)
def test_an_action_says_the_number_that_holds_by_both_attackers(
    recheck: float, said: str, promised: Level
) -> None:
    found = effect(
        unit="probability", before=0.9, after=0.02, risk_before=0.9, risk_after=0.02, recheck=recheck
    )
    action = Action(what="Delete it", loss="a post", changes=Changes(), effect=found)
    assert action.promised is promised
    assert action.outcome == f"you in a and b: 90% → {said}; at risk → {promised}"
    plain = action.to_dict()
    assert (plain["promised"], plain["outcome"]) == (promised, action.outcome)


def test_what_becomes_worse_is_said_before_the_rest() -> None:
    worse = effect(subject="you in c", level_before=Level.WELL_HIDDEN, level_after=Level.AT_RISK, before=20.0)
    action = Action(what="Delete it", loss="a post", changes=Changes(), effect=effect(), also=(worse,))
    assert action.warning == (
        "It also makes something worse: you in c: 20 people → 1 person; well hidden → at risk."
    )


@pytest.mark.parametrize(
    ("measure", "after", "said"),
    [("exposure", 1.0, True), ("exposure", 40.0, False), ("anonymity", 1.0, False)],
)
def test_an_effect_says_why_a_rank_that_stays_is_no_longer_grave(
    measure: str, after: float, said: bool
) -> None:
    def found(value: float, level: Level) -> Finding:
        about = Assessment(
            measure=measure,
            subject="you",
            value=value,
            unit="rank",
            direction=Direction.HIGHER_IS_SAFER,
            meaning="",
            standing=Standing.HEURISTIC,
            assumptions=Assumptions(adversary="someone"),
        )
        return Finding(assessment=about, theme=ThemeName.EXPOSED, level=level, risk=0.5)

    told = measure_named(measure).effect(found(1.0, Level.AT_RISK), found(after, Level.WELL_HIDDEN))
    assert ("too faint" in told.sentence()) is said


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (("a passing interest", 0.19), ("a passing interest", 0.13), "only 9% of the doubt"),
        (("a lasting personal interest", 0.3), ("a passing interest", 0.08), ""),
        (
            ("little out of the ordinary", 0.18),
            ("a passing interest", 0.18),
            "it then looks like a passing interest",
        ),
        (("a passing interest", 0.3), ("little out of the ordinary", 0.2), "too faint to look personal"),
    ],
)
def test_a_level_that_does_not_follow_from_the_number_has_its_reason_beside_it(
    before: tuple[str, float], after: tuple[str, float], note: str
) -> None:
    def found(looks: str, chance: float) -> Finding:
        about = Assessment(
            measure="exposure",
            subject="you in a, topic b",
            value=40.0,
            unit="rank",
            direction=Direction.HIGHER_IS_SAFER,
            meaning="",
            standing=Standing.HEURISTIC,
            crowd_size=100,
            assumptions=Assumptions(
                adversary="someone", parameters={"looks_like": looks, "probability": chance, "prior": 0.041}
            ),
        )
        return measure_named("exposure").finding(about)

    told = measure_named("exposure").effect(found(*before), found(*after))
    assert told.turns
    assert note in told.sentence()
    assert bool(told.note) is bool(note)


def test_a_plan_does_not_claim_what_could_not_be_measured() -> None:
    def goal(level: Level, *, reached: bool) -> str:
        told = Verdict(level=level, sentence="")
        return Plan(changes=Changes(), steps=(), loss="", effects=(), reached=reached, verdict=told).goal

    assert goal(Level.WELL_HIDDEN, reached=True) == "reaches all your targets"
    assert goal(Level.CANNOT_TELL, reached=True) == "brings all that could be measured to your targets"
    assert goal(Level.CANNOT_TELL, reached=False) == "helps, but does not reach every target"
