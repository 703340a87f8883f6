"""The advisor's answer about one person: small frozen values that the terminal, the pages and the JSON read.

Nobody but the person asked about is in it: set sizes, ranks, the person's own words, items and attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from incrowd.advisor.since import Since
from incrowd.drawing import CrowdPicture, crowd_picture
from incrowd.measures.protocol import (
    Changes,
    Effect,
    Finding,
    GivesAway,
    Level,
    NotAssessed,
    Role,
    ThemeName,
    level_of,
    measure_named,
)
from incrowd.result import (
    Advice,
    Assessment,
    Evidence,
    Result,
    Threat,
    fields_to_plain,
    say_amount,
    say_count,
    to_plain,
)

Key = tuple[str, str, str, str]
"""What makes a finding the same question before and after a change."""
MOST_NAMED = 3
"""So much of what gives somebody away is named in short,"""
LEAST_NAMED = 1 / 10
"""as far as it tells at least this share of what the strongest part tells."""
MOST_HELP = 3
"""What would help is said of so many matters in short; the report lists them all."""


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
        """All that was measured about it: what decides first, and of that the worst first."""
        return tuple(one.assessment for one in self.findings)

    def of(self, role: str) -> tuple[Finding, ...]:
        """Return the findings of one role: those that decide, those about somebody stronger, the papers'."""
        return tuple(one for one in self.findings if one.role == role)

    @property
    def risk(self) -> float:
        """The largest risk that decides, 0 to 1; NaN if nothing could be told."""
        known = [one.risk for one in self.of(Role.DECIDES) if not math.isnan(one.risk)]
        return max(known, default=math.nan)


@dataclass(frozen=True, kw_only=True)
class MainReason:
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
class Action(Advice):
    """Advice that was carried out on the person: what all measures say after doing it."""

    before: float = field(init=False)
    after: float = field(init=False)
    changes: Changes
    effect: Effect
    """On the finding it is aimed at."""
    also: tuple[Effect, ...] = ()
    """On every other finding that is quickly measured and whose value changes, for better or worse."""
    from_now_on: bool = False
    """It is about what the person writes next, under a new name; nothing is taken back."""
    beyond: bool = False
    """It takes more than the person would give up; said because less does not help."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", self.effect.before)
        object.__setattr__(self, "after", self.effect.after)

    @property
    def theme(self) -> ThemeName:
        """The question it helps with."""
        return self.effect.theme

    @property
    def aim(self) -> Key:
        """The finding it is aimed at."""
        return self.effect.key

    @property
    def promised(self) -> Level:
        """The level that holds: by the measure and by the other attacker."""
        return not_better(self.effect.level_after, self.effect.recheck, self.effect.level_before)

    @property
    def promised_risk(self) -> float:
        """How often somebody would still be right: the larger of what the measure and the other attacker say."""
        return max(
            (risk for risk in (self.effect.risk_after, self.effect.recheck) if not math.isnan(risk)),
            default=math.nan,
        )

    @property
    def outcome(self) -> str:
        """What it does to the finding it is aimed at, in words."""
        seen = self.effect
        note = f" ({seen.note})" if seen.note else ""
        return f"{seen.subject}: {seen.said_before} → {seen.said_after}; {seen.level_before} → {self.promised}{note}"

    @property
    def harms(self) -> tuple[Effect, ...]:
        """What it makes worse by a level."""
        return worse_levels(self.also)

    @property
    def warning(self) -> str:
        """What it makes worse, as a sentence; empty if nothing."""
        return say_harms("It", self.harms)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        told = {"promised": str(self.promised), "promised_risk": to_plain(self.promised_risk)}
        told["recheck"] = to_plain(self.effect.recheck)
        return fields_to_plain(self) | told | {"outcome": self.outcome}


def worse_levels(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return what becomes worse by a level, of that which decides."""
    return tuple(
        one for one in effects if one.decides and one.level_after.severity > one.level_before.severity
    )


def say_harms(what: str, harms: Sequence[Effect]) -> str:
    """Say what becomes worse; empty if nothing."""
    if not harms:
        return ""
    return f"{what} also makes something worse: {'; '.join(one.sentence() for one in harms)}."


def not_better(level: Level, recheck: float, before: Level) -> Level:
    """Return a level after a change, or what the other attacker makes of it if that is worse, up to what it was before.

    NaN: nobody else was asked.
    """
    if math.isnan(recheck) or level.severity >= before.severity:
        return level
    other = min(level_of(recheck), before, key=lambda one: one.severity)
    return max(level, other, key=lambda one: one.severity)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Changes that help together, the cheapest first; all effects measured at once."""

    changes: Changes
    steps: tuple[str, ...]
    loss: str
    effects: tuple[Effect, ...]
    reached: bool
    """True if every finding that missed its target now meets it."""
    missed: tuple[str, ...] = ()
    """What still misses its target, in words."""
    verdict: Verdict
    """The verdict after the plan: no better than another attacker, whom the search did not ask, allows."""

    @property
    def goal(self) -> str:
        """How far it goes, as the end of "a plan that ...": what could not be measured is not called reached."""
        if not self.reached:
            return "helps, but does not reach every target"
        if self.verdict.level is Level.CANNOT_TELL:
            return "brings all that could be measured to your targets"
        return "reaches all your targets"

    @property
    def harms(self) -> tuple[Effect, ...]:
        """What it makes worse by a level, to be said first."""
        return worse_levels(self.effects)

    @property
    def warning(self) -> str:
        """What it makes worse, as a sentence; empty if nothing."""
        return say_harms("This plan", self.harms)


@dataclass(frozen=True, kw_only=True)
class WriteDifferently:
    """What gives the person away in one finding, kind by kind, so that they can write differently from now on."""

    theme: ThemeName
    subject: str
    kinds: tuple[GivesAway, ...]
    helped: bool
    """False: nothing that was tried brings the finding to a better level, so this is all there is to do."""


@dataclass(frozen=True, kw_only=True)
class OwnPost:
    """One of the person's own posts that an action names; the text only where the person asked for it."""

    number: int
    community: str
    time: int | None
    text: str | None = None
    link: str | None = None
    """Where it is, if the person's own export said so."""
    in_plan: bool = False
    """True if the plan does without it."""


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
    made_up: bool = False
    """True: all others are made up from a card, because there was no crowd to compare with."""
    verdict: Verdict
    themes: tuple[Theme, ...]
    reasons: tuple[MainReason, ...] = ()
    actions: tuple[Action, ...] = ()
    plan: Plan | None = None
    write_differently: tuple[WriteDifferently, ...] = ()
    since: Since | None = None
    """What changed since an earlier report, where one was given."""
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
        """The largest risk that decides, 0 to 1; NaN if nothing could be told."""
        return max((one.risk for one in self.themes if not math.isnan(one.risk)), default=math.nan)

    @property
    def in_short(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The first screen: how findable, by whom, what gives away, what to do now; questions and lines of answers."""
        return (
            ("How findable are you?", (self.verdict.sentence,)),
            ("By whom?", self._by_whom()),
            ("What gives you away?", self._what_gives_away()),
            ("What can you do now?", self._what_to_do()),
        )

    @property
    def _worst(self) -> Finding | None:
        """The finding that the verdict rests on."""
        deciding = [one for one in self.findings if one.decides and not math.isnan(one.risk)]
        return max(deciding, key=lambda one: (one.level.severity, one.risk), default=None)

    @property
    def _open(self) -> list[Finding]:
        """The worst finding of each question that is not well hidden, the worst first."""
        worst = [next(iter(theme.of(Role.DECIDES)), None) for theme in self.themes]
        bad = [one for one in worst if one is not None and one.level in (Level.AT_RISK, Level.WATCH)]
        return sorted(bad, key=lambda one: (-one.level.severity, -one.risk))

    def _by_whom(self) -> tuple[str, ...]:
        if self._worst is None:
            return ("Nobody could be tried: too little is here.",)
        if not self._open:
            return (f"Of all who were tried, {_who(self._worst)} comes closest: {_right(self._worst)}.",)
        return tuple(_sentence(f"{_who(one)}: {_right(one)}") for one in self._open)

    def _what_gives_away(self) -> tuple[str, ...]:
        bad = [one for one in self._open if one.level is self.verdict.level]
        if not bad and self.verdict.level is Level.CANNOT_TELL:
            return ("Nobody knows: too little could be measured to say that nothing does.",)
        if not bad:
            return ("Nothing much, as far as could be measured.",)
        told = [(one.theme.matter, self._because(one)) for one in bad]
        if len(told) == 1:
            return (_sentence(told[0][1]),)
        return tuple(_sentence(f"{matter}: {because}") for matter, because in told)

    def _because(self, finding: Finding) -> str:
        """Say what a finding rests on most."""
        about = finding.assessment
        same = (
            one
            for one in self.write_differently
            if (one.theme, one.subject) == (finding.theme, about.subject)
        )
        kinds = next((one.kinds for one in same), ())
        if kinds:
            return "; ".join(f"{one.kind} ({', '.join(one.examples)})" for one in kinds[:MOST_NAMED])
        if not about.evidence:
            return about.sentence()
        named = [part for part in about.evidence if part.contribution > 0 and not part.is_rest]
        line = LEAST_NAMED * max((part.contribution for part in named), default=0.0)
        strongest = sorted(named, key=lambda part: part.strongest_first)[:MOST_NAMED]
        said = ", ".join(part.what for part in strongest if part.contribution >= line)
        return said or "the sum of it, no single thing"

    def _what_to_do(self) -> tuple[str, ...]:
        if self.verdict.level is Level.CANNOT_TELL:
            return self._what_would_help()
        if self.verdict.level is Level.WELL_HIDDEN:
            return ("Nothing that the measures ask for.",)
        if self.plan is not None and self.plan.steps:
            warning = (self.plan.warning,) if self.plan.warning else ()
            first = self._cheapest_way_out(self.plan)
            steps = [step for step in self.plan.steps if first is None or step != first.what]
            then = self.plan.verdict.sentence.partition(" Not measured:")[0]
            still = ", still" if self.plan.verdict.level is self.verdict.level else ""
            return (
                *warning,
                *_before_the_rest(first),
                *map(_sentence, steps),
                f"Afterwards{still}: {then}",
                *self._instead(self.plan),
                *self._for_what_comes_next(),
            )
        if self.actions:
            first, more = self.actions[0], len(self.actions) - 1
            rest = (f"{say_count(more, 'more way')} below.",) if more else ()
            return (f"{first.what} ({first.outcome}).", *rest)
        kinds = [kind for one in self.write_differently for kind in one.kinds][:3]
        if kinds:
            now = map(_from_now_on, kinds)
            return ("Nothing that was tried on what is there already helps enough.", *now)
        return (
            "Nothing that was tried helps enough. From now on, another account for this is what is left.",
        )

    def _what_would_help(self) -> tuple[str, ...]:
        """Say what it would take to be told more, where too little could be."""
        helps = [
            f"To be told about {about}: {remedy}."
            for about, _, remedy in self.not_told
            if not remedy.startswith("nothing to do")
        ]
        return tuple(helps[:MOST_HELP]) or ("Nothing helps: there is too little to go by.",)

    def _cheapest_way_out(self, plan: Plan) -> Action | None:
        """Return what alone ends being at risk, if that is one thing and costs much less than the whole plan."""
        risky = [one for one in self.findings if one.decides and one.level is Level.AT_RISK]
        if len(risky) != 1:
            return None
        helpful = (
            one for one in self.actions if one.aim == risky[0].key and not (one.from_now_on or one.harms)
        )
        cheapest = min(helpful, key=lambda one: _touched(one.changes), default=None)
        if cheapest is None or 2 * _touched(cheapest.changes) >= _touched(plan.changes):
            return None
        return cheapest

    def _instead(self, plan: Plan) -> tuple[str, ...]:
        """Say what helps against the worst finding where the plan does not: beside its steps it would cost too much."""
        better = {one.key for one in plan.effects if one.level_after.severity < one.level_before.severity}
        left = [one.key for one in self._open[:1] if one.key not in better]
        other = next(
            (
                one
                for one in self.actions
                if one.aim in left and not (one.from_now_on or one.beyond or one.harms)
            ),
            None,
        )
        if other is None:
            return ()
        return (f"Or, instead, against what weighs most: {_lower(other.what)} ({other.outcome}).",)

    def _for_what_comes_next(self) -> tuple[str, ...]:
        """Say what is left to do where the plan does not help: a new name, or what to do differently."""
        if self.plan is None or self.plan.verdict.level is Level.WELL_HIDDEN:
            return ()
        more = next((one for one in self.actions if one.beyond), None)
        costly = () if more is None else (f"More than you would give up, but it helps: {_lower(more.what)}.",)
        later = next((one for one in self.actions if one.from_now_on), None)
        if later is not None:
            return (*costly, f"For what you write next: {_lower(later.what)}.")
        if costly:
            return costly
        left = next((one for one in self.write_differently if one.kinds and not one.helped), None)
        return (_from_now_on(left.kinds[0]),) if left is not None else ()

    def sentence(self) -> str:
        """Say the verdict."""
        return self.verdict.sentence

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each assessment, with what it means."""
        return [
            {
                "theme": str(one.theme),
                "level": str(one.level),
                "role": str(one.role),
                "risk": one.risk,
                **one.assessment.rows()[0],
            }
            for one in self.findings
        ]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the largest risk of each question, 0 to 1."""
        return [(f"{theme.name}: {theme.level}", theme.risk) for theme in self.themes]

    @property
    def crowd_picture(self) -> CrowdPicture | None:
        """The worst finding that decides as a picture of a crowd; None if none is about finding the person.

        Who is right with probability p is as well off as somebody who guesses among 1/p people.
        """
        counted = [one for one in self.findings if one.decides and _finds_a_person(one)]
        if not counted:
            return None
        worst = max(counted, key=lambda one: one.risk)
        return crowd_picture(1 / worst.risk, _candidates(worst), worst.assessment.assumptions.adversary)

    def chart(self) -> str:
        """Draw the picture of the report page; where nobody looks for the person, the risk of each question."""
        crowd = self.crowd_picture
        return super().chart() if crowd is None else crowd.svg(f"{self._title}: {self.verdict.level}")

    @property
    def _title(self) -> str:
        return f"{self.person} {self.compared_with}"

    @property
    def compared_with(self) -> str:
        """Whom the person was compared with, in a few words."""
        people = f"among {say_count(self.people, 'person', 'people')}"
        return f"{people} made up from a card, for want of a crowd" if self.made_up else people

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        actions = to_plain(self.actions)
        return {
            "person": self.person,
            "people": self.people,
            "made_up": self.made_up,
            "verdict": to_plain(self.verdict),
            "risk": to_plain(self.risk),
            "label": {
                str(theme.name): {
                    "level": str(theme.level),
                    "question": theme.name.question,
                    "sentence": theme.sentence,
                    "risk": to_plain(theme.risk),
                }
                for theme in self.themes
            },
            "reasons": to_plain(self.reasons),
            "actions": actions,
            "advice": actions,  # the name of version 0.1
            "plan": to_plain(self.plan),
            "write_differently": to_plain(self.write_differently),
            "since": to_plain(self.since),
            "in_short": [
                {"question": question, "answer": " ".join(lines), "lines": list(lines)}
                for question, lines in self.in_short
            ],
            "assessments": [one.to_dict() for one in self.findings],
            "not_assessed": to_plain(self.not_assessed),
            "posts": to_plain(self.posts),
            "changes": self.changes.to_dict(),
            "fine_print": to_plain(self.fine_print),
        }


def _finds_a_person(one: Finding) -> bool:
    finds = not {Threat.SINGLING_OUT, Threat.LINKABILITY}.isdisjoint(one.assessment.threats)
    return finds and one.risk > 0 and _candidates(one) >= max(1 / one.risk, 2)


def _candidates(one: Finding) -> float:
    """Return among how many people somebody guesses; NaN if they do not."""
    about = one.assessment
    if about.unit == "people" or not about.baseline > 0:
        return about.baseline
    return 1 / about.baseline


def _who(one: Finding) -> str:
    return one.assessment.assumptions.adversary


def _often(one: Finding) -> str:
    """Say how often the adversary of a finding would be right."""
    return say_amount(measure_named(one.assessment.measure).success(one.assessment), "probability")


def _right(one: Finding) -> str:
    """Say how often somebody would be right, and about what."""
    return f"right {_often(one)} of the time ({one.assessment.subject})"


def _touched(changes: Changes) -> int:
    """Count the posts, words, items and attributes that change."""
    items = changes.drop_items | changes.add_items
    return sum(map(len, (changes.gone_posts, changes.edit_words, items, changes.withhold_attributes)))


def _before_the_rest(first: Action | None) -> tuple[str, ...]:
    if first is None:
        return ()
    return f"First: {_lower(first.what)} ({first.outcome}).", "What follows helps with everything else, too."


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _from_now_on(one: GivesAway) -> str:
    return f"From now on, as to {one.kind} ({', '.join(one.examples)}): {one.advice}."


def _lower(words: str) -> str:
    return f"{words[:1].lower()}{words[1:]}"
