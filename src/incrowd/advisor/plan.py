"""A joint plan: what to do so that the targets are reached, with as little loss as was found.

Targets are taken worst first. For each that is still missed, a proposal that reaches it is added to what was chosen
before: the one that leaves the fewest targets missed in all and, among those, costs least. Then whatever turns out
not to be needed is given back, large parts first. Loss is counted in shares of one's words, items and attributes.
Nothing is given up for a target that no proposal reaches. The result is measured as a whole, by every measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from incrowd.advisor.advice import Key, effects, is_missed, loss_share, say_loss, shares_given_up
from incrowd.advisor.answer import Plan
from incrowd.advisor.assessor import Assessor
from incrowd.advisor.combine import label, verdict
from incrowd.measures.protocol import Changes, Finding, Person, Targets
from incrowd.result import say_count

MOST_GOALS = 8
MOST_TRIALS = 24
"""Parts of the plan that are tried to be given back."""
NAMED = 12


def look_for_plan(assessor: Assessor, findings: Sequence[Finding], targets: Targets) -> Changes | None:
    """Search for changes that reach the targets; None if no target is missed."""
    goals = [one for one in findings if is_missed(one, targets)]
    return _give_back(assessor, _choose(assessor, goals, targets), targets) if goals else None


def _choose(assessor: Assessor, goals: Iterable[Finding], targets: Targets) -> Changes:
    """Add up the cheapest proposals, each on top of those before."""
    changes = Changes()
    for goal in sorted(goals, key=lambda one: -one.risk)[:MOST_GOALS]:
        person, missed = assessor.changed(changes), _missed(assessor, changes, targets)
        now = next((one for one in _quick(assessor, changes) if one.key == goal.key), None)
        if now is None or goal.key not in missed:
            continue
        reaching = [
            changes | proposal.changes
            for proposal in assessor.proposals(person, now, targets)
            if not proposal.changes.move_posts
        ]
        affordable = [more for more in reaching if _is_affordable(assessor, more, targets)]
        best = min(affordable, key=lambda more: _cost(assessor, more, targets), default=changes)
        left = _missed(assessor, best, targets)
        if goal.key not in left and len(left) < len(missed):
            changes = best
    return changes


def _cost(assessor: Assessor, changes: Changes, targets: Targets) -> tuple[int, float]:
    return len(_missed(assessor, changes, targets)), loss_share(assessor.person, assessor.changed(changes))


def _is_affordable(assessor: Assessor, changes: Changes, targets: Targets) -> bool:
    return (
        max(shares_given_up(assessor.person, assessor.changed(changes)).values(), default=0.0) <= targets.loss
    )


def _quick(assessor: Assessor, changes: Changes) -> Sequence[Finding]:
    return assessor.assess(assessor.changed(changes), explain=False, thorough=False)[0]


def _missed(assessor: Assessor, changes: Changes, targets: Targets) -> set[Key]:
    """Return the findings that miss their target; one that can no longer be made counts as missed."""
    before = {one.key for one in _quick(assessor, Changes())}
    after = {one.key: one for one in _quick(assessor, changes)}
    return {key for key in before if key not in after or is_missed(after[key], targets)}


def _give_back(assessor: Assessor, changes: Changes, targets: Targets) -> Changes:
    """Take out of the plan what it does not need: halves first, then halves of those, until single things."""
    missed = _missed(assessor, changes, targets)
    trials = 0
    for part in fields(Changes):
        waiting = [sorted(getattr(changes, part.name))]
        while waiting and trials < MOST_TRIALS:
            some = waiting.pop(0)
            if not some:
                continue
            trials += 1
            less = replace(changes, **{part.name: getattr(changes, part.name) - set(some)})
            if _missed(assessor, less, targets) <= missed:
                changes = less
            elif len(some) > 1:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
    return changes


def measure_plan(assessor: Assessor, findings: Sequence[Finding], changes: Changes, targets: Targets) -> Plan:
    """Measure what the changes do together, by every measure."""
    after, silent = assessor.assess(assessor.changed(changes), explain=False)
    missed = sorted((one for one in after if is_missed(one, targets)), key=lambda one: -one.risk)
    return Plan(
        changes=changes,
        steps=_steps(assessor.person, changes),
        loss=say_loss(assessor.person, assessor.changed(changes), changes),
        effects=tuple(effects(findings, after).values()),
        reached=not missed,
        missed=tuple(one.assessment.sentence() for one in missed),
        verdict=verdict(label(after, silent)),
    )


def _steps(person: Person, changes: Changes) -> tuple[str, ...]:
    numbers = list(changes.delete_posts)
    there = (
        person.posts.filter(person.posts["number"].is_in(numbers))
        .group_by("community")
        .len()
        .sort("community")
    )
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
