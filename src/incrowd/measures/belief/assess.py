"""A crowd, a person and a policy in; who could be how sure of what, why, and what to withhold, out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from incrowd.arrays import Ints
from incrowd.crowd import Crowd
from incrowd.errors import NotInCrowd
from incrowd.measures.belief.adversary import (
    BeliefAdversary,
    Linkage,
    Topics,
    Unlinkable,
    link_in_crowd,
    read_words,
    traces_of,
)
from incrowd.measures.belief.critical import (
    CriticalSet,
    CriticalSets,
    WhatIf,
    candidates,
    critical_sets,
    measured_epsilon,
    repairing_sets,
    what_if_published,
    without,
)
from incrowd.measures.belief.crowd_belief import CrowdBelief, fitted_belief
from incrowd.measures.belief.definition import is_sensitive
from incrowd.measures.belief.engine import BeliefModel, ExplicitBelief
from incrowd.measures.belief.network import NetworkBelief
from incrowd.measures.belief.policy import ANY, Policy, Requirement
from incrowd.measures.belief.rules import InferenceRule, WorldKnowledge
from incrowd.measures.belief.spec import ADVERSARIES, BeliefOptions
from incrowd.profiles.attributes import (
    HIDDEN,
    AttributeSpace,
    AttributeTable,
    SeenAttributes,
    attribute_table,
)
from incrowd.result import (
    Advice,
    Assessment,
    Assumptions,
    Direction,
    Evidence,
    Result,
    Standing,
    Threat,
    say_amount,
    say_percent,
)


def steps(adversary: BeliefAdversary, evidence: SeenAttributes, one: Requirement) -> tuple[Evidence, ...]:
    """Return how the belief moves as attributes come in, those that say most alone first; it ends at the posterior.

    The parts add up to posterior minus prior exactly. The order matters for how the sum is shared out, as in any
    explanation of a joint effect; the total does not depend on it.
    """
    names = candidates(adversary, evidence)
    places = list(names)
    if not places:
        return ()
    alone = _believed(adversary, evidence, one, [[place] for place in places])
    nothing = _believed(BeliefAdversary(adversary.belief), evidence, one, [[]])[0]
    order = [places[i] for i in np.argsort(-np.abs(alone - nothing), kind="stable")]
    reached = _believed(adversary, evidence, one, [order[:k] for k in range(len(order) + 1)])
    moves = np.diff(reached, prepend=nothing)
    parts = [
        Evidence(what=worded(names[place]), contribution=float(move))
        for place, move in zip(order, moves[1:], strict=True)
    ]
    if abs(moves[0]) > 1e-12:
        parts.append(Evidence(what="what else is known of you", contribution=float(moves[0])))
    return tuple(parts)


def worded(name: str) -> str:
    """Say what may be withheld as a person would."""
    return f"the {name}" if name.startswith("link between ") else f"your {name}"


def _believed(
    adversary: BeliefAdversary, evidence: SeenAttributes, one: Requirement, shown: list[list[int]]
) -> np.ndarray:
    many = len(evidence.space.attributes) + len(adversary.traces.names)
    hidden = np.ones((len(shown), many), dtype=bool)
    for row, places in enumerate(shown):
        hidden[row, places] = False
    return np.asarray(one.belief(adversary, evidence.hiding(hidden)).max(axis=1))


COMMUNITY = "community:"
REMEDIES = 3
"""So many critical sets are advised a requirement."""
IMPOSSIBLE = "contradiction: nothing the adversary can imagine fits what was published"


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


def _undefined_last(value: float) -> float:
    return math.inf if math.isnan(value) else value


@dataclass(frozen=True)
class Remedy:
    """A critical set, and how sure the adversary then is of the value it was to hide."""

    withheld: CriticalSet
    after: float


@dataclass(frozen=True)
class JudgedRequirement:
    """One requirement and how sure the adversary is."""

    attribute: str
    value: str
    sigma: float
    posterior: float
    prior: float
    evidence: tuple[Evidence, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    profile: str | None = None
    """The one profile the requirement is about (definition 12); None: everything the person shows."""

    @property
    def satisfied(self) -> bool:
        """True if nobody is surer than sigma; an undefined belief satisfies nothing."""
        return self.posterior <= self.sigma

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; an undefined number becomes None."""
        return {
            "attribute": self.attribute,
            "value": self.value,
            "sigma": self.sigma,
            "posterior": _defined(self.posterior),
            "prior": _defined(self.prior),
            "satisfied": self.satisfied,
            "profile": self.profile,
        } | ({"reason": IMPOSSIBLE} if math.isnan(self.posterior) else {})


@dataclass(frozen=True, kw_only=True, repr=False)
class PolicyCheck(Result):
    """A profile held against its policy."""

    judged: tuple[JudgedRequirement, ...]
    critical: CriticalSets
    """What satisfies at least one violated requirement (definition 15)."""
    what_if: tuple[WhatIf, ...]
    published: tuple[str, ...]
    options: BeliefOptions
    people: int
    data_hash: str
    epsilon: Mapping[str, float] = field(default_factory=dict)
    """How far this adversary's belief moves if one published attribute is withheld (definition 11); rules left out."""
    sensitive: tuple[str, ...] = ()
    """Published attributes that the policy itself names (definition 14)."""
    posts: tuple[str, ...] = ()
    """Posts that count besides attributes: "posts in C"."""
    topics: tuple[str, ...] | None = None
    """Topics by which text was read, if not word by word."""
    repairing: CriticalSets = field(default_factory=lambda: CriticalSets((), 0))
    """What satisfies the whole policy."""
    asked: tuple[str, ...] = ()
    """What each requirement is about, in the order of `CriticalSet.requirements`."""
    profiles: Mapping[str, PolicyCheck] = field(default_factory=dict)
    """Single profiles held against what they must not expose."""

    @property
    def satisfied(self) -> bool:
        """True if every requirement is, of the person and of each profile."""
        return all(one.satisfied for one in self.all_judged)

    @property
    def all_judged(self) -> tuple[JudgedRequirement, ...]:
        """Every requirement: about all that is shown, then profile by profile."""
        return (*self.judged, *(one for check in self.profiles.values() for one in check.judged))

    @property
    def worst(self) -> float:
        """The highest belief in anything the policy wants hidden; undefined if any of them is."""
        beliefs = [one.posterior for one in self.all_judged]
        return math.nan if any(map(math.isnan, beliefs)) else max(beliefs)

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each assessment."""
        return [one.rows()[0] for one in self.assessments()]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return how sure somebody is of each secret."""
        return [(one.subject, one.value) for one in self.assessments()]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers other programs rely on."""
        critical, repairing = self.critical, self.repairing
        return {
            "satisfied": self.satisfied,
            "requirements": [one.to_dict() for one in self.all_judged],
            "critical_sets": [
                {
                    "attributes": list(one.attributes),
                    "loss_bits": one.loss,
                    "satisfies": list(one.requirements),
                }
                for one in critical.sets
            ],
            "critical_sets_up_to": critical.searched,
            "repairing_sets": [
                {"attributes": list(one.attributes), "loss_bits": one.loss} for one in repairing.sets
            ],
            "greedy_set": None
            if repairing.greedy is None
            else {
                "attributes": list(repairing.greedy.attributes),
                "loss_bits": repairing.greedy.loss,
                "gap": repairing.gap,
            },
            "profiles": {name: check.to_dict() for name, check in self.profiles.items()},
            "what_if": [
                {
                    "publish": one.attribute,
                    "target": one.target,
                    "before": _defined(one.before),
                    "after": _defined(one.after),
                }
                for one in self.what_if
            ],
            "epsilon": {
                "largest": _defined(max(self.epsilon.values(), key=_undefined_last, default=0.0)),
                "by_attribute": {name: _defined(moved) for name, moved in self.epsilon.items()},
            },
            "published": list(self.published),
            "posts": list(self.posts),
            "sensitive": list(self.sensitive),
            "assumptions": {**self._parameters, "adversary": ADVERSARIES[self.options.adversary]},
            "people": self.people,
            "data_hash": self.data_hash,
        }

    @property
    def _parameters(self) -> dict[str, Any]:
        return self.options.parameters() | ({} if self.topics is None else {"topics": list(self.topics)})

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        broken = [one for one in self.all_judged if not one.satisfied]
        if not broken:
            return (
                f"Your policy holds: nobody like this is surer than {self.worst:.0%} of what you want hidden."
            )
        undefined = [one.attribute for one in broken if math.isnan(one.posterior)]
        if undefined:
            return f"Cannot tell for your {', '.join(undefined)}: {IMPOSSIBLE}. Try a larger --smoothing."
        worst = max(broken, key=lambda one: one.posterior - one.sigma)
        return (
            f"Your policy does not hold: {len(broken)} of {len(self.all_judged)} requirements are violated. The "
            f"worst: {worst.attribute} = {worst.value} is believed with {worst.posterior:.0%}, and you allow "
            f"{worst.sigma:.0%}."
        )

    def assessments(self) -> tuple[Assessment, ...]:
        """Return one assessment for each requirement."""
        own = tuple(self._assessment(one) for one in self.judged)
        return (*own, *(one for check in self.profiles.values() for one in check.assessments()))

    def _assessment(self, one: JudgedRequirement) -> Assessment:
        defined = not math.isnan(one.posterior)
        return Assessment(
            measure="belief",
            subject=f"your {one.attribute}" + (f" in {one.profile}" if one.profile else ""),
            value=one.posterior,
            unit="probability",
            direction=Direction.LOWER_IS_SAFER,
            meaning=(
                f"{ADVERSARIES[self.options.adversary].capitalize()}, is "
                f"{say_amount(one.posterior, 'probability')} sure of {worded(one.attribute)} ({one.value}); for "
                f"anybody it would be {say_percent(one.prior)}. The aim is {say_percent(one.sigma)} at most."
            ),
            standing=Standing.HEURISTIC,
            assumptions=Assumptions(
                adversary=ADVERSARIES[self.options.adversary],
                parameters={**self._parameters, "sigma": one.sigma},
                seed=self.options.seed,
                data_hash=self.data_hash,
            ),
            baseline=one.prior,
            crowd_size=self.people,
            threats=(Threat.LINKABILITY if one.attribute == "same user" else Threat.INFERENCE,),
            evidence=one.evidence,
            explained=one.posterior - one.prior if one.evidence and defined else None,
            advice=() if one.satisfied else self._advice(one),
            reason="" if defined else IMPOSSIBLE,
        )

    def _advice(self, one: JudgedRequirement) -> tuple[Advice, ...]:
        return tuple(
            Advice(
                what=f"withhold {', '.join(map(worded, remedy.withheld.attributes))}",
                before=one.posterior,
                after=remedy.after,
                loss=f"your profile tells {remedy.withheld.loss:.1f} bits less; belief falls to {remedy.after:.0%}",
            )
            for remedy in one.remedies
        )


def check_policy(
    crowd: Crowd,
    user: str,
    policy: Policy,
    rules: Iterable[InferenceRule] = (),
    options: BeliefOptions | None = None,
    table: AttributeTable | None = None,
    topics: Topics | None = None,
) -> PolicyCheck:
    """Hold one person's profile against a policy.

    `user` is their id in the crowd; `table` its attributes, if read; with `topics` (name: words) the text is read
    topic by topic instead of word by word.
    """
    options = options or BeliefOptions()
    table = table if table is not None else _table_for(crowd, user, policy)
    profiles = {
        name: _checked(crowd, user, one, rules, options, table, topics, name)
        for name, one in policy.profiles.items()
    }
    if not policy.requirements and not policy.links:
        return PolicyCheck(
            judged=(),
            critical=CriticalSets((), 0),
            what_if=(),
            published=(),
            options=options,
            people=len(table.codes),
            data_hash=crowd.data_hash,
            profiles=profiles,
        )
    return replace(_checked(crowd, user, policy, rules, options, table, topics), profiles=profiles)


def _table_for(crowd: Crowd, user: str, policy: Policy) -> AttributeTable:
    """Read the crowd's attributes; a policy about links alone needs none."""
    if policy.requirements or policy.profiles or crowd.attributes().head(1).collect().height:
        return attribute_table(crowd)
    nothing = np.empty((1, 0), dtype=np.int32)
    return AttributeTable(AttributeSpace((), ()), nothing, np.array([user], dtype=object), crowd.data_hash)


def _checked(
    crowd: Crowd,
    user: str,
    policy: Policy,
    rules: Iterable[InferenceRule],
    options: BeliefOptions,
    table: AttributeTable,
    topics: Topics | None,
    profile: str | None = None,
) -> PolicyCheck:
    """Hold all that a person shows, or one profile of theirs, against what it requires."""
    if not table.space.attributes:
        truth, row, shown = {}, HIDDEN, {}
    else:
        row = table.row(user)
        truth = table.of(row)
        shown = policy.publication.show(truth, table.space, options.seed)
    own = np.array([row]) if options.adversary == "stranger" else None
    evidence = policy.publication.observe(shown, table.space, own)
    adversary = adversary_for(crowd, table, user, policy, rules, options, topics, profile)
    critical = critical_sets(adversary, evidence, policy, largest=options.largest)
    repairing = critical
    if len(policy.requirements) + len(policy.links) > 1:
        repairing = repairing_sets(adversary, evidence, policy, largest=options.largest)
    return PolicyCheck(
        judged=_judged(adversary, evidence, policy, critical, profile),
        critical=critical,
        repairing=repairing,
        asked=(
            *(" and ".join(one.values) for one in policy.requirements),
            *("same user" for _ in policy.links),
        ),
        what_if=tuple(what_if_published(adversary, evidence, policy, truth)),
        epsilon=measured_epsilon(adversary.belief, evidence),
        sensitive=tuple(name for name in sorted(shown) if is_sensitive([name], policy.attribute_sets)),
        published=tuple(sorted(shown)),
        posts=adversary.traces.names[: len(adversary.traces.posts)],
        options=options,
        topics=None if topics is None else tuple(topics),
        people=len(table.codes),
        data_hash=crowd.data_hash,
    )


def _judged(
    adversary: BeliefAdversary,
    evidence: SeenAttributes,
    policy: Policy,
    critical: CriticalSets,
    profile: str | None,
) -> tuple[JudgedRequirement, ...]:
    """Judge requirement by requirement, each with the sets that satisfy it and the belief measured without them."""
    found: list[JudgedRequirement] = []
    required: list[Requirement | Unlinkable] = [*policy.requirements, *policy.links]
    for number, one in enumerate(required):
        some = [found for found in critical.sets if number in found.requirements][:REMEDIES]
        if not some and critical.greedy is not None and number in critical.greedy.requirements:
            some = [critical.greedy]
        if isinstance(one, Requirement):
            parts = judge(adversary, evidence, one)
        else:
            parts = [
                _judged_link(link) for link in adversary.traces.links if link.communities == one.communities
            ]
        for column, part in enumerate(parts):
            remedies = []
            for withheld in some:
                left = without(adversary, evidence, withheld.attributes)
                if isinstance(one, Requirement):
                    after = float(one.belief(adversary, left)[0, column])
                else:
                    after = float(adversary.traces.belief_in_link(one.communities, left)[0])
                remedies.append(Remedy(withheld, after))
            found.append(replace(part, remedies=tuple(remedies), profile=profile))
    return tuple(found)


def belief_for(
    table: AttributeTable, options: BeliefOptions, targets: Sequence[int], row: int | None = None
) -> BeliefModel:
    """Return the belief an adversary forms from a table; a network is learnt without the person's row."""
    if not table.space.attributes:
        return ExplicitBelief(table.space, np.empty((1, 0), dtype=np.int64), np.ones(1))
    if options.engine == "crowd":
        if options.smoothing is None:
            return fitted_belief(table, targets, options.seed)
        return CrowdBelief.learn(table, options.smoothing)
    everybody: Ints = np.arange(len(table.codes))
    return NetworkBelief.learn(table if row is None else table.only(everybody[everybody != row]))


def adversary_for(
    crowd: Crowd,
    table: AttributeTable,
    user: str,
    policy: Policy,
    rules: Iterable[InferenceRule],
    options: BeliefOptions,
    topics: Topics | None = None,
    profile: str | None = None,
) -> BeliefAdversary:
    """Put belief, rules, the person's words and the links between their profiles together.

    Of one `profile`, by its community, only the posts there are seen.
    """
    row = table.row(user) if table.space.attributes else HIDDEN
    rules = tuple(rules)
    belief = belief_for(table, options, policy.targets(table.space), row)
    posts = crowd.posts(user=user).group_by("community").len().collect()
    written = {str(name): int(count) for name, count in posts.iter_rows()}
    if profile is not None:
        written = {name: count for name, count in written.items() if name == profile}
    knowledge = WorldKnowledge.over(belief, rules, {(f"{COMMUNITY}{name}", "yes") for name in written})
    named = {name.removeprefix(COMMUNITY) for rule in rules for name, _ in rule.conditions}
    if options.text and not written:
        raise NotInCrowd("this person has no words in the crowd; leave --text out")
    words = read_words(crowd, table, topics) if options.text else None
    links = [link_in_crowd(crowd, user, one) for one in policy.links]
    return BeliefAdversary(belief, knowledge, traces_of(written, links, named, words, row, table))


def judge(adversary: BeliefAdversary, evidence: SeenAttributes, one: Requirement) -> list[JudgedRequirement]:
    """Return how sure the adversary is of each value a requirement names."""
    nothing = SeenAttributes.nothing(evidence.space, own_rows=evidence.own_rows)
    if one.joint:
        after = float(one.belief(adversary, evidence)[0, 0])
        before = float(one.belief(BeliefAdversary(adversary.belief), nothing)[0, 0])
        names, values = " and ".join(one.values), " and ".join(one.values.values())
        return [JudgedRequirement(names, values, one.sigma, after, before, steps(adversary, evidence, one))]
    return [_judge_one(adversary, evidence, name, value, one.sigma) for name, value in one.values.items()]


def _judge_one(
    adversary: BeliefAdversary, evidence: SeenAttributes, name: str, value: str, sigma: float
) -> JudgedRequirement:
    space = evidence.space
    if value == ANY:
        sure = adversary.posteriors([space.place(name)], evidence)[0][0]
        if np.isnan(sure).all():
            return JudgedRequirement(name, ANY, sigma, math.nan, math.nan)
        value = str(space.values[space.place(name)][int(np.argmax(sure))])
    exact = Requirement(values={name: value}, sigma=sigma)
    nothing = SeenAttributes.nothing(space, own_rows=evidence.own_rows)
    after = float(exact.belief(adversary, evidence)[0, 0])
    before = float(exact.belief(BeliefAdversary(adversary.belief), nothing)[0, 0])
    parts = () if math.isnan(after) else steps(adversary, evidence, exact)
    return JudgedRequirement(name, value, sigma, after, before, parts)


def _judged_link(link: Linkage) -> JudgedRequirement:
    return JudgedRequirement("same user", "yes", link.sigma, link.posterior, link.prior)
