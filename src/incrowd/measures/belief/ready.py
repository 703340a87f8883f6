"""One person's attributes, guessed by a stranger who knows a crowd of people like them, but not them.

Belief is learnt from everybody else's rows. A value that nobody else has tells such a stranger nothing about the
rest, and is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.arrays import Floats, Ints
from incrowd.errors import InputError
from incrowd.measures.belief.adversary import BeliefAdversary
from incrowd.measures.belief.assess import JudgedRequirement, PolicyCheck, belief_for, judge
from incrowd.measures.belief.critical import CriticalSets, critical_sets
from incrowd.measures.belief.crowd_belief import CrowdBelief, fitted_belief
from incrowd.measures.belief.engine import BeliefModel, joint_probability
from incrowd.measures.belief.policy import ANY, Perturb, Policy, Publish, Requirement, Way, Withhold
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
from incrowd.profiles.attributes import HIDDEN, AttributeTable, SeenAttributes, attribute_table
from incrowd.result import Evidence, Result, say_count
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


# A whole crowd held against a policy: how many people it fails, never who.


@dataclass(frozen=True, eq=False, repr=False)
class EveryoneChecked(Result):
    """How sure the adversary is of each requirement, person by person."""

    posterior: Floats
    """(people, requirements); NaN where the person gave no value to protect."""
    prior: Floats
    sigma: Floats
    requirements: tuple[str, ...]

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        told = self.to_dict()
        return f"The policy fails {told['violated']:.0%} of {told['people']:,} people."

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each requirement."""
        rows: list[dict[str, Any]] = self.to_dict()["requirements"]
        return rows

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the share of people each requirement fails."""
        return [(row["attribute"], float(row["violated"])) for row in self.rows()]

    def to_dict(self) -> dict[str, Any]:
        """Return rates only."""
        with np.errstate(invalid="ignore"):
            violated = self.posterior > self.sigma
        return {
            "people": len(self.posterior),
            "violated": float(violated.any(axis=1).mean()),
            "requirements": [
                {
                    "attribute": name,
                    "sigma": float(self.sigma[k]),
                    "judged": int((~np.isnan(self.posterior[:, k])).sum()),
                    "violated": _share(violated[:, k], self.posterior[:, k]),
                    "mean_posterior": _mean(self.posterior[:, k]),
                    "mean_prior": _mean(self.prior[:, k]),
                }
                for k, name in enumerate(self.requirements)
            ],
        }


def check_everyone(
    table: AttributeTable, policy: Policy, options: BeliefOptions | None = None
) -> EveryoneChecked:
    """Hold everybody's profile against one policy; each person's own row is unknown to a stranger."""
    options = options or BeliefOptions()
    if policy.links or policy.profiles or not policy.requirements:
        raise InputError(
            "a whole crowd is checked against requirements of attributes, not of linked profiles or of single ones"
        )
    policy.publication.check(table.space.attributes)
    belief = belief_for(table, options, policy.targets(table.space))
    own = np.arange(len(table.codes)) if options.adversary == "stranger" else None
    seen, nothing = published_by_all(table, policy, options.seed, own), SeenAttributes.nothing(table.space)
    columns = [
        column for one in policy.requirements for column in _columns(table, belief, one, seen, nothing)
    ]
    return EveryoneChecked(
        np.stack([after for _, after, _ in columns], axis=1),
        np.stack([before for _, _, before in columns], axis=1),
        np.array(
            [one.sigma for one in policy.requirements for _ in range(1 if one.joint else len(one.values))]
        ),
        tuple(name for name, _, _ in columns),
    )


def published_by_all(table: AttributeTable, policy: Policy, seed: int, own: Ints | None) -> SeenAttributes:
    """Return what everybody shows under one publication; the seed decides perturbed values."""
    seen, rng = table.codes.astype(np.int64), np.random.default_rng(seed)
    evidence = SeenAttributes(table.space, seen, {}, own)
    for name in sorted(policy.publication.ways):
        way, place = policy.publication.ways[name], table.space.place(name)
        if isinstance(way, Publish):
            continue
        codes, values = seen[:, place].copy(), table.space.values[place]
        seen[:, place] = HIDDEN
        if not isinstance(way, Withhold):
            evidence = evidence.hinting(place, _hints(way, values, codes, rng))
    return evidence


def _hints(way: Way, values: Sequence[str | None], codes: Ints, rng: np.random.Generator) -> Floats:
    """Return how probable what each person shows is under every value; people without a value show nothing."""
    hints = np.ones((len(codes), len(values)))
    given = np.flatnonzero(codes != HIDDEN)
    if isinstance(way, Perturb):
        shown = _perturbed(way, codes[given], len(values), rng)
        each = np.stack([way.likelihood(values, str(value)) for value in values])
    else:
        shown = codes[given]
        names = [way.show(str(value), values, rng) for value in values]
        each = np.stack([way.likelihood(values, str(name)) for name in names])
    hints[given] = each[shown]
    return hints


def _perturbed(way: Perturb, codes: Ints, size: int, rng: np.random.Generator) -> Ints:
    """Draw what readers see of each code: itself, or one of the others, each as probably."""
    if size == 1:
        return codes
    other = (codes + rng.integers(1, size, len(codes))) % size
    return np.where(rng.random(len(codes)) < way.keep, codes, other)


Column = tuple[str, Floats, Floats]


def _columns(
    table: AttributeTable,
    belief: BeliefModel,
    one: Requirement,
    seen: SeenAttributes,
    nothing: SeenAttributes,
) -> list[Column]:
    """Return (name, posterior, prior) of each value a requirement names, or of all at once if it is joint."""
    space, people = table.space, len(seen)
    if one.joint:
        event = {space.place(name): space.code(name, value) for name, value in one.values.items()}
        after, before = (joint_probability(belief, event, evidence) for evidence in (seen, nothing))
        return [(" and ".join(one.values), after, np.repeat(before, people))]
    places = [space.place(name) for name in one.values]
    after_each, before_each = belief.posteriors(places, seen), belief.posteriors(places, nothing)
    return [
        (
            space.attributes[place],
            _of_each(table, one, place, after),
            _of_each(table, one, place, np.repeat(before, people, axis=0)),
        )
        for place, after, before in zip(places, after_each, before_each, strict=True)
    ]


def _of_each(table: AttributeTable, one: Requirement, place: int, sure: Floats) -> Floats:
    name = table.space.attributes[place]
    if one.own:
        codes = table.codes[:, place]
        return np.where(codes == HIDDEN, np.nan, sure[np.arange(len(sure)), np.maximum(codes, 0)])
    value = one.values[name]
    return np.asarray(sure.max(axis=1) if value == ANY else sure[:, table.space.code(name, value)])


def _share(violated: Any, posterior: Floats) -> float:
    defined = ~np.isnan(posterior)
    return float(violated[defined].mean()) if defined.any() else float("nan")


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
