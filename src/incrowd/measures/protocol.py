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

What risk is read as, and where its levels lie: :mod:`incrowd.measures.findings`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from incrowd.errors import InputError
from incrowd.measures import REGISTERED
from incrowd.measures.findings import (
    AT_RISK_ABOVE,
    LINE,
    SEEN,
    SMALLEST_CROWD,
    WATCH_ABOVE,
    Effect,
    Finding,
    GivesAway,
    Goal,
    Level,
    Proposal,
    Role,
    Targets,
    ThemeName,
    WordShare,
    key_of,
    level_of,
    require_numbers,
    same,
    shortened,
)
from incrowd.measures.person import Changes, NewPost, Person
from incrowd.measures.prepared import PreparedCrowd
from incrowd.result import Assessment
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    import polars as pl

    from incrowd.cards.make import CardOptions
    from incrowd.cards.noise import Noise
    from incrowd.crowd.schema import Kind
    from incrowd.measures.crowd_rates import CrowdOptions, CrowdRates
    from incrowd.measures.following import Follower, GrowingCrowd, Line, LineReading

__all__ = [
    "ADD_PEOPLE",
    "AT_RISK_ABOVE",
    "CARD_OF_THERE",
    "LINE",
    "OTHER_CARD",
    "SEEN",
    "SMALLEST_CROWD",
    "WATCH_ABOVE",
    "AdvisorOptions",
    "Assessment",
    "CardSection",
    "Changes",
    "Effect",
    "Finding",
    "Findings",
    "GivesAway",
    "Goal",
    "Level",
    "Measure",
    "NewPost",
    "NotAssessed",
    "Person",
    "PreparedCrowd",
    "Proposal",
    "Ready",
    "Role",
    "Targets",
    "ThemeName",
    "WordShare",
    "adversaries",
    "given_or",
    "key_of",
    "largest_communities",
    "largest_risk",
    "level_of",
    "measure_named",
    "moved_by_posts",
    "registered",
    "same",
    "shortened",
]

Progress = Callable[[float, float | None, str], None]
T = TypeVar("T")


def given_or(options: T | None, kind: type[T]) -> T:
    """Return the options that were given, or else the usual ones; anything else is refused."""
    if options is not None and not isinstance(options, kind):
        raise InputError(f"options: expected {kind.__name__}(...) or None, got {type(options).__name__}")
    return kind() if options is None else options


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
    exact: bool = False
    """True: everybody is compared with everybody, however large the crowd; else samples stand for all in large ones."""
    advice: bool = True
    """False: measure only, look for no advice."""
    quote_posts: bool = False
    """Put the text of the person's own posts into the report where advice names them."""
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0
    memory: int = 2**30

    def __post_init__(self) -> None:
        for name in ("adversaries", "topics"):
            names = getattr(self, name)
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise InputError(f"{name}: expected names in a list, got {type(names).__name__}")
            object.__setattr__(self, name, tuple(names))
        if not isinstance(self.targets, Targets):
            raise InputError(f"targets: expected Targets(...), got {type(self.targets).__name__}")
        require_numbers("options", self, "radius", "min_posts", "most_communities", "seed", "memory")
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
class DraftNote:
    """Something to say about a draft before all numbers."""

    text: str
    red: bool = False
    """It names the person: posting it would make every other number meaningless."""


@dataclass(frozen=True, kw_only=True)
class CardSection:
    """What a measure adds to a published card: small tables by name, and what the head says about them."""

    tables: Mapping[str, pl.DataFrame]
    facts: Mapping[str, Any] = field(default_factory=dict)


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

    def assess_again(self, person: Person, finding: Finding) -> Assessment | None:
        """Measure one of its findings for a changed person, without evidence; None if it can no longer be made."""
        quick = self.assess(person, explain=False).assessments
        slow = (
            self.assess_thorough(person, explain=False).assessments
            if finding.key not in map(key_of, quick)
            else ()
        )
        return next((one for one in (*quick, *slow) if key_of(one) == finding.key), None)

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Return what could bring one of its findings to its target, or as near as was found."""
        return ()

    def gives_away(self, person: Person, finding: Finding) -> Sequence[GivesAway]:
        """Return which kinds of habits a finding rests on, the strongest first: what to do differently."""
        return ()

    def recheck(self, person: Person, finding: Finding) -> float:
        """Ask an attacker that neither the measure nor a search for advice contains: their risk after a change.

        Advice promises no better level than this; NaN: there is no such attacker.
        """
        return math.nan

    def assumptions(self) -> Mapping[str, Any]:
        """Return what else decided its numbers, for the record of a draft."""
        return {}

    def draft_notes(self, person: Person, community: str, text: str) -> Sequence[DraftNote]:
        """Return what has to be said first about a text that the person (as they are now) may post."""
        return ()

    def rewordings(self, person: Person, community: str, text: str) -> Iterable[tuple[str, str]]:
        """Return other ways to write a text: what is different, and the text; each is measured before it is shown."""
        return ()

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

    def nothing_known(self, person: Person) -> NotAssessed | None:
        """Say why there is nothing to measure about a person at all; None if there is something."""
        held = {"posts": person.communities, "items": person.items, "attributes": person.attributes}
        return None if held[self.reads] else self.not_assessed(*person.crowd.nothing_of_yours(self.reads))

    def risk(self, assessment: Assessment) -> float:
        """Return how often the adversary would be right, 0 to 1, comparable between measures; NaN if it cannot be told.

        A crowd of n people is 1/n, a guess among those who fit; a probability is itself.
        """
        crowd = self.crowd_behind(assessment)
        if not assessment.defined or (crowd is not None and crowd < SMALLEST_CROWD):
            return math.nan
        return min(1.0, 1 / assessment.value if assessment.unit == "people" else assessment.value)

    def success(self, assessment: Assessment) -> float:
        """Return how often the adversary would be right as the assessment's sentence says it; NaN if undefined.

        The level follows from the risk, which may also heed what was known before.
        """
        if not assessment.defined:
            return math.nan
        return assessment.value if assessment.unit.startswith("probability") else self.risk(assessment)

    def role(self, assessment: Assessment) -> Role:
        """Say whether an assessment decides, is about a stronger adversary, or is a paper's quantity."""
        return Role.DECIDES

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
        risk, role = self.risk(assessment), self.role(assessment)
        return Finding(assessment=assessment, theme=self.theme, level=level_of(risk), risk=risk, role=role)

    def is_silent(self, assessment: Assessment) -> bool:
        """Say whether the person says nothing about it at all, so that the number is everybody's who is silent."""
        return False

    def say_silent(self, silent: Sequence[Assessment]) -> str:
        """Say that the person says nothing about any of these; empty: each says so for itself."""
        return ""

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
            risk_before=math.nan if before is None else before.risk,
            risk_after=math.nan if after is None else after.risk,
            success_before=math.nan if old is None else self.success(old),
            success_after=math.nan if new is None else self.success(new),
            score_before=_score(old),
            score_after=_score(new),
            says="" if after is None else about.sentence(),
            exact=self.is_exact_after_changes(about),
            note=self.note(before, after) if before is not None and after is not None else "",
            decides=there.decides,
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

    def everybody(self, crowd: PreparedCrowd, options: CrowdOptions) -> CrowdRates | None:
        """Return how the risk is spread over a whole crowd; None: this measure does not tell."""
        return None

    def card(
        self, crowd: PreparedCrowd, community: str | None, options: CardOptions, noise: Noise
    ) -> CardSection | None:
        """Return what it adds to a published card; None: nothing.

        Measures of posts are asked about each community, or about everybody as one (None); those of items once, about
        everybody. Counts of people leave through `noise` only, which also keeps account of what all parts of a private
        card spend.
        """
        return None

    def told_attributes(self, person: Person, values: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        """Return what it reads off a person's posts about some attributes, as one of the values each can have."""
        return {}

    # Lines to watch

    line_keys: ClassVar[tuple[str, ...]] = ()
    """What a line of this measure says in a policy, the number last; nothing: it cannot be watched."""
    optional_line_keys: ClassVar[tuple[str, ...]] = ()

    def follow(self, crowd: GrowingCrowd, lines: Sequence[Line], options: AdvisorOptions) -> Follower:
        """Keep up to date where a person stands on some lines as posts arrive."""
        raise NotImplementedError(f"{self.name} has no lines")

    def is_crossed(self, line: Line, reading: LineReading) -> bool:
        """Say whether a number is on the wrong side of a line; what cannot be told crosses nothing."""
        return reading.defined and not reading.silent and reading.value < line.at

    def say_reading(self, line: Line, reading: LineReading) -> str:
        """Say where a person stands, as the first part of a sentence; the reading is defined."""
        where = line.community or "this crowd"
        return f"For {self.about} in {where} you are at {reading.value:,.0f} of {reading.of:,}"

    # Where it has nothing to say

    def not_assessed(self, why: str, remedy: str, *, which: str = "") -> NotAssessed:
        """Say that the measure, or one of its adversaries, cannot tell; its question then stays open."""
        return NotAssessed(
            measure=f"{self.name} ({which})" if which else self.name, why=why, remedy=remedy, theme=self.theme
        )

    def too_few_people(self) -> NotAssessed:
        """Say that hardly anybody in the crowd has what it reads."""
        why = f"fewer than {SMALLEST_CROWD} people in this crowd have {self.reads}"
        return self.not_assessed(why, ADD_PEOPLE.format(self.reads))


def _score(assessment: Assessment | None) -> float:
    """Return the score that a rank comes from, where the measure tells it."""
    return math.nan if assessment is None else float(assessment.assumptions.parameters.get("score", math.nan))


def registered() -> dict[str, Measure]:
    """Return all measures by name, in the order in which they are asked."""
    return {name: measure_named(name) for name in REGISTERED}


def moved_by_posts() -> list[Measure]:
    """Return the measures that a post can move; those of topics come last, because there are many topics."""
    moved = [one for one in registered().values() if one.reads == "posts"]
    return sorted(moved, key=lambda one: one.theme is ThemeName.EXPOSED)


def measure_named(name: str) -> Measure:
    """Return one measure."""
    return _load(REGISTERED[name])


@cache
def _load(where: str | type[Measure]) -> Measure:
    if not isinstance(where, str):
        return where()
    module, _, name = where.partition(":")
    found: Measure = getattr(import_module(module), name)()
    return found


def largest_risk(assessments: Iterable[Assessment]) -> float:
    """Return the largest risk that decides, as the measures put it; where none decides, the largest of all.

    NaN if nothing could be told.
    """
    findings = [measure_named(one.measure).finding(one) for one in assessments]
    deciding = [one for one in findings if one.decides] or findings
    return max((one.risk for one in deciding if not math.isnan(one.risk)), default=math.nan)


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
    names = list(before.communities)[: options.most_communities]
    before.crowd.count_together(names)
    for name in names:
        index = before.crowd.words(name)
        if before.row(name) is None:
            why = f"your posts in {name} hold no words to compare"
            missing.append(measure.not_assessed(why, "give --keep-stopwords to count every word"))
        elif len(index) < SMALLEST_CROWD:
            missing.append(measure.not_assessed(_no_crowd(name, len(index)), ADD_PEOPLE.format("posts")))
        else:
            found.append(name)
    return found, missing


CARD_OF_THERE = "take a card of people who write where you do (--card)"
OTHER_CARD = "take a card of people who write in your language (--card)"
ADD_PEOPLE = "add other people's {0}: incrowd ingest FILE --crowd DIR --kind {0}"


def _no_crowd(community: str, people: int) -> str:
    others = "nobody else" if people == 1 else f"{people - 1} others" if people > 2 else "one other"
    return (
        f"of {community}, this crowd holds you and {others}: fewer than {SMALLEST_CROWD} people are no crowd"
    )
