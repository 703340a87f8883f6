"""What to do: each action is tried out, and its effect is what the measures say afterwards."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from incrowd.advisor.answer import Action
from incrowd.advisor.assessor import Assessor
from incrowd.measures.protocol import Changes, Effect, Finding, Person, Proposal, Targets, measure_named
from incrowd.result import Assessment, say_count

WORST_EACH = 2
"""So many findings of each measure get advice: those with the largest risk."""
MOST_EACH = 3
MOST_ACTIONS = 10
SAME = 1e-12

Key = tuple[str, str, str, str]


def shortfall(assessment: Assessment, targets: Targets) -> float:
    """Return how far an assessment is from the person's target; at most 0: reached. Undefined is never reached."""
    return measure_named(assessment.measure).shortfall(assessment, targets)


def look_for_advice(
    assessor: Assessor, findings: Sequence[Finding], targets: Targets
) -> list[tuple[Key, Proposal]]:
    """Search for what helps against the worst findings, the most helpful for the least loss first."""
    tried = [
        (finding.key, proposal, action)
        for finding in worst_findings(assessor.quickly_known(findings), targets)
        for proposal in assessor.proposals(assessor.person, finding, targets)
        if (action := try_out(assessor, findings, finding.key, proposal, targets)) is not None
    ]
    distinct = {proposal.changes: (key, proposal, action) for key, proposal, action in reversed(tried)}
    ordered = sorted(distinct.values(), key=lambda one: _rank(assessor, one[2]))
    return _some_of_each([(key, proposal) for key, proposal, _ in ordered])[:MOST_ACTIONS]


def measure_advice(
    assessor: Assessor, findings: Sequence[Finding], found: Iterable[tuple[Key, Proposal]], targets: Targets
) -> tuple[Action, ...]:
    """Measure what each of the proposals does."""
    tried = (try_out(assessor, findings, key, proposal, targets) for key, proposal in found)
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


def worst_findings(findings: Sequence[Finding], targets: Targets) -> list[Finding]:
    """Return the findings that miss their target, worst first, a few of each measure."""
    missed = sorted((one for one in findings if is_missed(one, targets)), key=lambda one: -one.risk)
    seen: Counter[str] = Counter()
    chosen = []
    for one in missed:
        seen[one.assessment.measure] += 1
        if seen[one.assessment.measure] <= WORST_EACH:
            chosen.append(one)
    return chosen


def is_missed(one: Finding, targets: Targets) -> bool:
    """Say whether a finding misses its target; what could not be told is no goal."""
    return one.assessment.defined and shortfall(one.assessment, targets) > 0


def try_out(
    assessor: Assessor, findings: Sequence[Finding], key: Key, proposal: Proposal, targets: Targets
) -> Action | None:
    """Measure everything again after a change; None if it does not help where it is aimed."""
    after, _ = assessor.assess(assessor.changed(proposal.changes), explain=False, thorough=False)
    finding = next(one for one in findings if one.key == key)
    aimed = next((one for one in after if one.key == key), None)
    if aimed is None or not shortfall(aimed.assessment, targets) < shortfall(finding.assessment, targets):
        return None
    compared = effects(assessor.quickly_known(findings), after)
    return Action(
        what=proposal.what,
        loss=proposal.loss,
        changes=proposal.changes,
        effect=_effect(finding, aimed),
        also=tuple(one for other, one in compared.items() if other != key),
    )


def _rank(assessor: Assessor, action: Action) -> tuple[int, int, int, float]:
    """Order by how bad the finding was, how far the action brings it, what it harms, and what it costs."""
    seen, loss = action.effect, loss_share(assessor.person, assessor.changed(action.changes))
    worse = sum(one.level_after.severity > one.level_before.severity for one in action.also)
    return -seen.level_before.severity, seen.level_after.severity, worse, loss


# What changes do, and what they cost


def effects(before: Iterable[Finding], after: Iterable[Finding]) -> dict[Key, Effect]:
    """Return every finding whose value changes, or that is gone, or new."""
    old, new = ({one.key: one for one in part} for part in (before, after))
    found = {key: _effect(old.get(key), new.get(key)) for key in {**old, **new}}
    return {key: one for key, one in found.items() if not _same(one)}


def _effect(before: Finding | None, after: Finding | None) -> Effect:
    there = after or before
    if there is None:
        raise ValueError("an effect needs a finding")
    return measure_named(there.assessment.measure).effect(before, after)


def _same(one: Effect) -> bool:
    both_undefined = math.isnan(one.before) and math.isnan(one.after)
    close = math.isclose(one.before, one.after, rel_tol=SAME, abs_tol=SAME)
    return both_undefined or (close and one.level_before is one.level_after)


def shares_given_up(person: Person, after: Person) -> dict[str, float]:
    """Return the share of one's words, of the posts of each community, of items and of attributes that goes."""
    left = after.communities
    parts: dict[str, tuple[float, float]] = {
        "words": (person.words.matrix.sum(), after.words.matrix.sum()),
        **{f"posts in {name}": (count, left.get(name, 0)) for name, count in person.communities.items()},
        "items": (len(person.items), len(after.items)),
        "attributes": (len(person.attributes), len(person.attributes.keys() - after.withheld)),
    }
    return {name: float(1 - kept / had) for name, (had, kept) in parts.items() if had}


def loss_share(person: Person, after: Person) -> float:
    """Return what is given up: shares of one's words, items and attributes, added up."""
    shares = shares_given_up(person, after)
    return math.fsum(shares.get(kind, 0.0) for kind in ("words", "items", "attributes"))


def say_loss(person: Person, after: Person, changes: Changes) -> str:
    """Say what is given up."""
    said = []
    if changes.gone_posts:
        said.append(f"{len(changes.gone_posts):,} of your {person.posts.height:,} posts")
    if changes.edit_words:
        share = shares_given_up(person, after)["words"]
        together = "with the posts " if changes.gone_posts else ""
        said.append(f"{say_count(len(changes.edit_words), 'word')}, {together}{share:.0%} of all you wrote")
    if changes.drop_items:
        said.append(f"{len(changes.drop_items):,} of your {len(person.items):,} items")
    if changes.withhold_attributes:
        said.append(f"{len(changes.withhold_attributes)} of your {len(person.attributes)} attributes")
    return "; ".join(said) or "nothing"
