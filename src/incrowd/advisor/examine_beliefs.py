"""Inferable: how sure a stranger can be of each of your attributes, if you hide it and show the others.

The stranger knows a crowd of people like you, but not you: belief is learnt from everybody else's rows. A value
that nobody else has tells such a stranger nothing about the rest, and is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.advisor.answer import Changes, NotAssessed, ThemeName
from incrowd.advisor.answer import Judged as JudgedFinding
from incrowd.advisor.examiner import Findings, Goal, Proposal
from incrowd.advisor.stored import remembered
from incrowd.measures.belief.adversary import Adversary
from incrowd.measures.belief.assess import Judged, PolicyCheck, judge
from incrowd.measures.belief.critical import CriticalSets, critical_sets
from incrowd.measures.belief.crowd_belief import CrowdBelief, fitted_belief
from incrowd.measures.belief.policy import Policy, Requirement
from incrowd.measures.belief.spec import BeliefOptions
from incrowd.profiles.attributes import AttributeTable, Evidence, attribute_table
from incrowd.result import say_count

if TYPE_CHECKING:
    from incrowd.advisor.person import Own
    from incrowd.advisor.spec import AdvisorOptions
    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import Kind

LARGEST = 2
"""Every set of so many attributes is tried; larger ones greedily."""
BEST = 2


@dataclass(frozen=True, eq=False)
class BeliefExaminer:
    """Each attribute in turn is the secret; all others that the person shows are the evidence."""

    measure: ClassVar[str] = "belief"
    reads: ClassVar[Kind] = "attributes"

    others: AttributeTable
    adversary: Adversary
    gain: float
    """The target: how much of the doubt may go."""
    options: BeliefOptions
    data_hash: str

    @classmethod
    def prepare(cls, crowd: Crowd, own: Own, options: AdvisorOptions) -> BeliefExaminer:
        """Learn from everybody else."""
        table = attribute_table(crowd)
        everybody = np.arange(len(table.codes))
        others = table.only(everybody[everybody != table.row(own.user)])
        asked = {"what": "smoothing", "without": own.user, "seed": options.seed}
        smoothing = remembered(
            crowd, asked, lambda: {"smoothing": fitted_belief(others, seed=options.seed).smoothing}
        )["smoothing"]
        belief = replace(CrowdBelief.learn(others), smoothing=smoothing)
        chosen = BeliefOptions(seed=options.seed, largest=LARGEST)
        return cls(others, Adversary(belief), options.targets.gain, chosen, crowd.data_hash)

    def examine(self, own: Own, *, explain: bool = True) -> Findings:
        """Hide one attribute at a time and let the stranger guess it."""
        evidence = {secret: self._evidence(own, secret) for secret in own.attributes}
        shown = {secret: seen for secret, seen in evidence.items() if seen.informative}
        judged = self._quickly(own, shown) if shown else []
        if explain:
            judged = [one if one.satisfied else self._explained(one, shown[one.attribute]) for one in judged]
        return Findings(
            tuple(self._check(one).assessments()[0] for one in judged),
            tuple(_nothing_shown(secret) for secret in evidence.keys() - shown.keys()),
        )

    def _evidence(self, own: Own, secret: str) -> Evidence:
        space = self.others.space
        evidence = Evidence.nothing(space)
        for name in own.attributes.keys() - own.withheld - {secret}:
            place, code = space.place(name), space.code(name, own.attributes[name])
            if (self.others.codes[:, place] == code).any():
                evidence.seen[0, place] = code
        return evidence

    def _explained(self, one: Judged, seen: Evidence) -> Judged:
        """Add which attribute says how much; that takes long, and matters where too much is said."""
        required = Requirement(values={one.attribute: one.value}, sigma=one.sigma)
        return replace(one, evidence=judge(self.adversary, seen, required)[0].evidence)

    def _quickly(self, own: Own, shown: dict[str, Evidence]) -> list[Judged]:
        """Judge all secrets at once, one row of evidence each."""
        space = self.others.space
        rows = Evidence(space, np.concatenate([seen.seen for seen in shown.values()]), {}, None)
        places = [space.place(secret) for secret in shown]
        after = self.adversary.posteriors(places, rows)
        before = self.adversary.posteriors(places, Evidence.nothing(space))
        judged = []
        for row, secret in enumerate(shown):
            value = own.attributes[secret]
            code = space.code(secret, value)
            sure, prior = float(after[row][row, code]), float(before[row][0, code])
            judged.append(Judged(secret, value, self._sigma(prior), sure, prior))
        return judged

    def _sigma(self, prior: float) -> float:
        return min(1.0, prior + self.gain * (1 - prior))

    def _check(self, judged: Judged) -> PolicyCheck:
        return PolicyCheck(
            judged=(judged,),
            critical=CriticalSets((), 0),
            what_if=(),
            published=(),
            options=self.options,
            people=len(self.others.codes) + 1,
            data_hash=self.data_hash,
        )

    def propose(self, own: Own, finding: JudgedFinding, goal: Goal) -> Iterable[Proposal]:
        """Try the smallest sets of other attributes to withhold, those that tell least first."""
        secret = finding.assessment.subject.removeprefix("your ")
        evidence = self._evidence(own, secret)
        sigma = float(finding.assessment.assumptions.parameters["sigma"])
        policy = Policy(requirements=(Requirement(values={secret: own.attributes[secret]}, sigma=sigma),))
        found = critical_sets(self.adversary, evidence, policy, largest=LARGEST)
        sets = found.sets[:BEST] or ((found.greedy,) if found.greedy else ())
        affordable = int(goal.loss * len(own.attributes))
        for one in (one for one in sets if len(one.attributes) <= affordable):
            names = ", ".join(one.attributes)
            yield Proposal(
                what=f"Withhold your {names}, which gives your {secret} away",
                loss=f"{len(one.attributes)} of your {say_count(len(own.attributes), 'attribute')}",
                changes=Changes(withhold_attributes=frozenset(one.attributes)),
            )


def _nothing_shown(secret: str) -> NotAssessed:
    return NotAssessed(
        measure="belief",
        why=f"you show no other attribute from which your {secret} could be guessed",
        remedy="nothing to do, as far as attributes go",
        theme=ThemeName.INFERABLE,
    )
