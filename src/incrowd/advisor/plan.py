"""A joint plan: what to do so that the levels change, with as little loss as was found.

A plan is put together from actions, each of which holds for its own finding: for every finding the one that brings it
furthest, of those the cheapest. Findings whose remedy costs least are served first, so that a large deletion never
crowds out a small fix; what would go over the loss that is allowed, or undo an earlier step, is left out. The result
is measured as a whole, by every measure, and what it makes worse is said first. Loss is counted in shares of one's
words, items and attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from incrowd.advisor.advice import RISKY, effects, is_missed, loss_share, say_loss, shares_given_up
from incrowd.advisor.answer import Action, Key, Plan, not_better
from incrowd.advisor.assessor import Assessor
from incrowd.advisor.combine import label, verdict
from incrowd.measures.protocol import Changes, Effect, Finding, Targets

MOST_GOALS = 8


def look_for_plan(
    assessor: Assessor, findings: Sequence[Finding], actions: Sequence[Action], targets: Targets
) -> Changes | None:
    """Put actions together that do not undo one another; None if there is none that takes something back."""
    best: dict[Key, Action] = {}
    for action in sorted(actions, key=lambda one: (one.promised.severity, _cost(assessor, one.changes))):
        if not (action.from_now_on or action.changes.move_posts or action.harms):
            best.setdefault(action.aim, action)
    changes, taken = Changes(), list[Action]()
    for action in sorted(best.values(), key=lambda one: _cost(assessor, one.changes))[:MOST_GOALS]:
        both = changes | action.changes
        if _is_affordable(assessor, both, targets) and _all_hold(assessor, findings, [*taken, action], both):
            changes, taken = both, [*taken, action]
    return changes or None


def _all_hold(
    assessor: Assessor, findings: Sequence[Finding], actions: Sequence[Action], changes: Changes
) -> bool:
    """Say whether every action still brings its finding to its level when all are done together.

    Steps may undo one another: with fewer posts left, two profiles can look more alike than before.
    """
    if len(actions) == 1:
        return True
    known, person = {one.key: one for one in findings}, assessor.changed(changes)
    then = [(action, assessor.assess_again(person, known[action.aim])) for action in actions]
    return all(
        one is None or one.level.severity <= action.effect.level_after.severity for action, one in then
    )


def _cost(assessor: Assessor, changes: Changes) -> float:
    return loss_share(assessor.person, assessor.changed(changes))


def _is_affordable(assessor: Assessor, changes: Changes, targets: Targets) -> bool:
    given_up = shares_given_up(assessor.person, assessor.changed(changes))
    return max(given_up.values(), default=0.0) <= targets.loss


def recheck_plan(
    assessor: Assessor, findings: Sequence[Finding], changes: Changes, targets: Targets
) -> dict[Key, float]:
    """Ask other attackers about every finding that missed its target before the plan."""
    person = assessor.changed(changes)
    asked = {one.key: assessor.recheck(person, one) for one in findings if is_missed(one, targets)}
    return {key: risk for key, risk in asked.items() if not math.isnan(risk)}


def measure_plan(
    assessor: Assessor,
    findings: Sequence[Finding],
    changes: Changes,
    actions: Sequence[Action],
    rechecks: Mapping[Key, float],
    targets: Targets,
) -> Plan:
    """Measure what the changes of some actions do together, by every measure.

    No level is better than the other attackers allow.
    """
    measured, silent = assessor.assess(assessor.changed(changes), explain=False)
    before = {one.key: one.level for one in findings}
    after = [
        replace(
            one, level=not_better(one.level, rechecks.get(one.key, math.nan), before.get(one.key, one.level))
        )
        for one in measured
    ]
    changed = {
        key: replace(one, recheck=rechecks.get(key, math.nan))
        for key, one in effects(findings, after).items()
    }
    held_back = {key for key, one in changed.items() if one.recheck_is_worse and one.level_after in RISKY}
    missed = sorted(
        (one for one in after if is_missed(one, targets) or one.key in held_back), key=lambda one: -one.risk
    )
    return Plan(
        changes=changes,
        steps=_steps(assessor, changes, actions),
        loss=say_loss(assessor.person, assessor.changed(changes), changes),
        effects=tuple(changed.values()),
        reached=not missed,
        missed=tuple(_still(one, changed.get(one.key)) for one in missed),
        verdict=verdict(label(after, silent)),
    )


def _still(missed: Finding, effect: Effect | None) -> str:
    """Say what a plan does not reach, by whoever is right more often."""
    said = missed.assessment.sentence()
    if effect is None or not effect.recheck_is_worse:
        return said
    return f"{said} Somebody who compares in another way would be right {effect.said_after} of the time."


def _steps(assessor: Assessor, changes: Changes, actions: Sequence[Action]) -> tuple[str, ...]:
    """Say which actions the plan is put together from, the cheapest first."""
    parts = [one for one in actions if not one.from_now_on and one.changes | changes == changes]
    done, steps = Changes(), []
    for one in sorted(parts, key=lambda one: _cost(assessor, one.changes)):
        if done | one.changes != done:
            done |= one.changes
            steps.append(one.what)
    return tuple(steps)
