"""incrowd demo: a synthetic crowd, one of its members assessed, a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import AsJson, Seed, progress_bar, show, show_json

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.crowd.synthetic.demo import Demo
    from incrowd.measures.anonymity.assess import CommunityAnonymity
    from incrowd.result import Assessment


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
    from incrowd.report.anonymity import crowd_chart
    from incrowd.report.page import write
    from incrowd.report.person import person_page

    made = synthetic.demo_person(users=users, seed=seed)
    with progress_bar("making up people") as progress:
        files = made.write(out / "files")
        progress(1, 3, "importing")
        crowd = _crowd(out / "crowd", files)
        progress(2, 3, "assessing")
        community, assessments = _assess(crowd, made)
    report = out / "report.html"
    lead = (
        f"{made.person} is one of {users:,} made-up people, writes in {' and '.join(made.communities)}, and rates "
        "films. How well does that hide them?"
    )
    write(report, person_page(f"{made.person} in the crowd", lead, assessments, [crowd_chart(community)]))
    if as_json:
        show_json(
            {
                "report": str(report),
                "crowd": str(crowd.path),
                "assessments": [a.to_dict() for a in assessments],
            }
        )
    else:
        _show(crowd, assessments, report, made.person)
    if open_report:
        typer.launch(str(report.resolve()))


def _crowd(folder: Path, files: list[Path]) -> Crowd:
    from incrowd.crowd import Crowd

    crowd = Crowd.open_or_create(folder, plain_names=True)
    for kind, file in zip(("posts", "items", "attributes"), files, strict=True):
        crowd.ingest([file], kind=kind)  # type: ignore[arg-type]
    return crowd


def _assess(crowd: Crowd, made: Demo) -> tuple[CommunityAnonymity, list[Assessment]]:
    from incrowd.measures.anonymity.assess import community_anonymity, member_anonymity
    from incrowd.measures.anonymity.spec import AnonymityOptions
    from incrowd.measures.linkability.assess import assess_person as assess_links
    from incrowd.measures.linkability.spec import LinkabilityOptions
    from incrowd.measures.microdata.assess import assess_person as assess_items

    source, target = made.communities
    user = crowd.user(made.person)
    community = community_anonymity(crowd, AnonymityOptions(community=source, radius=0.75))
    readers = (
        LinkabilityOptions(source=source, target=target, adversary="determined"),
        LinkabilityOptions(source=source, target=target),
    )
    return community, [
        *(assess_links(crowd, reader, user) for reader in readers),
        member_anonymity(community, user),
        *assess_items(crowd, made.person)[:1],
    ]


def _show(crowd: Crowd, assessments: list[Assessment], report: Path, person: str) -> None:
    info = crowd.info().to_dict()
    show(
        f"A crowd of {info['users']:,} made-up people: {info['posts']:,} posts in {info['communities']} communities, "
        f"{info['item_rows']:,} ratings. Here is {person}:"
    )
    for assessment in assessments:
        show(assessment)
    show(f"Report: {report}")
    show("Your own data: incrowd ingest YOUR-EXPORT.zip --crowd my-crowd, then incrowd info my-crowd")
