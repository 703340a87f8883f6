"""What changed since an earlier report, question by question, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.measures.protocol import Level, ThemeName
from incrowd.result import say_count


@dataclass(frozen=True, kw_only=True)
class ThemeSince:
    """One question then and now."""

    name: ThemeName
    level_before: Level
    level_now: Level
    risk_before: float
    risk_now: float

    @property
    def moved(self) -> str:
        """better, worse or same; by the level, and within a level by the risk."""
        told = Level.CANNOT_TELL not in (self.level_before, self.level_now)
        step = self.level_now.severity - self.level_before.severity if told else 0
        if step == 0 and not math.isclose(self.risk_before, self.risk_now, rel_tol=0.02, abs_tol=0.005):
            step = (self.risk_now > self.risk_before) - (self.risk_now < self.risk_before)
        return "worse" if step > 0 else "better" if step < 0 else "same"

    @property
    def incomparable(self) -> bool:
        """Whether the question could be answered then or now, but not both times."""
        return (self.level_before is Level.CANNOT_TELL) != (self.level_now is Level.CANNOT_TELL)

    def sentence(self) -> str:
        """Say it in words."""
        then, now = (
            str(level) + ("" if math.isnan(risk) else f" (risk {risk:.2f})")
            for level, risk in ((self.level_before, self.risk_before), (self.level_now, self.risk_now))
        )
        return (
            f"{self.name.question} {then} then, {now} now"
            if then != now
            else f"{self.name.question} still {now}"
        )


@dataclass(frozen=True, kw_only=True)
class Since:
    """What changed since an earlier report."""

    verdict_before: Level
    verdict_now: Level
    themes: tuple[ThemeSince, ...]
    notes: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Say the whole in words."""
        counted = {way: sum(one.moved == way for one in self.themes) for way in ("better", "worse")}
        told = [f"{way} in {say_count(count, 'question')}" for way, count in counted.items() if count]
        if lost := sum(one.incomparable for one in self.themes):
            told.append(f"{say_count(lost, 'question')} could be answered only once")
        verdict = (
            f"still {self.verdict_now}"
            if self.verdict_before is self.verdict_now
            else f"{self.verdict_before} then, {self.verdict_now} now"
        )
        return f"Since last time: {verdict}; {' and '.join(told) if told else 'nothing moved'}."
