"""The answer as plain types for JSON: an undefined number becomes None, a level its word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from incrowd.result import to_plain

if TYPE_CHECKING:
    from incrowd.advisor.answer import Judged, PersonReport


def report_to_dict(report: PersonReport) -> dict[str, Any]:
    """Return the whole report; keys other programs rely on are `verdict`, `assessments`, `advice`, `not_assessed`."""
    return {
        "person": report.person,
        "people": report.people,
        "verdict": to_plain(report.verdict),
        "risk": to_plain(report.risk),
        "label": {
            str(theme.name): {
                "level": str(theme.level),
                "question": theme.name.question,
                "sentence": theme.sentence,
            }
            for theme in report.themes
        },
        "reasons": to_plain(report.reasons),
        "advice": to_plain(report.actions),
        "plan": to_plain(report.plan),
        "assessments": [_judged(one) for one in report.judged],
        "not_assessed": to_plain(report.not_assessed),
        "posts": to_plain(report.posts),
        "changes": report.changes.to_dict(),
        "fine_print": to_plain(report.fine_print),
    }


def _judged(one: Judged) -> dict[str, Any]:
    return one.assessment.to_dict() | {
        "theme": str(one.theme),
        "level": str(one.level),
        "risk": to_plain(one.risk),
    }
