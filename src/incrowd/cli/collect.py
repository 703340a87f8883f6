"""incrowd collect: get a crowd from the network; the one command that connects to another machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import AsJson, complain, progress_bar, say, show, show_json, writable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from incrowd.collect import CollectCost, Collected, CollectPlan

SERVICES = "bluesky, mastodon, reddit, hackernews, stackexchange, lemmy, discourse, nntp or mailman"


def collect(
    service: Annotated[str, typer.Argument(help=f"{SERVICES}.", show_default=False)],
    community: Annotated[
        list[str],
        typer.Option(
            "--community",
            help="A community, again for more; what that is at each service: see the docs.",
            show_default=False,
        ),
    ],
    crowd: Annotated[
        Path | None,
        typer.Option("--crowd", help="The crowd's folder; made if it is not there.", show_default=False),
    ] = None,
    server: Annotated[
        str, typer.Option("--server", help="The server, for services that run on many.", show_default=False)
    ] = "",
    contact: Annotated[
        str,
        typer.Option(
            "--contact",
            envvar="INCROWD_CONTACT",
            help="How a server's operator reaches you: an address or a page. Sent with every request.",
            show_default=False,
        ),
    ] = "",
    newest: Annotated[
        int, typer.Option("--newest", help="Newest posts of each community in a round.")
    ] = 1000,
    per_author: Annotated[int, typer.Option("--per-author", help="Last posts of each author.")] = 1000,
    people: Annotated[
        int, typer.Option("--people", help="Authors whose posts are collected, at most.")
    ] = 1000,
    rounds: Annotated[
        int, typer.Option("--rounds", help="How often communities, then new authors, are asked.")
    ] = 1,
    communities_only: Annotated[
        bool, typer.Option("--communities-only", help="Do not follow authors beyond the communities.")
    ] = False,
    only_new: Annotated[
        bool,
        typer.Option("--only-new", help="Do not look again at what is known; deletions then stay unnoticed."),
    ] = False,
    pause: Annotated[
        float, typer.Option("--pause", help="Seconds between requests, if more than the service's own.")
    ] = 0.0,
    card: Annotated[
        Path | None,
        typer.Option(
            "--card", callback=writable, help="Make a card of the crowd: a file of statistics to share."
        ),
    ] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="With --card: delete the posts once the card is made.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the first request.")] = False,
    as_json: AsJson = False,
) -> None:
    """Collect a crowd from a service, politely: public posts only, one request at a time.

    This is the one command that uses the network. It says first what it will cost and asks; run again, it goes on
    where it was stopped, adds what is new and removes what was deleted. Credentials, where a service wants some, come
    from the environment or the system's keyring: INCROWD_REDDIT_CLIENT_ID and INCROWD_REDDIT_CLIENT_SECRET,
    INCROWD_BLUESKY_HANDLE and INCROWD_BLUESKY_PASSWORD, INCROWD_MASTODON_TOKEN, INCROWD_STACKEXCHANGE_KEY,
    INCROWD_NNTP_USER and INCROWD_NNTP_PASSWORD.
    """
    # What an import frees goes back to the system at once: the next one, hours later, begins where the first did.
    # Polars reads this when it is loaded, so it comes first.
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
    from incrowd.collect import CollectPlan
    from incrowd.crowd import Crowd
    from incrowd.crowd.forget import forget_everything
    from incrowd.errors import IncrowdError

    plan = CollectPlan(
        service=service,
        communities=tuple(community),
        server=server,
        newest=newest,
        per_author=per_author,
        people=people,
        rounds=rounds,
        communities_only=communities_only,
        only_new=only_new,
        contact=contact,
        pause=pause,
    )
    folder = _folder(crowd, card, forget=forget)
    is_new = not folder.exists()
    target = Crowd.open_or_create(folder)
    try:
        result = _collected(plan, target, yes=yes, as_json=as_json)
    except (IncrowdError, typer.Exit):
        if is_new:
            target.discard_if_empty()
        raise
    if card is not None and result.stopped is None:
        _make_card(target, card)
        if forget:
            forget_everything(target)
    if as_json:
        show_json({**result.to_dict(), "crowd": None if forget and result.stopped is None else str(folder)})
    else:
        show(_summary(result, folder))
    if result.stopped is not None:
        complain(result.stopped)
        raise typer.Exit(2)


def _collected(plan: CollectPlan, target: Any, *, yes: bool, as_json: bool) -> Collected:
    """Say what it costs, ask, and collect."""
    from incrowd.collect import Collector

    with Collector(plan, target) as collector:
        say(_costs(collector.estimate(), collector.service.server), err=True)
        if not yes:
            _ask(as_json=as_json)
        with progress_bar("collecting") as progress:
            return collector.run(progress)


def _ask(*, as_json: bool) -> None:
    import sys

    from incrowd.errors import InputError

    if as_json or not sys.stdin.isatty():
        raise InputError(
            "collect: expected a yes before the first request, and nobody is there to ask. Pass --yes."
        )
    if not typer.confirm("Go on?", err=True):
        raise typer.Exit(2)


def _costs(estimate: CollectCost, server: str) -> str:
    done = (
        f" {estimate.done:,} requests of an unfinished collection need not be made again."
        if estimate.done
        else ""
    )
    return (
        f"{server}: up to {estimate.requests:,} requests, {max(1, round(estimate.minutes)):,} minutes, "
        f"{estimate.people:,} people, {estimate.posts:,} posts, {estimate.bytes / 2**20:,.0f} MiB.{done}\n"
        "These are other people's words: keep them private, and delete them when you are done (incrowd forget)."
    )


def _folder(crowd: Path | None, card: Path | None, *, forget: bool) -> Path:
    """Return where the posts go: a folder the user names, or one beside the card that is deleted at the end."""
    from incrowd.errors import InputError

    if forget and card is None:
        raise InputError(
            "--forget: expected --card with it: without a card nothing would be left of the collection."
        )
    if crowd is not None:
        return crowd
    if card is None or not forget:
        raise InputError(
            "--crowd: expected a folder for the crowd, got none. Or make a card: --card C.card --forget"
        )
    return card.with_name(card.name + ".crowd")


def _make_card(crowd: Any, card: Path) -> None:
    """Make a card of what was collected: of each community with enough people or, if none has, of everybody as one."""
    from incrowd.cards.make import SMALLEST, CardOptions
    from incrowd.errors import InputError
    from incrowd.measures.card_maker import make_card

    sizes = crowd.communities()
    people = crowd.people()
    if people < SMALLEST:
        raise InputError(
            f"{people:,} people were collected: fewer than {SMALLEST} are too few to be published. The posts are kept "
            f"in {crowd.path}: collect more people, or delete them with incrowd forget."
        )
    enough = sizes.filter(sizes["users"] >= SMALLEST)["community"].to_list()
    try:
        with progress_bar("making the card") as progress:
            make_card(crowd, CardOptions(communities=tuple(enough)), progress).write(card)
    except InputError as problem:
        raise InputError(
            f"{problem} The posts are kept in {crowd.path}: collect more people, or delete them with incrowd forget."
        ) from None


def _summary(result: Collected, folder: Path) -> RenderableType:
    from rich.table import Table

    rows = [
        ("posts added", f"{result.posts:,} to {folder}"),
        ("people asked for", f"{result.people:,}"),
        ("left out", f"{result.left_out:,} people who do not want to be collected"),
        ("unavailable", f"{result.unavailable:,} people whose accounts are closed or hidden"),
        ("edited", f"{result.edited:,} posts that were edited since, and are now as they are there"),
        ("removed", f"{result.removed:,} posts that were deleted, or whose author wants to be left out"),
        (
            "set aside",
            ", ".join(f"{count:,} {reason}" for reason, count in sorted(result.set_aside.items())) or "0",
        ),
        (
            "network",
            f"{result.requests:,} requests, {result.bytes / 2**20:,.1f} MiB, {result.waited:,.0f} s of waiting",
        ),
    ]
    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(name, value)
    return table
