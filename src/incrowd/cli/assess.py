"""incrowd assess: everything that applies to one person; crowd-report: how the risk is spread over everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import (
    AdvisorChoices,
    AsJson,
    CrowdFolder,
    FailAbove,
    Memory,
    Seed,
    WordChoices,
    answer_frugally,
    complain,
    exit_for_risk,
    in_groups,
    parse_memory,
    progress_bar,
    show,
    show_json,
    writable,
)

if TYPE_CHECKING:
    from incrowd.advisor.answer import PersonReport
    from incrowd.advisor.crowd_report import CrowdReport


@in_groups
def assess(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="EXPORT...|DIR", help="Files of your own export, or a crowd's folder.", show_default=False
        ),
    ],
    user: Annotated[
        str | None,
        typer.Option("--user", help="You, by name; left out: the export's only account.", show_default=False),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option("--card", help="For an export: whom to compare with; left out: the card inside."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", callback=writable, help="Also write the report as one HTML file."),
    ] = None,
    label: Annotated[
        Path | None, typer.Option("--label", callback=writable, help="Also draw the label (SVG).")
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare", help="An earlier report (JSON): also say what changed since.", show_default=False
        ),
    ] = None,
    adversary: Annotated[
        list[str] | None, typer.Option("--adversary", help="Only this adversary; may be given again.")
    ] = None,
    people: Annotated[
        float, typer.Option("--people", help="Your target: hide among at least so many people.")
    ] = 10,
    most_loss: Annotated[
        float, typer.Option("--most-loss", help="Advice gives up at most this share of what you have.")
    ] = 0.5,
    most_communities: Annotated[
        int,
        typer.Option("--most-communities", help="Look at so many of your communities, the largest first."),
    ] = 4,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough/--no-thorough",
            help="Also ask whether a few posts give you away and whether your profiles can be linked: takes longest.",
        ),
    ] = True,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Compare everybody with everybody, also in large crowds: takes long."),
    ] = False,
    communities: Annotated[int | None, typer.Option("--communities", hidden=True)] = None,
    quick: Annotated[bool, typer.Option("--quick", hidden=True)] = False,
    quote: Annotated[
        bool, typer.Option("--quote", help="Quote your own posts where the advice names them.")
    ] = False,
    *,
    choices: AdvisorChoices,
    seed: Seed = 0,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Assess one person with every measure that applies: verdict, reasons, and what to do about it.

    With the files of your export you are compared with people made up from a card (one comes with incrowd: people who
    write on Reddit); with a crowd's folder, with the people in it. Nothing is stored and nothing is sent.

    Of each question the plausible adversary decides; the worst answer is the verdict, and what cannot be measured is
    named. The risk for --fail-above goes from 0 to 1: how often that adversary would be right about you. Above 0.5 is
    "at risk", above 0.1 "watch".
    """
    answer_frugally()  # before anything loads NumPy

    from dataclasses import replace

    from incrowd.advisor.assess import assess as ask
    from incrowd.advisor.compare import Earlier, since
    from incrowd.measures.protocol import Targets

    options = choices.options(
        adversaries=tuple(adversary or ()),
        targets=Targets(people=people, loss=most_loss),
        most_communities=most_communities if communities is None else communities,
        thorough=thorough and not quick,
        exact=exact,
        quote_posts=quote,
        seed=seed,
    )
    earlier = None if compare is None else Earlier.read(compare)
    with progress_bar("reading") as progress:
        report = ask(sources, user, card=card, options=options, progress=progress)
    if earlier is not None:
        report = replace(report, since=since(earlier, report))
    write_report(report, html, label)
    if as_json:
        show_json(report.to_dict())
    else:
        show_report(report)
        if html is not None:
            show(f"Report: {html}")
    exit_for_risk(report.risk, fail_above)


def write_report(report: PersonReport, html: Path | None, label: Path | None = None) -> None:
    """Write the page and the picture that were asked for."""
    if html is None and label is None:
        return
    from incrowd.report.page import write
    from incrowd.report.person import person_label, person_report_page

    if html is not None:
        write(html, person_report_page(report))
    if label is not None:
        write(label, person_label(report).svg())


def show_report(report: PersonReport) -> None:
    """Print the answer in the order in which to read it."""
    from incrowd.report.person_terminal import render

    show(render(report))


@in_groups
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
    *,
    words: WordChoices,
    memory: Memory = "1GiB",
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Report how the risk is spread over a whole crowd. Totals only: nobody is named or pointed at.

    People are assessed one by one, by the rule of `incrowd assess`: a second or so for each. The risk for --fail-above
    is the share of people at risk.
    """
    from incrowd.advisor.crowd_report import crowd_report as make_report
    from incrowd.crowd import Crowd
    from incrowd.measures.crowd_rates import CrowdOptions

    options = CrowdOptions(
        radius=radius,
        wanted=wanted,
        smallest=smallest,
        min_posts=min_posts,
        sampled=people,
        text=words.text,
        memory=parse_memory(memory),
    )
    with progress_bar("counting words") as progress:
        report = make_report(Crowd(crowd), options=options, progress=progress)
    if html is not None:
        from incrowd.report.crowd import crowd_report_page
        from incrowd.report.page import write

        write(html, crowd_report_page(report))
    show_json(report.to_dict()) if as_json else _show_crowd_report(report)
    if html is not None and not as_json:
        show(f"Report: {html}")
    if fail_above is not None and not report.risk <= fail_above:
        complain(f"--fail-above {fail_above:g}: {report.why()}")
    exit_for_risk(report.risk, fail_above)


def _show_crowd_report(report: CrowdReport) -> None:
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
