"""A person's report for the terminal: verdict, label, why, what to do, what is not known, fine print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from incrowd.advisor.answer import Action, MainReason, OwnPost, PersonReport, Plan, WriteDifferently
from incrowd.advisor.since import Since
from incrowd.measures.protocol import Level, Role
from incrowd.report.person import SPEAKS_AGAINST, loud, say_share, share_of
from incrowd.result import say_amount, say_count
from incrowd.wording import say_day

STYLES = {
    Level.AT_RISK: "bold white on red",
    Level.WATCH: "bold black on yellow",
    Level.WELL_HIDDEN: "bold white on dark_green",
    Level.CANNOT_TELL: "bold reverse",
}
MOST_POSTS = 12
MOST_MISSED = 5


def render(report: PersonReport) -> RenderableType:
    """Return the whole report."""
    return Group(*_parts(report))


def _parts(report: PersonReport) -> Iterator[RenderableType]:
    if report.made_up:
        yield Text(f"You, {report.compared_with}: an estimate.", style="italic")
    yield Text.assemble(_badge(report.verdict.level), " ", (report.verdict.sentence, "bold"))
    for question, lines in report.in_short[1:]:
        if len(lines) == 1:
            yield Text.assemble((f"{question} ", "bold"), lines[0])
        else:
            yield Text(question, style="bold")
            yield from (Padding(Text(line), (0, 0, 0, 2)) for line in lines)
    if report.since is not None:
        yield Text("")
        yield from _since(report.since)
    if report.changes:
        yield Text("This is how it would be after the changes you asked about.", style="italic")
    yield Text("")
    yield _label(report)
    yield from _section("Why", [_reason(one) for one in report.reasons])
    yield from _section("What to do", [*_advice(report)])
    yield from _section("Against somebody who knows more", [*_others(report, Role.STRONGER)])
    yield from _section("What could not be told", [_not_assessed(report)] if report.not_assessed else [])
    yield from _section("For researchers: the papers' own numbers", [*_others(report, Role.PAPER)])
    yield from _section("Fine print", [_fine_print(report)])


def _since(since: Since) -> Iterator[RenderableType]:
    yield Text(since.sentence(), style="bold")
    for one in since.themes:
        if one.moved != "same":
            yield Text(f"  {one.moved}: {one.sentence()}")
    for note in since.notes:
        yield Text(f"  {note}", style="dim")


def _section(title: str, parts: list[RenderableType]) -> Iterator[RenderableType]:
    if parts:
        yield Text("")
        yield Rule(title, align="left", style="dim")
        yield from parts


def _badge(level: Level) -> Text:
    return Text(f" {level} ", style=STYLES[level])


def _label(report: PersonReport) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for theme in report.themes:
        said = Text.assemble((theme.name.question, "bold"), " ", theme.sentence)
        table.add_row(_badge(theme.level), said)
    return table


def _reason(reason: MainReason) -> RenderableType:
    said = Text.assemble(_badge(reason.level), " ", (f"{reason.subject}. ", "bold"), reason.sentence)
    whole = share_of(reason.evidence)
    if whole is None:
        return said
    table = Table("because of", "share", box=None, header_style="dim")
    shares = [say_share(part.contribution, whole) for part in reason.evidence]
    for part, share in zip(reason.evidence, shares, strict=True):
        table.add_row(Text(part.what), share)
    against = any(share.startswith("−") for share in shares)
    lines: list[RenderableType] = [said, Padding(table, (0, 0, 0, 4))]
    if against:
        lines.append(Padding(Text(SPEAKS_AGAINST, style="dim"), (0, 0, 0, 4)))
    return Group(*lines)


def _advice(report: PersonReport) -> Iterator[RenderableType]:
    if report.plan is not None:
        yield _plan(report.plan)
        yield Text("")
    now, later = ([one for one in report.actions if one.from_now_on is way] for way in (False, True))
    if now:
        yield Text("One thing at a time:" if report.plan is None else "Or one thing at a time:", style="bold")
        yield _actions(now)
    if later:
        yield Text("For what you write next:", style="bold")
        yield _actions(later)
    for one in report.write_differently:
        yield _write_differently(one)
    planned = any(post.in_plan for post in report.posts)
    if report.posts:
        yield _posts(report.posts, planned)


def _write_differently(one: WriteDifferently) -> RenderableType:
    lines: list[RenderableType] = []
    if not one.helped:
        nothing = "nothing that was tried on what is there helps"
        lines.append(Text(f"{one.theme.question} {one.subject}: {nothing}.", style="bold"))
    if one.kinds:
        lines.append(
            Text(f"What gives you away{_where(one.subject)}, and what to do differently:", style="bold")
        )
    for kind in one.kinds:
        said = f"  {kind.share:.0%} {kind.kind} ({', '.join(kind.examples)}): {kind.advice}"
        lines.append(Text(said))
    return Group(*lines)


def _where(subject: str) -> str:
    """Return a subject such as "you in cycling" as the end of a sentence about the person."""
    return f" {subject.removeprefix('you ')}" if subject.startswith("you ") else f" ({subject})"


def _actions(actions: Sequence[Action]) -> RenderableType:
    """List them: a table of this many columns would be too narrow to read."""
    lines: list[RenderableType] = []
    for action in actions:
        lines.append(Text(f"• {action.what}", style="bold"))
        if action.warning:
            lines.append(Padding(Text(action.warning, style="bold red"), (0, 0, 0, 2)))
        lines.append(Padding(Text(action.outcome), (0, 0, 0, 2)))
        lines.append(Padding(Text(f"costs: {action.loss}", style="dim"), (0, 0, 0, 2)))
    return Group(*lines)


def _plan(plan: Plan) -> RenderableType:
    if not plan.steps:
        return Text("No plan within the loss you allow reaches a target.", style="bold")
    lines: list[RenderableType] = [Text(plan.warning, style="bold red")] if plan.warning else []
    lines.append(Text(f"A plan that {plan.goal}, at the cost of {plan.loss}:", style="bold"))
    lines += [Text(f"  {number}. {step}") for number, step in enumerate(plan.steps, start=1)]
    lines.append(Text.assemble("After it: ", _badge(plan.verdict.level), " ", plan.verdict.sentence))
    better = [one for one in plan.effects if one.decides and one.turns]
    lines += [Text(f"  {one.sentence()}", style="dim") for one in better]
    if plan.missed:
        lines.append(Text("What it does not reach:", style="dim"))
        lines += [Text(f"  {one}", style="dim") for one in plan.missed[:MOST_MISSED]]
        if len(plan.missed) > MOST_MISSED:
            more = say_count(len(plan.missed) - MOST_MISSED, "more", "more")
            lines.append(Text(f"  and {more}: --html and --json list them all", style="dim"))
    return Group(*lines)


def _posts(posts: Sequence[OwnPost], planned: bool) -> RenderableType:
    """Name the posts that the plan does without, or all that advice names if there is no plan."""
    meant = [post for post in posts if post.in_plan] if planned else posts
    what = "The posts that the plan does without" if planned else "The posts meant here"
    how = "" if any(post.text is not None for post in meant) else " (--quote shows what they say)"
    lines = [Text(f"{what}{how}:", style="dim")]
    for post in meant[:MOST_POSTS]:
        parts = (
            f"number {post.number}",
            post.community,
            say_day(post.time),
            post.link or "",
            post.text or "",
        )
        lines.append(Text(f"  {', '.join(part for part in parts if part)}", style="dim"))
    if len(meant) > MOST_POSTS:
        more = say_count(len(meant) - MOST_POSTS, "more", "more")
        lines.append(Text(f"  and {more}: --html and --json list them all", style="dim"))
    return Group(*lines)


def _others(report: PersonReport, role: Role) -> Iterator[RenderableType]:
    """List the findings that decide nothing, those of each question together."""
    table = Table("about", "by whom", "number", box=None, header_style="dim")
    for one in loud(one for theme in report.themes for one in theme.of(role)):
        about = one.assessment
        table.add_row(
            Text(about.subject), Text(about.assumptions.adversary), say_amount(about.value, about.unit)
        )
    if table.row_count:
        yield table


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
