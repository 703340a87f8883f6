"""What a measure is: one class that every part of incrowd goes through, and the values it speaks in.

A measure is asked in this order::

    prepare    a crowd and options            -> ready for anybody
    assess     a person, changed or not       -> assessments, and what could not be told
    risk       an assessment                  -> 0 to 1, comparable between measures
    propose    a finding that misses a target -> what the person could change
    everybody  a crowd                        -> how the risk is spread, for data officers
    watch      a line that a person drew      -> a number that follows new posts
    card       a crowd                        -> what to publish, so that strangers can measure themselves

The advisor, drafts, watches, crowd reports, the command line and the pages know measures by this class alone. A new
measure is one file and one line in :data:`incrowd.measures.REGISTERED`; ``docs/tutorials/your-own-measure.md`` has
one. Only `prepare` and `assess` have to be written; everything else has a default.

Risk is read as "how often would this adversary be right about you, or as bad as that". Above 1/5 (fewer than five
people would have to be considered) is *at risk*, above 1/10 (fewer than ten) *watch*, below that *well hidden*. Five
and ten are the smallest groups that statistical offices customarily publish. Undefined is *cannot tell*, which ranks
before *well hidden*: what could not be measured is not safe.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.errors import InputError
from incrowd.measures import REGISTERED
from incrowd.measures.person import Changes, NewPost, Person
from incrowd.measures.prepared import PreparedCrowd
from incrowd.result import Assessment, Direction, Evidence, fields_to_plain, say_amount, say_number
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    from incrowd.crowd.schema import Kind
    from incrowd.measures.crowd_rates import CrowdOptions, CrowdRates

__all__ = [
    "AdvisorOptions",
    "Assessment",
    "Changes",
    "Effect",
    "Finding",
    "Findings",
    "Goal",
    "Level",
    "Measure",
    "NewPost",
    "NotAssessed",
    "Person",
    "PreparedCrowd",
    "Proposal",
    "Ready",
    "Targets",
    "ThemeName",
]

AT_RISK_ABOVE = 1 / 5
WATCH_ABOVE = 1 / 10
LINE = 1e-9
"""Lines are drawn this far on the kinder side: 1/5 itself is not above 1/5, whatever the rounding."""
SMALLEST_CROWD = 5
"""In a crowd of fewer people a rank or a guess says nothing."""

Progress = Callable[[float, float | None, str], None]


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

    >>> [str(level_of(r)) for r in (1.0, 0.2, 0.1, float("nan"))]
    ['at risk', 'watch', 'well hidden', 'cannot tell']
    """
    if math.isnan(risk):
        return Level.CANNOT_TELL
    if risk > AT_RISK_ABOVE + LINE:
        return Level.AT_RISK
    return Level.WATCH if risk > WATCH_ABOVE + LINE else Level.WELL_HIDDEN


class ThemeName(StrEnum):
    """The four questions of the label; each measure answers one of them."""

    LINKABLE = "linkable"
    SINGLED_OUT = "singled out"
    INFERABLE = "inferable"
    EXPOSED = "exposed"

    @property
    def question(self) -> str:
        """The question in plain words."""
        return _THEMES[self][0]

    @property
    def claim(self) -> str:
        """What is the case if the answer is yes, as part of a sentence."""
        return _THEMES[self][1]


_THEMES: dict[str, tuple[str, str]] = {
    "linkable": ("Can your profiles be linked?", "your profiles can be linked"),
    "singled out": ("Can you be told from everybody else?", "you can be told from everybody else"),
    "inferable": ("Can what you hide be guessed?", "what you hide can be guessed"),
    "exposed": ("Do you stand out for a sensitive topic?", "you stand out for a sensitive topic"),
}


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What the person wants to reach; the plan aims at it."""

    people: float = 10.0
    """Hide among at least so many people, oneself included."""
    gain: float = 0.2
    """Nobody should lose more than this share of their doubt about a hidden attribute."""
    exposed: float = 0.1
    """Do not show a personal interest among this share of the most exposed people for a topic."""

    loss: float = 0.5
    """Give up at most this share of the posts of a community, of the items, or of the attributes."""

    def __post_init__(self) -> None:
        if not 0 < self.loss <= 1:
            raise InputError(f"targets: expected 0 < loss <= 1, got loss={self.loss:g}")
        if not self.people >= 1:
            raise InputError(
                f"targets: expected at least 1 person to hide among (people), yourself; got {self.people:g}"
            )
        if not 0 < self.gain <= 1 or not 0 <= self.exposed <= 1:
            raise InputError(
                f"targets: expected 0 < gain <= 1 and 0 <= exposed <= 1, got gain={self.gain:g}, "
                f"exposed={self.exposed:g}"
            )


@dataclass(frozen=True, kw_only=True)
class AdvisorOptions:
    """Which adversaries to sweep over, what to reach, how hard to look for advice."""

    adversaries: tuple[str, ...] = ()
    """Only these, by the names of :func:`incrowd.measures.protocol.adversaries`; empty: all that apply."""
    targets: Targets = field(default_factory=Targets)
    radius: float = 0.8
    """Distance within which two writers of a community count as alike."""
    min_posts: int = 10
    """Profiles with fewer posts are not linked: too little to tell."""
    most_communities: int = 4
    """Only the person's largest communities are assessed, so many."""
    topics: tuple[str, ...] = ()
    """Sensitive topics to look at; empty: all shipped ones."""
    space: Any = None
    """How an adversary recognises topics, as :mod:`incrowd.exposure` makes it; None: by the words that come along."""
    thorough: bool = True
    """False: leave out adversaries who take long the first time."""
    advice: bool = True
    """False: measure only, look for no advice."""
    quote_posts: bool = False
    """Put the text of the person's own posts into the report where advice names them."""
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0
    memory: int = 2**30

    def __post_init__(self) -> None:
        if not 0 <= self.radius <= 1:
            raise InputError(f"radius must be between 0 and 1, got {self.radius}")
        if self.min_posts < 1 or self.most_communities < 1:
            raise InputError("min_posts and most_communities must be at least 1")
        if self.adversaries and (unknown := set(self.adversaries) - set(adversaries())):
            raise InputError(
                f"adversary '{min(unknown)}': no such adversary. There are: {', '.join(adversaries())}."
            )

    def asked(self, name: str) -> bool:
        """Say whether an adversary is part of the sweep."""
        return not self.adversaries or name in self.adversaries

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        chosen = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "memory"}
        chosen |= {"targets": asdict(self.targets), "text": self.text.hash}
        chosen["space"] = None if self.space is None else self.space.hash
        return chosen


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An assessment, the question it answers, and the level it means."""

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
class NotAssessed:
    """Something that could not be told: of which measure, why, and what would help."""

    measure: str
    why: str
    remedy: str
    theme: ThemeName | None = None

    @property
    def about(self) -> str:
        """The measure in plain words: "linking your profiles (determined)"."""
        name, space, which = self.measure.partition(" ")
        return (measure_named(name).about if name in REGISTERED else name) + space + which


@dataclass(frozen=True)
class Findings:
    """What one measure says about a person, and what it cannot say."""

    assessments: tuple[Assessment, ...] = ()
    not_assessed: tuple[NotAssessed, ...] = ()


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

    def sentence(self) -> str:
        """Say it in words."""
        after = "no profile left" if math.isnan(self.after) else say_amount(self.after, self.unit)
        return (
            f"{self.measure}, {self.subject}, {self.adversary}: {say_amount(self.before, self.unit)} -> {after} "
            f"({self.level_before} -> {self.level_after}{self.note and '; ' + self.note})"
        )

    def short_sentence(self) -> str:
        """Say it in a few words."""
        what = _COUNTED.get(self.unit, self.unit)
        before, after = "none" if self.was_silent else _say(self.before), _say(self.after)
        told = f"{before} -> {after}" if before != after else after
        return f"{self.measure}, {self.subject}: {what} {told}"

    @property
    def exposure(self) -> tuple[float, float]:
        """One in how many, before and after: 1 is the worst, 0 if it cannot be told.

        A rank without a score behind it is shared by everybody who has none, and exposes nobody.
        """
        if self.direction is Direction.LOWER_IS_SAFER:
            return _known(self.before), _known(self.after)
        if self.unit == "rank":
            before, after = self.score_before > 0, self.score_after > 0
            return _one_in(self.before) * before, _one_in(self.after) * after
        return _one_in(self.before), _one_in(self.after)

    @property
    def worse(self) -> bool:
        """True if the change leaves fewer people to hide among, or a more exposed rank."""
        before, after = self.exposure
        return after > before

    @property
    def was_silent(self) -> bool:
        """True for the rank of a topic that nothing pointed to before."""
        return self.unit == "rank" and self.score_before <= 0

    @property
    def silent(self) -> bool:
        """True for a topic that the person says nothing about, before and after: such a rank is everybody's."""
        return self.unit == "rank" and not (self.score_before > 0 or self.score_after > 0)

    @property
    def at_worst(self) -> bool:
        """True if it is as bad as it can be already, so that nothing makes it worse."""
        return self.exposure == (1.0, 1.0)

    @property
    def moves(self) -> bool:
        """True if anything is different afterwards."""
        return not (same(self.before, self.after) and same(self.score_before, self.score_after))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return fields_to_plain(self) | {"worse": self.worse, "sentence": self.short_sentence()}


_COUNTED = {"people": "people to hide among", "rank": "your rank (1 = most exposed)"}


def _one_in(value: float) -> float:
    return 0.0 if math.isnan(value) or value <= 0 else 1.0 / value


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def same(one: float, other: float) -> bool:
    """Say whether two numbers are the same, or both unknown."""
    return one == other or (math.isnan(one) and math.isnan(other))


def _say(value: float) -> str:
    return "cannot tell" if math.isnan(value) else say_number(value)


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


class Ready(ABC):
    """A measure that was prepared on a crowd: it answers for anybody in it, again and again.

    Advice, plans, what-ifs and drafts all go through `assess`: what is promised is what the measure says about the
    changed person, by the same code that says how things are now.
    """

    @abstractmethod
    def assess(self, person: Person, *, explain: bool = True, community: str | None = None) -> Findings:
        """Measure a person; without `explain` the evidence is left out.

        With a `community`, only what a post there can change is measured, and what cannot be told is an undefined
        assessment with its reason.
        """

    def assess_thorough(self, person: Person, *, explain: bool = True) -> Findings:
        """Measure what takes seconds for every change; a plan asks for it at its end only."""
        return Findings()

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Return what could bring one of its findings to its target, or as near as was found."""
        return ()

    def assumptions(self) -> Mapping[str, Any]:
        """Return what else decided its numbers, for the record of a draft."""
        return {}

    def word_shares(self, person: Person, community: str, text: str) -> Mapping[str, WordShare]:
        """Return what each word of a text gives away if the person (as they are now) posts it there."""
        return {}


class Measure(ABC):
    """One way to look at people, with all that the outside needs to ask and to show it."""

    name: ClassVar[str]
    about: ClassVar[str]
    """What it looks at, as a few plain words: "how you write"."""
    question: ClassVar[str]
    """What it answers, as a question in plain words."""
    theme: ClassVar[ThemeName]
    reads: ClassVar[Kind]
    """What of a person decides its findings: posts, items or attributes."""
    adversaries: ClassVar[Mapping[str, str]]
    """Those of the sweep, by name, in plain words."""

    # One person

    @abstractmethod
    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Make ready for anybody in a crowd; what is the same for everybody is kept in the crowd's cache."""

    def asked(self, options: AdvisorOptions) -> bool:
        """Say whether one of its adversaries is part of the sweep."""
        return any(map(options.asked, self.adversaries))

    def nothing_known(self, person: Person) -> str:
        """Say why there is nothing to measure about a person at all; empty if there is something."""
        held = {"posts": person.communities, "items": person.items, "attributes": person.attributes}
        return "" if held[self.reads] else f"the crowd holds no {self.reads} of yours"

    def risk(self, assessment: Assessment) -> float:
        """Return how much the adversary gains, 0 to 1, comparable between measures; NaN if it cannot be told.

        A crowd of n people is 1/n, a guess among those who fit; a probability is itself.
        """
        crowd = self.crowd_behind(assessment)
        if not assessment.defined or (crowd is not None and crowd < SMALLEST_CROWD):
            return math.nan
        return min(1.0, 1 / assessment.value if assessment.unit == "people" else assessment.value)

    def crowd_behind(self, assessment: Assessment) -> float | None:
        """Return among how many people the number was found; None: it does not depend on a crowd."""
        return assessment.crowd_size

    def shortfall(self, assessment: Assessment, targets: Targets) -> float:
        """Return how far an assessment is from its target; at most 0: reached. Undefined is never reached."""
        if not assessment.defined:
            return math.inf
        if assessment.unit == "people":
            return targets.people - assessment.value - LINE
        return assessment.value - 1 / targets.people - LINE

    def finding(self, assessment: Assessment) -> Finding:
        """Put one of its assessments on the scale that is common to all measures."""
        risk = self.risk(assessment)
        return Finding(assessment=assessment, theme=self.theme, level=level_of(risk), risk=risk)

    def remark(self, finding: Finding) -> str:
        """Say what the label has to add to a finding's sentence so that its level makes sense."""
        return ""

    def note(self, before: Finding, after: Finding) -> str:
        """Say what has to be added to an effect so that its levels make sense."""
        return ""

    def effect(self, before: Finding | None, after: Finding | None) -> Effect:
        """Put one finding before and after a change side by side; at least one of them is there."""
        there = after or before
        if there is None:
            raise ValueError("an effect needs a finding")
        old, new = (None if one is None else one.assessment for one in (before, after))
        about = there.assessment
        return Effect(
            theme=there.theme,
            measure=about.measure,
            subject=about.subject,
            adversary=about.assumptions.adversary,
            unit=about.unit,
            direction=about.direction,
            before=math.nan if old is None else old.value,
            after=math.nan if new is None else new.value,
            level_before=Level.CANNOT_TELL if before is None else before.level,
            level_after=Level.CANNOT_TELL if after is None else after.level,
            of_before=self._people_behind(old),
            of_after=self._people_behind(new),
            rank_before=None if old is None or old.unit != "people" else old.crowd_rank,
            rank_after=None if new is None or new.unit != "people" else new.crowd_rank,
            score_before=_score(old),
            score_after=_score(new),
            says="" if after is None else about.sentence(),
            exact=self.is_exact_after_changes(about),
            note=self.note(before, after) if before is not None and after is not None else "",
            reason=(new.reason if new else "") or (old.reason if old else ""),
        )

    def _people_behind(self, assessment: Assessment | None) -> int | None:
        crowd = None if assessment is None else self.crowd_behind(assessment)
        return None if crowd is None or math.isnan(crowd) else round(crowd)

    def is_exact_after_changes(self, assessment: Assessment) -> bool:
        """Say whether it measures a changed person as exactly as it would from scratch."""
        return assessment.exact

    def subject_of(self, assessment: Assessment) -> str:
        """Name what a number is about, short, for a table of drafts or lines."""
        return assessment.subject

    # Everybody

    def everybody(self, crowd: PreparedCrowd, options: CrowdOptions, tell: Progress) -> CrowdRates | None:
        """Return how the risk is spread over a whole crowd; None: this measure does not tell."""
        return None

    def card(self, crowd: PreparedCrowd, options: Any) -> Mapping[str, Any] | None:
        """Return what it adds to a published card of the crowd; None: nothing."""
        return None

    # Where it has nothing to say

    def not_assessed(self, why: str, remedy: str, *, which: str = "") -> NotAssessed:
        """Say that the measure, or one of its adversaries, cannot tell; its question then stays open."""
        return NotAssessed(
            measure=f"{self.name} ({which})" if which else self.name, why=why, remedy=remedy, theme=self.theme
        )


def _score(assessment: Assessment | None) -> float:
    """Return the score that a rank comes from, where the measure tells it."""
    return math.nan if assessment is None else float(assessment.assumptions.parameters.get("score", math.nan))


def registered() -> dict[str, Measure]:
    """Return all measures by name, in the order in which they are asked."""
    return {name: measure_named(name) for name in REGISTERED}


def measure_named(name: str) -> Measure:
    """Return one measure."""
    return _load(REGISTERED[name])


@cache
def _load(where: str) -> Measure:
    module, _, name = where.partition(":")
    found: Measure = getattr(import_module(module), name)()
    return found


def adversaries() -> dict[str, str]:
    """Return every adversary that is swept over, by name, in plain words."""
    return {name: words for one in registered().values() for name, words in one.adversaries.items()}


def largest_communities(
    measure: Measure, person: Person, options: AdvisorOptions
) -> tuple[list[str], list[NotAssessed]]:
    """Return the communities in which a measure of posts can look at a person, and why it cannot in others.

    Communities are those of the person as they are in the store: a change does not bring others in.
    """
    before = person.before
    found, missing = [], []
    for name in list(before.communities)[: options.most_communities]:
        index = before.crowd.words(name)
        if before.row(name) is None:
            why = f"your posts in {name} hold no words to compare"
            missing.append(measure.not_assessed(why, "give --keep-stopwords to count every word"))
        elif len(index) < SMALLEST_CROWD:
            missing.append(measure.not_assessed(_no_crowd(name, len(index)), ADD_PEOPLE.format("posts")))
        else:
            found.append(name)
    return found, missing


ADD_PEOPLE = "add other people's {0}: incrowd ingest FILE --crowd DIR --kind {0}"


def _no_crowd(community: str, people: int) -> str:
    others = "nobody else" if people == 1 else f"{people - 1} others" if people > 2 else "one other"
    return (
        f"of {community}, this crowd holds you and {others}: fewer than {SMALLEST_CROWD} people are no crowd"
    )


def shortened(evidence: Sequence[Evidence], most: int) -> tuple[Evidence, ...]:
    """Keep the strongest parts and put the rest into one, so that the sum stays."""
    ordered = sorted(evidence, key=lambda part: -abs(part.contribution))
    rest = ordered[most:]
    if not rest:
        return tuple(ordered)
    total = math.fsum(part.contribution for part in rest)
    return (*ordered[:most], Evidence(what=f"{len(rest):,} more", contribution=total))
