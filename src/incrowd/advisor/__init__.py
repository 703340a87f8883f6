"""One person, one answer: every measure that applies, why, and what to do about it.

:func:`assess` answers for a person as they are, :func:`what_if` as they would be after some :class:`Changes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.advisor.answer import PersonReport as PersonReport
    from incrowd.advisor.assess import assess as assess
    from incrowd.advisor.assess import what_if as what_if
    from incrowd.advisor.draft import draft as draft
    from incrowd.measures.person import own_posts as own_posts
    from incrowd.measures.protocol import AdvisorOptions as AdvisorOptions
    from incrowd.measures.protocol import Changes as Changes
    from incrowd.measures.protocol import Level as Level
    from incrowd.measures.protocol import Targets as Targets

__all__ = [
    "AdvisorOptions",
    "Changes",
    "Level",
    "PersonReport",
    "Targets",
    "assess",
    "draft",
    "own_posts",
    "what_if",
]

lazy_names(
    __name__,
    {
        "AdvisorOptions": "incrowd.measures.protocol:AdvisorOptions",
        "Changes": "incrowd.measures.protocol:Changes",
        "Level": "incrowd.measures.protocol:Level",
        "PersonReport": "incrowd.advisor.answer:PersonReport",
        "Targets": "incrowd.measures.protocol:Targets",
        "assess": "incrowd.advisor.assess:assess",
        "draft": "incrowd.advisor.draft:draft",
        "own_posts": "incrowd.measures.person:own_posts",
        "what_if": "incrowd.advisor.assess:what_if",
    },
)
