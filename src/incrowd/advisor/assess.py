"""One person, one answer: how well they hide, why, and what would help; and the same after some changes.

A joint plan says what to do so that the levels change, with as little loss as was found. It is put together from
actions, each of which holds for its own finding: for every finding the one that brings it furthest, of those the
cheapest. Findings whose remedy costs least are served first, so that a large deletion never crowds out a small fix; if
that leaves somebody at risk, the worst are served first instead, where that leaves less. What would go over the loss
that is allowed, or undo more than it helps, is left out. The result is measured as a whole, by every measure, and what
it makes worse is said first. Loss is counted in shares of one's words, items and attributes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Level,
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
SEARCH = 6
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
    """Put actions together that do not undo one another; None if there is none that takes something back.

    Cheap ones go in first. Where that leaves somebody at risk, the other order is tried, too.
    """
    ways = _ways(assessor, actions)
    cheapest_first = sorted(ways.values(), key=lambda some: _cost(assessor, some[0].changes))[:MOST_GOALS]
    puzzle = _Puzzle(assessor, {one.key: one for one in findings}, targets)
    plan = puzzle.put_together(cheapest_first)
    if puzzle.left(ways, plan)[0]:
        worst_first = sorted(cheapest_first, key=lambda some: -some[0].effect.level_before.severity)
        plan = min(plan, puzzle.put_together(worst_first), key=lambda one: puzzle.left(ways, one))
    return plan or None


def _ways(assessor: Assessor, actions: Sequence[Action]) -> dict[Key, list[Action]]:
    """Return what could go into a plan for each finding, the most helpful first and, of those, the cheapest.

    What makes something else worse is only for those at risk whom nothing else helps.
    """
    ways: dict[Key, list[Action]] = {}
    for one in sorted(
        actions, key=lambda one: (len(one.harms), one.promised.severity, _cost(assessor, one.changes))
    ):
        at_risk = one.effect.level_before is Level.AT_RISK
        if not (one.from_now_on or one.changes.move_posts or (one.harms and not at_risk)):
            ways.setdefault(one.aim, []).append(one)
    return ways


@dataclass(frozen=True)
class _Puzzle:
    """Actions that have to fit together: with fewer posts left, two profiles can look more alike than before."""

    assessor: Assessor
    known: Mapping[Key, Finding]
    targets: Targets

    def put_together(self, goals: Iterable[Sequence[Action]]) -> Changes:
        """Take for each goal the first way that leaves less than was left without it."""
        changes, aims = Changes(), set[Key]()
        for ways in goals:
            for way in ways:
                both, touched = changes | way.changes, {way.aim, *(one.key for one in way.harms)}
                fits = _is_affordable(self.assessor, both, self.targets)
                if fits and self.left(aims | touched, both) < self.left(aims | touched, changes):
                    changes, aims = both, aims | touched
                    break
        return changes

    def left(self, keys: Iterable[Key], changes: Changes) -> tuple[int, int]:
        """Count the findings that are still at risk, and those still to be watched, after some changes."""
        person = self.assessor.changed(changes)
        asked = [self.known[key] for key in keys if key in self.known]
        then = (self.assessor.assess_again(person, one) if changes else one for one in asked)
        levels = [one.level for one in then if one is not None]
        return levels.count(Level.AT_RISK), levels.count(Level.WATCH)


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
