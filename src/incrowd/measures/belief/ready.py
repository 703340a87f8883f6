"""One person's attributes, guessed by a stranger who knows a crowd of people like them, but not them.

Belief is learnt from everybody else's rows. A value that nobody else has tells such a stranger nothing about the
rest, and is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.belief.adversary import BeliefAdversary
from incrowd.measures.belief.assess import JudgedRequirement, PolicyCheck, judge
from incrowd.measures.belief.critical import CriticalSets, critical_sets
from incrowd.measures.belief.crowd_belief import CrowdBelief, fitted_belief
from incrowd.measures.belief.policy import Policy, Requirement
from incrowd.measures.belief.spec import BeliefOptions
from incrowd.measures.protocol import (
    SMALLEST_CROWD,
    AdvisorOptions,
    Changes,
    Finding,
    Findings,
    Goal,
    Measure,
    NotAssessed,
    Person,
    PreparedCrowd,
    Proposal,
    Ready,
    registered,
)
from incrowd.profiles.attributes import AttributeTable, SeenAttributes, attribute_table
from incrowd.result import Evidence, say_count
from incrowd.wording import say_list

LARGEST = 2
"""Every set of so many attributes is tried; larger ones greedily."""
BEST = 2


@dataclass(frozen=True, eq=False)
class ReadyBelief(Ready):
    """Everybody's attributes; what a stranger learns from all but one is learnt when that one is asked about."""

    measure: Measure
    crowd: PreparedCrowd
    options: AdvisorOptions
    _strangers: dict[str, Stranger] = field(default_factory=dict, repr=False)

    def assess(self, person: Person, *, explain: bool = True, community: str | None = None) -> Findings:
        """Hide one attribute at a time and let the stranger guess it."""
        if community is not None:
            return Findings()
        if not enough_people(self.crowd):
            return Findings((), (self.measure.too_few_people(),))
        question = {
            "what": "belief",
            "user": person.user,
            "said": person.digest(*person.communities) if person.communities else "",
            "withheld": sorted(person.withheld),
            "gain": self.options.targets.gain,
            "seed": self.options.seed,
            "explain": explain,
        }
        kept = self.crowd.answer(question, lambda: self._stranger(person).judged(person, explain).arrays())
        return self._findings(JudgedSecrets.from_arrays(kept))

    def _findings(self, found: JudgedSecrets) -> Findings:
        checks = [
            PolicyCheck(
                judged=(one,),
                critical=CriticalSets((), 0),
                what_if=(),
                published=(),
                options=chosen_options(self.options),
                people=found.people,
                data_hash=self.crowd.data_hash,
            )
            for one in found.judged
        ]
        return Findings(
            tuple(check.assessments()[0] for check in checks), tuple(map(self._nothing_shown, found.alone))
        )

    def _nothing_shown(self, secret: str) -> NotAssessed:
        why = f"you show no other attribute from which your {secret} could be guessed"
        return self.measure.not_assessed(why, "nothing to do, as far as attributes go")

    def _stranger(self, person: Person) -> Stranger:
        if person.user not in self._strangers:
            self._strangers[person.user] = Stranger.to(person, self.options)
        return self._strangers[person.user]

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Try the smallest sets of other attributes to withhold, those that tell least first."""
        return self._stranger(person).propose(person, finding, goal)


def enough_people(crowd: PreparedCrowd) -> bool:
    """Say whether enough people have attributes to be a crowd."""
    people = crowd.crowd().attributes().select("user").unique().head(SMALLEST_CROWD).collect()
    return people.height >= SMALLEST_CROWD


def chosen_options(options: AdvisorOptions) -> BeliefOptions:
    """Return the measure's own options for one person's answer."""
    return BeliefOptions(seed=options.seed, largest=LARGEST)


@dataclass(frozen=True)
class JudgedSecrets:
    """What the stranger makes of each of a person's attributes; found out once."""

    people: int
    judged: tuple[JudgedRequirement, ...]
    alone: tuple[str, ...]
    """Attributes beside which nothing else is shown."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as an array, to be kept."""
        return {"json": np.array(json.dumps(asdict(self)))}

    @classmethod
    def from_arrays(cls, kept: Mapping[str, NDArray[Any]]) -> JudgedSecrets:
        """Read what :meth:`arrays` gave."""
        found = json.loads(str(kept["json"]))
        judged = (
            {**one, "evidence": tuple(Evidence(**part) for part in one["evidence"]), "remedies": ()}
            for one in found["judged"]
        )
        return cls(found["people"], tuple(JudgedRequirement(**one) for one in judged), tuple(found["alone"]))


@dataclass(frozen=True, eq=False)
class Stranger:
    """Somebody who has learnt from all but one person what attributes go together."""

    others: AttributeTable
    adversary: BeliefAdversary
    gain: float
    """The target: how much of the doubt may go."""

    @classmethod
    def to(cls, person: Person, options: AdvisorOptions) -> Stranger:
        """Learn from everybody else."""
        table = attribute_table(person.crowd.crowd())
        everybody = np.arange(len(table.codes))
        others = table.only(everybody[everybody != table.row(person.user)])
        smoothing = person.crowd.answer(
            {"what": "smoothing", "without": person.user, "seed": options.seed},
            lambda: {"smoothing": fitted_belief(others, seed=options.seed).smoothing},
        )["smoothing"]
        belief = replace(CrowdBelief.learn(others), smoothing=smoothing)
        return cls(others, BeliefAdversary(belief), options.targets.gain)

    def judged(self, person: Person, explain: bool) -> JudgedSecrets:
        """Hide one attribute at a time and guess it."""
        told = self._told(person)
        evidence = {secret: self._evidence(person, secret, told) for secret in person.attributes}
        shown = {secret: seen for secret, seen in evidence.items() if seen.informative}
        judged = self._quickly(person, shown) if shown else []
        if explain:
            judged = [one if one.satisfied else self._explained(one, shown[one.attribute]) for one in judged]
        alone = tuple(secret for secret in evidence if secret not in shown)
        return JudgedSecrets(len(self.others.codes) + 1, tuple(judged), alone)

    def _evidence(self, person: Person, secret: str, told: Mapping[str, str]) -> SeenAttributes:
        space = self.others.space
        evidence = SeenAttributes.nothing(space)
        shown = {name: value for name, value in person.attributes.items() if name not in person.withheld}
        for name, value in ({**told, **shown}).items():
            if name == secret:
                continue
            place, code = space.place(name), space.code(name, value)
            if (self.others.codes[:, place] == code).any():
                evidence.seen[0, place] = code
        return evidence

    def _told(self, person: Person) -> dict[str, str]:
        """Return what the person's posts tell of attributes that they withhold, or never gave."""
        space = self.others.space
        values = {
            name: [str(value) for value in some]
            for name, some in zip(space.attributes, space.values, strict=True)
            if name not in person.attributes or name in person.withheld
        }
        found: dict[str, str] = {}
        for one in registered().values():
            found |= one.told_attributes(person, values) if values else {}
        return found

    def _explained(self, one: JudgedRequirement, seen: SeenAttributes) -> JudgedRequirement:
        """Add which attribute says how much; that takes long, and matters where too much is said."""
        required = Requirement(values={one.attribute: one.value}, sigma=one.sigma)
        return replace(one, evidence=judge(self.adversary, seen, required)[0].evidence)

    def _quickly(self, person: Person, shown: dict[str, SeenAttributes]) -> list[JudgedRequirement]:
        """Judge all secrets at once, one row of evidence each."""
        space = self.others.space
        rows = SeenAttributes(space, np.concatenate([seen.seen for seen in shown.values()]), {}, None)
        places = [space.place(secret) for secret in shown]
        after = self.adversary.posteriors(places, rows)
        before = self.adversary.posteriors(places, SeenAttributes.nothing(space))
        judged = []
        for row, secret in enumerate(shown):
            value = person.attributes[secret]
            code = space.code(secret, value)
            sure, prior = float(after[row][row, code]), float(before[row][0, code])
            judged.append(JudgedRequirement(secret, value, self._sigma(prior), sure, prior))
        return judged

    def _sigma(self, prior: float) -> float:
        return min(1.0, prior + self.gain * (1 - prior))

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Try the smallest sets of other attributes to withhold, those that tell least first."""
        secret = finding.assessment.subject.removeprefix("your ")
        evidence = self._evidence(person, secret, self._told(person))
        sigma = float(finding.assessment.assumptions.parameters["sigma"])
        policy = Policy(requirements=(Requirement(values={secret: person.attributes[secret]}, sigma=sigma),))
        found = critical_sets(self.adversary, evidence, policy, largest=LARGEST)
        sets = found.sets[:BEST] or ((found.greedy,) if found.greedy else ())
        affordable = int(goal.loss * len(person.attributes))
        for one in (one for one in sets if len(one.attributes) <= affordable):
            names, gives = say_list(one.attributes), "gives" if len(one.attributes) == 1 else "give"
            yield Proposal(
                what=f"Withhold your {names}, which {gives} your {secret} away",
                loss=f"{len(one.attributes)} of your {say_count(len(person.attributes), 'attribute')}",
                changes=Changes(withhold_attributes=frozenset(one.attributes)),
            )
