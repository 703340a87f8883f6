"""How findings become levels, and levels one verdict. The worst finding that decides counts, never an average.

What risk is and where its levels lie: :mod:`incrowd.measures.protocol`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from incrowd.advisor.answer import MainReason, Theme, Verdict
from incrowd.measures.protocol import Finding, Level, NotAssessed, Role, ThemeName, measure_named, shortened
from incrowd.result import Direction

MOST_REASONS = 3
MOST_PARTS = 8
"""Of evidence, in a reason."""
LEAST_SHARE = 0.01
"""Of what a reason rests on: smaller parts are not shown one by one."""
MOST_KEPT = 24
"""Of evidence, in a finding."""

RULE = (
    "Each question is answered by its plausible adversary: somebody who has read three of your posts, knows three of "
    "your items, or has read both communities. The worst such finding answers the question, and the worst answer is "
    "the verdict. Somebody who knows more is shown and decides nothing; what could not be measured is named and "
    "decides nothing, either."
)
FINDING = {ThemeName.LINKABLE, ThemeName.SINGLED_OUT}
"""The questions about being found."""
LEVELS = (
    "at risk: the adversary of a question would be right about you more often than not",
    "watch: more than 1 time in 10",
    "well hidden: at most 1 time in 10, against the adversaries who decide; not a guarantee. A guess at what you hide, "
    "or that a sensitive topic concerns you, is judged by how much of the doubt your data take away, at most a tenth, "
    "not by how likely it is: 63 % is well hidden where 60 % was known before, 11 % where 2 % are concerned anyway",
    "cannot tell: something needed is missing; the report says what",
)


def label(findings: Sequence[Finding], missing: Sequence[NotAssessed]) -> tuple[Theme, ...]:
    """Return the lines of the label, one for each question."""
    return tuple(
        theme(name, findings, missing=[one.why for one in missing if one.theme is name]) for name in ThemeName
    )


def theme(name: ThemeName, findings: Iterable[Finding], *, missing: Sequence[str] = ()) -> Theme:
    """Return one line of the label: the worst finding that decides. `missing`: why parts of it could not be told."""
    own = sorted((one for one in findings if one.theme == name), key=_worst_first)
    told = [one for one in own if one.decides and one.level is not Level.CANNOT_TELL]
    level = told[0].level if told else Level.CANNOT_TELL
    unmeasured = [one.assessment.reason for one in own if one.decides and not one.assessment.defined]
    # Before the sentence stands a word for programs.
    why = [*missing, *(reason.partition(": ")[2] or reason for reason in unmeasured if reason)]
    return Theme(name=name, level=level, sentence=_theme_sentence(told, why), findings=tuple(own))


def worst(levels: Iterable[Level]) -> Level:
    """Return the level that counts: at risk before watch before well hidden; cannot tell only if nothing else is."""
    known = [level for level in levels if level is not Level.CANNOT_TELL]
    return max(known, key=lambda level: level.severity, default=Level.CANNOT_TELL)


def verdict(themes: Sequence[Theme]) -> Verdict:
    """Return the answer in one sentence: the worst question decides, and what could not be asked is named.

    Nobody is called well hidden without an answer to whether they can be found.
    """
    level = worst(theme.level for theme in themes)
    told = {theme.name for theme in themes if theme.level is not Level.CANNOT_TELL}
    if level is Level.WELL_HIDDEN and told.isdisjoint(FINDING):
        level = Level.CANNOT_TELL
    return Verdict(level=level, sentence=_verdict_sentence(level, themes))


def _worst_first(one: Finding) -> tuple[int, int, float, bool, float]:
    """Sort what decides first, then by level, by risk, and by the number itself: of two beliefs the surer one.

    Of what there is nothing to say comes after all else that is as little a risk.
    """
    about = one.assessment
    value = about.value if about.direction is Direction.LOWER_IS_SAFER else -about.value
    silent = measure_named(about.measure).is_silent(about)
    return list(Role).index(one.role), -one.level.severity, -_known(one.risk), silent, -_known(value)


def _known(number: float) -> float:
    return 0.0 if math.isnan(number) else number


def _theme_sentence(told: Sequence[Finding], missing: Sequence[str]) -> str:
    if not told:
        return f"Cannot tell: {missing[0] if missing else 'this crowd holds nothing to measure it by'}."
    decides = told[0].assessment
    if all(measure_named(one.assessment.measure).is_silent(one.assessment) for one in told):
        silent = measure_named(decides.measure).say_silent([one.assessment for one in told])
        return silent or decides.sentence()
    return decides.sentence() + measure_named(decides.measure).remark(told[0])


def _verdict_sentence(level: Level, themes: Sequence[Theme]) -> str:
    named = [theme.name.claim for theme in themes if theme.level is level]
    asked = [theme.name.matter for theme in themes if theme.level is not Level.CANNOT_TELL]
    unknown = [theme.name.matter for theme in themes if theme.level is Level.CANNOT_TELL]
    if not asked:
        return f"Cannot tell: too little is here to answer any of the questions. Not measured: {_join(unknown, 'and')}."
    if level is Level.CANNOT_TELL:
        return (
            f"Cannot tell: too little is here about {_join(unknown, 'and')}. What could be measured looks well hidden: "
            f"{_join(asked, 'and')}."
        )
    rest = f" Not measured: {_join(unknown, 'and')}." if unknown else ""
    if level is Level.AT_RISK:
        return f"You are at risk: {_join(named, 'and')}.{rest}"
    if level is Level.WATCH:
        return f"Watch out: there is some chance {_join([f'that {one}' for one in named], 'and')}.{rest}"
    return (
        f"You are well hidden, as far as it was measured: {_join(asked, 'and')}. Others may know more.{rest}"
    )


def _join(claims: Sequence[str], last: str) -> str:
    if len(claims) < 3:
        return f" {last} ".join(claims)
    return f"{', '.join(claims[:-1])}, {last} {claims[-1]}"


def strongest(findings: Sequence[Finding]) -> tuple[MainReason, ...]:
    """Return the worst findings that decide, the worst of each question first; none for what is well hidden."""
    bad = [one for one in findings if one.decides and one.level in (Level.AT_RISK, Level.WATCH)]
    bad.sort(key=lambda one: (-one.level.severity, -one.risk, not one.assessment.evidence))
    first_of: dict[ThemeName, Finding] = {}
    for one in bad:
        first_of.setdefault(one.theme, one)
    firsts = list(first_of.values())
    rest = [one for one in bad if one not in firsts]
    return tuple(_reason(one) for one in [*firsts, *rest][:MOST_REASONS])


def _reason(one: Finding) -> MainReason:
    assessed = one.assessment
    return MainReason(
        theme=one.theme,
        level=one.level,
        measure=assessed.measure,
        subject=assessed.subject,
        sentence=assessed.sentence(),
        evidence=shortened(assessed.evidence, MOST_PARTS, LEAST_SHARE),
        explained=math.fsum(part.contribution for part in assessed.evidence) if assessed.evidence else None,
    )
