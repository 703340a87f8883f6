"""What to do: each action is tried out, and its effect is what the measures say afterwards.

A finding is brought to another level by the measure that decides it, and by an attacker whom neither that measure nor
the search for advice contains; otherwise it is not listed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from incrowd.advisor.answer import Action, Key, Plan, WriteDifferently
from incrowd.advisor.assessor import Assessor
from incrowd.measures.protocol import (
    SEEN,
    Changes,
    Effect,
    Finding,
    Level,
    Person,
    Proposal,
    Targets,
    measure_named,
)
from incrowd.result import Assessment, say_count, to_plain

WORST_EACH = 2
"""So many findings of each measure get advice: those with the largest risk."""
MOST_EACH = 3
MOST_ACTIONS = 10
LEAST_GAIN = 1 / 4
"""Of the risk: what takes back less is not worth doing, even where that crosses a line."""
BEYOND = 3 / 4
"""Share to give up that is tried for those at risk whom nothing helps that they would do: then they know what would."""
SAME = 1e-12
RISKY = (Level.AT_RISK, Level.WATCH)


def shortfall(assessment: Assessment, targets: Targets) -> float:
    """Return how far an assessment is from the person's target; at most 0: reached. Undefined is never reached."""
    return measure_named(assessment.measure).shortfall(assessment, targets)


@dataclass(frozen=True)
class Found:
    """Something worth doing about a finding, and what an attacker says of it who was not part of the search."""

    key: Key
    proposal: Proposal
    recheck: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        one = self.proposal
        proposal = {
            "what": one.what,
            "loss": one.loss,
            "changes": one.changes.to_dict(),
            "from_now_on": one.from_now_on,
            "beyond": one.beyond,
        }
        return {"key": list(self.key), "proposal": proposal, "recheck": to_plain(self.recheck)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Found:
        """Read what :meth:`to_dict` gave."""
        one = plain["proposal"]
        proposal = Proposal(**{**one, "changes": Changes.from_dict(one["changes"])})
        recheck = math.nan if plain["recheck"] is None else plain["recheck"]
        return cls(cast("Key", tuple(plain["key"])), proposal, recheck)


def look_for_advice(assessor: Assessor, findings: Sequence[Finding], targets: Targets) -> list[Found]:
    """Search for what helps against the worst findings that decide, the most helpful for the least loss first.

    What helps by the measure is asked of an attacker whom neither the measure nor the search contains; what leaves
    the finding at its level by either of them is no advice.
    """
    tried = []
    for finding in worst_findings(findings, targets):
        proposals = list(assessor.proposals(assessor.person, finding, targets))
        holds = [*_holding(assessor, findings, finding, proposals)]
        if not holds and finding.level is Level.AT_RISK and targets.loss < BEYOND:
            more = assessor.proposals(assessor.person, finding, replace(targets, loss=BEYOND))
            holds = [*_holding(assessor, findings, finding, _beyond(proposals, more, targets))]
        tried += holds
    distinct = {found.proposal.changes: (found, action) for found, action in reversed(tried)}
    actions = [action for _, action in distinct.values()]
    useful = [one for one in distinct.values() if not any(_does_as_much(less, one[1]) for less in actions)]
    ordered = sorted(useful, key=lambda one: _rank(assessor, one[1]))
    return _some_of_each([found for found, _ in ordered])[:MOST_ACTIONS]


def _holding(
    assessor: Assessor, findings: Sequence[Finding], finding: Finding, proposals: Iterable[Proposal]
) -> Iterator[tuple[Found, Action]]:
    """Yield what brings a finding to a better level, by its measure and by the other attacker."""
    for proposal in proposals:
        found = _rechecked(assessor, finding, proposal)
        action = None if found is None else try_out(assessor, findings, found)
        if found is not None and action is not None:
            yield found, action


def _beyond(tried: Sequence[Proposal], more: Iterable[Proposal], targets: Targets) -> Iterator[Proposal]:
    """Yield proposals that take more than the person would give up, and say so."""
    known = {one.changes for one in tried}
    for one in more:
        if one.changes not in known:
            limit = f"more than the {targets.loss:.0%} that you would give up, because less does not help"
            yield replace(one, beyond=True, loss=f"{one.loss}: {limit}")


def _does_as_much(less: Action, more: Action) -> bool:
    """Say whether an action that takes no more of anything does as much for the same finding, to a reader."""
    kinds = [part.name for part in fields(Changes)]
    taken, takes = ([len(getattr(one.changes, kind)) for kind in kinds] for one in (less, more))
    fewer = taken != takes and all(one <= other for one, other in zip(taken, takes, strict=True))
    same = less.aim == more.aim and less.from_now_on == more.from_now_on
    return fewer and same and less.promised_risk <= more.promised_risk + SEEN


def _rechecked(assessor: Assessor, finding: Finding, proposal: Proposal) -> Found | None:
    """Ask the other attacker, if the measure sees any help at all."""
    after = assessor.assess_again(assessor.changed(proposal.changes), finding)
    if after is None or not after.level.severity < finding.level.severity:
        return None
    return Found(finding.key, proposal, assessor.recheck(assessor.changed(proposal.changes), finding))


def measure_advice(
    assessor: Assessor, findings: Sequence[Finding], found: Iterable[Found]
) -> tuple[Action, ...]:
    """Measure what each of the proposals does."""
    tried = (try_out(assessor, findings, one) for one in found)
    return tuple(action for action in tried if action is not None)


def _some_of_each(found: Sequence[Found]) -> list[Found]:
    """Keep a few for each finding, so that no finding crowds out the others."""
    seen: Counter[tuple[Key, bool]] = Counter()
    kept = []
    for one in found:
        kind = one.key, one.proposal.from_now_on
        seen[kind] += 1
        if seen[kind] <= (1 if one.proposal.from_now_on else MOST_EACH):
            kept.append(one)
    return kept


def worst_findings(findings: Sequence[Finding], targets: Targets) -> list[Finding]:
    """Return the findings that decide and miss their target, worst first, a few of each measure."""
    missed = sorted((one for one in findings if is_missed(one, targets)), key=lambda one: -one.risk)
    seen: Counter[str] = Counter()
    chosen = []
    for one in missed:
        seen[one.assessment.measure] += 1
        if seen[one.assessment.measure] <= WORST_EACH:
            chosen.append(one)
    return chosen


def is_missed(one: Finding, targets: Targets) -> bool:
    """Say whether a finding is worth doing something about: it decides, is not well hidden and misses its target."""
    bad = one.decides and one.level in RISKY
    return bad and one.assessment.defined and shortfall(one.assessment, targets) > 0


def try_out(assessor: Assessor, findings: Sequence[Finding], found: Found) -> Action | None:
    """Measure what a change does; None if its finding stays at its level, by the measure or by the other attacker.

    What takes seconds for every change is measured of the finding it is aimed at alone.
    """
    proposal, person = found.proposal, assessor.changed(found.proposal.changes)
    finding = next(one for one in findings if one.key == found.key)
    aimed = assessor.assess_again(person, finding)
    if aimed is None:
        return None
    after = [one for one in assessor.assess(person, explain=False, thorough=False)[0] if one.key != found.key]
    compared = effects([one for one in assessor.quickly_known(findings) if one.key != found.key], after)
    action = Action(
        what=proposal.what,
        loss=proposal.loss,
        changes=proposal.changes,
        from_now_on=proposal.from_now_on,
        beyond=proposal.beyond,
        effect=replace(_effect(finding, aimed), recheck=found.recheck),
        also=tuple(compared.values()),
    )
    better = action.promised.severity < finding.level.severity
    return action if better and _is_worth_it(action, finding) else None


def _is_worth_it(action: Action, finding: Finding) -> bool:
    """Say whether an action takes back enough of the risk; where nothing can be told any more, it does.

    Of a rank, a reader sees how often somebody would be right, which may stay while it looks less personal.
    """
    seen, left = action.effect, 1 - LEAST_GAIN
    stays = seen.unit == "rank" and seen.success_after > left * seen.success_before
    return not (stays or action.promised_risk > left * finding.risk)


def _rank(assessor: Assessor, action: Action) -> tuple[int, int, int, bool, float]:
    """Order by how bad the finding was, how far the action brings it, what it harms, and what it costs."""
    loss = loss_share(assessor.person, assessor.changed(action.changes))
    severity = action.effect.level_before.severity
    return -severity, action.promised.severity, len(action.harms), action.from_now_on, loss


def write_differently(
    assessor: Assessor,
    findings: Sequence[Finding],
    actions: Sequence[Action],
    plan: Plan | None,
    targets: Targets,
) -> tuple[WriteDifferently, ...]:
    """Say what gives the person away, kind by kind, for every finding that is worth doing something about."""
    better = (
        one for one in (plan.effects if plan else ()) if one.level_after.severity < one.level_before.severity
    )
    helped = {one.aim for one in actions} | {one.key for one in better}
    told = []
    for finding in worst_findings(findings, targets):
        kinds = tuple(assessor.gives_away(finding))
        if kinds or finding.key not in helped:
            told.append(
                WriteDifferently(
                    theme=finding.theme,
                    subject=finding.assessment.subject,
                    kinds=kinds,
                    helped=finding.key in helped,
                )
            )
    return tuple(told)


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
        "items": (len(person.items), len(person.items & after.items)),
        "attributes": (len(person.attributes), len(person.attributes.keys() - after.withheld)),
    }
    return {name: float(1 - kept / had) for name, (had, kept) in parts.items() if had}


def loss_share(person: Person, after: Person) -> float:
    """Return what is given up: shares of one's words, items and attributes, added up.

    An item to list that one had not meant to show costs as much as one to leave out.
    """
    shares = shares_given_up(person, after)
    listed = len(after.items - person.items) / max(len(person.items), 1)
    return listed + math.fsum(shares.get(kind, 0.0) for kind in ("words", "items", "attributes"))


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
    if changes.add_items:
        said.append(f"{say_count(len(changes.add_items), 'item')} that you had not meant to list")
    if changes.withhold_attributes:
        said.append(f"{len(changes.withhold_attributes)} of your {len(person.attributes)} attributes")
    return "; ".join(said) or "nothing"
