"""One person, one answer: every measure that applies, why, and what to do about it.

:func:`assess` answers for a person as they are, :func:`what_if` as they would be after some :class:`Changes`. The
names below load on first use.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

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

_WHERE = {
    "AdvisorOptions": "incrowd.measures.protocol",
    "Changes": "incrowd.measures.protocol",
    "Level": "incrowd.measures.protocol",
    "PersonReport": "incrowd.advisor.answer",
    "Targets": "incrowd.measures.protocol",
    "assess": "incrowd.advisor.assess",
    "draft": "incrowd.advisor.draft",
    "own_posts": "incrowd.measures.person",
    "what_if": "incrowd.advisor.assess",
}


class _Package(ModuleType):
    """Keeps `assess` the function, although importing the module of that name would put it in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        is_module = _WHERE.get(name) == f"incrowd.advisor.{name}" and isinstance(value, ModuleType)
        super().__setattr__(name, getattr(value, name) if is_module else value)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'incrowd.advisor' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


sys.modules[__name__].__class__ = _Package
