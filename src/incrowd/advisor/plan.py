"""A joint plan: what to do so that every target is reached, with as little loss as was found.

Targets are taken worst first. For each that is still missed, the cheapest proposal that reaches it is added to what
was chosen before; then whatever turns out not to be needed is given back, large parts first. Loss is counted in
shares of one's words, items and attributes. Nothing is given up for a target that no proposal reaches. The result
is measured as a whole, by every measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from incrowd.advisor.advice import proposals
from incrowd.advisor.answer import Changes, Judged, Plan, Theme
from incrowd.advisor.combine import shortfall, verdict
from incrowd.advisor.effects import effects, loss_share, say_loss
from incrowd.advisor.examination import Examination
from incrowd.advisor.examiner import Proposal, posts_words
from incrowd.advisor.person import Own
from incrowd.advisor.spec import Targets

MOST_GOALS = 12
MOST_TRIALS = 40
"""Changes that are tried to be given back."""

Judge = Callable[[Own], Sequence[Judged]]
Label = Callable[[Sequence[Judged], Sequence[Any]], tuple[Theme, ...]]


def make_plan(exam: Examination, judged: Sequence[Judged], targets: Targets, label: Label) -> Plan | None:
    """Return the plan; None if no target is missed."""
    goals = [one for one in judged if _missed(one, targets)]
    if not goals:
        return None
    changes = _give_back(exam, _choose(exam, goals, targets), goals, targets)
    return _measured(exam, judged, changes, targets, label)


def _missed(one: Judged, targets: Targets) -> bool:
    return one.assessment.defined and shortfall(one.assessment, targets) > 0


def _choose(exam: Examination, goals: Iterable[Judged], targets: Targets) -> Changes:
    """Add up the cheapest proposals, each on top of those before."""
    changes = Changes()
    for goal in sorted(goals, key=lambda one: -one.risk)[:MOST_GOALS]:
        own = exam.own.after(changes)
        now = _finding(_quick(exam, own), goal)
        if now is None or not _missed(now, targets):
            continue
        reaching = [
            proposal.changes
            for proposal in proposals(exam, own, now, targets)
            if not proposal.changes.move_posts and _reaches(exam, own, proposal, goal, targets)
        ]
        if reaching:
            changes |= min(reaching, key=lambda more: loss_share(exam.own, changes | more))
    return changes


def _reaches(exam: Examination, own: Own, proposal: Proposal, goal: Judged, targets: Targets) -> bool:
    found = _finding(_quick(exam, own.after(proposal.changes)), goal)
    return found is not None and not _missed(found, targets)


def _quick(exam: Examination, own: Own) -> Sequence[Judged]:
    return exam.examine(own, explain=False, slow=False)[0]


def _finding(judged: Iterable[Judged], goal: Judged) -> Judged | None:
    return next((one for one in judged if one.key == goal.key), None)


def _give_back(exam: Examination, changes: Changes, goals: Sequence[Judged], targets: Targets) -> Changes:
    """Take out of the plan what it does not need: halves first, then halves of those, until single things."""
    if not changes:
        return changes
    reached = _reached(exam, changes, goals, targets)
    trials = 0
    for part in fields(Changes):
        waiting = [sorted(getattr(changes, part.name))]
        while waiting and trials < MOST_TRIALS:
            some = waiting.pop(0)
            if not some:
                continue
            trials += 1
            less = replace(changes, **{part.name: getattr(changes, part.name) - set(some)})
            if _reached(exam, less, goals, targets) >= reached:
                changes = less
            elif len(some) > 1:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
    return changes


def _reached(exam: Examination, changes: Changes, goals: Sequence[Judged], targets: Targets) -> set[Any]:
    after = {one.key: one for one in _quick(exam, exam.own.after(changes))}
    return {goal.key for goal in goals if goal.key in after and not _missed(after[goal.key], targets)}


def _measured(
    exam: Examination, judged: Sequence[Judged], changes: Changes, targets: Targets, label: Label
) -> Plan:
    own = exam.own.after(changes)
    after, silent = exam.examine(own, explain=False)
    missed = [one for one in after if _missed(one, targets)]
    return Plan(
        changes=changes,
        steps=_steps(exam.own, changes),
        loss=say_loss(exam.own, changes),
        effects=tuple(effects(judged, after).values()),
        reached=not missed,
        missed=tuple(one.assessment.sentence() for one in sorted(missed, key=lambda one: -one.risk)),
        verdict=verdict(label(after, silent)),
    )


def _steps(own: Own, changes: Changes) -> tuple[str, ...]:
    said = []
    numbers = list(changes.delete_posts)
    there = own.posts.filter(own.posts["number"].is_in(numbers)).group_by("community").len().sort("community")
    for community, count in there.iter_rows():
        said.append(f"Delete {posts_words(count)} in {community}")
    if changes.edit_words:
        words = ", ".join(f"“{word}”" for word in sorted(changes.edit_words))
        said.append(f"Take these words out of your posts: {words}")
    if changes.drop_items:
        said.append(f"Leave out these items: {', '.join(sorted(changes.drop_items))}")
    if changes.withhold_attributes:
        said.append(f"Withhold your {', '.join(sorted(changes.withhold_attributes))}")
    return tuple(said)
