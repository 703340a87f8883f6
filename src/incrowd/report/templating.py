"""The templates of pages about people, and the few words they use; everything is escaped unless it is ours."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined

from incrowd.report import pictures
from incrowd.result import Evidence, say_amount, say_count, say_number

MOST_EVIDENCE = 10
MOST_FINDINGS = 12
"""Shown in full a question; the others in a table."""


def environment(loader: BaseLoader) -> Environment:
    """Return an environment with our filters; a name a template mistypes is an error, not an empty string."""
    made = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {
        "amount": say_amount,
        "bars": pictures.evidence_bars,
        "share_of": pictures.share_of,
        "count": say_count,
        "day": say_day,
        "has_minus": lambda evidence: any(part.contribution < 0 for part in evidence),
        "has_text": lambda posts: any(post.text for post in posts),
        "helps": pictures.helps,
        "levels_change": lambda effects: [one for one in effects if one.level_before != one.level_after],
        "levels_stay": lambda effects: [one for one in effects if one.level_before == one.level_after],
        "loud": pictures.loud,
        "number": say_number,
        "plain": say_plain,
        "sentence": say_sentence,
        "slug": lambda words: str(words).replace(" ", "-"),
        "strongest": strongest,
        "sweep": pictures.sweep,
        "worst_crowd": pictures.worst_crowd,
    }
    made.globals["most_findings"] = MOST_FINDINGS
    return made


@cache
def report_templates() -> Environment:
    """Return the environment of the offline pages."""
    return environment(PackageLoader("incrowd.report", "templates"))


def say_day(time: int | None) -> str:
    """Write a time as a day, in UTC."""
    return "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d")


def say_sentence(words: str) -> str:
    """Write words as a sentence: a capital first, a full stop last."""
    return words[:1].upper() + words[1:].rstrip(".") + "."


def say_plain(value: Any) -> str:
    """Write a parameter: lists and mappings as JSON, the rest as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list | tuple) else str(value)


def strongest(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return the strongest parts and one that holds the rest, so that they still add up.

    A measure may have put many small parts into a rest of its own ("175 more"); there is one rest in the end.
    """
    named = sorted(
        (part for part in evidence if not _rest_size(part)), key=lambda part: -abs(part.contribution)
    )
    rest = [*named[MOST_EVIDENCE:], *(part for part in evidence if _rest_size(part))]
    if not rest:
        return tuple(named)
    count = sum(_rest_size(part) or 1 for part in rest)
    total = math.fsum(part.contribution for part in rest)
    return (*named[:MOST_EVIDENCE], Evidence(what=f"{count:,} more", contribution=total))


def _rest_size(part: Evidence) -> int:
    """How many parts a rest holds; 0 if it is none."""
    found = re.fullmatch(r"([\d,]+) more( .*)?", part.what)
    return int(found[1].replace(",", "")) if found else 0
