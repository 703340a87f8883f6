"""How many people in this community are as like you as d?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.anonymity.assess import CommunityAnonymity as CommunityAnonymity
    from incrowd.measures.anonymity.assess import LiveCommunity as LiveCommunity
    from incrowd.measures.anonymity.measure import assess as assess
    from incrowd.measures.anonymity.measure import measure as measure
    from incrowd.measures.anonymity.spec import ADVERSARIES as ADVERSARIES
    from incrowd.measures.anonymity.spec import AnonymityOptions as Options

__all__ = [
    "ADVERSARIES",
    "CommunityAnonymity",
    "LiveCommunity",
    "Options",
    "assess",
    "measure",
]

lazy_names(
    __name__,
    {
        "ADVERSARIES": "incrowd.measures.anonymity.spec:ADVERSARIES",
        "CommunityAnonymity": "incrowd.measures.anonymity.assess:CommunityAnonymity",
        "LiveCommunity": "incrowd.measures.anonymity.assess:LiveCommunity",
        "Options": "incrowd.measures.anonymity.spec:AnonymityOptions",
        "assess": "incrowd.measures.anonymity.measure:assess",
        "measure": "incrowd.measures.anonymity.measure:measure",
    },
)
