"""How many people of a crowd stand at each level, question by question: totals by the rule of one person's verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.measures.crowd_rates import People
from incrowd.measures.findings import Level
from incrowd.measures.sampling import share_interval
from incrowd.result import to_plain
from incrowd.wording import say_percent


@dataclass(frozen=True, kw_only=True)
class LevelRates:
    """How many people are at risk by one question, of those for whom it could be told."""

    name: str
    question: str
    told: People
    """People for whom it could be told, of all who were assessed."""
    close: People
    """At risk or at watch, of those."""
    at_risk: People
    sampled: bool
    """True if those who were assessed stand for a larger crowd."""

    @classmethod
    def of(
        cls, name: str, question: str, levels: Sequence[Level], *, smallest: int, sampled: bool
    ) -> LevelRates:
        """Count levels, one a person; each number is told next to the larger one that it is part of."""
        severity = [level.severity for level in levels if level is not Level.CANNOT_TELL]
        told = People.told(len(severity), len(levels), smallest)
        close = sum(one >= Level.WATCH.severity for one in severity)
        close_told = People.told(close, told.count, smallest)
        at_risk = sum(one >= Level.AT_RISK.severity for one in severity)
        return cls(
            name=name,
            question=question,
            told=told,
            close=close_told,
            at_risk=People.told(at_risk, told.count, smallest, above=close_told.count),
            sampled=sampled,
        )

    @property
    def known(self) -> bool:
        """False if it could be told for so few people that nothing is said about them."""
        return bool(self.told.count) and not self.told.hidden

    @property
    def risk(self) -> float:
        """The share of people at risk; a hidden one is the largest it may be. NaN if it could be told for too few."""
        return self.at_risk.most if self.known else math.nan

    def interval(self, people: People) -> tuple[float, float] | None:
        """Return where the share of the whole crowd lies, 19 times out of 20; None if everybody was assessed.

        A number that is told may have been rounded up, and a hidden one may be anything below the smallest.
        """
        if not self.sampled or not self.known:
            return None
        rounding = people.smallest - 1
        most = rounding if people.hidden else people.count
        least = max(0, people.count - rounding) if not people.hidden else 0
        return share_interval(least, people.of)[0], share_interval(most, people.of)[1]

    def say(self, people: People) -> str:
        """Write a number of people as their share, with its interval where they stand for more."""
        if not self.known:
            return "–"
        share = (
            f"under {say_percent(people.smallest / people.of)}"
            if people.hidden
            else say_percent(people.share)
        )
        ends = self.interval(people)
        return share if ends is None else f"{share} ({say_percent(ends[0])} to {say_percent(ends[1])})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; what is hidden is not in them."""
        return {
            "question": self.question,
            "told": self.told.to_dict(),
            "at_risk_or_watch": self._with_interval(self.close),
            "at_risk": self._with_interval(self.at_risk),
        }

    def _with_interval(self, people: People) -> dict[str, Any] | None:
        return people.to_dict() | {"interval": to_plain(self.interval(people))} if self.known else None
