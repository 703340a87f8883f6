"""How sure can somebody be of what you hid, given what you published and what they know (paper 000, section 4)?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.belief.assess import check_policy
    from incrowd.measures.belief.measure import assess, measure
    from incrowd.measures.belief.policy import Policy, read_policy
    from incrowd.measures.belief.ready import check_everyone
    from incrowd.measures.belief.spec import ADVERSARIES
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
        ".assess": "check_policy",
        ".ready": "check_everyone",
        ".measure": "assess measure",
        ".policy": "Policy read_policy",
        ".spec": "ADVERSARIES BeliefOptions:Options",
    },
)
