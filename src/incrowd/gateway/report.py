"""What the provider sees: who asked what and got how much, and how much each attribute can give at all.

Activity comes from the audit log, which holds no values; what was withheld and why, from the ledger. Support
comes from the current snapshot and is Figs. 4 and 5 of paper 001 for this database: how many people share a
value, how large the classes are, and what could leave at each threshold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.audit import AuditCheck, check_audit, read_audit
from incrowd.gateway.core import Gateway
from incrowd.gateway.ledger import Ledger, audited, reset_at
from incrowd.gateway.policy import GatewayPolicy
from incrowd.gateway.rules import BEFORE, FAILED
from incrowd.gateway.state import Secret, belongings, moment
from incrowd.measures.release import Budget, HolderIndex, SuppressOptions
from incrowd.measures.release.assess import releasable

THRESHOLDS = (2, 3, 5, 10, 20, 27, 50)
"""10 and 27 are the thresholds of the paper's section VIII."""
CLASS_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000)
SECONDS = 10.0
"""Time for each threshold of each attribute; what is not proved by then is not known."""


@dataclass(frozen=True, kw_only=True)
class Activity:
    """What one client asked, or what was asked of one attribute, and what became of it."""

    name: str
    organisation: str
    """Empty for an attribute."""
    asked: int
    answered: int
    """With at least one value."""
    empty: int
    """Without any, whatever the reason."""
    refused: int
    """Not understood, or outside the policy."""
    failed: int
    """Something went wrong; nothing was sent."""
    questions: int
    """Different questions among those understood."""
    released: int
    """Values sent, repeats counted each time."""
    reasons: dict[str, int]
    """Rule -> requests that it left without any value."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class DecisionCounts:
    """How the different questions of one client were decided; repeats are not decided again."""

    name: str
    organisation: str
    decided: int
    denied: dict[str, int]
    """Rule -> questions of which it let nothing leave."""
    released: int
    """Values that left, over all questions."""
    withheld: int
    """Values of these classes that did not."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class AttributeReleasable:
    """How much of an attribute could leave at one threshold if everybody were asked about."""

    q: int
    frequent: int
    """Values with at least q holders: more can never leave (Fig. 4)."""
    released: int | None
    """Values that leave. By mechanism "q": with q proved, also without any single one of them; None if there was no
    time for a proof. By "private": those whose counts reach the threshold, noise left out."""
    mentions: float | None
    """Share of all entries that the released values make up, 0 to 1; higher means more useful."""


@dataclass(frozen=True, kw_only=True)
class AttributeSupport:
    """What q an attribute supports in the current snapshot."""

    attribute: str
    people: int
    """Who list at least one value."""
    values: int
    entries: int
    commonest: tuple[float, ...]
    """Shares of these people who list the commonest values, at most ten, largest first (Fig. 4)."""
    at: tuple[AttributeReleasable, ...]
    mechanism: str = "q"
    """Which mechanism of the policy would release that."""

    @property
    def largest_q(self) -> int:
        """The largest threshold looked at with which something could leave; 0 if none."""
        return max((one.q for one in self.at if one.released), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {**asdict(self), "largest_q": self.largest_q}


@dataclass(frozen=True, kw_only=True)
class FilterSupport:
    """How large the classes are that one filter cuts the crowd into (Fig. 5)."""

    filter: str
    classes: int
    people: int
    half: int
    """How few of the largest classes hold half of the people."""
    at_least: tuple[tuple[int, int], ...]
    """Size -> how many classes are at least that large; q of an answer is at most the size of its class."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {**asdict(self), "at_least": [list(pair) for pair in self.at_least]}


@dataclass(frozen=True, kw_only=True)
class Support:
    """What the current snapshot can give."""

    snapshot: int
    attributes: tuple[AttributeSupport, ...]
    filters: tuple[FilterSupport, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {
            "snapshot": self.snapshot,
            "attributes": [one.to_dict() for one in self.attributes],
            "filters": [one.to_dict() for one in self.filters],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Support:
        """Read what `to_dict` wrote."""
        attributes, filters = [], []
        for one in plain["attributes"]:
            at = tuple(AttributeReleasable(**row) for row in one["at"])
            kept = {name: value for name, value in one.items() if name != "largest_q"}
            attributes.append(AttributeSupport(**{**kept, "at": at, "commonest": tuple(one["commonest"])}))
        for one in plain["filters"]:
            filters.append(FilterSupport(**{**one, "at_least": tuple(map(tuple, one["at_least"]))}))
        return cls(snapshot=plain["snapshot"], attributes=tuple(attributes), filters=tuple(filters))


@dataclass(frozen=True, kw_only=True)
class GatewayReport:
    """Who asked what, what left, and whether the log is whole."""

    first: str
    last: str
    clients: tuple[Activity, ...]
    attributes: tuple[Activity, ...]
    decisions: tuple[DecisionCounts, ...]
    audit: AuditCheck
    reset: str = ""
    """When the state was reset, so that all budgets count as spent; empty if it never was."""
    closed_until: str | None = None
    """Until when nothing is answered because of that; empty if it is open, None if no policy says how long."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {
            "first": self.first,
            "last": self.last,
            "clients": [one.to_dict() for one in self.clients],
            "attributes": [one.to_dict() for one in self.attributes],
            "decisions": [one.to_dict() for one in self.decisions],
            "audit": self.audit.to_dict(),
            "reset": self.reset,
            "closed_until": self.closed_until,
        }


def activity_report(state: Path, secret: Secret, policy: GatewayPolicy | None = None) -> GatewayReport:
    """Read audit log and ledger once and count; a policy says for how long a reset closes the gateway."""
    tallies: dict[tuple[str, str, str], _Tally] = {}
    first = last = ""
    for record in read_audit(state):
        first, last = first or record["time"], record["time"]
        about = [("client", record["client"], record["organisation"])]
        if record["attribute"]:
            about.append(("attribute", record["attribute"], ""))
        for place in about:
            tallies.setdefault(place, _Tally()).add(record)
    decisions, reset = tuple(_decisions(state)), reset_at(state)
    opens = reset + policy.memory if reset and policy else 0.0
    closed = moment(opens) if opens > time() else ""
    return GatewayReport(
        first=first,
        last=last,
        clients=tuple(_activities(tallies, "client")),
        attributes=tuple(_activities(tallies, "attribute")),
        decisions=decisions,
        audit=check_audit(state, secret.key("audit"), known=audited(state)),
        reset=moment(reset) if reset else "",
        closed_until=None if reset and policy is None else closed,
    )


class _Tally:
    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.released = 0
        self.questions: set[bytes] = set()

    def add(self, record: dict[str, Any]) -> None:
        self.outcomes[record["outcome"]] += 1
        self.released += record["released"]
        if record["outcome"] in ("empty", "error"):
            self.reasons[record.get("rule") or (BEFORE if record.get("repeated") else FAILED)] += 1
        if record["query"]:
            self.questions.add(bytes.fromhex(record["query"]))


def _activities(tallies: dict[tuple[str, str, str], _Tally], kind: str) -> Iterator[Activity]:
    for (what, name, organisation), tally in sorted(tallies.items()):
        if what == kind:
            outcomes = tally.outcomes
            yield Activity(
                name=name,
                organisation=organisation,
                asked=outcomes.total(),
                answered=outcomes["answered"],
                empty=outcomes["empty"],
                refused=outcomes["refused"] + outcomes["malformed"],
                failed=outcomes["error"],
                questions=len(tally.questions),
                released=tally.released,
                reasons=dict(sorted(tally.reasons.items())),
            )


def _decisions(state: Path) -> list[DecisionCounts]:
    found: dict[tuple[str, str], DecisionCounts] = {}
    if not belongings(state):  # it has not run yet
        return []
    ledger = Ledger(state)
    try:
        for entry in ledger.replay():
            who = (entry.organisation, entry.client)
            old = found.get(who) or DecisionCounts(
                name=entry.client,
                organisation=entry.organisation,
                decided=0,
                denied={},
                released=0,
                withheld=0,
            )
            denied = (
                {**old.denied, entry.rule: old.denied.get(entry.rule, 0) + 1} if entry.rule else old.denied
            )
            found[who] = replace(
                old,
                decided=old.decided + 1,
                denied=denied,
                released=old.released + len(entry.values),
                withheld=old.withheld + entry.withheld,
            )
    finally:
        ledger.close()
    return [found[who] for who in sorted(found)]


def support_of(gateway: Gateway, policy: GatewayPolicy, key: bytes) -> Support:
    """Measure what the current snapshot can give, attribute by attribute and filter by filter."""
    snapshot = gateway.snapshot
    return Support(
        snapshot=snapshot.number,
        attributes=tuple(
            attribute_support(name, one.index, key=key, private=gateway.would_leave(name))
            for name, one in snapshot.attributes.items()
        ),
        filters=tuple(filter_support(name, gateway.sizes(name)) for name in policy.database.filters),
    )


def attribute_support(
    name: str,
    index: HolderIndex,
    *,
    key: bytes,
    thresholds: Sequence[int] = THRESHOLDS,
    seconds: float = SECONDS,
    private: Callable[[int], Sequence[int]] | None = None,
) -> AttributeSupport:
    """Measure how much of an attribute could leave at each threshold.

    `private` says by q which values the private mechanism would release; without it, the rule of mechanism "q" does.
    """
    supports = np.sort(index.supports)[::-1]
    people = len(np.unique(index.members))
    return AttributeSupport(
        attribute=name,
        people=people,
        values=len(index.values),
        entries=len(index.members),
        commonest=tuple(round(float(share), 6) for share in supports[:10] / max(1, people)),
        at=tuple(
            AttributeReleasable(
                q=q,
                frequent=int((supports >= q).sum()),
                released=released,
                mentions=None if mentions is None else round(mentions / max(1, len(index.members)), 6),
            )
            for q, released, mentions in (
                _by_q(index, thresholds, key, seconds)
                if private is None
                else _privately(index, thresholds, private)
            )
        ),
        mechanism="q" if private is None else "private",
    )


def _by_q(
    index: HolderIndex, thresholds: Sequence[int], key: bytes, seconds: float
) -> Iterator[tuple[int, int | None, int | None]]:
    """Yield q, how many values leave, and how many entries they make up."""
    options = SuppressOptions(key=key, budget=Budget(seconds=seconds))
    for one in releasable(index, thresholds, options=options):
        yield one.threshold, *((one.released, one.released_mentions) if one.in_time else (None, None))


def _privately(
    index: HolderIndex, thresholds: Sequence[int], private: Callable[[int], Sequence[int]]
) -> Iterator[tuple[int, int | None, int | None]]:
    for q in thresholds:
        codes = list(private(q))
        yield q, len(codes), int(index.supports[codes].sum())


def filter_support(name: str, sizes: NDArray[np.int64]) -> FilterSupport:
    """Describe the classes a filter makes, from the number of people in each."""
    falling = np.sort(sizes)[::-1]
    reached = np.cumsum(falling)
    total = int(reached[-1]) if len(reached) else 0
    return FilterSupport(
        filter=name,
        classes=len(sizes),
        people=total,
        half=int(np.searchsorted(reached, total / 2)) + 1 if total else 0,
        at_least=tuple((size, int((falling >= size).sum())) for size in CLASS_SIZES),
    )
