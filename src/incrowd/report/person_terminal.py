"""A person's report for the terminal: verdict, label, why, what to do, what is not known, fine print."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from incrowd.advisor.answer import Action, OwnPost, PersonReport, Plan, Reason
from incrowd.measures.protocol import Level
from incrowd.report.person import share_of
from incrowd.result import say_amount, say_count, say_number, say_percent

STYLES = {
    Level.AT_RISK: "bold white on red",
    Level.WATCH: "bold black on yellow",
    Level.WELL_HIDDEN: "bold white on dark_green",
    Level.CANNOT_TELL: "bold reverse",
}
MOST_POSTS = 12


def render(report: PersonReport) -> RenderableType:
    """Return the whole report."""
    return Group(*_parts(report))


def _parts(report: PersonReport) -> Iterator[RenderableType]:
    yield Text.assemble(_badge(report.verdict.level), " ", (report.verdict.sentence, "bold"))
    if report.changes:
        yield Text("This is how it would be after the changes you asked about.", style="italic")
    yield Text("")
    yield _label(report)
    yield from _section("Why", [_reason(one) for one in report.reasons])
    yield from _section("What to do", [*_advice(report)])
    yield from _section("What could not be told", [_not_assessed(report)] if report.not_assessed else [])
    yield from _section("Fine print", [_fine_print(report)])


def _section(title: str, parts: list[RenderableType]) -> Iterator[RenderableType]:
    if parts:
        yield Text("")
        yield Rule(title, align="left", style="dim")
        yield from parts


def _badge(level: Level) -> Text:
    return Text(f" {level} ", style=STYLES[level])


def _label(report: PersonReport) -> Table:
    table = Table.grid(padding=(0, 2))
    for theme in report.themes:
        table.add_row(_badge(theme.level), Text(str(theme.name), style="bold"), Text(theme.sentence))
    return table


def _reason(reason: Reason) -> RenderableType:
    said = Text.assemble(
        _badge(reason.level), " ", (f"{reason.theme}: {reason.subject}. ", "bold"), reason.sentence
    )
    if not reason.evidence:
        return said
    whole = share_of(reason.evidence)
    table = Table("because of", "adds" if whole is None else "share", box=None, header_style="dim")
    for part in reason.evidence:
        counts = say_number(part.contribution) if whole is None else say_percent(part.contribution / whole)
        table.add_row(Text(part.what), counts)
    if whole is None and reason.explained is not None:
        table.add_row(Text("together", style="dim"), say_number(reason.explained))
    return Group(said, Padding(table, (0, 0, 0, 4)))


def _advice(report: PersonReport) -> Iterator[RenderableType]:
    if report.actions:
        yield _actions(report.actions)
    if report.plan is not None:
        yield Text("")
        yield _plan(report.plan)
    if report.posts:
        yield _posts(report.posts)


def _actions(actions: tuple[Action, ...]) -> RenderableType:
    """List them: a table of this many columns would be too narrow to read."""
    lines: list[RenderableType] = []
    for action in actions:
        seen = action.effect
        then = "no profile left" if math.isnan(seen.after) else say_amount(seen.after, seen.unit)
        effect = f"{seen.subject}: {say_amount(seen.before, seen.unit)} → {then}; {seen.level_before} → "
        lines.append(Text(f"• {action.what}", style="bold"))
        told = Text.assemble(effect, _badge(seen.level_after), f" {seen.note}" if seen.note else "")
        lines.append(Padding(told, (0, 0, 0, 2)))
        lines.append(Padding(Text(f"costs: {_cost(action)}", style="dim"), (0, 0, 0, 2)))
    return Group(*lines)


def _cost(action: Action) -> str:
    worse = [one for one in action.also if one.level_after.severity > one.level_before.severity]
    return action.loss + (f"; makes {say_count(len(worse), 'other finding')} worse" if worse else "")


def _plan(plan: Plan) -> RenderableType:
    if not plan.steps:
        return Text("No plan within the loss you allow reaches a target.", style="bold")
    lines: list[RenderableType] = [
        Text(f"A plan that {plan.goal}, at the cost of {plan.loss}:", style="bold")
    ]
    lines += [Text(f"  {number}. {step}") for number, step in enumerate(plan.steps, start=1)]
    lines.append(Text.assemble("After it: ", _badge(plan.verdict.level), " ", plan.verdict.sentence))
    better = [one for one in plan.effects if one.level_before is not one.level_after]
    lines += [Text(f"  {one.sentence()}", style="dim") for one in better]
    if plan.missed:
        verb = "misses its" if len(plan.missed) == 1 else "miss their"
        lines.append(Text(f"{say_count(len(plan.missed), 'finding')} still {verb} target.", style="dim"))
    return Group(*lines)


def _posts(posts: tuple[OwnPost, ...]) -> RenderableType:
    shown = [f"{post.number} ({post.community})" for post in posts[:MOST_POSTS]]
    more = f" and {len(posts) - MOST_POSTS:,} more" if len(posts) > MOST_POSTS else ""
    named = f"Your posts meant here, by number: {', '.join(shown)}{more}."
    how = "" if any(post.text is not None for post in posts) else " --quote shows what they say."
    lines = [Text(named + how, style="dim")]
    lines += [Text(f"  {post.number}: {post.text}") for post in posts[:MOST_POSTS] if post.text is not None]
    return Group(*lines)


def _not_assessed(report: PersonReport) -> Table:
    table = Table("about", "why", "what would help", box=None, header_style="dim")
    for line in report.not_told:
        table.add_row(*map(Text, line))
    return table


def _fine_print(report: PersonReport) -> RenderableType:
    fine = report.fine_print
    lines = [fine.rule, *fine.levels]
    lines.append(f"Adversaries: {'; '.join(fine.adversaries) or 'none could be run'}.")
    if fine.standings:
        lines.append("Standing: " + "; ".join(f"{name}: {how}" for name, how in fine.standings.items()) + ".")
    people = say_count(report.people, "person", "people")
    made = f"{people}, seed {fine.seed}, data {fine.data_hash}, incrowd {fine.version}."
    lines.append(f"{made} {fine.notice}")
    return Group(*(Text(line, style="dim") for line in lines))
