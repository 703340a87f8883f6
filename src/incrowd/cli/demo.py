"""incrowd demo: a synthetic crowd, one of its members assessed, their report."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.assess import show_report, write_report
from incrowd.cli.console import AsJson, Seed, progress_bar, show, show_json

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

YOUR_OWN = (
    "Your own data: incrowd ingest YOUR-EXPORT.zip --crowd my-crowd, then "
    "incrowd assess my-crowd --user YOUR-NAME"
)


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the files, the crowd and the report.")
    ] = Path("incrowd-demo"),
    users: Annotated[int, typer.Option("--users", help="How many people to make up.", min=50)] = 400,
    open_report: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Open the report in the browser [default: if there is a screen]."
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make up a crowd, import it, assess one of its members, write and open their report.

    Everybody in it is invented. The same seed makes the same crowd.
    """
    from incrowd import assess, synthetic

    made = synthetic.demo_person(users=users, seed=seed)
    with progress_bar("making up people") as progress:
        files = made.write(out / "files")
        progress(1, 3, "importing")
        crowd = _crowd(out / "crowd", files)
        report = assess(crowd, made.person, progress=progress)
    page = out / "report.html"
    write_report(report, page, out / "label.svg")
    if as_json:
        show_json({"report": str(page), "crowd": str(crowd.path), **report.to_dict()})
    else:
        _introduce(crowd, made.person)
        show_report(report)
        show(f"Report: {page}")
        typer.echo(YOUR_OWN)
    if _has_screen() if open_report is None else open_report:
        typer.launch(str(page.resolve()))


def _crowd(folder: Path, files: list[Path]) -> Crowd:
    from incrowd.crowd import Crowd

    crowd = Crowd.open_or_create(folder, plain_names=True)
    for kind, file in zip(("posts", "items", "attributes"), files, strict=True):
        crowd.ingest([file], kind=kind)  # type: ignore[arg-type]
    return crowd


def _introduce(crowd: Crowd, person: str) -> None:
    info = crowd.info().to_dict()
    show(
        f"A crowd of {info['users']:,} made-up people: {info['posts']:,} posts in {info['communities']} communities, "
        f"{info['item_rows']:,} ratings. How well does {person} hide in it?"
    )


def _has_screen() -> bool:
    """Say whether a browser could show something: somebody sits at a terminal, and there is a display."""
    displayed = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return displayed and sys.stdout.isatty()
