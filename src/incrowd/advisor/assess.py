"""One person, one answer: how well they hide, why, and what would help; and the same after some changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from incrowd.advisor.advice import Key, look_for_advice, measure_advice
from incrowd.advisor.answer import Action, FinePrint, OwnPost, PersonReport, Plan
from incrowd.advisor.assessor import Assessor, prepare
from incrowd.advisor.combine import LEVELS, MOST_KEPT, RULE, label, strongest, verdict
from incrowd.advisor.plan import look_for_plan, measure_plan
from incrowd.measures.protocol import AdvisorOptions, Changes, Finding, Progress, Proposal, shortened

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

MOST_RECENT = 2
_recent: dict[tuple[Path, str, str, AdvisorOptions], Assessor] = {}


def assess(
    crowd: Crowd,
    user: str,
    *,
    options: AdvisorOptions | None = None,
    progress: Progress | None = None,
) -> PersonReport:
    """Answer for one person (by name): how well do they hide, why, and what would help?

    Runs every measure that applies, under every adversary of the sweep, and tries out what could be done.
    """
    options = options or AdvisorOptions()
    assessor = prepare(crowd, crowd.user(user), options)
    report = describe(assessor, crowd, user, options, progress=progress)
    if not options.advice:
        return report
    if progress is not None:
        progress(1, 1, "trying out what would help")
    proposals, changes = _searched(assessor, crowd, report.findings, options)
    actions = measure_advice(assessor, report.findings, proposals, options.targets)
    plan = None
    if changes is not None:
        plan = measure_plan(assessor, report.findings, changes, options.targets)
    return replace(report, actions=actions, plan=plan, posts=_posts(assessor, actions, plan, options))


def what_if(
    crowd: Crowd,
    user: str,
    changes: Changes,
    *,
    options: AdvisorOptions | None = None,
    progress: Progress | None = None,
) -> PersonReport:
    """Answer for one person (by name) as if they had made some changes; advice is not looked for.

    The crowd itself stays as it is. Everything is measured as it would be after the changes, by the same measures.
    Asking again about the same person is quick: what was prepared for the last few is kept.
    """
    options = options or AdvisorOptions()
    assessor = _prepared(crowd, crowd.user(user), options)
    return describe(assessor, crowd, user, options, changes, progress)


def _prepared(crowd: Crowd, user: str, options: AdvisorOptions) -> Assessor:
    """Return the person prepared, from memory if the data and the question are still the same."""
    key = crowd.path, crowd.data_hash, user, options
    assessor = _recent.pop(key, None) or prepare(crowd, user, options)
    _recent[key] = assessor
    while len(_recent) > MOST_RECENT:
        _recent.pop(next(iter(_recent)), None)
    return assessor


def _searched(
    assessor: Assessor, crowd: Crowd, findings: Sequence[Finding], options: AdvisorOptions
) -> tuple[list[tuple[Key, Proposal]], Changes | None]:
    """Return what the search for advice found; the search is kept, what it found is measured every time."""

    def search() -> dict[str, np.ndarray[Any, Any]]:
        found = look_for_advice(assessor, findings, options.targets)
        changes = look_for_plan(assessor, findings, options.targets)
        advice = [[key, one.what, one.loss, one.changes.to_dict()] for key, one in found]
        kept = {"advice": advice, "plan": None if changes is None else changes.to_dict()}
        return {"json": np.array(json.dumps(kept))}

    decides = {name: value for name, value in options.parameters().items() if name != "quote_posts"}
    question = {"what": "advice", "user": assessor.person.user, **decides}
    kept = json.loads(str(assessor.person.crowd.answer(question, search)["json"]))
    advice = [
        (cast("Key", tuple(key)), Proposal(what=what, loss=loss, changes=Changes.from_dict(changes)))
        for key, what, loss, changes in kept["advice"]
    ]
    return advice, None if kept["plan"] is None else Changes.from_dict(kept["plan"])


def describe(
    assessor: Assessor,
    crowd: Crowd,
    user: str,
    options: AdvisorOptions,
    changes: Changes | None = None,
    progress: Progress | None = None,
) -> PersonReport:
    """Return the report of a prepared person, with changes if given, without advice."""
    changes = changes or Changes()
    findings, missing = assessor.assess(assessor.person.after(changes), progress=progress)
    themes = label([_brief(one) for one in findings], missing)
    return PersonReport(
        person=user,
        people=_people(assessor),
        verdict=verdict(themes),
        themes=themes,
        reasons=strongest(findings),
        not_assessed=missing,
        fine_print=_fine_print(findings, crowd, options),
        changes=changes,
    )


def _brief(one: Finding) -> Finding:
    """Keep the strongest evidence and the sum of the rest."""
    evidence = shortened(one.assessment.evidence, MOST_KEPT)
    return replace(one, assessment=replace(one.assessment, evidence=evidence))


def _people(assessor: Assessor) -> int:
    crowd = assessor.person.crowd
    counted = crowd.answer({"what": "people"}, lambda: {"people": np.array(crowd.crowd().info().users)})
    return int(counted["people"])


def _posts(
    assessor: Assessor, actions: Sequence[Action], plan: Plan | None, options: AdvisorOptions
) -> tuple[OwnPost, ...]:
    """Return the person's own posts that the advice names."""
    changes = [action.changes for action in actions] + ([plan.changes] if plan else [])
    numbers = {number for one in changes for number in one.gone_posts}
    posts = assessor.person.posts
    named = posts.filter(posts["number"].is_in(list(numbers)))
    return tuple(
        OwnPost(number=number, community=community, time=time, text=text if options.quote_posts else None)
        for number, community, time, text in named.select("number", "community", "time", "text").iter_rows()
    )


def _fine_print(findings: Sequence[Finding], crowd: Crowd, options: AdvisorOptions) -> FinePrint:
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
