"""How sure can somebody be of what you hid, given what you published and what they know (paper 000, section 4)?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.belief.assess import check_policy as check_policy
    from incrowd.measures.belief.everyone import check_everyone as check_everyone
    from incrowd.measures.belief.measure import assess as assess
    from incrowd.measures.belief.measure import measure as measure
    from incrowd.measures.belief.policy import Policy as Policy
    from incrowd.measures.belief.policy import read_policy as read_policy
    from incrowd.measures.belief.spec import ADVERSARIES as ADVERSARIES
    from incrowd.measures.belief.spec import BeliefOptions as Options

__all__ = [
    "ADVERSARIES",
    "Options",
    "Policy",
    "assess",
    "check_everyone",
    "check_policy",
    "measure",
    "read_policy",
]

lazy_names(
    __name__,
    {
        "ADVERSARIES": "incrowd.measures.belief.spec:ADVERSARIES",
        "Options": "incrowd.measures.belief.spec:BeliefOptions",
        "Policy": "incrowd.measures.belief.policy:Policy",
        "assess": "incrowd.measures.belief.measure:assess",
        "check_everyone": "incrowd.measures.belief.everyone:check_everyone",
        "check_policy": "incrowd.measures.belief.assess:check_policy",
        "measure": "incrowd.measures.belief.measure:measure",
        "read_policy": "incrowd.measures.belief.policy:read_policy",
    },
)
