"""Which published attributes give a secret away: the minimal sets whose withholding helps.

A set is *critical* (definition 15) if the profile violates some requirement of the policy and no longer does without
the set. A set is *repairing* if the whole policy holds without it. With one requirement the two are the same. At least
one attribute, or the posts in one community, stays published. Posts in a community and the link between two profiles
are withheld like attributes. Withholding more can also raise a posterior, so every set up to a size is tried; only
supersets of sets already found are skipped, for they are not minimal.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.arrays import Floats
from incrowd.measures.belief.adversary import BeliefAdversary
from incrowd.measures.belief.definition import total_variation
from incrowd.measures.belief.engine import BeliefModel
from incrowd.measures.belief.policy import Policy
from incrowd.profiles.attributes import HIDDEN, SeenAttributes

TRIED_AT_ONCE = 4096


@dataclass(frozen=True)
class CriticalSet:
    """Attributes, posts and links to withhold together, and what that costs."""

    attributes: tuple[str, ...]
    loss: float
    """Bits the profile no longer tells, added up: -log2 of a withheld value's share in the crowd, 1 a withheld post,
    -log2 of a blind guess for a link; or what the policy says."""
    excess: float
    """How far the worst requirement that it was to satisfy then is from its sigma; at most 0."""
    requirements: tuple[int, ...] = ()
    """The violated requirements that hold without it: places in `Policy.one_by_one`."""


@dataclass(frozen=True)
class CriticalSets:
    """All minimal sets up to a size, least loss first; or one found greedily if there is none."""

    sets: tuple[CriticalSet, ...]
    searched: int
    """Every set up to this size was tried."""
    greedy: CriticalSet | None = None
    gap: int | None = None
    """By how many attributes the greedy set may exceed the smallest one."""
    tried: int = 0


def published(evidence: SeenAttributes) -> list[int]:
    """Return the attributes one person shows, exactly or in part."""
    return sorted({*np.flatnonzero(evidence.seen[0] != HIDDEN).tolist(), *evidence.soft})


def critical_sets(
    adversary: BeliefAdversary, evidence: SeenAttributes, policy: Policy, *, largest: int = 4
) -> CriticalSets:
    """Find the critical sets (definition 15): for each violated requirement, every minimal set that satisfies it.

    A set that satisfies one requirement may be part of a larger one that satisfies another; both are listed.
    """
    searches = [repairing_sets(adversary, evidence, one, largest=largest) for one in policy.one_by_one()]
    found: dict[tuple[str, ...], CriticalSet] = {}
    for number, search in enumerate(searches):
        for one in search.sets:
            known = found.get(one.attributes)
            excess = one.excess if known is None else max(one.excess, known.excess)
            repaired = (number,) if known is None else (*known.requirements, number)
            found[one.attributes] = replace(one, excess=excess, requirements=repaired)
    sets = sorted(found.values(), key=lambda one: (one.loss, one.attributes))
    greedy = [
        (search.gap or 0, number, search.greedy) for number, search in enumerate(searches) if search.greedy
    ]
    best = min(greedy, key=lambda some: some[:2]) if greedy else None
    return CriticalSets(
        tuple(sets),
        max(search.searched for search in searches),
        None if best is None else replace(best[2], requirements=(best[1],)),
        None if best is None else best[0],
        sum(search.tried for search in searches),
    )


def repairing_sets(
    adversary: BeliefAdversary, evidence: SeenAttributes, policy: Policy, *, largest: int = 4
) -> CriticalSets:
    """Find every minimal set of at most `largest` things to withhold with which the whole policy holds."""
    if float(policy.excess(adversary, evidence)[0]) <= 0:
        return CriticalSets((), 0)
    names = candidates(adversary, evidence)
    losses = {**loss_of_withholding(adversary, evidence), **policy.losses}

    def made(places: tuple[int, ...], excess: float) -> CriticalSet:
        chosen = tuple(names[place] for place in places)
        return CriticalSet(chosen, sum(losses[name] for name in chosen), excess)

    quick, small = adversary.focused(evidence, policy.targets(evidence.space))
    search = _Search(quick, small, policy, list(names))
    searched = min(largest, len(names) - 1)
    for size in range(1, searched + 1):
        search.level(size)
    found = [made(*one) for one in search.found.items()]
    found.sort(key=lambda one: (one.loss, one.attributes))
    if found or searched >= len(names) - 1:
        return CriticalSets(tuple(found), searched, tried=search.tried)
    places, excess = search.greedy()
    if not excess <= 0:
        return CriticalSets((), searched, tried=search.tried)
    return CriticalSets((), searched, made(places, excess), len(places) - (searched + 1), search.tried)


def candidates(adversary: BeliefAdversary, evidence: SeenAttributes) -> dict[int, str]:
    """Return what one person could withhold: the column in `Evidence.hiding`, and its name."""
    attributes, traces = evidence.space.attributes, adversary.traces
    seen = traces.visible(evidence)[0]
    return {place: attributes[place] for place in published(evidence)} | {
        len(attributes) + number: name for number, name in enumerate(traces.names) if seen[number]
    }


def without(adversary: BeliefAdversary, evidence: SeenAttributes, names: Collection[str]) -> SeenAttributes:
    """Return one person's evidence with some of its candidates withheld, by name."""
    places = {name: place for place, name in candidates(adversary, evidence).items()}
    hidden = np.zeros((1, len(evidence.space.attributes) + len(adversary.traces.names)), dtype=bool)
    hidden[0, [places[name] for name in names]] = True
    return evidence.hiding(hidden)


class _Search:
    """Tries sets on a small belief and keeps those that repair."""

    def __init__(
        self, adversary: BeliefAdversary, evidence: SeenAttributes, policy: Policy, shown: Sequence[int]
    ) -> None:
        self.adversary, self.evidence, self.policy, self.shown = adversary, evidence, policy, shown
        self.found: dict[tuple[int, ...], float] = {}
        self.tried = 0
        attributes = len(evidence.space.attributes)
        self.width = attributes + len(adversary.traces.names)
        self.content = {place for place in shown if place < attributes + len(adversary.traces.posts)}
        """Attributes and posts: something of these stays published."""

    def excess(self, sets: Sequence[tuple[int, ...]]) -> Floats:
        """Return how far the policy is missed when each set is withheld."""
        hidden = np.zeros((len(sets), self.width), dtype=bool)
        for row, places in enumerate(sets):
            hidden[row, list(places)] = True
        self.tried += len(sets)
        return self.policy.excess(self.adversary, self.evidence.hiding(hidden))

    def level(self, size: int) -> None:
        """Try all sets of one size that contain no set found before."""
        known = [frozenset(places) for places in self.found]
        waiting = [
            places
            for places in combinations(self.shown, size)
            if not self.content.issubset(places) and not any(map(frozenset(places).issuperset, known))
        ]
        for first in range(0, len(waiting), TRIED_AT_ONCE):
            some = waiting[first : first + TRIED_AT_ONCE]
            for places, excess in zip(some, self.excess(some).tolist(), strict=True):
                if excess <= 0:
                    self.found[places] = excess

    def greedy(self) -> tuple[tuple[int, ...], float]:
        """Withhold what helps most, one attribute after the other, until the policy holds or one is left."""
        chosen: tuple[int, ...] = ()
        excess = math.inf
        while len(chosen) < len(self.shown) - 1 and excess > 0:
            options = [tuple(sorted((*chosen, place))) for place in self.shown if place not in chosen]
            options = [places for places in options if not self.content.issubset(places)]
            reached = self.excess(options)
            best = int(np.argmin(np.where(np.isnan(reached), np.inf, reached)))
            chosen, excess = options[best], float(reached[best])
        return chosen, excess


def loss_of_withholding(adversary: BeliefAdversary, evidence: SeenAttributes) -> dict[str, float]:
    """Return what each published attribute tells, in bits: the rarer the value, the more; and what each trace does."""
    places, name = published(evidence), evidence.space.attributes
    prior = adversary.belief.posteriors(places, SeenAttributes.nothing(evidence.space))
    told = {
        name[place]: _bits(evidence.likelihood(place)[0], share[0])
        for place, share in zip(places, prior, strict=True)
    }
    return told | dict(zip(adversary.traces.names, adversary.traces.losses, strict=True))


def _bits(likelihood: Floats, shares: NDArray[np.float64]) -> float:
    """Return the information (Kullback-Leibler) that the shown hint alone gives about the attribute."""
    after = likelihood * shares
    total = float(after.sum())
    if total <= 0:
        return math.inf
    after = after / total
    told = after > 0
    return float((after[told] * np.log2(after[told] / shares[told])).sum())


@dataclass(frozen=True)
class WhatIf:
    """How sure the adversary becomes of one required value if one more attribute is published."""

    attribute: str
    target: str
    before: float
    after: float

    def sentence(self) -> str:
        """Say it in words."""
        verb = "rises" if self.after > self.before else "falls"
        return (
            f"if you also publish your {self.attribute}, the belief in your {self.target} {verb} "
            f"from {self.before:.2f} to {self.after:.2f}"
        )


def what_if_published(
    adversary: BeliefAdversary, evidence: SeenAttributes, policy: Policy, truth: dict[str, str]
) -> list[WhatIf]:
    """Return what publishing one more attribute would do to each requirement, largest rise first."""
    space, named = evidence.space, {n for one in policy.requirements for n in one.values}
    hidden = [
        name for name in sorted(truth) if space.place(name) not in published(evidence) and name not in named
    ]
    if not hidden or not policy.requirements:
        return []
    more = evidence.showing([(space.place(name), space.code(name, truth[name])) for name in hidden])
    found = []
    for one in policy.requirements:
        before = one.belief(adversary, evidence)[0]
        for name, after in zip(hidden, one.belief(adversary, more), strict=True):
            targets = [" and ".join(one.values)] if one.joint else list(one.values)
            found += [
                WhatIf(name, target, float(b), float(a))
                for target, b, a in zip(targets, before, after, strict=True)
            ]
    return sorted(found, key=lambda one: (-(one.after - one.before), one.attribute, one.target))


def measured_epsilon(
    belief: BeliefModel, evidence: SeenAttributes, *, default: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Return, for each attribute a person shows, how far one adversary's belief moves if it is reset.

    This is definition 11's SD for this adversary and this publication; the measured epsilon is the largest value.
    An attribute is reset to its entry in `default`, or withheld. The two observations differ in one attribute
    only, so the ratio of the two beliefs depends on that attribute alone, and the distance over whole models is
    the distance over its values. 0 = it makes no difference, 1 = the beliefs have nothing in common.
    """
    space, chosen = belief.space, dict(default or {})
    moved: dict[str, float] = {}
    for place in sorted({*np.flatnonzero(evidence.seen[0] != HIDDEN).tolist(), *evidence.soft}):
        name = space.attributes[place]
        hidden = np.zeros((1, len(space.attributes)), dtype=bool)
        hidden[0, place] = True
        reset = evidence.hiding(hidden)
        if name in chosen:
            reset.seen[0, place] = space.code(name, chosen[name])
        now, then = (belief.posteriors([place], one)[0][0] for one in (evidence, reset))
        moved[name] = total_variation(now, then)
    return moved
