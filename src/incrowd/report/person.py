"""A page about one person: each assessment as a sentence, its facts, its reasons, what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from incrowd.report.page import chart_html, page, table_html
from incrowd.result import Assessment, say_number
from incrowd.study.figures import Chart, Table

MOST_EVIDENCE = 12

STYLE = """
.verdict { font-size: 1.1rem; font-weight: 600; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .6rem 0; }
dl.facts dt { color: var(--soft); } dl.facts dd { margin: 0; }
"""


def person_page(
    title: str, lead: str, assessments: Sequence[Assessment], charts: Sequence[Chart] = ()
) -> str:
    """Return one offline page about one person; nobody else appears in it."""
    body = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>']
    body += [_section(assessment) for assessment in assessments]
    body += [chart_html(chart) for chart in charts]
    body.append(
        '<p class="note">These numbers say how things look to the adversaries named; they are no guarantee '
        "against others. This page was made on your machine and can send nothing.</p>"
    )
    data = {"assessments": [assessment.to_dict() for assessment in assessments]}
    return page(title, "\n".join(body), data=data, style=STYLE)


def _section(assessment: Assessment) -> str:
    parts = [
        f"<section><h2>{escape(assessment.measure.capitalize())}: {escape(assessment.subject)}</h2>",
        f'<p class="verdict">{escape(assessment.sentence())}</p>',
        _facts(assessment),
    ]
    if assessment.evidence:
        parts.append(table_html(_why(assessment)))
    if assessment.advice:
        parts.append(table_html(_what_to_do(assessment)))
    return "".join([*parts, "</section>"])


def _facts(assessment: Assessment) -> str:
    rows = [("value", f"{assessment.amount} ({assessment.direction})")]
    if assessment.interval is not None:
        rows.append(("interval", " to ".join(map(say_number, assessment.interval))))
    if not math.isnan(assessment.baseline):
        rows.append(("somebody who guesses", say_number(assessment.baseline)))
    if assessment.crowd_rank is not None:
        of = f" of {assessment.crowd_size:,}" if assessment.crowd_size else ""
        rows.append(("rank", f"{assessment.crowd_rank:,}{of} (1 = most exposed)"))
    rows += [("adversary", assessment.assumptions.adversary), ("standing", str(assessment.standing))]
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f'<dl class="facts">{items}</dl>'


def _why(assessment: Assessment) -> Table:
    ordered = sorted(assessment.evidence, key=lambda part: -abs(part.contribution))
    rows: list[tuple[str, float]] = [(part.what, part.contribution) for part in ordered[:MOST_EVIDENCE]]
    rest = ordered[MOST_EVIDENCE:]
    if rest:
        rows.append((f"{len(rest):,} more", math.fsum(part.contribution for part in rest)))
    note = f"Together {say_number(assessment.explained)}." if assessment.explained is not None else ""
    return Table(title="Why", columns=("what", "adds"), rows=tuple(rows), note=note)


def _what_to_do(assessment: Assessment) -> Table:
    rows = tuple((item.action, item.before, item.after, item.loss or "–") for item in assessment.advice)
    return Table(title="What to do", columns=("action", "now", "then", "what it costs"), rows=rows)
