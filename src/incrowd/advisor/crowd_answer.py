"""A whole crowd's risk as small frozen values. Totals only: no count is shown that could be one person's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.advisor.crowd_levels import CrowdLevels
from incrowd.drawing import Chart, Series, picture
from incrowd.measures.crowd_rates import CommunityRisk, People, Spread, TopicRisk
from incrowd.result import Result, Threat, say_count


@dataclass(frozen=True, kw_only=True, repr=False)
class CrowdReport(Result):
    """Everything about a crowd, in the order in which to read it."""

    people: int
    levels: CrowdLevels
    """How many people stand at each level, by the rule for one person."""
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
        """Return the three risks of data-protection authorities: people at risk by the findings that speak of each.

        Beside that stands what version 0.1 said of each, by the papers' numbers of everybody: `finding` says which.
        """
        return {
            one.name: self._by_the_papers(Threat(one.name)) | one.to_dict() for one in self.levels.threats
        }

    def _by_the_papers(self, threat: Threat) -> dict[str, Any]:
        """Return how many people there are for whom a paper's quantity is on the wrong side, by the worst of them."""
        people, finding = self.exposed, "among the most exposed for a sensitive topic"
        if threat is not Threat.INFERENCE:
            spreads = self.of_threat(threat)
            worst = max(spreads, key=lambda one: one.under(self.wanted).most, default=None)
            people = None if worst is None else worst.under(self.wanted)
            finding = "" if worst is None else f"fewer than {self.wanted} people to hide among: {worst.name}"
        if people is None:
            return {"people": None, "share": None, "of": None, "fewer_than": None, "finding": "not measured"}
        return {**people.to_dict(), "finding": finding}

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        one = self.levels.overall
        if not one.known:
            whom = say_count(self.people, "person", "people")
            return f"Cannot tell how well {whom} can hide: {'; '.join(self.not_measured) or 'too little is here'}."
        if self.levels.sampled:
            about = "" if one.at_risk.hidden else "About "
            first = f"{about}{one.say(one.at_risk)} of people are at risk"
            first = f"{first[:1].upper()}{first[1:]}"
        else:
            first = (
                f"{one.at_risk.sentence_start()} people {'is' if one.at_risk.count == 1 else 'are'} at risk"
            )
        return f"{first}: somebody who knows a little of them would be right about them more often than not."

    def whom(self) -> str:
        """Say whom the numbers are about."""
        count = say_count(self.levels.people, "person", "people")
        if not self.levels.sampled:
            return f"All {count} were assessed one by one, as incrowd assess does."
        return (
            f"{count} of {self.people:,}, chosen at random, were assessed one by one, as incrowd assess does. They "
            "stand for all; in brackets stands where the share of everybody lies, 19 times out of 20."
        )

    @property
    def risk(self) -> float:
        """The share of people at risk; a hidden share counts as the largest it may be. NaN: cannot tell."""
        return self.levels.overall.risk

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
        one = self.levels.overall
        counted = f", counted as {one.at_risk.smallest - 1}," if one.at_risk.hidden else ""
        whom = "people" if not self.levels.sampled else "people chosen at random"
        return f"the risk is {self.risk:.3g}: {one.at_risk.words()}{counted} of {one.at_risk.of:,} {whom} are at risk"

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each spread and line: how many people have a smaller set."""
        return [
            {"name": one.name, "threat": str(one.threat), "smaller_than": size, **people.to_dict()}
            for one in self.spreads
            for size, people in one.below
        ]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the share of people at risk by each question; hidden shares at their largest."""
        return [(one.question, one.risk) for one in self.levels.questions]

    @property
    def figure(self) -> Chart:
        """The share of people below each set size."""
        sizes = [size for size, _ in self.spreads[0].below]
        return Chart(
            kind="bars",
            title="How many people have few others like them",
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
            "levels": {
                "assessed": self.levels.people,
                "sampled": self.levels.sampled,
                "overall": self.levels.overall.to_dict(),
                "questions": {one.name: one.to_dict() for one in self.levels.questions},
            },
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
