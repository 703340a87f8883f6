"""incrowd forget: take people, or what is old, out of a crowd; or delete the crowd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import AsJson, CrowdFolder, say, show, show_json

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from incrowd.crowd.forget import Forgotten


def forget(
    crowd: CrowdFolder,
    user: Annotated[
        str | None, typer.Option("--user", help="Forget this person: a name, or the id the crowd keeps.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", help="Forget what is older than this date, e.g. 2024-01-31 (UTC)."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a whole crowd is deleted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a person's rows, or old ones, from every part and cache of a crowd, and say what is left.

    Without --user and --before the whole crowd is deleted, after a question. A person who was forgotten is not
    collected again. Backups and copies elsewhere are yours to find.
    """
    from incrowd.crowd import Crowd
    from incrowd.crowd.forget import forget as remove
    from incrowd.crowd.forget import forget_everything
    from incrowd.errors import InputError

    if user is not None and before is not None:
        raise InputError("forget: expected --user or --before, got both. Run it twice.")
    opened = Crowd(crowd)
    if user is None and before is None:
        if not yes:
            _ask(opened.path, as_json=as_json)
        forget_everything(opened)
        if as_json:
            show_json({"deleted": str(opened.path)})
        else:
            say(f"{opened.path}: deleted. Copies and backups elsewhere are yours to find.")
        return
    done = (
        remove(opened, ids=[opened.user(user)])
        if user is not None
        else remove(opened, before=parse_date(before))
    )
    if as_json:
        show_json(done.to_dict())
    else:
        show(_summary(done))


def _ask(path: Path, *, as_json: bool) -> None:
    import sys

    from incrowd.errors import InputError

    if as_json or not sys.stdin.isatty():
        raise InputError(
            f"forget: without --user or --before the whole crowd {path} is deleted, and nobody is there to ask. "
            "Pass --yes."
        )
    if not typer.confirm(f"Delete the whole crowd {path}, with everybody in it?", err=True):
        raise typer.Exit(2)


def parse_date(text: str | None) -> int:
    """Turn 2024-01-31 into UTC seconds."""
    from datetime import UTC, datetime

    from incrowd.errors import InputError

    try:
        at = datetime.fromisoformat((text or "").strip())
    except ValueError:
        raise InputError(
            f"--before: expected a date such as 2024-01-31, got '{(text or '')[:40]}'."
        ) from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


def _summary(done: Forgotten) -> RenderableType:
    from rich.table import Table

    table = Table("", "removed", "left", box=None, header_style="dim")
    for kind, removed in done.removed.items():
        if removed or done.left[kind]:
            table.add_row(kind, f"{removed:,}", f"{done.left[kind]:,}")
    table.add_row("people", "", f"{done.people_left:,}")
    return table
