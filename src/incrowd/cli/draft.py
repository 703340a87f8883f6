"""incrowd draft: what would this post change?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import AsJson, FailAbove, Memory, exit_for_risk, parse_memory, show, show_json
from incrowd.cli.options import KeepStopwords, TokenRule, text_options

if TYPE_CHECKING:
    from rich.table import Table

    from incrowd.advisor.draft_answer import DraftCheck
    from incrowd.measures.protocol import Effect

MOST_WORDS = 8


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
    radius: Annotated[float, typer.Option("--radius", help="Who counts as writing like you.")] = 0.8,
    min_posts: Annotated[
        int, typer.Option("--min-posts", help="Profiles with fewer posts are not linked.")
    ] = 10,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough",
            help="Also ask whether you would be recognised or linked: takes seconds. Always done for --fail-above.",
        ),
    ] = False,
    tokens: TokenRule = "full",
    keep_stopwords: KeepStopwords = False,
    memory: Memory = "1GiB",
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Check a draft before posting it: what somebody could make of you, before and after.

    Nothing is posted and nothing of the draft is stored. The first check of a community takes longer. The risk
    for --fail-above goes from 0 to 1: how often somebody would be right about you after the post, at worst.
    """
    from incrowd.advisor.draft import check, draft_in
    from incrowd.errors import InputError
    from incrowd.measures.protocol import AdvisorOptions

    thorough = thorough or fail_above is not None  # what was not looked at is no risk of 0
    options = AdvisorOptions(
        radius=radius,
        min_posts=min_posts,
        text=text_options(tokens, keep_stopwords),
        memory=parse_memory(memory),
    )
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
        return text
    try:
        data = sys.stdin.buffer.read() if file is None else file.read_bytes()
        return data.decode("utf-8")
    except FileNotFoundError:
        raise UnreadableSource(f"{file}: no such file") from None
    except UnicodeDecodeError:
        raise UnreadableSource(f"{file or 'standard input'}: the draft must be UTF-8 text") from None


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
