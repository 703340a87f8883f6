"""Which values of a class may leave under `mechanism = "q"`: a list of rules, each of which can only withhold more.

In the order of `standard_rules`:

1. `SamePeople`, `Unchanged`: what was answered about these people stays the answer.
2. `ClassSize`: the class has enough people.
3. `CommonValues`: values that too few people of the class list stay.
4. `OwnQ`, only with `joint = "once"`: what is left is thinned by q of this answer alone.
5. `Difference`: the class does not differ from one that was asked about before by a few people.
6. `SwappedStrangers`: what nearly the same holders did not get released before stays, whoever else is in the class.
7. `AnsweredOnce` or `JointQ`: nobody is in two answers; or nobody is tied to this answer together with everything told
   before with a probability above 1/q (`history.py`).
8. `KeyedOrder`: the order of the values says nothing.

Thresholds are q, plus room for people somebody knows, plus a secret amount. NOTES.md has the reasons, and what somebody
who adapts can do against them; `private.py` is the mechanism with a guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.alternatives import most_with_sole_holders
from incrowd.gateway.history import Changed, Clauses, History
from incrowd.gateway.ledger import OVER_TIME, Entry
from incrowd.gateway.people import Numbers, Selection, digest_of
from incrowd.gateway.policy import GatewayPolicy
from incrowd.gateway.query import Explanation, ValueDecision
from incrowd.gateway.snapshot import AttributeIndex, Snapshot
from incrowd.gateway.state import Secret
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
RARE = "rare"
TIED = "tied"
JOINT = "joint"
TAKEN = "taken"
BEFORE = "told-before"
TOO_MANY = "too-many"
SWAPPED = "swapped"
BELOW_NOISE = "below-noise"
NOT_TESTED = "not-tested"
NO_BUDGET = "budget-used-up"
OVER_BUDGET = "over-budget"
CLOSED = "closed"
UNKNOWN_CLIENT = "unknown-client"
LATE = "late"
FAILED = "failed"
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
    SWAPPED: "it was withheld from a question about nearly the same people who list it",
    BELOW_NOISE: "too few people who have budget left list it alone to pass a noisy threshold",
    NOT_TESTED: "it was not among the values worth testing",
    NO_BUDGET: "the budgets of all people concerned are used up",
    OVER_BUDGET: "the organisation has asked as many new questions as it may for now",
    CLOSED: "all budgets are spent since the reset",
    UNKNOWN_CLIENT: "the policy does not name the organisation",
    LATE: "the decision was not there when the reply had to leave",
    FAILED: "something went wrong; the log has the place",
}


class SecretAmounts:
    """Secret whole numbers from 0 to `amount` that are always the same for the same thing.

    They are decided by a key and by what the draw is about, so asking again averages nothing out. An amount A moves a
    threshold so that one person more or less is on the other side of it with a probability of at most 1/(A + 1).
    """

    def __init__(self, key: bytes, amount: int) -> None:
        self._key = key
        self.amount = amount

    def __repr__(self) -> str:
        return f"SecretAmounts(0..{self.amount})"

    def draw(self, about: str, *parts: bytes | str | int, most: int | None = None) -> int:
        """Return the amount for one purpose and its particulars; `most` takes the place of the usual amount."""
        largest = self.amount if most is None else most
        return int.from_bytes(self._hash(about, parts)[:8], "big") % (largest + 1)

    def order(self, about: str, values: Sequence[str]) -> list[str]:
        """Sort values in a way that nobody without the key can foresee and that says nothing about the data."""
        return sorted(values, key=lambda value: self._hash(about, (value,)))

    def _hash(self, about: str, parts: Sequence[bytes | str | int]) -> bytes:
        made = blake2b(key=self._key, digest_size=16)
        for part in (about, *parts):
            plain = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
            made.update(len(plain).to_bytes(8, "big") + plain)  # lengths keep parts apart
        return made.digest()


@dataclass(frozen=True, eq=False)
class Thresholds:
    """How many people each comparison asks for: q, room for people somebody knows, and a secret amount."""

    policy: GatewayPolicy
    noise: SecretAmounts

    @property
    def base(self) -> int:
        """The threshold before secret amounts."""
        return self.policy.least

    @property
    def room(self) -> int:
        """The most a secret amount can be: new answers start so far above what earlier ones must keep."""
        return self.noise.amount

    def class_size(self, group: Selection) -> int:
        """How many people a class needs."""
        return self.policy.release.min_class + self.noise.draw("class", group.digest)

    def answer(self, attribute: str, group: Selection) -> int:
        """What q an answer about this class needs."""
        return self.base + self.noise.draw("answer", attribute, group.digest)

    def value(self, attribute: str, value: str, listing: bytes) -> int:
        """What a value's number of holders needs on top of the answer's.

        Two layers: one that stays for the value, one for exactly who lists it. The first alone could be found out with
        planted accounts in classes of their own; the second alone could be averaged out over many classes. No amount is
        drawn anew because time passes: whoever waits until an answer is forgotten would average them out.
        """
        about = (attribute, value)
        return self.noise.draw("value", *about) + self.noise.draw("holders", *about, listing)

    def before(self, attribute: str, group: Selection) -> int:
        """How many alternatives earlier answers must keep beside this one; an exact number could be tested."""
        return self.base + self.noise.draw("before", attribute, group.digest)

    def near(self, entry: Entry, value: str) -> int:
        """By how many holders of a value a class must differ from an earlier one to be decided anew."""
        return self.policy.release.q + self.noise.draw("near", entry.attribute, value, entry.digest)

    def changes(self, entry: Entry, who: Numbers) -> int:
        """How many people have to change before an answer may; an exact number could be tested with own accounts.

        Drawn for those who changed: questions that differ in other people draw nothing new.
        """
        about = digest_of(who) if len(who) else entry.digest
        return self.policy.release.q + self.noise.draw("changes", entry.attribute, entry.origin, about)


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A question under decision: who is asked about, and what was told before."""

    snapshot: Snapshot
    attribute: str
    group: Selection
    key: bytes
    """Stands for the question."""
    history: History
    changed: Changed

    @property
    def index(self) -> AttributeIndex:
        """Who lists what of the attribute."""
        return self.snapshot.attributes[self.attribute]

    def codes_of(self, values: Iterable[str]) -> tuple[int, ...]:
        """Return the codes of those values that somebody lists."""
        code_of = self.index.code_of
        return tuple(code_of[value] for value in values if value in code_of)

    def listed_by_none(self, people: Selection) -> list[int]:
        """Return the values that nobody of these people lists."""
        found: list[int] = np.flatnonzero(self.index.supports(people.members) == 0).tolist()
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """An answer on its way through the rules."""

    codes: tuple[int, ...]
    """The values that may leave as far as the rules so far are concerned."""
    supports: NDArray[np.int64]
    """For each value of the attribute how many of the class list it."""
    threshold: int = 0
    """The least q asked of the answer, secret amount included."""
    rule: str = ""
    """Why nothing may leave; empty otherwise."""
    withheld: Mapping[int, str]
    """Value -> the rule that withholds it."""

    def denied(self, rule: str) -> Draft:
        """Return the draft without any value."""
        return replace(self, codes=(), rule=rule)

    @property
    def nbytes(self) -> int:
        """Memory taken, about."""
        return int(self.supports.nbytes) + 200 * len(self.withheld) + 50 * len(self.codes)


class GatewayRule:
    """One rule. It never lets more leave than the rules before it."""

    looks_back = False
    """Whether what was told before matters; what does not look back is decided once for a class."""

    def stored(self, case: Case) -> Entry | None:
        """Return an earlier entry that has to be the answer again, if there is one."""
        return None

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Withhold what this rule does not let leave; not called once nothing is left."""
        return draft


class SamePeople(GatewayRule):
    """The same people, however they are asked for, get the answer that was given about them."""

    def stored(self, case: Case) -> Entry | None:
        """Return the entry of this snapshot about exactly these people."""
        return case.history.same_people(case.attribute, case.group)


@dataclass(frozen=True, eq=False)
class Unchanged(GatewayRule):
    """An answer stays until enough people have come, left or changed; until then no near question is answered."""

    thresholds: Thresholds
    looks_back = True

    def stored(self, case: Case) -> Entry | None:
        """Return what was answered to this question, or about these people, before enough had changed."""
        nearly = self._nearly_same(case)
        told = [entry for entry, differ in reversed(nearly) if entry.key == case.key or not differ]
        return told[0] if told else None

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Deny a question about nearly the people of an older answer."""
        near = any(not entry.rule for entry, _ in self._nearly_same(case))
        return draft.denied(TOO_CLOSE) if near else draft

    def _nearly_same(self, case: Case) -> list[tuple[Entry, int]]:
        changes, most = self.thresholds.changes, self.thresholds.policy.release.q + self.thresholds.room
        return case.history.nearly_same(case.attribute, case.group, changes, most, case.changed)


@dataclass(frozen=True, eq=False)
class ClassSize(GatewayRule):
    """Too small a class gets nothing."""

    thresholds: Thresholds

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Deny a class that is too small."""
        if len(case.group) >= self.thresholds.class_size(case.group):
            return draft
        return replace(draft.denied(TOO_SMALL), threshold=self.thresholds.answer(case.attribute, case.group))


@dataclass(frozen=True, eq=False)
class CommonValues(GatewayRule):
    """Only values that enough people list leave: each has a secret amount of its own on top of the answer's.

    On top, not beside: the larger of two amounts would be more easily foreseen than their sum.
    """

    thresholds: Thresholds

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Keep the common values, those furthest above their own secret thresholds first."""
        index, names = case.index, case.index.values
        threshold = self.thresholds.answer(case.attribute, case.group)
        most = self.thresholds.policy.release.max_values
        supports = draft.supports
        withheld = {int(code): RARE for code in np.flatnonzero((supports > 0) & (supports < threshold))}
        inside = case.group.flags(case.snapshot.size)
        above: dict[int, int] = {}
        for code in self._in_the_running(supports, threshold, withheld):
            holders = index.holders(code)
            listing = digest_of(holders[inside[holders]])
            least = threshold + self.thresholds.value(case.attribute, names[code], listing)
            above[code] = int(supports[code]) - least
        withheld.update({code: RARE for code, more in above.items() if more < 0})
        # How far a value is above its own secret threshold decides, and then the key: no exact count does.
        order = self.thresholds.noise.order("full", [names[code] for code in above])
        place = {value: k for k, value in enumerate(order)}
        kept = sorted(
            (code for code, more in above.items() if more >= 0),
            key=lambda code: (-above[code], place[names[code]]),
        )
        withheld.update(dict.fromkeys(kept[most:], TOO_MANY))
        found = replace(draft, codes=tuple(kept[:most]), threshold=threshold, withheld=withheld)
        return found if found.codes else found.denied(NOTHING_FITS)

    def _in_the_running(
        self, supports: NDArray[np.int64], threshold: int, withheld: dict[int, str]
    ) -> list[int]:
        """Return the values that may have room in the answer, whatever their secret amounts."""
        most = self.thresholds.policy.release.max_values
        likely = np.flatnonzero(supports >= threshold)
        if len(likely) <= most:
            return [int(code) for code in likely]
        last = np.sort(supports[likely])[-most]
        chance = supports[likely] >= last - 2 * self.thresholds.room
        withheld.update(dict.fromkeys(likely[~chance].tolist(), TOO_MANY))
        return [int(code) for code in likely[chance]]


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


@dataclass(frozen=True, eq=False)
class OwnQ(GatewayRule):
    """An answer is thinned until its own q is high enough, whatever else was told."""

    thresholds: Thresholds
    solver: Suppressor
    key: bytes
    """Decides between equals."""

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Withhold what ties somebody to this answer."""
        options = SuppressOptions(
            key=self.key,
            blind=self.thresholds.room > 0,
            class_size=len(case.group),
            budget=solver_budget(self.thresholds.policy),
        )
        threshold = self.thresholds.answer(case.attribute, case.group)
        holders = restricted(case.index, case.group, draft.codes)
        found = self.solver.suppress(holders, threshold, options)
        if found is None:
            return replace(draft, codes=(), rule=OVER_TIME, threshold=threshold)
        released = {int(str(code)) for code in found.released}
        tied = {code: TIED for code in draft.codes if code not in released}
        return replace(
            draft,
            codes=tuple(code for code in draft.codes if code in released),
            threshold=threshold,
            rule="" if released else NOTHING_FITS,
            withheld={**draft.withheld, **tied},
        )


@dataclass(frozen=True, eq=False)
class Difference(GatewayRule):
    """Two classes that differ by a few people would tell about those few."""

    thresholds: Thresholds
    looks_back = True

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Deny a class that some but fewer than q people tell from one asked about before."""
        close = case.history.too_close(case.attribute, case.group, self.thresholds.policy.release.q)
        return draft.denied(TOO_CLOSE) if close else draft


@dataclass(frozen=True, eq=False)
class SwappedStrangers(GatewayRule):
    """A value that was withheld stays so while those who list it are nearly the same, whoever else is asked about.

    Otherwise every set of strangers around the same holders would draw new secret amounts, until one is 0. How many
    holders have to be others is secret, too.
    """

    thresholds: Thresholds
    looks_back = True

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Withhold what a question that differs in other people alone did not get."""
        before = case.history.withheld_before(
            case.attribute, case.group, draft.codes, self.thresholds.near, case.changed
        )
        if not before:
            return draft
        codes = tuple(code for code in draft.codes if code not in before)
        withheld = {**draft.withheld, **dict.fromkeys(before, SWAPPED)}
        return replace(draft, codes=codes, withheld=withheld, rule="" if codes else SWAPPED)


class AnsweredOnce(GatewayRule):
    """Each person is in one answer only, on whatever attribute."""

    looks_back = True

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Deny a class with somebody who is in an earlier answer."""
        return draft.denied(TAKEN) if case.history.overlaps(case.group) else draft


@dataclass(frozen=True, eq=False)
class JointQ(GatewayRule):
    """Together with everything told before, everybody keeps enough alternatives for every clause (`history.py`)."""

    thresholds: Thresholds
    looks_back = True

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Withhold what takes alternatives from somebody, here or in an earlier answer."""
        attribute, group = case.attribute, case.group
        joint = case.history.joint(attribute)
        threshold = self.thresholds.answer(attribute, group) + self.thresholds.room
        likely = self._with_sole_holders(case, draft.codes, threshold, joint.about)
        codes = joint.allowed(
            Clauses(group, attribute, likely), threshold, self.thresholds.before(attribute, group)
        )
        return replace(draft, codes=codes, threshold=threshold, rule="" if codes else JOINT)

    def _with_sole_holders(
        self, case: Case, codes: tuple[int, ...], threshold: int, about: NDArray[np.int64]
    ) -> tuple[int, ...]:
        """Look for an answer that can pass; `about` says what each person was told about before."""
        noise, index = self.thresholds.noise, case.index
        names = [index.values[code] for code in codes]
        place = {name: k for k, name in enumerate(noise.order("ties", names))}
        rank = np.array([place[name] for name in names], dtype=np.int64)
        # Wide, since it costs no answer anything: it only blurs which of several values is withheld.
        most = threshold if noise.amount else 0
        about_it = (case.attribute, case.group.digest)
        blur = np.array([noise.draw("choice", *about_it, name, most=most) for name in names], np.int64)
        return most_with_sole_holders(index, case.group, codes, about, threshold, rank, blur)


@dataclass(frozen=True, eq=False)
class KeyedOrder(GatewayRule):
    """Values leave in an order that follows a key and says nothing about the data."""

    noise: SecretAmounts
    looks_back = True  # it comes last

    def apply(self, case: Case, draft: Draft) -> Draft:
        """Arrange the values."""
        code_of = case.index.code_of
        names = self.noise.order(case.attribute, [case.index.values[code] for code in draft.codes])
        return replace(draft, codes=tuple(code_of[name] for name in names))


MakeRules = Callable[[GatewayPolicy, Secret, Suppressor], Sequence[GatewayRule]]


def standard_rules(
    policy: GatewayPolicy, secret: Secret, solver: Suppressor, *, noise: SecretAmounts | None = None
) -> tuple[GatewayRule, ...]:
    """Return the rules of a policy under a secret; an attack in the tests builds its gateway without one of them."""
    thresholds = Thresholds(policy, noise or SecretAmounts(secret.key("noise"), policy.release.noise))
    once = policy.release.joint == "once"
    return (
        SamePeople(),
        Unchanged(thresholds),
        ClassSize(thresholds),
        CommonValues(thresholds),
        *([OwnQ(thresholds, solver, secret.key("ties"))] if once else []),
        Difference(thresholds),
        SwappedStrangers(thresholds),
        AnsweredOnce() if once else JointQ(thresholds),
        KeyedOrder(SecretAmounts(secret.key("order"), 0)),
    )


def class_draft(rules: Sequence[GatewayRule], case: Case) -> Draft:
    """Apply the rules that look at the class alone."""
    supports = case.index.supports(case.group.members)
    draft = Draft(codes=tuple(np.flatnonzero(supports).tolist()), supports=supports, withheld={})
    if not len(case.group):
        return draft.denied(TOO_SMALL)
    return _applied([rule for rule in rules if not rule.looks_back], case, draft)


def judged(rules: Sequence[GatewayRule], case: Case, draft: Draft) -> Draft:
    """Apply the rules that look at what was told before."""
    return _applied([rule for rule in rules if rule.looks_back], case, draft)


def _applied(rules: Sequence[GatewayRule], case: Case, draft: Draft) -> Draft:
    for rule in rules:
        if draft.rule:
            break
        draft = rule.apply(case, draft)
    return draft


def stored_entry(rules: Sequence[GatewayRule], case: Case) -> Entry | None:
    """Return what has to be the answer again, if a rule says so."""
    for rule in rules:
        entry = rule.stored(case)
        if entry is not None:
            return entry
    return None


def solver_budget(policy: GatewayPolicy) -> Budget:
    """What one search or count may use."""
    limits = policy.limits
    return Budget(seconds=limits.solver_seconds, memory=limits.solver_memory_mib * 2**20)


def restricted(index: AttributeIndex, group: Selection, codes: tuple[int, ...]) -> HolderIndex:
    """Return who of a class lists which of some values, with the people numbered anew."""
    people, listed = index.listed(group.members, index.flags(codes))
    order = np.argsort(listed, kind="stable")
    distinct, sizes = np.unique(listed, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    members = np.searchsorted(group.members, people[order]).astype(np.int32)
    return HolderIndex(tuple(distinct.tolist()), starts, members, len(group))


def explanation(
    case: Case, draft: Draft, measured: QMeasurement, *, why: str = "", **more: Any
) -> Explanation:
    """Put together what the provider may see of a decision; `why` is for values that have no reason of their own."""
    least, supports = measured.at_least, draft.supports
    listed = [code for code in np.argsort(-supports, kind="stable").tolist() if supports[code]]
    why = why or draft.rule or JOINT
    values = [
        ValueDecision(
            value=case.index.values[code],
            holders=int(supports[code]),
            released=code in draft.codes,
            rule="" if code in draft.codes else draft.withheld.get(code, why),
        )
        for code in listed
    ]
    return Explanation(
        snapshot=case.snapshot.number,
        class_size=len(case.group),
        rule=draft.rule,
        threshold=draft.threshold,
        q=None if least is None else float(least),
        method=str(measured.method),
        values=tuple(values),
        **more,
    )
