"""incrowd ingest: bring data into a crowd."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import AsJson, Memory, parse_memory, progress_bar, show, show_json

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from incrowd.crowd import Crowd, ImportReport
    from incrowd.crowd.schema import Kind


def ingest(
    crowd: Annotated[
        Path, typer.Option("--crowd", help="The crowd's folder; made if it is not there.", show_default=False)
    ],
    sources: Annotated[
        list[Path] | None, typer.Argument(help="Files to import, all or none.", show_default=False)
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="posts, items or attributes; else the format decides.")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", help="Name of the format; auto: recognised by content.")
    ] = "auto",
    columns: Annotated[
        str, typer.Option("--columns", help="Our column=theirs, e.g. user=author,time=created.")
    ] = "",
    community: Annotated[
        str | None, typer.Option("--community", help="Community of every row, if the source names none.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="User of every row, for a person's own export.")
    ] = None,
    plain_names: Annotated[
        bool, typer.Option("--plain-names", help="Keep user names readable: synthetic or own data only.")
    ] = False,
    forget_key: Annotated[
        bool,
        typer.Option(
            "--forget-key",
            help="After the import throw the key away: nobody finds a person by name any more.",
        ),
    ] = False,
    keep_complete: Annotated[
        bool, typer.Option("--keep-complete", help="Keep the complete records of a truncated file.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another import is running.")] = False,
    memory: Memory = "1GiB",
    as_json: AsJson = False,
) -> None:
    """Import posts, ratings or attributes into a crowd, all or nothing.

    Names become pseudonyms, rows that cannot be used are counted and listed, rows the crowd already has
    are not added again.
    """
    from incrowd.crowd import Crowd
    from incrowd.crowd.sources import require_files
    from incrowd.errors import IncrowdError

    budget, mapping = parse_memory(memory), parse_columns(columns)
    if not sources and forget_key:
        Crowd(crowd).forget_key()
        return
    # Look before making a folder: a mistyped name should leave nothing behind.
    require_files(sources or [])
    with progress_bar("importing") as progress:
        is_new = not crowd.exists()
        target = Crowd.open_or_create(crowd, plain_names=plain_names)
        try:
            report = target.ingest(
                sources or [],
                kind=parse_kind(kind),
                format=format,
                columns=mapping,
                community=community,
                user=user,
                keep_complete=keep_complete,
                memory=budget,
                wait=wait,
                progress=progress,
            )
        except IncrowdError:
            if is_new:
                target.discard_if_empty()
            raise
    if forget_key:
        target.forget_key()
    if as_json:
        show_json(report.to_dict())
    else:
        show(_summary(report, target))


def parse_columns(text: str) -> dict[str, str]:
    """Turn "user=author,time=t" into a mapping."""
    from incrowd.errors import InputError

    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    mapping = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if not all(ours and theirs for ours, theirs in mapping.items()) or len(mapping) < len(pairs):
        raise InputError(f"--columns: expected OURS=THEIRS,... with each of ours once, got '{text}'.")
    return mapping


def parse_kind(text: str | None) -> Kind | None:
    """Check the name of a table."""
    from incrowd.crowd.schema import KINDS
    from incrowd.errors import InputError

    for kind in KINDS:
        if text == kind:
            return kind
    if text is not None:
        raise InputError(f"--kind: expected one of {', '.join(KINDS)}, got '{text}'.")
    return None


def _summary(report: ImportReport, crowd: Crowd) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    lines = [Text(f"{report.added:,} of {report.rows:,} rows added to {crowd.path}", style="bold")]
    if report.known:
        lines.append(Text(f"imported before, nothing to do: {', '.join(report.known)}"))
    incomplete = [source.name for source in report.sources if source.incomplete]
    if incomplete:
        lines.append(Text(f"cut off, complete records kept: {', '.join(incomplete)}", style="yellow"))
    if not report.reasons:
        return Group(*lines)
    return Group(*lines, reason_table(report.reasons, "set aside"))


def reason_table(reasons: Mapping[str, int], title: str) -> Table:
    """Return rows set aside, by reason, in words."""
    from rich.table import Table

    from incrowd.crowd.schema import MEANING

    table = Table(title, "rows", "meaning", box=None, header_style="dim")
    for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1]):
        table.add_row(reason, f"{count:,}", MEANING.get(reason, ""))
    return table
