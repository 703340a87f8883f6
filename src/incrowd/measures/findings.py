"""The values measures speak in: levels, questions, findings, effects of changes, proposals.

Risk is a probability: how often a named adversary would be right about the person. One rule turns it into a level,
the same for every crowd and every question: above 1/2 (right more often than wrong) is *at risk*, above 1/10 (fewer
than ten people would have to be considered) *watch*, up to that *well hidden*. Undefined is *cannot tell*.

Only findings about a plausible adversary decide (:class:`Role`); what somebody who knows more would reach is shown
beside them, and the papers' quantities are kept under their own names for researchers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Real
from typing import Any

from incrowd.errors import InputError
from incrowd.measures.person import Changes
from incrowd.result import (
    Assessment,
    Direction,
    Evidence,
    fields_to_plain,
    say_amount,
    say_percent,
    to_plain,
)
from incrowd.wording import LINES

WATCH_ABOVE, AT_RISK_ABOVE = LINES
LINE = 1e-9
"""Lines are drawn this far on the kinder side: 1/5 itself is not above 1/5, whatever the rounding."""
SEEN = 0.005
"""Half a percentage point: a smaller difference is nothing that a reader of per cents would see."""
SMALLEST_CROWD = 5
"""In a crowd of fewer people a rank or a guess says nothing."""


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


def level_of(risk: float) -> Level:
    """Return the level of a risk; undefined is never safe.

    >>> [str(level_of(r)) for r in (1.0, 0.5, 0.1, float("nan"))]
    ['at risk', 'watch', 'well hidden', 'cannot tell']
    """
    if math.isnan(risk):
        return Level.CANNOT_TELL
    if risk > AT_RISK_ABOVE + LINE:
        return Level.AT_RISK
    return Level.WATCH if risk > WATCH_ABOVE + LINE else Level.WELL_HIDDEN


class Role(StrEnum):
    """What a finding is for."""

    DECIDES = "decides"
    """About the plausible adversary of its question: the level and the verdict follow from it."""
    STRONGER = "stronger"
    """Against somebody who knows more: shown, decides nothing."""
    PAPER = "paper"
    """A paper's quantity under its own name, for researchers: decides nothing."""


class ThemeName(StrEnum):
    """The questions of the label; each measure answers one of them."""

    LINKABLE = "linkable"
    SINGLED_OUT = "singled out"
    INFERABLE = "inferable"
    EXPOSED = "exposed"
    TOLD = "told"

    @property
    def question(self) -> str:
        """The question in plain words."""
        return _THEMES[self][0]

    @property
    def matter(self) -> str:
        """What it is about, as part of a list."""
        return _THEMES[self][2]

    @property
    def of_people(self) -> str:
        """What is the case for somebody if the answer is yes, as a line of a table about many people."""
        return _THEMES[self][3]

    @property
    def claim(self) -> str:
        """What is the case if the answer is yes, as part of a sentence."""
        return _THEMES[self][1]


_THEMES: dict[str, tuple[str, str, str, str]] = {
    "linkable": (
        "Can your profiles be linked?",
        "your profiles can be linked",
        "links between your profiles",
        "two profiles of theirs can be linked",
    ),
    "singled out": (
        "Can you be told from everybody else?",
        "you can be told from everybody else",
        "telling you from everybody else",
        "they can be told from everybody else",
    ),
    "inferable": (
        "Can what you hide be guessed?",
        "what you hide can be guessed",
        "guessing what you hide",
        "what they hide can be guessed",
    ),
    "exposed": (
        "Do you stand out for a sensitive topic?",
        "you stand out for a sensitive topic",
        "sensitive topics",
        "they stand out for a sensitive topic",
    ),
    "told": (
        "What have you told about yourself?",
        "what you have told singles you out",
        "what you have told about yourself",
        "what they have told about themselves singles them out",
    ),
}


def require_numbers(what: str, value: object, *names: str) -> None:
    """Refuse anything but a number in these fields of a value."""
    for name in names:
        if not isinstance(got := getattr(value, name), Real):
            raise InputError(f"{what}: expected a number for {name}, got {type(got).__name__}")


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What the person wants to reach; the plan aims at it."""

    people: float = 10.0
    """Hide among at least so many people, oneself included."""
    gain: float = 0.1
    """Nobody should lose more than this share of their doubt about a hidden attribute."""
    exposed: float = 0.1
    """Do not show a personal interest among this share of the most exposed people for a topic."""

    loss: float = 0.5
    """Give up at most this share of the posts of a community, of the items, or of the attributes."""

    def __post_init__(self) -> None:
        require_numbers("targets", self, "people", "gain", "exposed", "loss")
        if not 0 < self.loss <= 1:
            raise InputError(
                f"targets: expected a share above 0, at most 1, to give up (--most-loss), got loss={self.loss:g}"
            )
        if not self.people >= 1:
            raise InputError(
                f"targets: expected at least 1 person to hide among (--people), yourself; got people={self.people:g}"
            )
        if not 0 < self.gain <= 1 or not 0 <= self.exposed <= 1:
            raise InputError(
                f"targets: expected 0 < gain <= 1 and 0 <= exposed <= 1, got gain={self.gain:g}, "
                f"exposed={self.exposed:g}"
            )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An assessment, the question it answers, and the level it means."""

    assessment: Assessment
    theme: ThemeName
    level: Level
    risk: float
    """0 to 1, comparable between measures: how often an adversary would be right, or how much of the doubt is gone
    where something is known of everybody; NaN if undefined."""
    role: Role = Role.DECIDES

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types: the assessment's, with what it means."""
        told = {"theme": str(self.theme), "level": str(self.level), "role": str(self.role)}
        return self.assessment.to_dict() | told | {"risk": to_plain(self.risk)}

    @property
    def decides(self) -> bool:
        """True if the level of its question follows from it."""
        return self.role is Role.DECIDES

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it the same question before and after a change."""
        return key_of(self.assessment)


def key_of(one: Assessment) -> tuple[str, str, str, str]:
    """Return what makes an assessment the same question before and after a change."""
    return one.measure, one.subject, one.assumptions.adversary, one.unit


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One finding before and after a change, both measured."""

    theme: ThemeName
    measure: str
    subject: str
    adversary: str
    unit: str
    """What is counted: "people" to hide among, a "rank" (1 = most exposed), a "probability"."""
    direction: Direction
    before: float
    after: float
    """NaN: it cannot be told, e.g. because there is no profile; `reason` says why."""
    level_before: Level
    level_after: Level
    of_before: int | None = None
    of_after: int | None = None
    """Among how many people."""
    rank_before: int | None = None
    rank_after: int | None = None
    """For a set of people: how many members have a smaller one, plus 1."""
    risk_before: float = math.nan
    risk_after: float = math.nan
    """On the common scale, from which the levels follow; NaN if it cannot be told."""
    success_before: float = math.nan
    success_after: float = math.nan
    """How often the adversary would be right, as the finding's sentence says it; NaN if it cannot be told."""
    score_before: float = math.nan
    score_after: float = math.nan
    """For a rank: the score behind it."""
    says: str = ""
    """The finding in words, afterwards."""
    exact: bool = True
    """False: simulated, or measured by an adversary whose training is not repeated after the change."""
    note: str = ""
    """What has to be added so that the levels make sense, e.g. why somebody among the first is less exposed."""
    reason: str = ""
    decides: bool = True
    """False: about somebody who knows more, or a paper's quantity; the verdict does not follow from it."""
    recheck: float = math.nan
    """The risk afterwards by an attacker that neither the measure nor a search contains; NaN: none was asked."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The finding it is about."""
        return self.measure, self.subject, self.adversary, self.unit

    def sentence(self) -> str:
        """Say it in words."""
        levels = f"{self.level_before} → {self.level_after}" if self.turns else f"still {self.level_after}"
        return f"{self.subject}: {self.said_before} → {self.said_after}; {levels}" + (
            f" ({self.note})" if self.note else ""
        )

    @property
    def turns(self) -> bool:
        """True if the level is another one afterwards."""
        return self.level_before is not self.level_after

    @property
    def said_before(self) -> str:
        """The number before, as a person would say it."""
        return self._said(self.before, self.success_before)

    @property
    def said_after(self) -> str:
        """The number that holds afterwards, by the measure and by the other attacker, as a person would say it."""
        if self.recheck_is_worse:
            return say_amount(self.recheck, "probability")
        gone = math.isnan(self.after) and not math.isnan(self.before)
        return "no profile left" if gone else self._said(self.after, self.success_after)

    @property
    def recheck_is_worse(self) -> bool:
        """True if the other attacker is right more often than the measure says."""
        return not math.isnan(self.recheck) and not self.recheck <= self.risk_after

    def _said(self, value: float, success: float) -> str:
        """A rank says little about a level; where it is known how often its adversary would be right, that is said."""
        if math.isnan(success):
            return say_amount(value, self.unit)
        if self.unit == "rank":
            return say_percent(success)
        amount = say_amount(value, self.unit)
        return f"{amount}, right {say_percent(success)} of the time" if self._only_surer else amount

    @property
    def _only_surer(self) -> bool:
        """True if as many people fit as before, and somebody is surer or less sure that they do."""
        before, after = self.exposure
        as_many = say_amount(self.before, self.unit) == say_amount(self.after, self.unit)
        return self.unit == "people" and as_many and abs(after - before) > SEEN

    def short_sentence(self) -> str:
        """Say it in a few words."""
        told = (
            f"{self.said_before} → {self.said_after}"
            if self.said_before != self.said_after
            else self.said_after
        )
        return f"{self.subject}: {told}"

    @property
    def exposure(self) -> tuple[float, float]:
        """How often somebody would be right, before and after; 0 if it cannot be told."""
        return _known(self.risk_before), _known(self.risk_after)

    @property
    def worse(self) -> bool:
        """True if somebody would be right more often by as much as a reader would see."""
        before, after = self.exposure
        return after - before > SEEN

    @property
    def leaves_fewer(self) -> bool:
        """True if only half of those to hide among are left, or fewer."""
        return self.unit == "people" and self.after <= self.before / 2

    @property
    def silent(self) -> bool:
        """True for a topic that the person says nothing about, before and after: such a rank is everybody's."""
        return self.unit == "rank" and not (self.score_before > 0 or self.score_after > 0)

    @property
    def at_risk_already(self) -> bool:
        """True if it is at risk before and after, and gets no worse."""
        return self.level_before is self.level_after is Level.AT_RISK and not self.worse

    @property
    def moves(self) -> bool:
        """True if anything is different afterwards."""
        return not (same(self.before, self.after) and same(self.score_before, self.score_after))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return fields_to_plain(self) | {"worse": self.worse, "sentence": self.short_sentence()}


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def same(one: float, other: float) -> bool:
    """Say whether two numbers are the same, or both unknown."""
    return one == other or (math.isnan(one) and math.isnan(other))


@dataclass(frozen=True)
class Goal:
    """What to reach, and what that may cost."""

    short: Callable[[Assessment], float]
    """How far an assessment is from its target; at most 0: it meets it."""
    loss: float
    """Give up at most this share of the posts, items or attributes in question."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Something a person could do about one finding."""

    what: str
    loss: str
    changes: Changes
    from_now_on: bool = False
    """Nothing is taken back: the changes stand for what a new name would show."""
    beyond: bool = False
    """It takes more than the person would give up; tried because less does not help."""

    def __add__(self, other: Proposal) -> Proposal:
        """Return both at once."""
        return Proposal(
            what=f"{self.what}; and {other.what[0].lower()}{other.what[1:]}",
            loss=f"{self.loss}; {other.loss}",
            changes=self.changes | other.changes,
            from_now_on=self.from_now_on,
            beyond=self.beyond,
        )


@dataclass(frozen=True, kw_only=True)
class GivesAway:
    """One kind of habit that gives a person away, and what to do about it from now on."""

    kind: str
    share: float
    """Of all that the posts have in common and others do not do."""
    examples: tuple[str, ...]
    """The strongest, from the person's own posts."""
    advice: str


@dataclass(frozen=True, kw_only=True)
class WordShare:
    """What one word of a draft gives away, by one measure."""

    weight: float
    """How much it tells, comparable between measures; the words of a draft are sorted by the sum."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was counted, by name, for JSON."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """What to show beside the word in a table, by heading."""
    says: str = ""
    """The same in words: "nobody else there uses it"."""
    points_to: Mapping[str, str] = field(default_factory=dict)
    """What the word points to, by the subject of the finding as :meth:`Measure.subject_of` names it."""


def shortened(evidence: Sequence[Evidence], most: int, least: float = 0.0) -> tuple[Evidence, ...]:
    """Keep the strongest parts and put the rest into one, together with a rest there was, so that the sum stays.

    `least`: parts below this share of all that speaks for it go into the rest, too, if there are several.
    """
    named = sorted((part for part in evidence if not part.is_rest), key=lambda part: part.strongest_first)
    line = least * math.fsum(part.contribution for part in evidence if part.contribution > 0)
    large = sum(abs(part.contribution) >= line for part in named)
    most = min(most, large) if large < len(named) - 1 else most
    rest = [*named[most:], *(part for part in evidence if part.is_rest)]
    if not rest:
        return tuple(named)
    count = sum(part.parts_in_rest or 1 for part in rest)
    total = math.fsum(part.contribution for part in rest)
    return (*named[:most], Evidence(what=f"{count:,} more", contribution=total))
