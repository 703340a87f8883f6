"""What advice promises is what the measures say after the person did it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
from tests.advisor.making import MEASURE_ONLY, QUICK, applied, concerned, own, some_people, values

from incrowd.advisor.advice import is_missed
from incrowd.advisor.answer import PersonReport
from incrowd.advisor.assess import assess, what_if
from incrowd.crowd import Crowd
from incrowd.measures.microdata.ready import HELD_BY
from incrowd.measures.protocol import AdvisorOptions, Changes, Effect, Level, Role, Targets


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


def test_items_that_are_listed_instead_count_as_if_they_were_there(tiny_crowd: Crowd, tmp_path: Path) -> None:
    alex = own(tiny_crowd, "alex")
    held = tiny_crowd.items().group_by("item").len().sort("len", "item", descending=True).collect()["item"]
    common = [item for item in held if item not in alex.items][:3]
    changes = Changes(drop_items=frozenset(sorted(alex.items)[:2]), add_items=frozenset(common))
    told = what_if(tiny_crowd, "alex", changes, options=concerned(changes))
    changed = applied(tiny_crowd, "alex", changes, tmp_path / "changed")
    done = values(assess(changed, "alex", options=concerned(changes)))
    sizes = {one.key: one.assessment.value for one in told.findings if one.role is Role.PAPER}
    assert len(sizes) >= 5
    for key, value in sizes.items():
        assert math.isclose(done[key], value, rel_tol=1e-9), key


def test_to_list_common_items_instead_helps_more_than_to_list_fewer(tmp_path: Path) -> None:
    """Everybody lists twenty to thirty items; of all whom an item fits the shortest list is named first."""
    rng = np.random.default_rng(0)
    taste = 1 / (np.arange(100) + 10)
    lists = [rng.choice(100, rng.integers(20, 31), replace=False, p=taste / taste.sum()) for _ in range(80)]
    mine = [("me", f"item {k}") for k in range(40, 80, 2)]
    rows = [(f"p{who}", f"item {k}") for who, some in enumerate(lists) for k in some] + mine
    crowd = Crowd.from_frame(
        pl.DataFrame(rows, schema=["user", "item"], orient="row"), kind="items", path=tmp_path / "c"
    )
    report = assess(crowd, "me")
    assert report.verdict.level is Level.AT_RISK
    instead = next(one for one in report.actions if one.changes.drop_items and one.changes.add_items)
    assert instead.promised is not Level.AT_RISK
    assert len(instead.changes.add_items) == len(instead.changes.drop_items) <= len(mine) / 2
    assert "that you had not meant to list" in instead.loss
    fewer = what_if(crowd, "me", Changes(drop_items=instead.changes.drop_items))
    assert instead.effect.risk_after < {one.key: one.risk for one in fewer.findings}[instead.aim]
    holders = dict(crowd.items().filter(pl.col("user") != "me").group_by("item").len().collect().iter_rows())
    assert all(holders[item] >= HELD_BY for item in instead.changes.add_items), "nobody is named by them"
