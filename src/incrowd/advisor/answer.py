"""The advisor's answer about one person: small frozen values that the terminal, the pages and the JSON read.

Nobody but the person asked about is in it: set sizes, ranks, the person's own words, items and attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from incrowd.errors import InputError
from incrowd.result import Assessment, Direction, Evidence, say_amount

SMALL_RANK = 10
"""A reader wonders why anybody up to here should be well hidden."""


class Level(StrEnum):
    """How a person stands. There is no "safe": a measure only knows the adversaries it was told of."""

    AT_RISK = "at risk"
    WATCH = "watch"
    CANNOT_TELL = "cannot tell"
    WELL_HIDDEN = "well hidden"

    @property
    def severity(self) -> int:
        """3 = at risk, 2 = watch, 1 = cannot tell, 0 = well hidden; the largest counts."""
        return 3 - list(Level).index(self)


class ThemeName(StrEnum):
    """The four questions of the label."""

    LINKABLE = "linkable"
    SINGLED_OUT = "singled out"
    INFERABLE = "inferable"
    EXPOSED = "exposed"

    @property
    def question(self) -> str:
        """The question in plain words."""
        return _QUESTIONS[self]

    @property
    def claim(self) -> str:
        """What is the case if the answer is yes, as part of a sentence."""
        return _CLAIMS[self]


_CLAIMS = {
    "linkable": "your profiles can be linked",
    "singled out": "you can be told from everybody else",
    "inferable": "what you hide can be guessed",
    "exposed": "you stand out for a sensitive topic",
}
_MEASURES = {
    "linkability": "linking your profiles",
    "anonymity": "how you write",
    "microdata": "your items",
    "belief": "your attributes",
    "exposure": "sensitive topics",
}
_QUESTIONS = {
    "linkable": "Can your profiles be linked?",
    "singled out": "Can you be told from everybody else?",
    "inferable": "Can what you hide be guessed?",
    "exposed": "Do you stand out for a sensitive topic?",
}


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What a person might do. Posts go by the numbers of :func:`incrowd.advisor.own_posts`."""

    delete_posts: frozenset[int] = frozenset()
    move_posts: frozenset[int] = frozenset()
    """Posts to write under another name, which nobody knows to be theirs."""
    edit_words: frozenset[str] = frozenset()
    """Words to take out of all their posts."""
    drop_items: frozenset[str] = frozenset()
    withhold_attributes: frozenset[str] = frozenset()

    @property
    def gone_posts(self) -> frozenset[int]:
        """The posts that this name no longer has."""
        return self.delete_posts | self.move_posts

    def __bool__(self) -> bool:
        return any(getattr(self, part.name) for part in fields(self))

    def __or__(self, other: Changes) -> Changes:
        """Return both at once; a post that is deleted need not be moved."""
        both = {part.name: getattr(self, part.name) | getattr(other, part.name) for part in fields(self)}
        both["move_posts"] -= both["delete_posts"]
        return Changes(**both)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return sorted lists, ready for JSON."""
        return {part.name: sorted(getattr(self, part.name)) for part in fields(self)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Changes:
        """Read what :meth:`to_dict` wrote; parts may be missing."""
        kinds: dict[str, type] = {part.name: int if "posts" in part.name else str for part in fields(cls)}
        if unknown := set(plain) - set(kinds):
            raise InputError(f"changes: unknown part '{min(unknown)}'; there are: {', '.join(kinds)}")
        try:
            return cls(**{name: frozenset(map(kinds[name], part)) for name, part in plain.items()})
        except (TypeError, ValueError):
            raise InputError("changes: each part is a list: numbers of posts, or names") from None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer in one sentence."""

    level: Level
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An assessment and the level it means."""

    assessment: Assessment
    theme: ThemeName
    level: Level
    risk: float
    """0 to 1, comparable between measures: how much an adversary gains; NaN if undefined."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it the same question before and after a change."""
        one = self.assessment
        return one.measure, one.subject, one.assumptions.adversary, one.unit


@dataclass(frozen=True, kw_only=True)
class Theme:
    """One line of the label."""

    name: ThemeName
    level: Level
    sentence: str
    judged: tuple[Judged, ...] = ()

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """What the level rests on, worst first."""
        return tuple(one.assessment for one in self.judged)


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
class Effect:
    """One finding before and after a change, both measured."""

    theme: ThemeName
    measure: str
    subject: str
    adversary: str
    unit: str
    direction: Direction
    before: float
    after: float
    """NaN: it can no longer be assessed, e.g. because the profile is gone."""
    level_before: Level
    level_after: Level
    says: str = ""
    """The finding in words, afterwards."""
    exact: bool = True
    """False: simulated, or measured by an adversary whose training is not repeated after the change."""

    def sentence(self) -> str:
        """Say it in words."""
        after = "no profile left" if math.isnan(self.after) else say_amount(self.after, self.unit)
        return (
            f"{self.measure}, {self.subject}, {self.adversary}: {say_amount(self.before, self.unit)} -> {after} "
            f"({self.level_before} -> {self.level_after}{self.note and '; ' + self.note})"
        )

    @property
    def note(self) -> str:
        """Why somebody still among the first is less exposed than before; empty otherwise."""
        better = self.level_after.severity < self.level_before.severity
        if self.measure == "exposure" and better and self.after <= SMALL_RANK:
            return "what is left is too faint to look personal"
        return ""


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
class NotAssessed:
    """A measure that could not say anything, why, and what would help."""

    measure: str
    why: str
    remedy: str
    theme: ThemeName | None = None

    @property
    def about(self) -> str:
        """The measure in plain words: "linking your profiles (determined)"."""
        name, space, which = self.measure.partition(" ")
        return _MEASURES.get(name, name) + space + which


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


@dataclass(frozen=True, kw_only=True)
class PersonReport:
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
    def silences(self) -> tuple[tuple[str, str, str], ...]:
        """What could not be told: what it is about, why, what would help; one line for what has the same reason."""
        lines: dict[tuple[str, str], list[str]] = {}
        for one in self.not_assessed:
            lines.setdefault((one.why, one.remedy), []).append(one.about)
        return tuple((", ".join(dict.fromkeys(about)), *reason) for reason, about in lines.items())

    @property
    def judged(self) -> tuple[Judged, ...]:
        """All findings, theme by theme."""
        return tuple(one for theme in self.themes for one in theme.judged)

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """All assessments, theme by theme."""
        return tuple(one.assessment for one in self.judged)

    @property
    def risk(self) -> float:
        """The largest comparable risk, 0 to 1; NaN if nothing could be assessed."""
        return max((one.risk for one in self.judged if not math.isnan(one.risk)), default=math.nan)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        from incrowd.advisor.answer_json import report_to_dict

        return report_to_dict(self)
