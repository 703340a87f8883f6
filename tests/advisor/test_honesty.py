"""What advice promises is what the measures say after the person did it."""

from __future__ import annotations

import math
from pathlib import Path

from tests.advisor.making import MEASURE_ONLY, QUICK, applied, concerned, some_people, values

from incrowd.advisor.advice import is_missed
from incrowd.advisor.answer import PersonReport
from incrowd.advisor.assess import assess, what_if
from incrowd.crowd import Crowd
from incrowd.measures.protocol import AdvisorOptions, Changes, Effect, Targets


def check(promised: list[Effect], changes: Changes, crowd: Crowd, user: str, path: Path) -> int:
    """Do it, measure again, compare; return how many numbers were compared."""
    changed = applied(crowd, user, changes, path)
    measured = values(assess(changed, user, options=concerned(changes)))
    compared = 0
    for effect in promised:
        secret = effect.subject.removeprefix("your ")
        if not effect.exact or "other name" in effect.subject or secret in changes.withhold_attributes:
            continue  # simulated; about a name that is not in the crowd; no longer in the crowd to be checked
        key = (effect.measure, effect.subject, effect.adversary, effect.unit)
        got = measured.get(key, math.nan)
        both_gone = math.isnan(got) and math.isnan(effect.after)
        assert both_gone or math.isclose(got, effect.after, rel_tol=1e-9), key
        compared += 1
    return compared


def of_each_kind(report: PersonReport) -> list[tuple[list[Effect], Changes]]:
    """Return one action of each kind, and the plan."""
    by_kind = {}
    for action in report.actions:
        kind = tuple(name for name, part in action.changes.to_dict().items() if part)
        by_kind.setdefault(kind, ([action.effect, *action.also], action.changes))
    cases = list(by_kind.values())
    if report.plan is not None and report.plan.changes:
        cases.append((list(report.plan.effects), report.plan.changes))
    return cases


def test_alex_gets_what_was_promised(tiny_crowd: Crowd, alex: PersonReport, tmp_path: Path) -> None:
    cases = of_each_kind(alex)
    assert len(cases) >= 5
    for number, (effects, changes) in enumerate(cases):
        quick = [one for one in effects if one.exact]
        assert check(quick, changes, tiny_crowd, "alex", tmp_path / str(number)) >= 1


def test_somebody_in_many_places_gets_what_was_promised(tiny_crowd: Crowd, tmp_path: Path) -> None:
    user = some_people(tiny_crowd, 8)[3]
    report = assess(tiny_crowd, user, options=QUICK)
    cases = of_each_kind(report)
    assert cases
    for place, (effects, changes) in enumerate(cases[-2:]):
        check(effects, changes, tiny_crowd, user, tmp_path / str(place))


def test_every_action_helps_where_it_is_aimed(tiny_crowd: Crowd, alex: PersonReport) -> None:
    assert alex.actions
    before = values(alex)
    for action in alex.actions:
        effect = action.effect
        assert effect.before == before[effect.measure, effect.subject, effect.adversary, effect.unit]
        assert action.promised.severity < effect.level_before.severity


def test_what_if_says_what_the_action_promised(tiny_crowd: Crowd, alex: PersonReport) -> None:
    for action in alex.actions[:4]:
        after = values(what_if(tiny_crowd, "alex", action.changes, options=AdvisorOptions(advice=False)))
        effect = action.effect
        got = after[effect.measure, effect.subject, effect.adversary, effect.unit]
        assert math.isclose(got, effect.after, rel_tol=1e-9)


def test_nothing_changed_changes_nothing(tiny_crowd: Crowd, alex: PersonReport) -> None:
    same = what_if(tiny_crowd, "alex", Changes(), options=MEASURE_ONLY)
    assert values(same).items() <= values(alex).items()
    assert not same.changes


def test_the_plan_gives_up_no_more_than_allowed(tiny_crowd: Crowd) -> None:
    options = AdvisorOptions(thorough=False, targets=Targets(people=3, loss=0.2))
    report = assess(tiny_crowd, "alex", options=options)
    assert report.plan is not None
    after = what_if(tiny_crowd, "alex", report.plan.changes, options=options)
    missed = [one for one in after.findings if is_missed(one, options.targets)]
    assert report.plan.reached == (not missed)
    assert len(report.plan.missed) == len(missed)
    assert len(report.plan.changes.drop_items) <= 0.2 * 45
    gone = report.plan.changes.gone_posts
    assert sum(number < 140 for number in gone) <= 0.2 * 140


def test_a_name_of_its_own_is_looked_at_as_well(tiny_crowd: Crowd) -> None:
    moved = Changes(move_posts=frozenset(range(60)))
    after = what_if(tiny_crowd, "alex", moved, options=MEASURE_ONLY)
    (names,) = (one for one in after.assessments if "other name" in one.subject)
    assert names.measure == "linkability"
    assert names.value >= 1


def test_the_same_question_gets_the_same_bytes(tiny_crowd: Crowd) -> None:
    import json

    first, again = (json.dumps(assess(tiny_crowd, "alex", options=QUICK).to_dict()) for _ in range(2))
    assert first == again
