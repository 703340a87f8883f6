"""Which values of a class may leave. Rules in order; each can only withhold more.

1. The class has enough people.
2. It does not differ from an earlier answered class by a few people.
3. Values that too few people of the class list stay.
4. What is left is thinned until nobody is tied to it, together with everything told before, with a probability
   above 1/q (`joint.py`); or, where each person is in one answer only, by this answer alone (measures.release).

Thresholds are q, plus room for people somebody knows, plus a secret amount. NOTES.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.answer import Explanation, ValueDecision
from incrowd.gateway.groups import Group, digest_of
from incrowd.gateway.ledger import Entry
from incrowd.gateway.noise import Noise
from incrowd.gateway.policy import Policy
from incrowd.gateway.snapshot import AttributeIndex, Snapshot
from incrowd.measures.release import (
    Budget,
    HolderIndex,
    PatternCounts,
    QMeasurement,
    Suppression,
    SuppressOptions,
    suppress,
)

TOO_SMALL = "too-small"
TOO_CLOSE = "too-close"
NOTHING_FITS = "nothing-fits"
OVER_TIME = "over-time"
RARE = "rare"
TIED = "tied"
JOINT = "joint"
TAKEN = "taken"
BEFORE = "told-before"
TOO_MANY = "too-many"
RULES = {
    TOO_SMALL: "the query selects too few people",
    TOO_CLOSE: "the class differs from an earlier answered one by a few people",
    NOTHING_FITS: "no value could leave",
    OVER_TIME: "the decision took longer than allowed",
    RARE: "too few people of the class list the value",
    TIED: "with it somebody could be tied to the answer with too high a probability",
    JOINT: "too few people list it alone for it to stay safe together with other answers, earlier or later",
    TAKEN: "people of the class are in an earlier answer, and the policy answers about each of them once",
    BEFORE: "the question was answered before, without it",
    TOO_MANY: "the answer has as many values as allowed",
}


@dataclass(frozen=True, kw_only=True)
class Defences:
    """Which defences stand. All do; tests take one away to show that the attack it stops is real.

    There is no setting for this in a policy.
    """

    class_size: bool = True
    differencing: bool = True
    noise: bool = True
    q: bool = True
    """False: values leave by their number of holders alone (LCV)."""
    known_users: bool = True
    joint: bool = True
    account_age: bool = True
    snapshots: bool = True
    """False: every question sees the data as they are now."""
    batching: bool = True
    """False: an answer changes with the first person who changes."""
    repeats: bool = True
    """False: a repeated question is decided anew, with new secret amounts."""
    budget: bool = True
    order: bool = True
    """False: values leave with the commonest first."""


class Suppressor(Protocol):
    """Whoever thins out an answer, perhaps in a process of its own."""

    def suppress(
        self, holders: PatternCounts | HolderIndex, threshold: int, options: SuppressOptions
    ) -> Suppression | None:
        """Thin out an answer within its budget, or return None."""


class InThisProcess:
    """Thins out answers where it is called."""

    def suppress(
        self, holders: PatternCounts | HolderIndex, threshold: int, options: SuppressOptions
    ) -> Suppression | None:
        """Thin out an answer within its budget, or return None."""
        found = suppress(holders, threshold, options=options)
        return None if found.reason.startswith("over_budget") else found


@dataclass(frozen=True, kw_only=True, eq=False)
class Proposal:
    """What could leave if nothing had been told before."""

    codes: tuple[int, ...]
    threshold: int
    rule: str
    """Why nothing could leave; empty otherwise."""
    withheld: Mapping[int, str]
    """Value -> the rule that withholds it."""
    supports: NDArray[np.int64]
    """For each value of the attribute how many of the class list it."""


@dataclass(frozen=True, eq=False)
class Rules:
    """The rules of one policy under one secret."""

    policy: Policy
    noise: Noise
    solver: Suppressor
    key: bytes
    defences: Defences = Defences()

    @property
    def base(self) -> int:
        """The threshold before secret amounts: q, and room for people somebody knows."""
        known = self.policy.release.known_users if self.defences.known_users else 0
        return self.policy.release.q + known

    @property
    def room(self) -> int:
        """The most a secret amount can be: new answers start so far above what earlier ones must keep."""
        return self.policy.release.noise if self.defences.noise else 0

    @property
    def once(self) -> bool:
        """True if each person is in one answer only, so that there is nothing to judge together."""
        return self.policy.release.joint == "once"

    @property
    def together(self) -> bool:
        """True if an answer is judged with all that was told before."""
        return self.defences.joint and self.defences.q and not self.once

    def enough(self, entry: Entry) -> int:
        """How many people have to change before an answer may; an exact number could be tested with own accounts."""
        return self.policy.release.q + self._draw("changes", entry.origin, entry.key)

    def before(self, attribute: str, group: Group) -> int:
        """How many companions earlier answers must keep beside this one; an exact number could be tested, too."""
        return self.base + self._draw("before", attribute, group.digest)

    def propose(self, snapshot: Snapshot, attribute: str, group: Group) -> Proposal:
        """Apply the rules that look at this class alone."""
        index = snapshot.attributes[attribute]
        supports = index.supports(group.members)
        amount = self._draw("answer", attribute, group.digest)
        threshold = self.base + amount + (self.room if self.together else 0)
        if self._too_small(group):
            return _nothing(TOO_SMALL, supports, threshold)
        codes, withheld = self._common(snapshot, attribute, group, supports, self.base + amount)
        if not codes:
            return _nothing(NOTHING_FITS, supports, threshold, withheld)
        proposal = Proposal(codes=codes, threshold=threshold, rule="", withheld=withheld, supports=supports)
        return proposal if self.together or not self.defences.q else self._thinned(index, group, proposal)

    def most_alone(
        self, snapshot: Snapshot, attribute: str, group: Group, proposal: Proposal, about: NDArray[np.int64]
    ) -> tuple[int, ...]:
        """Thin out an answer for the joint rule; `about` says what each person was told about before."""
        from incrowd.gateway.lone import most_alone

        index, codes = snapshot.attributes[attribute], proposal.codes
        names = [index.values[code] for code in codes]
        place = {name: k for k, name in enumerate(self.noise.order("ties", names))}
        rank = np.array([place[name] for name in names], dtype=np.int64)
        # Wide, since it costs no answer anything: it only blurs which of several values is withheld.
        most = proposal.threshold if self.defences.noise else 0
        about_it = (attribute, group.digest)
        blur = np.array([self.noise.draw("choice", *about_it, name, most=most) for name in names], np.int64)
        return most_alone(index, group, codes, about, proposal.threshold, rank, blur)

    def _too_small(self, group: Group) -> bool:
        least = self.policy.release.min_class + self._draw("class", group.digest)
        return not len(group) or (self.defences.class_size and len(group) < least)

    def _common(
        self,
        snapshot: Snapshot,
        attribute: str,
        group: Group,
        supports: NDArray[np.int64],
        threshold: int,
    ) -> tuple[tuple[int, ...], dict[int, str]]:
        """Keep values that enough people list: each has a secret amount of its own on top of the answer's.

        On top, not beside: the larger of two amounts would be more easily foreseen than their sum.
        """
        index = snapshot.attributes[attribute]
        withheld = {int(code): RARE for code in np.flatnonzero((supports > 0) & (supports < threshold))}
        inside = group.flags(snapshot.size)
        above: dict[int, int] = {}
        for code in self._in_the_running(supports, threshold, withheld):
            holders = index.holders(code)
            listing = digest_of(holders[inside[holders]])
            least = threshold + self._value_noise(attribute, index.values[code], listing)
            above[code] = int(supports[code]) - least
        withheld.update({code: RARE for code, more in above.items() if more < 0})
        # How far a value is above its own secret threshold decides, and then the key: no exact count does.
        place = {
            value: k for k, value in enumerate(self.noise.order("full", [index.values[c] for c in above]))
        }
        kept = sorted(
            (code for code, more in above.items() if more >= 0),
            key=lambda code: (-above[code], place[index.values[code]]),
        )
        withheld.update(dict.fromkeys(kept[self.policy.release.max_values :], TOO_MANY))
        return tuple(kept[: self.policy.release.max_values]), withheld

    def _in_the_running(
        self, supports: NDArray[np.int64], threshold: int, withheld: dict[int, str]
    ) -> list[int]:
        """Return the values that may have room in the answer, whatever their secret amounts."""
        likely = np.flatnonzero(supports >= threshold)
        if len(likely) <= self.policy.release.max_values:
            return [int(code) for code in likely]
        last = np.sort(supports[likely])[-self.policy.release.max_values]
        chance = supports[likely] >= last - 2 * self.room
        withheld.update(dict.fromkeys(likely[~chance].tolist(), TOO_MANY))
        return [int(code) for code in likely[chance]]

    def _value_noise(self, attribute: str, value: str, listing: bytes) -> int:
        """Two layers: one that stays for the value, one for exactly who lists it.

        The first alone could be found out with planted accounts in classes of their own; the second alone
        could be averaged out over many classes. No amount is drawn anew because time passes: whoever waits
        until an answer is forgotten would average them out.
        """
        about = (attribute, value)
        return self._draw("value", *about) + self._draw("holders", *about, listing)

    def _draw(self, about: str, *parts: bytes | str | int) -> int:
        return self.noise.draw(about, *parts) if self.defences.noise else 0

    @property
    def budget(self) -> Budget:
        """What one search or count may use."""
        limits = self.policy.limits
        return Budget(seconds=limits.solver_seconds, memory=limits.solver_memory_mib * 2**20)

    def _thinned(self, index: AttributeIndex, group: Group, so_far: Proposal) -> Proposal:
        """Thin out an answer by q of this answer alone."""
        options = SuppressOptions(
            key=self.key, blind=self.defences.noise, class_size=len(group), budget=self.budget
        )
        holders = restricted(index, group, so_far.codes)
        found = self.solver.suppress(holders, so_far.threshold, options)
        if found is None:
            return replace(so_far, codes=(), rule=OVER_TIME)
        released = {int(str(code)) for code in found.released}
        tied = {code: TIED for code in so_far.codes if code not in released}
        return replace(
            so_far,
            codes=tuple(code for code in so_far.codes if code in released),
            rule="" if released else NOTHING_FITS,
            withheld={**so_far.withheld, **tied},
        )


def restricted(index: AttributeIndex, group: Group, codes: tuple[int, ...]) -> HolderIndex:
    """Return who of a class lists which of some values, with the people numbered anew."""
    people, listed = index.listed(group.members, index.flags(codes))
    order = np.argsort(listed, kind="stable")
    distinct, sizes = np.unique(listed, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    members = np.searchsorted(group.members, people[order]).astype(np.int32)
    return HolderIndex(tuple(distinct.tolist()), starts, members, len(group))


def explanation(
    snapshot: Snapshot,
    index: AttributeIndex,
    class_size: int,
    proposal: Proposal,
    rule: str,
    codes: tuple[int, ...],
    measured: QMeasurement,
    *,
    repeated: bool,
) -> Explanation:
    """Put together what the provider may see of a decision."""
    least = measured.at_least
    listed = [
        code for code in np.argsort(-proposal.supports, kind="stable").tolist() if proposal.supports[code]
    ]
    why = rule or (BEFORE if repeated else JOINT)
    values = [
        ValueDecision(
            value=index.values[code],
            holders=int(proposal.supports[code]),
            released=code in codes,
            rule="" if code in codes else proposal.withheld.get(code, why),
        )
        for code in listed
    ]
    return Explanation(
        snapshot=snapshot.number,
        class_size=class_size,
        repeated=repeated,
        rule=rule,
        threshold=proposal.threshold,
        q=None if least is None else float(least),
        method=str(measured.method),
        values=tuple(values),
    )


def _nothing(
    rule: str, supports: NDArray[np.int64], threshold: int, withheld: Mapping[int, str] | None = None
) -> Proposal:
    return Proposal(codes=(), threshold=threshold, rule=rule, withheld=withheld or {}, supports=supports)
