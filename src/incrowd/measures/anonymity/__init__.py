"""How many people in this community are as like you as d?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.anonymity.assess import CommunityAnonymity, LiveCommunity
    from incrowd.measures.anonymity.measure import assess, measure
    from incrowd.measures.anonymity.spec import ADVERSARIES
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
        ".assess": "CommunityAnonymity LiveCommunity",
        ".measure": "assess measure",
        ".spec": "ADVERSARIES AnonymityOptions:Options",
    },
)
