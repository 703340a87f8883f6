"""incrowd link: can my two accounts be linked?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import (
    AsJson,
    FailAbove,
    Seed,
    exit_for_risk,
    progress_bar,
    show,
    show_json,
    writable,
)

if TYPE_CHECKING:
    from incrowd.measures.recognition.link import AccountLink

WORDS_SHOWN = 12


def link(
    main: Annotated[Path, typer.Argument(help="The export of your main account.", show_default=False)],
    other: Annotated[Path, typer.Argument(help="The export of your other account.", show_default=False)],
    card: Annotated[
        Path | None, typer.Option("--card", help="Whom to compare with; left out: the card inside.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Your main account, if the first file holds several.")
    ] = None,
    other_user: Annotated[
        str | None, typer.Option("--other-user", help="Your other account, if the second file holds several.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", callback=writable, help="Also write the answer as one HTML file.")
    ] = None,
    seed: Seed = 0,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Can your two accounts be linked? Takes an export of each; nothing is stored and nothing is sent.

    The risk for --fail-above is the probability that somebody who has read both would put your first account first
    among the people of the card, looking for the writer of the second; where that cannot be told, it counts as above.
    """
    from incrowd.measures.card_crowd import crowd_of_export
    from incrowd.measures.recognition.link import link_accounts

    with progress_bar("reading") as progress:
        first = crowd_of_export([main], user, card, seed=seed)
        progress(1, 3, "reading")
        second = crowd_of_export([other], other_user, card, seed=seed)
        progress(2, 3, "comparing")
        found = link_accounts(first, second)
    if html is not None:
        from incrowd.report.page import page, write

        write(html, page("Can your two accounts be linked?", found.to_html(), data=found.to_dict()))
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found)
        if html is not None:
            show(f"Page: {html}")
    exit_for_risk(found.probability, fail_above)


def _show(found: AccountLink) -> None:
    from rich.table import Table
    from rich.text import Text

    show(Text(found.sentence(), style="bold"))
    if found.found.reason:
        return
    table = Table("what gives you away", "share", box=None, header_style="dim")
    for part in found.shown[:WORDS_SHOWN]:
        table.add_row(Text(part.what), f"{part.contribution / max(found.likeness, 1e-9):.0%}")
    show(table)
    show(
        f"[dim]Estimated from a card of {found.found.members - 1:,} people, by the words of both accounts; style and "
        "phrases are allowed for on average. No guarantee against others.[/dim]"
    )
