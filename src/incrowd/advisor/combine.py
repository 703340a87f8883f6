"""How findings become levels, and levels one verdict. The rule: the worst case counts, never an average.

What risk is and where its levels lie: :mod:`incrowd.measures.protocol`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from incrowd.advisor.answer import Reason, Theme, Verdict
from incrowd.measures.protocol import Finding, Level, NotAssessed, ThemeName, measure_named, shortened
from incrowd.result import Direction

MOST_REASONS = 3
MOST_PARTS = 8
"""Of evidence, in a reason."""
MOST_KEPT = 24
"""Of evidence, in a finding."""

RULE = (
    "Worst case: a question is answered by its worst finding under the strongest adversary considered, and the "
    "verdict is the worst of all questions. What could not be assessed counts as 'cannot tell', which "
    "outranks 'well hidden'."
)
LEVELS = (
    "at risk: an adversary considered here would be right about you more than 1 time in 5, or is as well off as that",
    "watch: more than 1 time in 10",
    "well hidden: at most 1 time in 10, against the adversaries considered; not a guarantee. A guess at what you hide "
    "is judged by how much of the doubt your data take away, at most a fifth, not by how likely it is: 67 % is well "
    "hidden where 60 % was known before",
    "cannot tell: something needed is missing; the report says what",
)


def label(findings: Sequence[Finding], missing: Sequence[NotAssessed]) -> tuple[Theme, ...]:
    """Return the lines of the label, one a question; a line with something missing is never "well hidden"."""
    return tuple(
        theme(name, findings, missing=[one.why for one in missing if one.theme is name]) for name in ThemeName
    )


def theme(name: ThemeName, findings: Iterable[Finding], *, missing: Sequence[str] = ()) -> Theme:
    """Return one line of the label: its worst finding decides. `missing`: why parts of it could not be told."""
    own = sorted((one for one in findings if one.theme == name), key=_worst_first)
    level = worst([one.level for one in own] or [Level.CANNOT_TELL])
    if level is Level.WELL_HIDDEN and missing:
        level = Level.CANNOT_TELL
    return Theme(name=name, level=level, sentence=_theme_sentence(own, level, missing), findings=tuple(own))


def worst(levels: Iterable[Level]) -> Level:
    """Return the level that counts: at risk before watch before cannot tell before well hidden."""
    return max(levels, key=lambda level: level.severity)


def verdict(themes: Sequence[Theme]) -> Verdict:
    """Return the answer in one sentence: the worst theme decides."""
    level = worst(theme.level for theme in themes)
    return Verdict(level=level, sentence=_verdict_sentence(level, themes))


def _worst_first(one: Finding) -> tuple[int, float, float]:
    """Sort by level, then by risk, then by the number itself: of two harmless beliefs the surer one."""
    about = one.assessment
    value = about.value if about.direction is Direction.LOWER_IS_SAFER else -about.value
    return -one.level.severity, -_known(one.risk), -_known(value)


def _known(number: float) -> float:
    return 0.0 if math.isnan(number) else number


def _theme_sentence(findings: Sequence[Finding], level: Level, missing: Sequence[str]) -> str:
    if not findings:
        return f"Cannot tell: {missing[0] if missing else 'this crowd holds nothing to measure it by'}."
    worst_one = findings[0]
    said = worst_one.assessment.sentence() + measure_named(worst_one.assessment.measure).remark(worst_one)
    if level is Level.CANNOT_TELL and missing:
        return f"What could be assessed looks well hidden, but not all could be. {said}"
    return said


def _verdict_sentence(level: Level, themes: Sequence[Theme]) -> str:
    named = [theme.name.claim for theme in themes if theme.level is level]
    unknown = [theme.name.claim for theme in themes if theme.level is Level.CANNOT_TELL]
    rest = f" Not enough is known to tell whether {_join(unknown, 'or whether')}." if unknown else ""
    if level is Level.AT_RISK:
        return f"You are at risk: {_join(named, 'and')}.{rest}"
    if level is Level.WATCH:
        return f"Watch out: you are close to the point where {_join(named, 'and')}.{rest}"
    if level is Level.WELL_HIDDEN:
        return "You are well hidden from every adversary this report considers; others may know more."
    if len(unknown) == len(themes):
        return "Cannot tell: too little is here to answer any of the questions."
    return f"Cannot tell: what could be measured looks well hidden, but not all could be.{rest}"


def _join(claims: Sequence[str], last: str) -> str:
    return claims[0] if len(claims) == 1 else f"{', '.join(claims[:-1])}, {last} {claims[-1]}"


def strongest(findings: Sequence[Finding]) -> tuple[Reason, ...]:
    """Return the worst findings, the worst of each question first; none for what is well hidden."""
    bad = [one for one in findings if one.level in (Level.AT_RISK, Level.WATCH)]
    bad.sort(key=lambda one: (-one.level.severity, -one.risk, not one.assessment.evidence))
    firsts = list({one.theme: one for one in reversed(bad)}.values())[::-1]
    rest = [one for one in bad if one not in firsts]
    return tuple(_reason(one) for one in [*firsts, *rest][:MOST_REASONS])


def _reason(one: Finding) -> Reason:
    assessed = one.assessment
    return Reason(
        theme=one.theme,
        level=one.level,
        measure=assessed.measure,
        subject=assessed.subject,
        sentence=assessed.sentence(),
        evidence=shortened(assessed.evidence, MOST_PARTS),
        explained=math.fsum(part.contribution for part in assessed.evidence) if assessed.evidence else None,
    )
