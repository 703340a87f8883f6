"""incrowd anonymity: how many people in a community are as like you as d."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import (
    AsJson,
    FailAbove,
    Memory,
    exit_for_person,
    exit_for_risk,
    parse_memory,
    progress_bar,
    show,
    show_json,
)
from incrowd.cli.options import (
    Cluster,
    Community,
    Computing,
    CrowdFolder,
    KeepStopwords,
    Kernel,
    Resume,
    TokenRule,
    Verbose,
    text_options,
)

if TYPE_CHECKING:
    from incrowd.measures.anonymity.assess import CommunityAnonymity


def anonymity(
    crowd: CrowdFolder,
    community: Community,
    user: Annotated[
        str | None, typer.Option("--user", help="One member, by name: their crowd in words.")
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(
            "--radius",
            help="How far apart two members may be and still count as alike.",
            show_default="0.8; 0.4 for angular-cosine, which ends at 0.5",
        ),
    ] = None,
    wanted: Annotated[int, typer.Option("--wanted", help="The crowd a member would like to hide in.")] = 10,
    min_posts: Annotated[int, typer.Option("--min-posts", help="Leave out members with fewer posts.")] = 1,
    model: Annotated[str, typer.Option("--model", help="unigram, indicator or tfidf.")] = "unigram",
    distance: Annotated[
        str, typer.Option("--distance", help="jensen-shannon, angular-cosine, total-variation or hellinger.")
    ] = "jensen-shannon",
    rule: Annotated[
        str, typer.Option("--rule", help="How the adversary chooses: inverse, normalised or softmax.")
    ] = "inverse",
    tokens: TokenRule = "full",
    keep_stopwords: KeepStopwords = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Write the crowd sizes over the radius as an SVG picture."),
    ] = None,
    memory: Memory = "1GiB",
    cluster: Cluster = "local",
    kernel: Kernel = "auto",
    resume: Resume = None,
    verbose: Verbose = False,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Count, for every member of a community, the people who write alike.

    The risk for --fail-above is the share of members whose crowd is smaller than --wanted or, with --user,
    one in the size of that person's crowd.
    """
    from incrowd.crowd import Crowd
    from incrowd.measures.anonymity.assess import community_anonymity, member_anonymity, mentioned_by
    from incrowd.measures.anonymity.spec import AnonymityOptions

    options = AnonymityOptions(
        community=community,
        **({} if radius is None else {"radius": radius}),
        wanted=wanted,
        min_posts=min_posts,
        model=model,  # type: ignore[arg-type]  # the value checks itself
        distance=distance,  # type: ignore[arg-type]
        rule=rule,  # type: ignore[arg-type]
        text=text_options(tokens, keep_stopwords),
        memory=parse_memory(memory),
    )
    how = Computing(cluster=cluster, kernel=kernel, resume=resume, verbose=verbose)
    opened = Crowd(crowd)
    person = opened.user(user) if user else None
    with progress_bar("comparing members") as progress, how.compute(options.memory, progress) as compute:
        result = community_anonymity(opened, options, compute=compute)
    if picture is not None:
        _draw(result, picture)
    if person is not None:
        assessment = member_anonymity(result, person, mentioned_by(opened, options, person))
        show_json(assessment.to_dict()) if as_json else show(assessment)
        exit_for_person([assessment], fail_above)
        return
    show_json(result.to_dict()) if as_json else _show(result)
    exit_for_risk(float((result.sizes < wanted).mean()), fail_above)


def _show(result: CommunityAnonymity) -> None:
    from rich.table import Table

    show(result.sentence())
    table = Table("members", "crowd of at most", "radius for the wanted crowd", title="From the most exposed")
    frame = result.to_frame()
    for share in (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9):
        row = frame.row(max(0, round(share * frame.height) - 1), named=True)
        table.add_row(f"{share:.0%}", f"{row['crowd']:,}", f"{row['radius_needed']:.3f}")
    show(table)


def _draw(result: CommunityAnonymity, picture: Path) -> None:
    picture.write_text(result.chart(), encoding="utf-8")
