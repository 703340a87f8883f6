"""incrowd draft: what would this post change? incrowd watch: say so when a post moved somebody over a line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import (
    AdvisorChoices,
    AsJson,
    CrowdFolder,
    FailAbove,
    as_json_text,
    complain,
    exit_for_risk,
    in_groups,
    show,
    show_json,
)

if TYPE_CHECKING:
    from rich.table import Table

    from incrowd.advisor.draft_answer import DraftCheck
    from incrowd.advisor.watch import Watch
    from incrowd.advisor.watch_alerts import Alert
    from incrowd.measures.protocol import Effect


MOST_WORDS = 8


@in_groups
def draft(
    crowd: Annotated[
        Path,
        typer.Argument(
            metavar="EXPORT|DIR", help="Your own export, or a crowd's folder.", show_default=False
        ),
    ],
    text: Annotated[
        str | None, typer.Argument(help="The draft; without it, --file or standard input is read.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", help="You, by name; left out: the export's only account.", show_default=False),
    ] = None,
    community: Annotated[
        str | None,
        typer.Option(
            "--community", help="Where you would post it; left out: the card's first.", show_default=False
        ),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option("--card", help="For an export: whom to compare with; left out: the card inside."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Read the draft from this file.")] = None,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough",
            help="Also ask whether you would be recognised or linked: takes seconds. Always done for --fail-above.",
        ),
    ] = False,
    *,
    choices: AdvisorChoices,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Check a draft before posting it: what somebody could make of you, before and after.

    Nothing is posted and nothing of the draft is stored. The first check of a community takes longer. The risk
    for --fail-above goes from 0 to 1: how often somebody would be right about you after the post, at worst.
    """
    from incrowd.advisor.draft import check, draft_in
    from incrowd.errors import InputError

    thorough = thorough or fail_above is not None  # what was not looked at is no risk of 0
    options = choices.options()
    if crowd.is_file():
        from incrowd.measures.card_crowd import crowd_of_export

        among = crowd_of_export([crowd], user, card, memory=options.memory)
        place = community or among.card.first_community()
        chosen = replace(options, text=among.text)
        result = check(among, "", place, _read(text, file), options=chosen, thorough=thorough)
    elif user is None or community is None:
        raise InputError("in a crowd, a draft needs --user and --community: who would post where")
    else:
        result = draft_in(crowd, user, community, _read(text, file), options=options, thorough=thorough)
    show_json(result.to_dict()) if as_json else _show(result)
    exit_for_risk(result.risk, fail_above)


def _read(text: str | None, file: Path | None) -> str:
    from incrowd.errors import InputError, UnreadableSource

    if text is not None and file is not None:
        raise InputError("give the draft as an argument or with --file, not both")
    if text is not None:
        if _is_file(text):
            raise InputError(
                f"{text} is a file, and would be checked as the draft itself; give --file {text}"
            )
        return text
    try:
        data = sys.stdin.buffer.read() if file is None else file.read_bytes()
        return data.decode("utf-8")
    except FileNotFoundError:
        raise UnreadableSource(f"{file}: no such file") from None
    except UnicodeDecodeError:
        raise UnreadableSource(f"{file or 'standard input'}: the draft must be UTF-8 text") from None


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # no name can be that long, or have such characters
        return False


def _show(result: DraftCheck) -> None:
    from rich.markup import escape

    for note in result.notes:
        show(f"[bold red]{escape(note.text)}[/bold red]" if note.red else escape(note.text))
    show(f"[bold]{escape(result.sentence())}[/bold]\n")
    if not result.told:
        show("To compare, add what others wrote there: incrowd ingest FILE --crowd DIR")
        return
    if result.shown:
        show(_table(result.shown, "with this post"))
    for number, one in enumerate(result.suggestions, 1):
        show(f"\n[bold]{number}. {escape(one.what[:1].upper() + one.what[1:])}[/bold]")
        if changed := result.shown_of(one):
            show(_table(changed, "with the rest"))
    if not result.suggestions and not result.unread:
        show("\nNothing to leave out was found that would help.")
    if result.words:
        show(_words(result))
    for line in result.not_compared:
        show(f"[dim]Not looked at: {escape(line)}.[/dim]")
    show(
        "[dim]▼ gets worse. Per cents say how often somebody would be right about you. "
        "These numbers hold for the adversaries named in --json; they are no guarantee against others.[/dim]"
    )


def _table(changes: Sequence[Effect], then: str) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("what", "now", then, "level", box=None, header_style="dim")
    for change in changes:
        mark = "[red]▼[/red] " if change.worse else ""
        level = f"{change.level_before} → {change.level_after}" if change.turns else str(change.level_after)
        table.add_row(escape(change.subject), change.said_before, mark + change.said_after, level)
    return table


def _words(result: DraftCheck) -> Table:
    from rich.markup import escape
    from rich.table import Table

    headings = list(dict.fromkeys(heading for one in result.words for heading in one.columns))
    table = Table("\nword of the draft", *(f"\n{name}" for name in headings), box=None, header_style="dim")
    for one in result.words[:MOST_WORDS]:
        table.add_row(escape(one.word), *(escape(one.columns.get(name, "–")) for name in headings))
    return table


MOST_LINES = 20


@in_groups
def watch(
    crowd: CrowdFolder,
    user: Annotated[str, typer.Option("--user", help="You, by name.", show_default=False)],
    policy: Annotated[
        Path | None,
        typer.Option("--policy", help="A TOML file with your lines; without it, every question of assess."),
    ] = None,
    follow: Annotated[
        str | None,
        typer.Option(
            "--follow", help="A growing file of JSON lines, or - for standard input; else the crowd itself."
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Folder of the watch's memory; inside the crowd unless given."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Look once and stop, e.g. for a scheduled job.")
    ] = False,
    every: Annotated[float, typer.Option("--every", help="Seconds between two looks.", min=0.05)] = 5.0,
    *,
    choices: AdvisorChoices,
    as_json: AsJson = False,
) -> None:
    """Follow new posts and alert when you come to another level, or one of your lines is crossed; once a crossing.

    Alerts go where the policy says: this terminal, a file of JSON lines, a folder, a program on this machine. A
    watch that was killed goes on where it was: no alert is lost, and none comes twice. With --once --json the
    last line says where you stand on every line.
    """
    from incrowd.advisor.watch import Watch, receive, spool_standard_input
    from incrowd.advisor.watch_alerts import Terminal, sinks_of
    from incrowd.advisor.watch_policy import load_policy
    from incrowd.crowd import Crowd

    opened = Crowd(crowd)
    if follow is None:
        opened.user(user)  # a mistyped name would be watched for ever
    chosen = None if policy is None else load_policy(policy)
    folder = state or opened.path / "watch" / _folder_name(user)
    options = choices.options()
    path = spool_standard_input(folder) if follow == "-" else None if follow is None else Path(follow)
    printer = _print_json if as_json else _print
    sinks = [Terminal(printer)] if chosen is None else sinks_of(chosen, printer)
    with Watch(opened, user, chosen, folder, sinks=sinks, follow=path, options=options) as watching:
        if follow == "-" and path is not None:
            receive(path, watching.step)
        else:
            watching.step()
        if not as_json:
            _show_standings(watching)
        elif once:
            _print_state(watching)
        if not once and follow != "-":
            watching.run(every)


def _folder_name(user: str) -> str:
    """Name the state without naming the person."""
    from hashlib import blake2b

    return blake2b(user.strip().encode(), digest_size=8).hexdigest()


def _print(alert: Alert) -> None:
    from rich.markup import escape

    colour = "red" if alert.crossed else "green"
    show(
        f"[{colour}]{'ALERT' if alert.crossed else 'CLEAR'}[/{colour}] {escape(alert.sentence)} [dim]{alert.id}[/dim]"
    )


def _print_json(alert: Alert) -> None:
    typer.echo(as_json_text(alert.to_dict()))


def _print_state(watching: Watch) -> None:
    """Say where the person stands on every line, also if all alerts were delivered before."""
    from incrowd.advisor.watch_policy import is_crossed, question_key, say_line
    from incrowd.result import to_plain

    state = [
        {
            "line": line.key,
            "value": reading.value,
            "of": reading.of,
            "at": line.at,
            "crossed": is_crossed(line, reading),
            "sentence": say_line(line, reading),
        }
        for line, reading in watching.readings().items()
    ]
    levels = [
        {"line": question_key(question), "value": now.risk, "level": now.level, "sentence": now.sentence}
        for question, now in watching.standings().items()
    ]
    typer.echo(as_json_text({"state": to_plain([*levels, *state])}))


def _show_standings(watching: Watch) -> None:
    """Say where the person stands; lines that cannot be measured are counted."""
    from rich.markup import escape
    from rich.table import Table

    from incrowd.advisor.watch_policy import is_crossed

    for question, now in watching.standings().items():
        show(f"[bold]{escape(str(now.level))}[/bold]  {question.question} {escape(now.sentence)}")
    readings = watching.readings()
    if not readings:
        _show_skipped(watching)
        return
    table = Table("line", "now", "your line", box=None, header_style="dim")
    shown = [pair for pair in readings.items() if pair[1].defined and not pair[1].silent]
    for line, reading in shown[:MOST_LINES]:
        what = " ".join(
            part
            for part in (line.measure, line.topic, line.community, line.target and f"to {line.target}")
            if part
        )
        mark = "[red]crossed[/red]" if is_crossed(line, reading) else ""
        table.add_row(escape(what), f"{reading.value:,.0f} of {reading.of:,}", f"{line.at:,} {mark}")
    show(table)
    if len(readings) > min(len(shown), MOST_LINES):
        show(
            f"[dim]{len(readings) - min(len(shown), MOST_LINES):,} more lines have nothing to show yet.[/dim]"
        )
    _show_skipped(watching)


def _show_skipped(watching: Watch) -> None:
    """Say which lines of a followed file brought nothing."""
    if watching.file is not None and watching.file.skipped.reasons:
        complain(f"lines that brought nothing: {watching.file.skipped.sentence()}")
