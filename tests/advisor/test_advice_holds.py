"""Advice that holds: what gives somebody away, who is asked once more, and what is not promised."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.advice import Judges, measured
from tests.advisor.making import own

from incrowd.advisor.advice import _does_as_much, _is_worth_it
from incrowd.advisor.answer import Action, PersonReport, not_better
from incrowd.advisor.assess import _look_for_plan, assess, measure_plan
from incrowd.advisor.assessor import Assessor
from incrowd.advisor.combine import LEAST_SHARE, MOST_PARTS
from incrowd.crowd import Crowd
from incrowd.measures.attackers import ATTACKERS, RECHECK, Lineup
from incrowd.measures.exposure.assess import LITTLE, PASSING
from incrowd.measures.protocol import (
    Changes,
    Effect,
    Finding,
    Level,
    Person,
    Targets,
    measure_named,
    shortened,
)
from incrowd.measures.search import delete_first, first_to_reach, start_over, steps
from incrowd.measures.telling import Kind, Telling, by_kind, habit_names, rarity_of, same_hours, same_weeks
from incrowd.profiles.habits import TEXT_FAMILIES, post_habits
from incrowd.result import Assessment, Assumptions, Direction, Standing

OTHERS = [f"we met at noon and talked about tea number {k}" for k in range(30)]
EARLIER = ["Honestly speaking, the train to Vilnius was late", "honestly speaking i like soup !!"]
LATER = ["well honestly speaking, my friend in Vilnius left", "nothing of note today"]


def telling(earlier: list[str] = EARLIER, later: list[str] = LATER) -> Telling:
    counted = [post_habits(pl.Series(texts)) for texts in (earlier, later, OTHERS)]
    rarity = {
        name: rarity_of([counted[2].rows[name]], counted[2].rows[name].shape[1]) for name in TEXT_FAMILIES
    }
    # What nobody else does is as rare as can be.
    rarity = {name: np.where(rare > 0, rare, np.log(31 / 2) + 1) for name, rare in rarity.items()}
    return Telling.of(counted[0], counted[1], rarity)


def test_what_gives_somebody_away_is_what_both_halves_share_and_others_do_not() -> None:
    weights = dict.fromkeys(TEXT_FAMILIES, 1.0)
    habits = telling().named([*EARLIER, *LATER], weights)
    kinds = {one.name: one.kind for one in habits}
    assert kinds["“vilnius”"] is Kind.NAMES
    assert kinds["“honestly speaking”"] is Kind.PHRASES
    assert kinds["“honestly”"] is Kind.WORDS
    assert "“soup”" not in kinds
    assert math.isclose(sum(one.share for one in habits), 1.0)
    assert [one.share for one in habits] == sorted((one.share for one in habits), reverse=True)
    told = by_kind(habits)
    assert 0.9 < sum(one.share for one in told) <= 1.0 + 1e-9
    assert all(one.examples and one.advice for one in told)


def test_a_word_is_no_spelling_however_short_or_with_capitals_inside_but_a_face_is() -> None:
    earlier, later = ["they pay the BFA to McKnight xD", "so pay up"], ["we pay McKnight for a BFA xD"]
    habits = telling(earlier, later).named([*earlier, *later], dict.fromkeys(TEXT_FAMILIES, 1.0))
    kinds = {one.name: one.kind for one in habits}
    assert kinds["“pay”"] is kinds["“bfa”"] is Kind.WORDS
    assert kinds["“mcknight”"] is Kind.NAMES
    assert kinds["“xD”"] is Kind.WRITING
    assert {"“BFA”", "“pay”"} & {one.name for one in habits if one.kind is Kind.WRITING} == set()


def test_an_apostrophe_of_a_telephone_is_spelling_and_no_name_or_rare_word() -> None:
    earlier, later = ["And there I’m sure we don’t"], ["Now that I’m here you don’t"]
    habits = telling(earlier, later).named([*earlier, *later], dict.fromkeys(TEXT_FAMILIES, 1.0))
    kinds = {one.name: one.kind for one in habits}
    assert kinds["“don’t” with a curly apostrophe"] is kinds["“i’m” with a curly apostrophe"] is Kind.WRITING
    assert not [one for one in habits if one.kind in (Kind.NAMES, Kind.WORDS)]


def test_the_posts_that_show_it_have_the_shares() -> None:
    weights = dict.fromkeys(TEXT_FAMILIES, 1.0)
    shares = telling().posts(weights)
    assert math.isclose(shares.sum(), len(TEXT_FAMILIES))
    assert shares[0] > shares[1] > 0


def test_habits_are_called_what_the_texts_call_them() -> None:
    texts = ["Yes!! No", "no\n\nyes"]
    for family in TEXT_FAMILIES:
        rows = post_habits(pl.Series(texts), (family,)).rows[family]
        assert set(habit_names(texts, family, set(rows.indices.tolist()))) == set(rows.indices.tolist())


def test_times_in_common() -> None:
    week = 7 * 24 * 3600
    mine, theirs = pl.Series([0, 1, week, None]), pl.Series([5, 9 * week])
    assert same_weeks(mine, theirs).tolist() == [0.5, 0.5, 0.0, 0.0]
    assert same_hours(pl.Series([3600, 7200]), pl.Series([3700])).tolist() == [1.0, 0.0]


def test_the_other_attacker_ranks_and_scales_up() -> None:
    others = pl.Series(OTHERS)
    lineup = Lineup(others, [np.array([k]) for k in range(len(OTHERS))], people=300)
    mine = pl.Series(["zebras graze quietly"])
    assert lineup.risk(known=mine, asked=pl.Series(["quietly zebras graze"])) == 1.0
    # Somebody else's very words: all thirty are as like it, one in ten of them is here.
    assert lineup.risk(known=mine, asked=pl.Series([OTHERS[0]])) == pytest.approx(1 / 301)


def test_no_level_is_better_than_the_other_attacker_allows() -> None:
    told = [Level.AT_RISK, Level.WATCH, Level.WELL_HIDDEN]
    for before, after, recheck in product(told, told, (math.nan, 0.05, 0.3, 0.9)):
        found = not_better(after, recheck, before)
        assert found.severity >= after.severity
        assert found.severity <= max(after.severity, before.severity)
    assert not_better(Level.WELL_HIDDEN, 0.3, Level.AT_RISK) is Level.WATCH
    assert not_better(Level.WELL_HIDDEN, 0.9, Level.AT_RISK) is Level.AT_RISK
    assert not_better(Level.WELL_HIDDEN, math.nan, Level.AT_RISK) is Level.WELL_HIDDEN


def test_every_action_moves_its_finding_to_another_level(alex: PersonReport) -> None:
    assert alex.actions
    for one in alex.actions:
        assert one.promised.severity < one.effect.level_before.severity
        assert one.effect.decides


def test_links_are_asked_of_an_attacker_that_the_search_does_not_contain(alex: PersonReport) -> None:
    links = [one for one in alex.actions if one.effect.measure == "linkability"]
    assert links
    assert all(0 <= one.effect.recheck <= 1 for one in links)


def test_the_plan_holds_nothing_that_makes_another_question_worse_without_saying_so(
    alex: PersonReport,
) -> None:
    assert alex.plan is not None
    assert bool(alex.plan.warning) == bool(alex.plan.harms)
    parts: list[Action] = [one for one in alex.actions if not one.from_now_on]
    allowed = Changes()
    for one in parts:
        allowed |= one.changes
    assert alex.plan.changes.delete_posts <= allowed.delete_posts
    assert alex.plan.changes.edit_words <= allowed.edit_words


class OneFinding(Assessor):
    """Measures nothing: after any change three posts give the person away this often."""

    after = 0.08

    def assess(self, person: Person, **_: Any) -> Any:
        return (linked(self.after),), ()


def linked(chance: float) -> Finding:
    told = Assessment(
        measure="linkability",
        subject="you in a and b",
        value=chance,
        unit="probability",
        direction=Direction.LOWER_IS_SAFER,
        meaning=f"Somebody would be {chance:.0%} sure.",
        standing=Standing.HEURISTIC,
        assumptions=Assumptions(adversary="someone"),
        baseline=0.001,
        crowd_size=1000,
    )
    return measure_named("linkability").finding(told)


@pytest.mark.parametrize(
    ("recheck", "said", "reached"), [(0.02, "90% → 8%", True), (0.3, "90% → 30%", False)]
)
def test_a_plan_says_the_number_that_holds_by_both_attackers(
    tiny_crowd: Crowd, recheck: float, said: str, reached: bool
) -> None:
    assessor, now = OneFinding(own(tiny_crowd, "alex"), (), ()), linked(0.9)
    changes = Changes(delete_posts=frozenset(assessor.person.numbers[:1].tolist()))
    plan = measure_plan(assessor, [now], changes, (), {now.key: recheck}, Targets())
    assert said in plan.effects[0].sentence()
    assert plan.reached is reached
    assert plan.missed == (
        ()
        if reached
        else (
            "Somebody would be 8% sure. Somebody who compares in another way would be right 30% of the time.",
        )
    )
    assert plan.verdict.level is (Level.WELL_HIDDEN if reached else Level.WATCH)


class Fitting(Assessor):
    """Knows of each finding how often somebody is right once some posts are gone; of several rules the first holds."""

    rules: Any = ()

    def assess_again(self, person: Person, finding: Finding) -> Finding | None:
        gone = person.changes.delete_posts
        subject = finding.assessment.subject
        risks = (risk for about, posts, risk in self.rules if about == subject and posts <= gone)
        return found(subject, next(risks, finding.risk))


def found(subject: str, chance: float) -> Finding:
    return measure_named("linkability").finding(replace(linked(chance).assessment, subject=subject))


def fix(subject: str, before: float, after: float, posts: Iterable[int], *also: Effect) -> Action:
    effect = measure_named("linkability").effect(found(subject, before), found(subject, after))
    gone = Changes(delete_posts=frozenset(posts))
    return Action(what=f"Help {subject}", loss="posts", changes=gone, effect=effect, also=also)


def planned(crowd: Crowd, now: list[Finding], actions: list[Action], *rules: Any) -> Changes | None:
    assessor = Fitting(own(crowd, "alex"), (), ())
    object.__setattr__(assessor, "rules", [(about, frozenset(posts), risk) for about, posts, risk in rules])
    return _look_for_plan(assessor, now, actions, Targets())


LINK, SMALL, FEW, MANY = "the link", "a small thing", range(1, 3), range(10, 40)


def test_a_step_that_ends_being_at_risk_goes_in_though_another_step_takes_some_of_it_back(
    tiny_crowd: Crowd,
) -> None:
    now = [found(LINK, 0.95), found(SMALL, 0.2)]
    actions = [fix(LINK, 0.95, 0.08, MANY), fix(SMALL, 0.2, 0.05, FEW)]
    rules = (LINK, {*FEW, *MANY}, 0.13), (LINK, MANY, 0.08), (SMALL, FEW, 0.05)
    plan = planned(tiny_crowd, now, actions, *rules)
    assert plan is not None
    assert plan.delete_posts == {*FEW, *MANY}


def test_a_step_that_undoes_as_much_as_it_helps_is_left_out(tiny_crowd: Crowd) -> None:
    now = [found("one", 0.2), found("other", 0.2)]
    actions = [fix("one", 0.2, 0.05, FEW), fix("other", 0.2, 0.05, MANY)]
    rules = ("one", {*FEW, *MANY}, 0.15), ("one", FEW, 0.05), ("other", MANY, 0.05)
    plan = planned(tiny_crowd, now, actions, *rules)
    assert plan is not None
    assert plan.delete_posts == {*FEW}


def test_small_things_do_not_crowd_out_what_ends_being_at_risk(tiny_crowd: Crowd) -> None:
    """Half of the posts in a community end it; with two more for something small it would be more than half."""
    person = own(tiny_crowd, "alex")
    where = next(iter(person.communities))
    numbers = sorted(person.numbers[person.rows_in(where)].tolist())
    few, many = numbers[-2:], numbers[: len(numbers) // 2]
    now = [found(LINK, 0.95), found(SMALL, 0.2)]
    actions = [fix(LINK, 0.95, 0.08, many), fix(SMALL, 0.2, 0.05, few)]
    plan = planned(tiny_crowd, now, actions, (LINK, many, 0.08), (SMALL, few, 0.05))
    assert plan is not None
    assert plan.delete_posts == {*many}


@pytest.mark.parametrize(("risk", "goes_in"), [(0.95, True), (0.4, False)])
def test_what_makes_something_else_worse_is_only_for_those_at_risk(
    tiny_crowd: Crowd, risk: float, goes_in: bool
) -> None:
    harm = measure_named("linkability").effect(found(SMALL, 0.05), found(SMALL, 0.12))
    now = [found(LINK, risk), found(SMALL, 0.05)]
    plan = planned(tiny_crowd, now, [fix(LINK, risk, 0.08, FEW, harm)], (LINK, FEW, 0.08), (SMALL, FEW, 0.12))
    assert bool(plan) is goes_in


def test_a_plan_says_of_each_step_what_it_is_for(alex: PersonReport) -> None:
    assert alex.plan is not None
    assert alex.plan.steps
    assert set(alex.plan.steps) <= {one.what for one in alex.actions}
    steps = [one for one in alex.actions if one.what in alex.plan.steps]
    together = Changes()
    for one in steps:
        together |= one.changes
    assert together == alex.plan.changes
    severities = {one.what: one.effect.level_before.severity for one in steps}
    order = [severities[step] for step in alex.plan.steps]
    assert order == sorted(order, reverse=True), "against the worst first"


@pytest.mark.parametrize(("after", "worth"), [(0.05, True), (0.08, True), (0.095, False)])
def test_what_takes_back_little_is_not_worth_doing_even_where_it_crosses_a_line(
    after: float, worth: bool
) -> None:
    before, then = linked(0.11), linked(after)
    effect = measure_named("linkability").effect(before, then)
    action = Action(what="Do it", loss="something", changes=Changes(), effect=effect)
    assert _is_worth_it(action, before) is worth


@pytest.mark.parametrize(("chance", "worth"), [(0.1, True), (0.12, False)])
def test_a_topic_that_only_looks_less_personal_is_not_worth_its_posts(chance: float, worth: bool) -> None:
    def shown(looks: str, probability: float) -> Finding:
        about = {"looks_like": looks, "probability": probability, "prior": 0.03}
        told = replace(
            linked(1.0).assessment,
            measure="exposure",
            unit="rank",
            assumptions=Assumptions(adversary="someone", parameters=about),
        )
        return measure_named("exposure").finding(told)

    before, after = shown(PASSING, 0.14), shown(LITTLE, chance)
    effect = measure_named("exposure").effect(before, after)
    assert (effect.level_before, effect.level_after) == (Level.WATCH, Level.WELL_HIDDEN)
    action = Action(what="Do it", loss="something", changes=Changes(), effect=effect)
    assert _is_worth_it(action, before) is worth


def test_whom_nothing_helps_that_they_would_do_is_told_what_would(tmp_path: Path) -> None:
    others = [(f"p{who}", f"common {(who + k) % 6}") for who in range(40) for k in range(2)]
    mine = [("me", f"mine alone {k}") for k in range(4)] + [("me", f"common {k}") for k in range(3)]
    items = pl.DataFrame([*others, *mine], schema=["user", "item"], orient="row")
    crowd = Crowd.from_frame(items, kind="items", path=tmp_path / "c")
    report = assess(crowd, "me")
    assert report.verdict.level is Level.AT_RISK
    (action,) = report.actions
    assert action.beyond
    assert action.promised is not Level.AT_RISK
    assert "more than the 50% that you would give up, because less does not help" in action.loss
    assert len(action.changes.drop_items) == 5, "of seven, three would be at most half"
    assert report.plan is None, "a plan keeps to what somebody would give up"


def test_what_a_part_of_an_action_does_as_well_is_not_worth_the_whole() -> None:
    def action(risk: float, **changes: frozenset[Any]) -> Action:
        before, after = linked(0.9), linked(risk)
        effect = measure_named("linkability").effect(before, after)
        return Action(what="Do it", loss="something", changes=Changes(**changes), effect=effect)

    posts, words = frozenset({1, 2}), frozenset({"zebra"})
    less, more = action(0.08, delete_posts=posts), action(0.079, delete_posts=posts, edit_words=words)
    assert _does_as_much(less, more)
    assert not _does_as_much(more, less)
    assert not _does_as_much(less, action(0.01, delete_posts=posts, edit_words=words)), "it helps more"
    assert not _does_as_much(less, action(0.08, edit_words=words)), "it is something else"


def test_what_speaks_against_a_link_has_no_examples_of_what_gives_away(alex: PersonReport) -> None:
    link = next(one for one in alex.assessments if (one.measure, one.unit) == ("linkability", "probability"))
    assert any("“" in part.what for part in link.evidence if part.contribution > 0)
    assert not any("“" in part.what for part in link.evidence if part.contribution <= 0)


def test_reasons_and_details_rest_on_the_same_shares(alex: PersonReport) -> None:
    found = {(one.measure, one.subject, one.sentence()): one for one in alex.assessments}
    for reason in alex.reasons:
        about = found[reason.measure, reason.subject, reason.sentence]
        assert reason.evidence == shortened(about.evidence, MOST_PARTS, LEAST_SHARE)


def test_steps_and_choices() -> None:
    assert steps(0) == []
    assert steps(1) == [1]
    assert steps(100)[-1] == 100
    assert first_to_reach([], 1.0) is None
    one, two = (delete_first(np.arange(9), count, "a").what for count in (1, 2))
    assert one == "Delete 1 of your 9 posts in a: the one that gives you away most"
    assert two == "Delete 2 of your 9 posts in a: those that give you away most"


def test_a_new_name_keeps_the_latest_posts(tiny_crowd: Crowd) -> None:
    alex = own(tiny_crowd, "alex")
    community = next(iter(alex.communities))
    numbers = alex.numbers[alex.rows_in(community)]
    for one in start_over(alex, community):
        assert one.from_now_on
        left = set(numbers.tolist()) - one.changes.delete_posts
        assert left == set(numbers[-len(left) :].tolist())


def test_the_benchmark_of_promises_runs_and_its_judges_were_never_asked(tiny_crowd: Crowd) -> None:
    report = measured(tiny_crowd, people=3)
    assert report["people"] == 3
    assert 0 <= report["broken"] <= report["promises"]
    judged = Judges(tiny_crowd).ranks(own(tiny_crowd, "alex"), "cycling", "gardening")
    assert set(judged) == set(ATTACKERS) - {RECHECK}
