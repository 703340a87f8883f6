"""One person, one answer: how well they hide, why, and what would help; and the same after some changes.

A joint plan says what to do so that the levels change, with as little loss as was found. It is put together from
actions, each of which holds for its own finding: for every finding the one that brings it furthest, of those the
cheapest. Findings whose remedy costs least are served first, so that a large deletion never crowds out a small fix;
what would go over the loss that is allowed, or undo an earlier step, is left out. The result is measured as a whole, by
every measure, and what it makes worse is said first. Loss is counted in shares of one's words, items and attributes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from incrowd.advisor.advice import (
    RISKY,
    Found,
    effects,
    is_missed,
    look_for_advice,
    loss_share,
    measure_advice,
    say_loss,
    shares_given_up,
    write_differently,
)
from incrowd.advisor.answer import Action, FinePrint, Key, OwnPost, PersonReport, Plan, not_better
from incrowd.advisor.assessor import Assessor, among, prepare
from incrowd.advisor.combine import LEVELS, MOST_KEPT, RULE, label, strongest, verdict
from incrowd.measures.protocol import (
    AdvisorOptions,
    Changes,
    Effect,
    Finding,
    PreparedCrowd,
    Progress,
    Targets,
    given_or,
    shortened,
)
from incrowd.text.mentions import without_mentions

if TYPE_CHECKING:
    from incrowd.cards.card import Card
    from incrowd.crowd import Crowd
    from incrowd.crowd.sources import Paths


MOST_RECENT = 2
SEARCH = 5
"""Raise when the search for advice changes: what an older release found and kept is then looked for anew."""
_recent: dict[tuple[Path, str, str, AdvisorOptions], Assessor] = {}


def assess(
    crowd: Crowd | PreparedCrowd | Paths,
    user: str | None = None,
    *,
    card: Card | str | Path | None = None,
    options: AdvisorOptions | None = None,
    progress: Progress | None = None,
) -> PersonReport:
    """Answer for one person: how well do they hide, why, and what would help?

    Runs every measure that applies, under every adversary of the sweep, and tries out what could be done.

    Parameters
    ----------
    crowd
        A crowd, or its folder; or the files of the person's own export, which are then compared with people made up
        from a card.
    user
        Who, by name. An export of one account need not say.
    card
        For an export: a card, or its file; None: the card that comes with incrowd.
    """
    options = given_or(options, AdvisorOptions)
    crowd, user, options = among(crowd, user, card, options)
    assessor = prepare(crowd, crowd.user_id(user), options)
    report = describe(assessor, user, options, progress=progress)
    if not options.advice:
        return report
    if progress is not None:
        progress(1, 1, "trying out what would help")
    found, changes, rechecks = _searched(assessor, report.findings, options)
    actions = measure_advice(assessor, report.findings, found)
    plan = None
    if changes is not None:
        plan = measure_plan(assessor, report.findings, changes, actions, rechecks, options.targets)
    return replace(
        report,
        actions=actions,
        plan=plan,
        write_differently=write_differently(assessor, report.findings, actions, plan, options.targets),
        posts=_posts(assessor, actions, plan, options),
    )


def what_if(
    crowd: Crowd | PreparedCrowd | Paths,
    user: str | None,
    changes: Changes,
    *,
    card: Card | str | Path | None = None,
    options: AdvisorOptions | None = None,
    progress: Progress | None = None,
) -> PersonReport:
    """Answer for one person, as :func:`assess` finds them, as if they had made some changes; advice is not looked for.

    The crowd itself stays as it is. Everything is measured as it would be after the changes, by the same measures.
    Asking again about the same person is quick: what was prepared for the last few is kept.
    """
    crowd, user, options = among(crowd, user, card, given_or(options, AdvisorOptions))
    assessor = _prepared(crowd, crowd.user_id(user), options)
    return describe(assessor, user, options, changes, progress)


def _prepared(crowd: PreparedCrowd, user: str, options: AdvisorOptions) -> Assessor:
    """Return the person prepared, from memory if the data and the question are still the same."""
    key = crowd.folder, crowd.data_hash, user, options
    assessor = _recent.pop(key, None) or prepare(crowd, user, options)
    _recent[key] = assessor
    while len(_recent) > MOST_RECENT:
        _recent.pop(next(iter(_recent)), None)
    return assessor


def _searched(
    assessor: Assessor, findings: Sequence[Finding], options: AdvisorOptions
) -> tuple[list[Found], Changes | None, dict[Key, float]]:
    """Return what the search for advice found; the search is kept, what it found is measured every time."""

    def search() -> dict[str, np.ndarray[Any, Any]]:
        found = look_for_advice(assessor, findings, options.targets)
        actions = measure_advice(assessor, findings, found)
        changes = _look_for_plan(assessor, findings, actions, options.targets)
        rechecks = _recheck_plan(assessor, findings, changes, options.targets) if changes else {}
        kept = {
            "advice": [one.to_dict() for one in found],
            "plan": None if changes is None else changes.to_dict(),
            "rechecks": [[list(key), risk] for key, risk in rechecks.items()],
        }
        return {"json": np.array(json.dumps(kept))}

    decides = {name: value for name, value in options.parameters().items() if name != "quote_posts"}
    question = {"what": "advice that holds", "search": SEARCH, "user": assessor.person.user, **decides}
    kept = json.loads(str(assessor.person.crowd.answer(question, search)["json"]))
    changes = None if kept["plan"] is None else Changes.from_dict(kept["plan"])
    rechecks = {cast("Key", tuple(key)): float(risk) for key, risk in kept["rechecks"]}
    return [Found.from_dict(one) for one in kept["advice"]], changes, rechecks


def describe(
    assessor: Assessor,
    user: str,
    options: AdvisorOptions,
    changes: Changes | None = None,
    progress: Progress | None = None,
) -> PersonReport:
    """Return the report of a prepared person, with changes if given, without advice."""
    changes = changes or Changes()
    found, missing = assessor.assess(assessor.person.after(changes), progress=progress)
    findings = [_brief(one) for one in found]
    themes = label(findings, missing)
    return PersonReport(
        person=user,
        people=assessor.person.crowd.people,
        made_up=assessor.person.crowd.is_made_up,
        verdict=verdict(themes),
        themes=themes,
        reasons=strongest(findings),
        not_assessed=missing,
        fine_print=_fine_print(findings, assessor.person.crowd, options),
        changes=changes,
    )


def _brief(one: Finding) -> Finding:
    """Keep the strongest evidence and the sum of the rest."""
    evidence = shortened(one.assessment.evidence, MOST_KEPT)
    return replace(one, assessment=replace(one.assessment, evidence=evidence))


def _posts(
    assessor: Assessor, actions: Sequence[Action], plan: Plan | None, options: AdvisorOptions
) -> tuple[OwnPost, ...]:
    """Return the person's own posts that the advice names."""
    planned = frozenset(plan.changes.gone_posts) if plan else frozenset()
    numbers = planned.union(*(action.changes.gone_posts for action in actions))
    posts = assessor.person.posts
    named = posts.filter(posts["number"].is_in(list(numbers)))
    crowd, user = assessor.person.crowd, assessor.person.user
    links, places = (crowd.own_links(user), crowd.own_places(user)) if numbers else ({}, {})
    return tuple(
        OwnPost(
            number=number,
            community=places.get(number, community),
            time=time,
            text=without_mentions(text, "[somebody]") if options.quote_posts else None,
            link=links.get(number),
            in_plan=number in planned,
        )
        for number, community, time, text in named.select("number", "community", "time", "text").iter_rows()
    )


def _fine_print(findings: Sequence[Finding], crowd: PreparedCrowd, options: AdvisorOptions) -> FinePrint:
    from incrowd import __version__

    found = [one.assessment for one in findings]
    return FinePrint(
        adversaries=tuple(dict.fromkeys(one.assumptions.adversary for one in found)),
        standings={f"{one.measure}, {one.unit}": str(one.standing) for one in found},
        rule=RULE,
        levels=LEVELS,
        parameters=options.parameters(),
        seed=options.seed,
        data_hash=crowd.data_hash,
        version=__version__,
    )


MOST_GOALS = 8


def _look_for_plan(
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


def _recheck_plan(
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
    """Say which actions the plan is put together from: against the worst first, and of those the cheapest."""
    parts = [one for one in actions if not one.from_now_on and one.changes | changes == changes]
    done, steps = Changes(), []
    worst_first = lambda one: (-one.effect.level_before.severity, _cost(assessor, one.changes))  # noqa: E731
    for one in sorted(parts, key=worst_first):
        if done | one.changes != done:
            done |= one.changes
            steps.append(one.what)
    return tuple(steps)
