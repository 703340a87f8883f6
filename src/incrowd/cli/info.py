"""incrowd info: what is in a crowd."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import AsJson, show, show_json
from incrowd.cli.ingest import reason_table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from incrowd.crowd import CrowdInfo

NAMES = {
    "keyed": "pseudonyms; the key's owner finds people by name",
    "plain": "readable",
    "forgotten": "pseudonyms; the key was thrown away",
}


def info(
    crowd: Annotated[Path, typer.Argument(help="The crowd's folder.", show_default=False)],
    verify: Annotated[
        bool, typer.Option("--verify", help="Also read every part and compare it with its recorded hash.")
    ] = False,
    quarantine: Annotated[
        Path | None,
        typer.Option("--quarantine", help="Write the rows that were set aside to this CSV file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is in a crowd: people, communities, dates, items, and what was set aside and why."""
    from incrowd.crowd import Crowd
    from incrowd.crowd.export import write_csv

    opened = Crowd(crowd)
    if verify:
        opened.verify()
    facts = opened.info()
    if quarantine is not None:
        write_csv(opened.quarantine(), quarantine)
    if as_json:
        show_json(facts.to_dict())
    else:
        show(_summary(facts))


def _summary(facts: CrowdInfo) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in _rows(facts):
        table.add_row(Text(name, style="dim"), Text(value))
    parts: list[RenderableType] = [table]
    if facts.largest_communities:
        largest = Table("largest communities", "posts", box=None, header_style="dim")
        for community, posts in facts.largest_communities.items():
            largest.add_row(Text(community), f"{posts:,}")
        parts += [Text(""), largest]
    if facts.quarantine:
        parts += [Text(""), reason_table(facts.quarantine, "in quarantine")]
    return Group(*parts)


def _rows(facts: CrowdInfo) -> list[tuple[str, str]]:
    rows = [("people", f"{facts.users:,}")]
    if facts.posts:
        rows += [
            ("posts", f"{facts.posts:,} in {facts.communities:,} communities"),
            ("dates", _dates(facts)),
            ("identities", f"{facts.identities:,} (a person as one community sees them)"),
            ("in several communities", f"{facts.users_in_several:,} people"),
        ]
    if facts.item_rows:
        rows.append(("items", f"{facts.items:,} different, {facts.item_rows:,} choices"))
    if facts.attribute_rows:
        rows.append(("attributes", f"{facts.attributes:,} different, {facts.attribute_rows:,} values"))
    rows += [
        ("set aside", f"{facts.quarantined:,} rows in quarantine"),
        ("sources", f"{facts.imports:,}" + (f", {facts.incomplete} cut off" if facts.incomplete else "")),
        ("names", NAMES[facts.names]),
        ("size", f"{facts.bytes / 2**20:,.1f} MiB"),
        ("data hash", facts.data_hash),
    ]
    return rows


def _dates(facts: CrowdInfo) -> str:
    if facts.first_post is None or facts.last_post is None:
        return "none of the posts has one"
    first, last = (datetime.fromtimestamp(time, UTC).date() for time in (facts.first_post, facts.last_post))
    undated = f", {facts.undated_posts:,} posts without a date" if facts.undated_posts else ""
    return f"{first} to {last}{undated}"
