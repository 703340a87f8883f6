"""A joint plan: what to do so that the targets are reached, with as little loss as was found.

Targets are taken worst first. For each that is still missed, a proposal that reaches it is added to what was chosen
before: the one that leaves the fewest targets missed in all and, among those, costs least. Then whatever turns out
not to be needed is given back, large parts first. Loss is counted in shares of one's words, items and attributes.
Nothing is given up for a target that no proposal reaches. The result is measured as a whole, by every measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from incrowd.advisor.advice import proposals
from incrowd.advisor.answer import Changes, Judged, Plan, Theme
from incrowd.advisor.combine import shortfall, verdict
from incrowd.advisor.effects import Key, effects, loss_share, say_loss, shares_given_up
from incrowd.advisor.examination import Examination
from incrowd.advisor.person import Own
from incrowd.advisor.spec import Targets
from incrowd.result import say_count

MOST_GOALS = 8
MOST_TRIALS = 24
"""Parts of the plan that are tried to be given back."""
NAMED = 12

Label = Callable[[Sequence[Judged], Sequence[Any]], tuple[Theme, ...]]


def look_for_plan(exam: Examination, judged: Sequence[Judged], targets: Targets) -> Changes | None:
    """Search for changes that reach the targets; None if no target is missed."""
    goals = [one for one in judged if _is_missed(one, targets)]
    return _give_back(exam, _choose(exam, goals, targets), targets) if goals else None


def _is_missed(one: Judged, targets: Targets) -> bool:
    return one.assessment.defined and shortfall(one.assessment, targets) > 0


def _choose(exam: Examination, goals: Iterable[Judged], targets: Targets) -> Changes:
    """Add up the cheapest proposals, each on top of those before."""
    changes = Changes()
    for goal in sorted(goals, key=lambda one: -one.risk)[:MOST_GOALS]:
        own, missed = exam.changed(changes), _missed(exam, changes, targets)
        now = next((one for one in _quick(exam, changes) if one.key == goal.key), None)
        if now is None or goal.key not in missed:
            continue
        reaching = [
            changes | proposal.changes
            for proposal in proposals(exam, own, now, targets)
            if not proposal.changes.move_posts
        ]
        affordable = [more for more in reaching if _is_affordable(exam, more, targets)]
        best = min(affordable, key=lambda more: _cost(exam, more, targets), default=changes)
        left = _missed(exam, best, targets)
        if goal.key not in left and len(left) < len(missed):
            changes = best
    return changes


def _cost(exam: Examination, changes: Changes, targets: Targets) -> tuple[int, float]:
    return len(_missed(exam, changes, targets)), loss_share(exam.own, exam.changed(changes))


def _is_affordable(exam: Examination, changes: Changes, targets: Targets) -> bool:
    return max(shares_given_up(exam.own, exam.changed(changes)).values(), default=0.0) <= targets.loss


def _quick(exam: Examination, changes: Changes) -> Sequence[Judged]:
    return exam.examine(exam.changed(changes), explain=False, slow=False)[0]


def _missed(exam: Examination, changes: Changes, targets: Targets) -> set[Key]:
    """Return the findings that miss their target; one that can no longer be made counts as missed."""
    before = {one.key for one in _quick(exam, Changes())}
    after = {one.key: one for one in _quick(exam, changes)}
    return {key for key in before if key not in after or _is_missed(after[key], targets)}


def _give_back(exam: Examination, changes: Changes, targets: Targets) -> Changes:
    """Take out of the plan what it does not need: halves first, then halves of those, until single things."""
    missed = _missed(exam, changes, targets)
    trials = 0
    for part in fields(Changes):
        waiting = [sorted(getattr(changes, part.name))]
        while waiting and trials < MOST_TRIALS:
            some = waiting.pop(0)
            if not some:
                continue
            trials += 1
            less = replace(changes, **{part.name: getattr(changes, part.name) - set(some)})
            if _missed(exam, less, targets) <= missed:
                changes = less
            elif len(some) > 1:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
    return changes


def measure_plan(
    exam: Examination, judged: Sequence[Judged], changes: Changes, targets: Targets, label: Label
) -> Plan:
    """Measure what the changes do together, by every measure."""
    after, silent = exam.examine(exam.changed(changes), explain=False)
    missed = sorted((one for one in after if _is_missed(one, targets)), key=lambda one: -one.risk)
    return Plan(
        changes=changes,
        steps=_steps(exam.own, changes),
        loss=say_loss(exam.own, exam.changed(changes), changes),
        effects=tuple(effects(judged, after).values()),
        reached=not missed,
        missed=tuple(one.assessment.sentence() for one in missed),
        verdict=verdict(label(after, silent)),
    )


def _steps(own: Own, changes: Changes) -> tuple[str, ...]:
    numbers = list(changes.delete_posts)
    there = own.posts.filter(own.posts["number"].is_in(numbers)).group_by("community").len().sort("community")
    said = [f"Delete {say_count(count, 'post')} in {community}" for community, count in there.iter_rows()]
    quoted = [f"“{word}”" for word in sorted(changes.edit_words)]
    for what, names in (
        ("Take these words out of your posts: ", quoted),
        ("Leave out these items: ", sorted(changes.drop_items)),
        ("Withhold your ", sorted(changes.withhold_attributes)),
    ):
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            said.append(what + ", ".join(names[:NAMED]) + more)
    return tuple(said)
