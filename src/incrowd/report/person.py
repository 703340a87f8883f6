"""A person's report as one offline page: the verdict, the label, why, what to do, what nobody could tell."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined

from incrowd.advisor.answer import PersonReport
from incrowd.advisor.combine import LEAST_SHARE, MOST_PARTS
from incrowd.measures.protocol import Effect, Finding, Level, measure_named, shortened
from incrowd.report.label import Label
from incrowd.report.page import asset, page
from incrowd.result import Direction, Evidence, say_amount, say_count, say_number, say_percent
from incrowd.wording import say_day

BARS = (Level.WELL_HIDDEN, Level.WATCH, Level.AT_RISK)
"""The label's scale, best first. There is no bar for "cannot tell": nobody knows where it would stand."""


def person_report_page(report: PersonReport) -> str:
    """Return the report as one HTML file that prints, reads aloud, and can send nothing anywhere."""
    data = report.to_dict()
    body = report_templates().get_template("person.html").render(report=report, json_link=json_link(data))
    return page(f"{report.person} in the crowd", body, data=data, style=asset("person.css"))


def json_link(data: Mapping[str, Any]) -> str:
    """Return a link that holds the data itself, to be saved without a script or a request."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "data:application/json;base64," + base64.b64encode(text.encode()).decode()


def person_label(report: PersonReport) -> Label:
    """Return the label of the whole report as a picture for the terminal or a file."""
    level = report.verdict.level
    you = BARS.index(level) if level in BARS else None
    caption = f"among {report.people:,} people; the worst answer counts"
    return Label("In the crowd", tuple(str(bar) for bar in BARS), you, caption)


MOST_FINDINGS = 12
"""Shown in full a question; the others in a table."""


def environment(loader: BaseLoader) -> Environment:
    """Return an environment with our filters; a name a template mistypes is an error, not an empty string."""
    made = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {
        "amount": say_amount,
        "bars": evidence_bars,
        "share_of": share_of,
        "count": say_count,
        "day": say_day,
        "has_minus": lambda evidence: any(part.contribution < 0 for part in evidence),
        "has_text": lambda posts: any(post.text for post in posts),
        "helps": helps,
        "decisive": lambda effects: [one for one in effects if one.decides and one.turns],
        "indecisive": lambda effects: [one for one in effects if not (one.decides and one.turns)],
        "measure_about": lambda name: measure_named(name).about,
        "loud": loud,
        "number": say_number,
        "percent": say_percent,
        "plain": say_plain,
        "sentence": say_sentence,
        "slug": lambda words: str(words).replace(" ", "-"),
        "brief": lambda evidence: shortened(evidence, MOST_PARTS, LEAST_SHARE),
        "sweep": sweep,
    }
    made.globals["most_findings"] = MOST_FINDINGS
    return made


@cache
def report_templates() -> Environment:
    """Return the environment of the offline pages."""
    return environment(PackageLoader("incrowd.report", "templates"))


def say_sentence(words: str) -> str:
    """Write words as a sentence: a capital first, a full stop last."""
    return words[:1].upper() + words[1:].rstrip(".") + "."


def say_plain(value: Any) -> str:
    """Write a parameter: lists and mappings as JSON, the rest as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list | tuple) else str(value)


LEAST_WIDTH = 0.6
"""Of a bar: a part too small to be drawn to scale is still seen."""


@dataclass(frozen=True)
class Bar:
    """One part of a sum: where its bar starts and how wide it is, in hundredths of the row."""

    what: str
    detail: str
    amount: str
    start: float
    width: float
    sign: str
    """plus or minus."""

    @property
    def rest(self) -> bool:
        """True for the part that holds what is not shown one by one."""
        return self.what.endswith(" more")


def evidence_bars(evidence: Sequence[Evidence], *, shares: bool = False) -> tuple[Bar, ...]:
    """Return evidence as bars around a common zero line; all that speaks for it together would fill its side.

    `shares`: also write each part as its share of that, which everybody can read.
    """
    values = [part.contribution for part in evidence]
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    zero, room = (50.0, 50.0) if any(value < 0 for value in values) else (0.0, 100.0)
    whole = share_of(evidence)
    full = max(largest, whole or 0.0)  # a share of 33 % fills a third of its track
    return tuple(_bar(part, zero, room, full, whole if shares else None) for part in evidence)


SPEAKS_AGAINST = "A minus speaks against it."


def share_of(evidence: Sequence[Evidence]) -> float | None:
    """Return what the parts are shares of: all that speaks for it together; None if nothing does."""
    values = [part.contribution for part in evidence]
    return math.fsum(value for value in values if value > 0 and math.isfinite(value)) or None


def say_share(part: float, whole: float) -> str:
    """Write a part as its share in whole per cents; what speaks against has a minus."""
    share = f"{abs(part) / whole:.0%}"
    return f"−{share}" if part < 0 and share != "0%" else share


def _bar(part: Evidence, zero: float, room: float, full: float, whole: float | None) -> Bar:
    value = part.contribution
    width = max(abs(value) / full * room, LEAST_WIDTH) if full and math.isfinite(value) else 0.0
    start = zero - width if value < 0 else zero
    amount = f"{value:+.3g}".replace("-", "−") if whole is None else say_share(value, whole)
    return Bar(
        part.what, part.detail, amount, round(start, 2), round(width, 2), "minus" if value < 0 else "plus"
    )


@dataclass(frozen=True)
class SweepRow:
    """How much one adversary gains: 0 to 100."""

    adversary: str
    subject: str
    amount: str
    level: str
    width: float


def loud(judged: Iterable[Finding]) -> list[Finding]:
    """Leave out what the person says nothing about: everybody who is silent shares the first rank."""
    return [one for one in judged if not measure_named(one.assessment.measure).is_silent(one.assessment)]


def sweep(judged: Iterable[Finding]) -> tuple[SweepRow, ...]:
    """Return the adversaries of a question, the riskiest first: how often each would be right, as its sentence says."""
    known = [one for one in loud(judged) if not math.isnan(one.risk)]
    often = [(one, _how_often(one)) for one in sorted(known, key=lambda one: -one.risk)]
    return tuple(
        SweepRow(
            one.assessment.assumptions.adversary,
            one.assessment.subject,
            say_amount(success, "probability"),
            str(one.level),
            round(min(max(success, 0.0), 1.0) * 100, 1),
        )
        for one, success in often
    )


def _how_often(one: Finding) -> float:
    said = measure_named(one.assessment.measure).success(one.assessment)
    return one.risk if one.assessment.unit == "people" or math.isnan(said) else said


def helps(effect: Effect) -> str:
    """Say whether a change makes things better, worse or neither; gone profiles cannot be assessed."""
    if math.isnan(effect.after):
        return "gone"
    if effect.said_after == effect.said_before:
        return "same"
    if (
        effect.unit == "rank"
        and not math.isnan(effect.success_before)
        and not math.isnan(effect.success_after)
    ):
        return "better" if effect.success_after < effect.success_before else "worse"
    higher = effect.after > effect.before
    return "better" if higher == (effect.direction is Direction.HIGHER_IS_SAFER) else "worse"
