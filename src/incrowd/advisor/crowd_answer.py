"""A whole crowd's risk as small frozen values. Totals only: no count is shown that could be one person's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from incrowd.result import Threat, say_count

LINES = (2, 5, 10, 20, 50, 100)
"""Set sizes that people commonly ask for; below 2 means alone."""
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, kw_only=True)
class People:
    """How many people, and of how many; hidden if they are too few to be told without pointing at them."""

    count: int
    of: int
    smallest: int

    @classmethod
    def told(cls, count: int, of: int, smallest: int, *, above: int | None = None) -> People:
        """Return a count that points at nobody by subtraction either.

        If only a few are missing to the next larger number that is told (`above`, or all), that number is told
        instead: rounded up, so that a risk is never told too small. That nobody is at risk points at nobody, and
        is told as it is.
        """
        above = of if above is None else above
        rounded = count > 0 and above - count < smallest
        return cls(count=above if rounded else count, of=of, smallest=smallest)

    @property
    def hidden(self) -> bool:
        """True if it is some, but fewer than the smallest number that is told."""
        return 0 < self.count < self.smallest

    @property
    def share(self) -> float:
        """The share of people; NaN if hidden or of nobody."""
        return math.nan if self.hidden or not self.of else self.count / self.of

    @property
    def most(self) -> float:
        """The largest share it may be; NaN if of nobody."""
        return (self.smallest - 1 if self.hidden else self.count) / self.of if self.of else math.nan

    def sentence_start(self) -> str:
        """Say how many of all, as exactly as may be told; numbers may have been rounded up."""
        if self.count == self.of:
            return f"All or nearly all of the {self.of:,}"
        if self.hidden:
            return f"Fewer than {self.smallest} of the {self.of:,}"
        return f"At most {self.count:,} of the {self.of:,}" if self.count else f"None of the {self.of:,}"

    def words(self) -> str:
        """Say the count."""
        return f"fewer than {self.smallest}" if self.hidden else f"{self.count:,}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; what is hidden is not in them."""
        return {
            "people": None if self.hidden else self.count,
            "share": None if math.isnan(self.share) else self.share,
            "of": self.of,
            "fewer_than": self.smallest if self.hidden else None,
        }


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How a risk is spread over the people it was measured for: everybody's smallest set of people to hide in."""

    name: str
    threat: Threat
    meaning: str
    """What the sets are, for somebody who knows none of the papers."""
    adversary: str
    standing: str
    who: str
    """Whom it was measured for: everybody, or those of whom enough is known."""
    people: int
    below: tuple[tuple[int, People], ...]
    """For each line, the people with a smaller set."""
    quantiles: tuple[tuple[float, float], ...]
    """Share of people -> the size that so many have at most."""

    def under(self, size: int) -> People:
        """Return the people whose set is smaller than one of the lines."""
        return dict(self.below)[size]


@dataclass(frozen=True, kw_only=True)
class CommunityRisk:
    """One community that is large enough to be named."""

    community: str
    members: int
    alone: People
    small: People
    """Members with fewer people to hide among than wanted."""
    median: float


@dataclass(frozen=True, kw_only=True)
class TopicRisk:
    """One sensitive topic, over the whole crowd."""

    topic: str
    shown: People
    """People whose posts point to it at all."""
    highest_tenth: float
    """The score that a tenth of those people reach."""


@dataclass(frozen=True, kw_only=True)
class CrowdReport:
    """Everything about a crowd, in the order in which to read it."""

    people: int
    wanted: int
    smallest: int
    spreads: tuple[Spread, ...]
    communities: tuple[CommunityRisk, ...]
    """The worst first."""
    unnamed_communities: int
    """Communities too small to be named."""
    topics: tuple[TopicRisk, ...]
    exposed: People | None
    """People among the first for at least one topic; None if there are no posts."""
    not_measured: tuple[str, ...]
    assumptions: Mapping[str, Any]
    fingerprint: Mapping[str, Any]

    def of_threat(self, threat: Threat) -> tuple[Spread, ...]:
        """Return the spreads that speak of a threat."""
        return tuple(spread for spread in self.spreads if spread.threat == threat)

    def threats(self) -> dict[str, dict[str, Any]]:
        """Return the three risks of data-protection authorities, each by its worst finding."""
        found: dict[str, dict[str, Any]] = {}
        for threat in (Threat.SINGLING_OUT, Threat.LINKABILITY):
            worst = max(
                self.of_threat(threat),
                key=lambda one: one.under(self.wanted).most,
                default=None,
            )
            found[str(threat)] = _threat(
                None if worst is None else worst.under(self.wanted),
                "" if worst is None else f"fewer than {self.wanted} people to hide among: {worst.name}",
            )
        found[str(Threat.INFERENCE)] = _threat(self.exposed, "among the most exposed for a sensitive topic")
        return found

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        if not self.spreads:
            whom = say_count(self.people, "person", "people")
            return f"Cannot tell how well {whom} can hide: " + "; ".join(self.not_measured)
        worst = max(self.spreads, key=lambda one: one.under(self.wanted).most)
        of_all = "" if worst.people == self.people else f", of {self.people:,} people in all,"
        return (
            f"{worst.under(self.wanted).sentence_start()} {worst.who}{of_all} have fewer than {self.wanted} people to "
            f"hide among ({worst.name})."
        )

    @property
    def risk(self) -> float:
        """The largest share of people at risk of the three; hidden shares count as the largest they may be."""
        return max((one.most for one in self._at_risk().values() if one.of), default=math.nan)

    def rounding(self) -> str:
        """Say how exact the numbers are."""
        return (
            f"Numbers of people from 1 to {self.smallest - 1} are shown as “fewer than {self.smallest}”; larger ones "
            f"may be rounded up by less than {self.smallest}, so that nobody is found by subtraction."
        )

    def why(self) -> str:
        """Say where the risk comes from, for somebody who drew a line."""
        if math.isnan(self.risk):
            return "the risk cannot be told; unknown is not safe"
        name, worst = max(self._at_risk().items(), key=lambda one: one[1].most)
        counted = f", counted as {worst.smallest - 1}," if worst.hidden else ""
        return f"the risk is {worst.most:.3g}: {worst.words()}{counted} of {worst.of:,} people ({name})"

    def _at_risk(self) -> dict[str, People]:
        found = {one.name: one.under(self.wanted) for one in self.spreads}
        return found if self.exposed is None else {**found, "first for a sensitive topic": self.exposed}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        from incrowd.advisor.crowd_json import report_to_dict

        return report_to_dict(self)


def _threat(people: People | None, finding: str) -> dict[str, Any]:
    if people is None:
        return {"people": None, "share": None, "of": None, "fewer_than": None, "finding": "not measured"}
    return {**people.to_dict(), "finding": finding}
