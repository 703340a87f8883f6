"""A crowd report as plain types: hidden counts stay hidden."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.advisor.crowd_answer import CommunityRisk, CrowdReport, Spread


def report_to_dict(report: CrowdReport) -> dict[str, Any]:
    """Return the whole report."""
    return {
        "sentence": report.sentence(),
        "people": report.people,
        "risk": None if math.isnan(report.risk) else report.risk,
        "wanted": report.wanted,
        "smallest_count_told": report.smallest,
        "threats": report.threats(),
        "spreads": [_spread(one) for one in report.spreads],
        "communities": [_community(one) for one in report.communities],
        "unnamed_communities": report.unnamed_communities,
        "topics": [
            {
                "topic": one.topic,
                "shown": one.shown.to_dict(),
                "highest_tenth_from": None if math.isnan(one.highest_tenth) else one.highest_tenth,
            }
            for one in report.topics
        ],
        "exposed": None if report.exposed is None else report.exposed.to_dict(),
        "not_measured": list(report.not_measured),
        "assumptions": dict(report.assumptions),
        "fingerprint": dict(report.fingerprint),
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
