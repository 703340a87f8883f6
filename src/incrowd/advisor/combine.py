"""How findings become levels, and levels one verdict. The rule: the worst case counts, never an average.

Each assessment is put on one scale of *risk*, from 0 to 1, read as "how often would this adversary be right about
you, or as bad as that":

==========================  =============================================================================
finding                     risk
==========================  =============================================================================
a crowd of n people         1/n: a guess among those who fit
a probability of being      the probability itself
linked or picked out
a guess at an attribute     by the gain, (belief - prior)/(1 - prior): the share of the doubt that is gone.
                            Gain 0.2 is risk 1/10, gain 0.5 is risk 1/5, certainty is risk 1. What people
                            believe of everybody is not the person's doing.
a rank for a topic          by the share of people who are more exposed: 10 % is risk 1/10, 1 % is risk 1/5,
                            none is risk 1. Only what looks personal and goes beyond single words counts; a
                            passing interest is never worse than "watch".
==========================  =============================================================================

Above 1/5 (fewer than five people would have to be considered) is *at risk*, above 1/10 (fewer than ten) *watch*,
below that *well hidden*. Five and ten are the smallest groups that statistical offices customarily publish.
Undefined is *cannot tell*, which ranks before *well hidden*: what could not be measured is not safe.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from incrowd.advisor.answer import Judged, Level, Theme, ThemeName, Verdict
from incrowd.advisor.spec import AT_RISK_ABOVE, SMALLEST_CROWD, WATCH_ABOVE, Targets
from incrowd.measures.exposure.assess import LASTING, LITTLE, NOTHING, PASSING, UNDATED_INTEREST
from incrowd.result import Assessment, Direction

GAIN_SCALE = ((0.0, 0.2, 0.5, 1.0), (0.0, WATCH_ABOVE, AT_RISK_ABOVE, 1.0))
SHARE_SCALE = ((0.0, 0.01, 0.1, 1.0), (1.0, AT_RISK_ABOVE, WATCH_ABOVE, 0.0))
LINE = 1e-9

THEMES = {
    "linkability": ThemeName.LINKABLE,
    "anonymity": ThemeName.SINGLED_OUT,
    "microdata": ThemeName.SINGLED_OUT,
    "belief": ThemeName.INFERABLE,
    "exposure": ThemeName.EXPOSED,
}
RULE = (
    "Worst case: a question is answered by its worst finding under the strongest adversary considered, and the "
    "verdict is the worst of the four questions. What could not be assessed counts as 'cannot tell', which "
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


def judge(assessment: Assessment) -> Judged:
    """Put one assessment on the scale."""
    value = risk(assessment)
    return Judged(assessment=assessment, theme=THEMES[assessment.measure], level=level_of(value), risk=value)


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


def risk(assessment: Assessment) -> float:
    """Return how much the adversary gains, 0 to 1, comparable between measures; NaN if it cannot be told."""
    if not assessment.defined or not _large_enough(assessment):
        return math.nan
    if assessment.measure == "belief":
        return _scaled(max(gain(assessment), 0.0), GAIN_SCALE)
    if assessment.measure == "exposure":
        return _exposure(assessment)
    return min(1.0, 1 / assessment.value if assessment.unit == "people" else assessment.value)


def gain(assessment: Assessment) -> float:
    """Return the share of the doubt that is gone: (belief - prior) / (1 - prior)."""
    prior = assessment.baseline
    if prior >= 1 or math.isnan(prior):
        return 0.0
    return (assessment.value - prior) / (1 - prior)


def looks_personal(assessment: Assessment) -> bool:
    """Say whether a rank for a topic comes from what looks like a personal interest."""
    looks = assessment.assumptions.parameters.get("looks_like", "")
    return looks in (LASTING, PASSING, UNDATED_INTEREST)


def _exposure(assessment: Assessment) -> float:
    if assessment.assumptions.parameters.get("looks_like") == NOTHING:
        return 0.0
    share = (assessment.value - 1) / (assessment.crowd_size or 1)
    value = _scaled(share, SHARE_SCALE)
    if not looks_personal(assessment):
        return min(value, WATCH_ABOVE)
    passing = assessment.assumptions.parameters["looks_like"] == PASSING
    return min(value, AT_RISK_ABOVE) if passing else value


def _large_enough(assessment: Assessment) -> bool:
    """Say whether there is a crowd at all; for links it is the candidates, not those who are in both."""
    crowd = assessment.baseline if assessment.measure == "linkability" else assessment.crowd_size
    if assessment.unit == "probability" and assessment.measure == "linkability":
        crowd = 1 / assessment.baseline
    return crowd is None or crowd >= SMALLEST_CROWD


def _scaled(value: float, scale: tuple[Sequence[float], Sequence[float]]) -> float:
    return float(np.interp(value, *scale))


def shortfall(assessment: Assessment, targets: Targets) -> float:
    """Return how far an assessment is from the person's target; at most 0: reached. Undefined is never reached."""
    if not assessment.defined:
        return math.inf
    if assessment.measure == "belief":
        return gain(assessment) - targets.gain - LINE
    if assessment.measure == "exposure":
        share = (assessment.value - 1) / (assessment.crowd_size or 1)
        return targets.exposed - share - LINE if looks_personal(assessment) else -1.0
    if assessment.unit == "people":
        return targets.people - assessment.value - LINE
    return assessment.value - 1 / targets.people - LINE


def theme(name: ThemeName, judged: Iterable[Judged], *, missing: Sequence[str] = ()) -> Theme:
    """Return one line of the label: its worst finding decides. `missing`: why parts of it could not be told."""
    own = sorted((one for one in judged if one.theme == name), key=_worst_first)
    level = worst([one.level for one in own] or [Level.CANNOT_TELL])
    if level is Level.WELL_HIDDEN and missing:
        level = Level.CANNOT_TELL
    return Theme(name=name, level=level, sentence=_theme_sentence(own, level, missing), judged=tuple(own))


def worst(levels: Iterable[Level]) -> Level:
    """Return the level that counts: at risk before watch before cannot tell before well hidden."""
    return max(levels, key=lambda level: level.severity)


def verdict(themes: Sequence[Theme]) -> Verdict:
    """Return the answer in one sentence: the worst theme decides."""
    level = worst(theme.level for theme in themes)
    return Verdict(level=level, sentence=_verdict_sentence(level, themes))


def _worst_first(one: Judged) -> tuple[int, float, float]:
    """Sort by level, then by risk, then by the number itself: of two harmless beliefs the surer one."""
    about = one.assessment
    value = about.value if about.direction is Direction.LOWER_IS_SAFER else -about.value
    return -one.level.severity, -_known(one.risk), -_known(value)


def _known(number: float) -> float:
    return 0.0 if math.isnan(number) else number


def _theme_sentence(judged: Sequence[Judged], level: Level, missing: Sequence[str]) -> str:
    if not judged:
        return f"Cannot tell: {missing[0] if missing else 'this crowd holds nothing to measure it by'}."
    said = judged[0].assessment.sentence() + _why_not_exposed(judged[0])
    if level is Level.CANNOT_TELL and missing:
        return f"What could be assessed looks well hidden, but not all could be. {said}"
    return said


def _why_not_exposed(one: Judged) -> str:
    """Say why a place among the first is well hidden; to be told both without a reason would be no answer."""
    looks = one.assessment.assumptions.parameters.get("looks_like", NOTHING)
    if one.theme is not ThemeName.EXPOSED or one.level is not Level.WELL_HIDDEN or looks in (NOTHING, LITTLE):
        return ""
    return " It does not count as exposed because it does not look like a personal interest so far."


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
        return "Cannot tell: too little is here to answer any of the four questions."
    return f"Cannot tell: what could be measured looks well hidden, but not all could be.{rest}"


def _join(claims: Sequence[str], last: str) -> str:
    return claims[0] if len(claims) == 1 else f"{', '.join(claims[:-1])}, {last} {claims[-1]}"
