"""What every examiner is: one measure, prepared on everybody else, asked again and again about one person.

Advice, plans and what-ifs all go through `examine`: what is promised is what the measure says about the changed
person, by the same code that says how things are now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from incrowd.advisor.answer import Changes, Judged, NotAssessed
from incrowd.advisor.person import Own
from incrowd.result import Assessment

if TYPE_CHECKING:
    from incrowd.crowd.schema import Kind


@dataclass(frozen=True)
class Goal:
    """What to reach, and what that may cost."""

    short: Callable[[Assessment], float]
    """How far an assessment is from its target; at most 0: it meets it."""
    loss: float
    """Give up at most this share of the posts, items or attributes in question."""


@dataclass(frozen=True)
class Findings:
    """What one measure says about a person, and what it cannot say."""

    assessments: tuple[Assessment, ...] = ()
    not_assessed: tuple[NotAssessed, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Something a person could do about one finding."""

    what: str
    loss: str
    changes: Changes


class Examiner(Protocol):
    """One measure and its adversaries, with all that is fixed about other people at hand."""

    measure: ClassVar[str]
    reads: ClassVar[Kind]
    """What of the person decides its findings."""

    def examine(self, own: Own, *, explain: bool = True) -> Findings:
        """Measure the person as they are in `own`; without `explain` the evidence is left out."""
        ...

    def propose(self, own: Own, finding: Judged, goal: Goal) -> Iterable[Proposal]:
        """Return what could bring one of its findings to its target, or as near as was found."""
        ...
