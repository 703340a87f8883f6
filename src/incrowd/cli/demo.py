"""incrowd demo: a synthetic crowd, one of its members assessed, a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.assess import show_report, write_report
from incrowd.cli.console import AsJson, Progress, Seed, open_in_browser, progress_bar, show, show_json

if TYPE_CHECKING:
    from incrowd.advisor.answer import PersonReport
    from incrowd.crowd import Crowd


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the files, the crowd and the report.")
    ] = Path("incrowd-demo"),
    users: Annotated[int, typer.Option("--users", help="How many people to make up.", min=50)] = 400,
    open_report: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report in the browser.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make up a crowd, import it, assess one of its members, write a report.

    Everybody in it is invented. The same seed makes the same crowd.
    """
    from incrowd import synthetic

    made = synthetic.demo_person(users=users, seed=seed)
    with progress_bar("making up people") as progress:
        files = made.write(out / "files")
        crowd = _crowd(out / "crowd", files, progress)
        answer = _assess(crowd, made.person, seed, progress)
    page = out / "report.html"
    write_report(answer, page)
    if as_json:
        show_json(answer.to_dict() | {"report": str(page), "crowd": str(crowd.path)})
    else:
        _show(crowd, answer, out)
    if open_report:
        open_in_browser(page.resolve().as_uri())


def _crowd(folder: Path, files: list[Path], progress: Progress) -> Crowd:
    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import KINDS

    crowd = Crowd.open_or_create(folder, plain_names=True)
    for step, (kind, file) in enumerate(zip(KINDS, files, strict=True)):
        progress(step, len(files), f"importing {kind}")
        crowd.ingest([file], kind=kind)
    return crowd


def _assess(crowd: Crowd, person: str, seed: int, progress: Progress) -> PersonReport:
    from incrowd.advisor.assess import assess
    from incrowd.advisor.spec import AdvisorOptions

    return assess(crowd, person, options=AdvisorOptions(seed=seed), progress=progress)


def _show(crowd: Crowd, answer: PersonReport, out: Path) -> None:
    info = crowd.info()
    show(
        f"A crowd of {info.users:,} made-up people: {info.posts:,} posts in {info.communities} communities, "
        f"{info.item_rows:,} ratings. Here is {answer.person}:\n"
    )
    show_report(answer)
    show(f"Report: {out / 'report.html'}")
    show(f"With what-if and drafts: incrowd serve {out / 'crowd'} --open")
    show("Your own data: incrowd serve my-crowd --open, then drop in YOUR-EXPORT.zip")
