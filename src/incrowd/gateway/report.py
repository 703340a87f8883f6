"""What the provider sees: who asked what and got how much, and how much each attribute can give at all.

Activity comes from the audit log, which holds no values. Support comes from the current snapshot and is
Figs. 4 and 5 of paper 001 for this database: how many people share a value, how large the classes are, and
what could leave at each threshold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.audit import AuditCheck, check_audit, read_audit
from incrowd.measures.release import Budget, HolderIndex, SuppressOptions
from incrowd.measures.release.assess import releasable

if TYPE_CHECKING:
    from incrowd.gateway.secret import Secret

THRESHOLDS = (2, 3, 5, 10, 20, 27, 50)
"""10 and 27 are the thresholds of the paper's section VIII."""
CLASS_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000)
SECONDS = 2.0
"""Time for each threshold of each attribute; what is not proved by then counts as withheld."""


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

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Releasable:
    """How much of an attribute could leave at one threshold if everybody were asked about."""

    q: int
    frequent: int
    """Values with at least q holders: more can never leave (Fig. 4)."""
    released: int
    """Values that leave with q proved, also without any single one of them."""
    mentions: float
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
    at: tuple[Releasable, ...]

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


@dataclass(frozen=True, kw_only=True)
class GatewayReport:
    """Who asked what, what left, and whether the log is whole."""

    first: str
    last: str
    clients: tuple[Activity, ...]
    attributes: tuple[Activity, ...]
    audit: AuditCheck

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {
            "first": self.first,
            "last": self.last,
            "clients": [one.to_dict() for one in self.clients],
            "attributes": [one.to_dict() for one in self.attributes],
            "audit": self.audit.to_dict(),
        }


def activity_report(state: Path, secret: Secret) -> GatewayReport:
    """Read the audit log once and count."""
    tallies: dict[tuple[str, str, str], _Tally] = {}
    first = last = ""
    for record in read_audit(state):
        first, last = first or record["time"], record["time"]
        about = [("client", record["client"], record["organisation"])]
        if record["attribute"]:
            about.append(("attribute", record["attribute"], ""))
        for place in about:
            tallies.setdefault(place, _Tally()).add(record)
    return GatewayReport(
        first=first,
        last=last,
        clients=tuple(_activities(tallies, "client")),
        attributes=tuple(_activities(tallies, "attribute")),
        audit=check_audit(state, secret.key("audit")),
    )


class _Tally:
    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.released = 0
        self.questions: set[bytes] = set()

    def add(self, record: dict[str, Any]) -> None:
        self.outcomes[record["outcome"]] += 1
        self.released += record["released"]
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
            )


def attribute_support(
    name: str,
    holders: Iterable[tuple[str, NDArray[np.int32]]],
    *,
    key: bytes,
    thresholds: Sequence[int] = THRESHOLDS,
    seconds: float = SECONDS,
) -> AttributeSupport:
    """Measure how much of an attribute could leave at each threshold."""
    index = _index(holders)
    options = SuppressOptions(key=key, budget=Budget(seconds=seconds))
    supports = np.sort(index.supports)[::-1]
    people = len(np.unique(index.members))
    return AttributeSupport(
        attribute=name,
        people=people,
        values=len(index.values),
        entries=len(index.members),
        commonest=tuple(round(float(share), 6) for share in supports[:10] / max(1, people)),
        at=tuple(
            Releasable(
                q=one.threshold,
                frequent=int((supports >= one.threshold).sum()),
                released=one.released,
                mentions=round(one.released_mentions / max(1, one.mentions), 6),
            )
            for one in releasable(index, thresholds, options=options)
        ),
    )


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


def _index(holders: Iterable[tuple[str, NDArray[np.int32]]]) -> HolderIndex:
    values, members = [], []
    for value, numbers in holders:
        values.append(value)
        members.append(numbers)
    starts = np.concatenate([[0], np.cumsum([len(numbers) for numbers in members])]).astype(np.int64)
    flat = np.concatenate([np.empty(0, np.int32), *members]).astype(np.int32)
    users = int(flat.max()) + 1 if len(flat) else 0
    return HolderIndex(tuple(values), starts, flat, users)
