"""One person, one answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from incrowd.advisor.advice import look_for_advice, measure_advice
from incrowd.advisor.answer import (
    Action,
    Changes,
    FinePrint,
    Judged,
    NotAssessed,
    OwnPost,
    PersonReport,
    Plan,
    Theme,
    ThemeName,
)
from incrowd.advisor.combine import LEVELS, RULE, theme, verdict
from incrowd.advisor.examination import STEPS, Examination, Progress, prepare
from incrowd.advisor.examiner import Proposal
from incrowd.advisor.plan import look_for_plan, measure_plan
from incrowd.advisor.reasons import shortened, strongest
from incrowd.advisor.spec import AdvisorOptions
from incrowd.advisor.stored import remembered

if TYPE_CHECKING:
    from incrowd.advisor.effects import Key
    from incrowd.crowd import Crowd


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
    exam = prepare(crowd, crowd.user(user), options, progress)
    report = describe(exam, crowd, user, options)
    if not options.advice:
        return report
    if progress is not None:
        progress(STEPS, STEPS + 1, "trying out what would help")
    proposals, changes = _searched(exam, crowd, report.judged, options)
    actions = measure_advice(exam, report.judged, proposals, options.targets)
    plan = None
    if changes is not None:
        plan = measure_plan(exam, report.judged, changes, options.targets, label)
    return replace(report, actions=actions, plan=plan, posts=_posts(exam, actions, plan, options))


def _searched(
    exam: Examination, crowd: Crowd, judged: Sequence[Judged], options: AdvisorOptions
) -> tuple[list[tuple[Key, Proposal]], Changes | None]:
    """Return what the search for advice found; the search is kept, what it found is measured every time."""

    def search() -> dict[str, np.ndarray[Any, Any]]:
        found = look_for_advice(exam, judged, options.targets)
        changes = look_for_plan(exam, judged, options.targets)
        advice = [[key, one.what, one.loss, one.changes.to_dict()] for key, one in found]
        kept = {"advice": advice, "plan": None if changes is None else changes.to_dict()}
        return {"json": np.array(json.dumps(kept))}

    decides = {name: value for name, value in options.parameters().items() if name != "quote_posts"}
    question = {"what": "advice", "user": exam.own.user, **decides}
    kept = json.loads(str(remembered(crowd, question, search)["json"]))
    advice = [
        (cast("Key", tuple(key)), Proposal(what=what, loss=loss, changes=Changes.from_dict(changes)))
        for key, what, loss, changes in kept["advice"]
    ]
    return advice, None if kept["plan"] is None else Changes.from_dict(kept["plan"])


def describe(
    exam: Examination, crowd: Crowd, user: str, options: AdvisorOptions, changes: Changes | None = None
) -> PersonReport:
    """Return the report of a prepared person, with changes if given, without advice."""
    changes = changes or Changes()
    judged, missing = exam.examine(exam.own.after(changes))
    themes = label([_brief(one) for one in judged], missing)
    return PersonReport(
        person=user,
        people=_people(crowd),
        verdict=verdict(themes),
        themes=themes,
        reasons=strongest(judged),
        not_assessed=tuple(dict.fromkeys(missing)),
        fine_print=_fine_print(judged, crowd, options),
        changes=changes,
    )


def _brief(one: Judged) -> Judged:
    """Keep the strongest evidence and the sum of the rest."""
    evidence = shortened(one.assessment.evidence)
    return replace(one, assessment=replace(one.assessment, evidence=evidence))


def _people(crowd: Crowd) -> int:
    counted = remembered(crowd, {"what": "people"}, lambda: {"people": np.array(crowd.info().users)})
    return int(counted["people"])


def label(judged: Sequence[Judged], missing: Sequence[NotAssessed]) -> tuple[Theme, ...]:
    """Return the four lines of the label; a line with something missing is never "well hidden"."""
    return tuple(
        theme(name, judged, missing=[one.why for one in missing if one.theme is name]) for name in ThemeName
    )


def _posts(
    exam: Examination, actions: Sequence[Action], plan: Plan | None, options: AdvisorOptions
) -> tuple[OwnPost, ...]:
    """Return the person's own posts that the advice names."""
    changes = [action.changes for action in actions] + ([plan.changes] if plan else [])
    numbers = {number for one in changes for number in one.gone_posts}
    named = exam.own.posts.filter(exam.own.posts["number"].is_in(list(numbers)))
    make = partial(_own_post, quote=options.quote_posts)
    return tuple(make(*row) for row in named.select("number", "community", "time", "text").iter_rows())


def _own_post(number: int, community: str, time: int | None, text: str, *, quote: bool) -> OwnPost:
    return OwnPost(number=number, community=community, time=time, text=text if quote else None)


def _fine_print(judged: Sequence[Judged], crowd: Crowd, options: AdvisorOptions) -> FinePrint:
    from incrowd import __version__

    found = [one.assessment for one in judged]
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
