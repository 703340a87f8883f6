"""incrowd crowd-report: how the risk is spread over everybody, for data officers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import (
    AsJson,
    FailAbove,
    Memory,
    complain,
    exit_for_risk,
    parse_memory,
    progress_bar,
    show,
    show_json,
    writable,
)
from incrowd.cli.options import CrowdFolder, KeepStopwords, TokenRule, text_options

if TYPE_CHECKING:
    from incrowd.advisor.crowd_report import CrowdReport


def crowd_report(
    crowd: CrowdFolder,
    html: Annotated[
        Path | None,
        typer.Option("--html", callback=writable, help="Write the report as one offline page."),
    ] = None,
    radius: Annotated[float, typer.Option("--radius", help="Who counts as writing alike.")] = 0.8,
    wanted: Annotated[
        int, typer.Option("--wanted", help="The crowd everybody should have: 2, 5, 10, 20, 50 or 100.")
    ] = 10,
    smallest: Annotated[
        int, typer.Option("--smallest", help="Tell no count of people below this, name no smaller community.")
    ] = 10,
    min_posts: Annotated[
        int, typer.Option("--min-posts", help="Profiles with fewer posts are not linked.")
    ] = 10,
    people: Annotated[
        int,
        typer.Option(
            "--people", help="Assess so many people, chosen at random; everybody if there are no more."
        ),
    ] = 100,
    tokens: TokenRule = "full",
    keep_stopwords: KeepStopwords = False,
    memory: Memory = "1GiB",
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Report how the risk is spread over a whole crowd. Totals only: nobody is named or pointed at.

    People are assessed one by one, by the rule of `incrowd assess`: a second or so for each. The risk for --fail-above
    is the share of people at risk.
    """
    from incrowd.advisor.crowd_report import CrowdOptions
    from incrowd.advisor.crowd_report import crowd_report as make_report
    from incrowd.crowd import Crowd

    options = CrowdOptions(
        radius=radius,
        wanted=wanted,
        smallest=smallest,
        min_posts=min_posts,
        sampled=people,
        text=text_options(tokens, keep_stopwords),
        memory=parse_memory(memory),
    )
    with progress_bar("counting words") as progress:
        report = make_report(Crowd(crowd), options=options, progress=progress)
    if html is not None:
        from incrowd.report.crowd import crowd_report_page
        from incrowd.report.page import write

        write(html, crowd_report_page(report))
    show_json(report.to_dict()) if as_json else _show(report)
    if html is not None and not as_json:
        show(f"Report: {html}")
    if fail_above is not None and not report.risk <= fail_above:
        complain(f"--fail-above {fail_above:g}: {report.why()}")
    exit_for_risk(report.risk, fail_above)


def _show(report: CrowdReport) -> None:
    from rich.markup import escape
    from rich.table import Table

    from incrowd.report.crowd import below_table, community_table, level_table, threat_table

    show(f"[bold]{escape(report.sentence())}[/bold]")
    show(f"{escape(report.whom())}\n")
    papers = [below_table(one) for one in report.spreads]
    papers += [community_table(report)] if report.communities else []
    for one in (level_table(report), threat_table(report), *papers):
        if papers and one is papers[0]:
            show("\n[bold]For researchers: the papers' own numbers, of everybody[/bold]")
        table = Table(*one.columns, title=one.title, title_justify="left", box=None, header_style="dim")
        for row in one.rows:
            table.add_row(*(escape(f"{cell:,.4g}" if isinstance(cell, float) else str(cell)) for cell in row))
        show(table)
    show(f"[dim]{report.rounding()}[/dim]")
    for line in report.not_measured:
        show(f"[dim]Not measured: {escape(line)}.[/dim]")
