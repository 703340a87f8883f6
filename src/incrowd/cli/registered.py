"""A command for every registered measure that has no file of its own here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.console import AsJson, FailAbove, exit_for_risk, show, show_json
from incrowd.cli.options import CrowdFolder


def command_for(name: str) -> Callable[..., None]:
    """Return the command of one measure: one person by name, or everybody."""
    from incrowd.measures.protocol import measure_named

    def command(
        crowd: CrowdFolder,
        user: Annotated[
            str | None, typer.Option("--user", help="One person, by name; without it, everybody.")
        ] = None,
        fail_above: FailAbove = None,
        as_json: AsJson = False,
    ) -> None:
        _one(name, crowd, user, fail_above, as_json) if user else _everybody(name, crowd, as_json)

    command.__doc__ = measure_named(name).question
    return command


def _one(name: str, crowd: Path, user: str, fail_above: float | None, as_json: bool) -> None:
    from incrowd.advisor.assess import assess
    from incrowd.crowd import Crowd
    from incrowd.measures.protocol import AdvisorOptions, measure_named

    only = tuple(measure_named(name).adversaries)
    report = assess(Crowd(crowd), user, options=AdvisorOptions(adversaries=only, advice=False))
    own = [one for one in report.findings if one.assessment.measure == name]
    silent = [one for one in report.not_assessed if one.measure.split(" ")[0] == name]
    if as_json:
        show_json(
            {
                "assessments": [one.to_dict() for one in own],
                "not_assessed": [{"why": one.why, "remedy": one.remedy} for one in silent],
            }
        )
    else:
        for one in own:
            show(one.assessment)
        for missing in silent:
            show(f"[dim]Cannot tell: {missing.why}. {missing.remedy}[/dim]")
    exit_for_risk(report.risk, fail_above)


def _everybody(name: str, crowd: Path, as_json: bool) -> None:
    from incrowd.crowd import Crowd
    from incrowd.errors import InputError
    from incrowd.measures.crowd_rates import CrowdOptions
    from incrowd.measures.protocol import PreparedCrowd, measure_named
    from incrowd.result import to_plain

    rates = measure_named(name).everybody(PreparedCrowd.of(Crowd(crowd)), CrowdOptions())
    if rates is None:
        raise InputError(f"{name}: this measure tells nothing about everybody; name one person with --user")
    if as_json:
        show_json(to_plain(rates))
        return
    for spread in rates.spreads:
        below = ", ".join(f"{people.words()} below {size}" for size, people in spread.below)
        show(f"[bold]{spread.name}[/bold], {spread.people:,} {spread.who}: {below}")
    for line in rates.not_measured:
        show(f"[dim]Not measured: {line}.[/dim]")
