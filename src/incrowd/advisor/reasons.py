"""The three strongest reasons, each with evidence that adds up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from incrowd.advisor.answer import Judged, Level, Reason
from incrowd.result import Evidence

MOST_REASONS = 3
MOST_PARTS = 8
MOST_KEPT = 24


def strongest(judged: Sequence[Judged]) -> tuple[Reason, ...]:
    """Return the worst findings, the worst of each question first; none for what is well hidden."""
    bad = [one for one in judged if one.level in (Level.AT_RISK, Level.WATCH)]
    bad.sort(key=lambda one: (-one.level.severity, -one.risk, not one.assessment.evidence))
    firsts = list({one.theme: one for one in reversed(bad)}.values())[::-1]
    rest = [one for one in bad if one not in firsts]
    return tuple(_reason(one) for one in [*firsts, *rest][:MOST_REASONS])


def _reason(one: Judged) -> Reason:
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


def shortened(evidence: Sequence[Evidence], most: int = MOST_KEPT) -> tuple[Evidence, ...]:
    """Keep the strongest parts and put the rest into one, so that the sum stays."""
    ordered = sorted(evidence, key=lambda part: -abs(part.contribution))
    rest = ordered[most:]
    if not rest:
        return tuple(ordered)
    total = math.fsum(part.contribution for part in rest)
    return (*ordered[:most], Evidence(what=f"{len(rest):,} more", contribution=total))
