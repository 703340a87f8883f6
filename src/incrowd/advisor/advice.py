"""What to do: each action is tried out, and its effect is what the measures say afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from incrowd.advisor.answer import Action, Judged
from incrowd.advisor.combine import shortfall
from incrowd.advisor.effects import Key, effect, effects, loss_share
from incrowd.advisor.examination import Examination
from incrowd.advisor.examiner import Goal, Proposal
from incrowd.advisor.person import Own
from incrowd.advisor.spec import Targets

WORST_EACH = 2
"""So many findings of each measure get advice: those with the largest risk."""
MOST_EACH = 3
MOST_ACTIONS = 10


def look_for_advice(
    exam: Examination, judged: Sequence[Judged], targets: Targets
) -> list[tuple[Key, Proposal]]:
    """Search for what helps against the worst findings, the most helpful for the least loss first."""
    tried = [
        (finding.key, proposal, action)
        for finding in worst_findings(exam.quickly_known(judged), targets)
        for proposal in proposals(exam, exam.own, finding, targets)
        if (action := try_out(exam, judged, finding.key, proposal, targets)) is not None
    ]
    distinct = {proposal.changes: (key, proposal, action) for key, proposal, action in reversed(tried)}
    ordered = sorted(distinct.values(), key=lambda one: _rank(exam, one[2]))
    return _some_of_each([(key, proposal) for key, proposal, _ in ordered])[:MOST_ACTIONS]


def measure_advice(
    exam: Examination, judged: Sequence[Judged], found: Iterable[tuple[Key, Proposal]], targets: Targets
) -> tuple[Action, ...]:
    """Measure what each of the proposals does."""
    tried = (try_out(exam, judged, key, proposal, targets) for key, proposal in found)
    return tuple(action for action in tried if action is not None)


def _some_of_each(found: Sequence[tuple[Key, Proposal]]) -> list[tuple[Key, Proposal]]:
    """Keep a few for each finding, so that no finding crowds out the others."""
    seen: Counter[Key] = Counter()
    kept = []
    for key, proposal in found:
        seen[key] += 1
        if seen[key] <= MOST_EACH:
            kept.append((key, proposal))
    return kept


def worst_findings(judged: Sequence[Judged], targets: Targets) -> list[Judged]:
    """Return the findings that miss their target, worst first, a few of each measure."""
    missed = [one for one in judged if shortfall(one.assessment, targets) > 0 and one.assessment.defined]
    missed.sort(key=lambda one: -one.risk)
    seen: Counter[str] = Counter()
    chosen = []
    for one in missed:
        seen[one.assessment.measure] += 1
        if seen[one.assessment.measure] <= WORST_EACH:
            chosen.append(one)
    return chosen


def proposals(exam: Examination, own: Own, finding: Judged, targets: Targets) -> Iterator[Proposal]:
    """Return what its measure would try against a finding."""
    examiner = exam.examiner_of(finding)
    if examiner is not None:
        yield from examiner.propose(own, finding, Goal(partial(shortfall, targets=targets), targets.loss))


def try_out(
    exam: Examination, judged: Sequence[Judged], key: Key, proposal: Proposal, targets: Targets
) -> Action | None:
    """Measure everything again after a change; None if it does not help where it is aimed."""
    after, _ = exam.examine(exam.changed(proposal.changes), explain=False, slow=False)
    finding = next(one for one in judged if one.key == key)
    aimed = next((one for one in after if one.key == key), None)
    if aimed is None or not shortfall(aimed.assessment, targets) < shortfall(finding.assessment, targets):
        return None
    compared = effects(exam.quickly_known(judged), after)
    return Action(
        what=proposal.what,
        loss=proposal.loss,
        changes=proposal.changes,
        effect=effect(finding, aimed),
        also=tuple(one for other, one in compared.items() if other != key),
    )


def _rank(exam: Examination, action: Action) -> tuple[int, int, int, float]:
    """Order by how bad the finding was, how far the action brings it, what it harms, and what it costs."""
    seen, loss = action.effect, loss_share(exam.own, exam.changed(action.changes))
    worse = sum(one.level_after.severity > one.level_before.severity for one in action.also)
    return -seen.level_before.severity, seen.level_after.severity, worse, loss
