"""The advisor's answer about one person: small frozen values that the terminal, the pages and the JSON read.

Nobody but the person asked about is in it: set sizes, ranks, the person's own words, items and attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from incrowd.measures.protocol import Changes, Effect, Finding, Level, NotAssessed, ThemeName
from incrowd.result import Assessment, Evidence, Result, to_plain


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer in one sentence."""

    level: Level
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Theme:
    """One line of the label."""

    name: ThemeName
    level: Level
    sentence: str
    findings: tuple[Finding, ...] = ()

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """What the level rests on, worst first."""
        return tuple(one.assessment for one in self.findings)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why: one of the strongest findings, with evidence that adds up to `explained`."""

    theme: ThemeName
    level: Level
    measure: str
    subject: str
    sentence: str
    evidence: tuple[Evidence, ...]
    """The strongest parts; the last one holds the rest."""
    explained: float | None
    """What the evidence adds up to."""


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing to do, and what the measures say after doing it."""

    what: str
    loss: str
    """What is given up, in plain words."""
    changes: Changes
    effect: Effect
    """On the finding it is aimed at."""
    also: tuple[Effect, ...] = ()
    """On every other finding whose value changes, for better or worse."""

    @property
    def theme(self) -> ThemeName:
        """The question it helps with."""
        return self.effect.theme


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Changes that together reach the targets, with the least loss found; all effects measured at once."""

    changes: Changes
    steps: tuple[str, ...]
    loss: str
    effects: tuple[Effect, ...]
    reached: bool
    """True if every finding that missed its target now meets it."""
    missed: tuple[str, ...] = ()
    """What still misses its target, in words."""
    verdict: Verdict
    """The verdict after the plan."""

    @property
    def goal(self) -> str:
        """How far it goes, as the end of "a plan that ...": what could not be measured is not called reached."""
        if not self.reached:
            return "goes as far as changes help"
        if self.verdict.level is Level.CANNOT_TELL:
            return "brings all that could be measured to your targets"
        return "reaches all your targets"


@dataclass(frozen=True, kw_only=True)
class OwnPost:
    """One of the person's own posts that an action names; the text only where the person asked for it."""

    number: int
    community: str
    time: int | None
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class FinePrint:
    """What it takes to judge the answer, and to get it again."""

    adversaries: tuple[str, ...]
    standings: Mapping[str, str]
    """Measure -> proved, heuristic or reproduction."""
    rule: str
    """How parts combine."""
    levels: tuple[str, ...]
    """What each level means, as sentences."""
    parameters: Mapping[str, Any]
    seed: int
    data_hash: str
    version: str
    notice: str = (
        "These numbers say how things look to the adversaries named, in this crowd; they are no guarantee "
        "against others."
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class PersonReport(Result):
    """Everything the advisor says about one person, in the order in which to read it."""

    person: str
    """The name as it was asked for."""
    people: int
    """How many people the crowd has."""
    verdict: Verdict
    themes: tuple[Theme, ...]
    reasons: tuple[Reason, ...] = ()
    actions: tuple[Action, ...] = ()
    plan: Plan | None = None
    not_assessed: tuple[NotAssessed, ...] = ()
    fine_print: FinePrint
    changes: Changes = field(default_factory=Changes)
    """What was changed before this was measured; empty for things as they are."""
    posts: tuple[OwnPost, ...] = ()
    """The person's own posts that actions or the plan name."""

    @property
    def not_told(self) -> tuple[tuple[str, str, str], ...]:
        """What could not be told: what it is about, why, what would help; one line for what has the same reason."""
        lines: dict[tuple[str, str], list[str]] = {}
        for one in self.not_assessed:
            lines.setdefault((one.why, one.remedy), []).append(one.about)
        return tuple((", ".join(dict.fromkeys(about)), *reason) for reason, about in lines.items())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, theme by theme."""
        return tuple(one for theme in self.themes for one in theme.findings)

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """All assessments, theme by theme."""
        return tuple(one.assessment for one in self.findings)

    @property
    def risk(self) -> float:
        """The largest comparable risk, 0 to 1; NaN if nothing could be assessed."""
        return max((one.risk for one in self.findings if not math.isnan(one.risk)), default=math.nan)

    def sentence(self) -> str:
        """Say the verdict."""
        return self.verdict.sentence

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each assessment, with what it means."""
        return [
            {"theme": str(one.theme), "level": str(one.level), "risk": one.risk, **one.assessment.rows()[0]}
            for one in self.findings
        ]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the largest risk of each question, 0 to 1."""
        return [
            (
                f"{theme.name}: {theme.level}",
                max((one.risk for one in theme.findings if not math.isnan(one.risk)), default=math.nan),
            )
            for theme in self.themes
        ]

    @property
    def _title(self) -> str:
        return f"{self.person} among {self.people:,} people"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        actions = to_plain(self.actions)
        return {
            "person": self.person,
            "people": self.people,
            "verdict": to_plain(self.verdict),
            "risk": to_plain(self.risk),
            "label": {
                str(theme.name): {
                    "level": str(theme.level),
                    "question": theme.name.question,
                    "sentence": theme.sentence,
                }
                for theme in self.themes
            },
            "reasons": to_plain(self.reasons),
            "actions": actions,
            "advice": actions,  # the name of version 0.1
            "plan": to_plain(self.plan),
            "assessments": [one.to_dict() for one in self.findings],
            "not_assessed": to_plain(self.not_assessed),
            "posts": to_plain(self.posts),
            "changes": self.changes.to_dict(),
            "fine_print": to_plain(self.fine_print),
        }
