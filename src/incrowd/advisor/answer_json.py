"""The answer as plain types for JSON: an undefined number becomes None, a level its word."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from incrowd.advisor.answer import Changes
from incrowd.result import Assessment

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


def to_plain(value: Any) -> Any:
    """Return plain types of any of the answer's values."""
    if isinstance(value, Assessment | Changes):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: to_plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(part) for part in value]
    if isinstance(value, StrEnum):
        return str(value)
    if hasattr(value, "item") and not isinstance(value, str):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
