"""One person, one answer: every measure that applies, why, and what to do about it.

:func:`assess` answers for a person as they are, :func:`what_if` as they would be after some :class:`Changes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.advisor.answer import PersonReport
    from incrowd.advisor.assess import assess, what_if
    from incrowd.advisor.draft import draft
    from incrowd.measures.person import own_posts
    from incrowd.measures.protocol import AdvisorOptions, Changes, Level, Targets

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
        ".answer": "PersonReport",
        ".assess": "assess what_if",
        ".draft": "draft",
        "incrowd.measures.person": "own_posts",
        "incrowd.measures.protocol": "AdvisorOptions Changes Level Targets",
    },
)
