"""incrowd watch: say so when a line is crossed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import AsJson, Memory, as_json_text, complain, parse_memory, show
from incrowd.cli.options import CrowdFolder, KeepStopwords, TokenRule, text_options

if TYPE_CHECKING:
    from incrowd.advisor.watch import Watch
    from incrowd.advisor.watch_alerts import Alert

MOST_LINES = 20


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
    radius: Annotated[float, typer.Option("--radius", help="Who counts as writing like you.")] = 0.8,
    min_posts: Annotated[
        int, typer.Option("--min-posts", help="Profiles with fewer posts are not linked.")
    ] = 10,
    tokens: TokenRule = "full",
    keep_stopwords: KeepStopwords = False,
    memory: Memory = "1GiB",
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
    from incrowd.measures.protocol import AdvisorOptions

    opened = Crowd(crowd)
    if follow is None:
        opened.user(user)  # a mistyped name would be watched for ever
    chosen = None if policy is None else load_policy(policy)
    folder = state or opened.path / "watch" / _folder_name(user)
    options = AdvisorOptions(
        radius=radius,
        min_posts=min_posts,
        text=text_options(tokens, keep_stopwords),
        memory=parse_memory(memory),
    )
    path = spool_standard_input(folder) if follow == "-" else None if follow is None else Path(follow)
    printer = _print_json if as_json else _print
    sinks = [Terminal(printer)] if chosen is None else sinks_of(chosen, printer)
    with Watch(opened, user, chosen, folder, sinks=sinks, follow=path, options=options) as watching:
        if follow == "-" and path is not None:
            receive(path, watching.step)
        else:
            watching.step()
        if not as_json:
            _show(watching)
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


def _show(watching: Watch) -> None:
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
