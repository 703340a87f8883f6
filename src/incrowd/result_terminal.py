"""Draws an Assessment for a terminal; kept apart so that values do not import Rich."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from incrowd.wording import say_number

if TYPE_CHECKING:
    from incrowd.result import Assessment

MOST_EVIDENCE = 8


def render(assessment: Assessment) -> RenderableType:
    """Return the sentence, the facts, the strongest evidence and the advice, in that order."""
    parts: list[RenderableType] = [Text(assessment.sentence(), style="bold"), Text(""), _facts(assessment)]
    if assessment.evidence:
        parts += [Text(""), _evidence(assessment)]
    if assessment.advice:
        parts += [Text(""), _advice(assessment)]
    return Panel(Group(*parts), title=f"{assessment.measure}: {assessment.subject}", title_align="left")


def _facts(assessment: Assessment) -> Table:
    table = Table.grid(padding=(0, 2))
    between = ", from {} to {}".format(*map(say_number, assessment.interval)) if assessment.interval else ""
    rows = [("value", f"{assessment.amount}{between} ({assessment.direction})")]
    if not math.isnan(assessment.baseline):
        rows.append(("a guesser", say_number(assessment.baseline)))
    if assessment.crowd_rank is not None:
        of = f" of {assessment.crowd_size:,}" if assessment.crowd_size else ""
        rows.append(("rank", f"{assessment.crowd_rank:,}{of} (1 = most exposed)"))
    rows += [("adversary", assessment.assumptions.adversary), ("standing", str(assessment.standing))]
    for name, text in rows:
        table.add_row(Text(name, style="dim"), Text(text))
    return table


def _evidence(assessment: Assessment) -> Table:
    table = Table("why", "adds", box=None, header_style="dim")
    ordered = sorted(assessment.evidence, key=lambda part: part.strongest_first)
    for part in ordered[:MOST_EVIDENCE]:
        table.add_row(Text(part.what), say_number(part.contribution))
    rest = ordered[MOST_EVIDENCE:]
    if rest:
        table.add_row(f"… {len(rest):,} more", say_number(math.fsum(part.contribution for part in rest)))
    return table


def _advice(assessment: Assessment) -> Table:
    table = Table("what to do", "now", "then", box=None, header_style="dim")
    for item in assessment.advice:
        table.add_row(Text(item.what), say_number(item.before), say_number(item.after))
    return table
