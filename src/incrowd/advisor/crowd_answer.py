"""A whole crowd's risk as small frozen values. Totals only: no count is shown that could be one person's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.drawing import Chart, Series, picture
from incrowd.measures.crowd_rates import CommunityRisk, People, Spread, TopicRisk
from incrowd.result import Result, Threat, say_count


@dataclass(frozen=True, kw_only=True, repr=False)
class CrowdReport(Result):
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

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each spread and line: how many people have a smaller set."""
        return [
            {"name": one.name, "threat": str(one.threat), "smaller_than": size, **people.to_dict()}
            for one in self.spreads
            for size, people in one.below
        ]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the share of people with fewer to hide among than wanted; hidden shares at their largest."""
        return [(one.name, one.under(self.wanted).most) for one in self.spreads]

    @property
    def figure(self) -> Chart:
        """The share of people below each set size."""
        sizes = [size for size, _ in self.spreads[0].below]
        return Chart(
            kind="bars",
            title="How many people have too small a crowd",
            sentence=(
                "Each bar is the share of people who have fewer than that many people to hide among, themselves "
                "included. Tall bars on the left are the worst: below 2 means alone. Shares of too few people are left "
                "out."
            ),
            x_label="people to hide among",
            y_label="share of people, in %",
            series=tuple(
                Series.of(one.name, range(len(sizes)), [100 * people.share for _, people in one.below])
                for one in self.spreads
            ),
            categories=tuple(f"below {size}" for size in sizes),
        )

    def chart(self) -> str:
        """Draw the chart of the report page; where nothing was counted, nothing is in it."""
        return picture(self.figure) if self.spreads else super().chart()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return {
            "sentence": self.sentence(),
            "people": self.people,
            "risk": None if math.isnan(self.risk) else self.risk,
            "wanted": self.wanted,
            "smallest_count_told": self.smallest,
            "threats": self.threats(),
            "spreads": [_spread(one) for one in self.spreads],
            "communities": [_community(one) for one in self.communities],
            "unnamed_communities": self.unnamed_communities,
            "topics": [
                {
                    "topic": one.topic,
                    "shown": one.shown.to_dict(),
                    "highest_tenth_from": None if math.isnan(one.highest_tenth) else one.highest_tenth,
                }
                for one in self.topics
            ],
            "exposed": None if self.exposed is None else self.exposed.to_dict(),
            "not_measured": list(self.not_measured),
            "assumptions": dict(self.assumptions),
            "fingerprint": dict(self.fingerprint),
        }


def _threat(people: People | None, finding: str) -> dict[str, Any]:
    if people is None:
        return {"people": None, "share": None, "of": None, "fewer_than": None, "finding": "not measured"}
    return {**people.to_dict(), "finding": finding}


def _spread(one: Spread) -> dict[str, Any]:
    return {
        "name": one.name,
        "threat": str(one.threat),
        "meaning": one.meaning,
        "adversary": one.adversary,
        "standing": one.standing,
        "who": one.who,
        "people": one.people,
        "below": {str(size): people.to_dict() for size, people in one.below},
        "quantiles": {f"{share:g}": size for share, size in one.quantiles},
    }


def _community(one: CommunityRisk) -> dict[str, Any]:
    return {
        "community": one.community,
        "members": one.members,
        "alone": one.alone.to_dict(),
        "small": one.small.to_dict(),
        "median": one.median,
    }
