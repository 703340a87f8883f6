"""incrowd linkability: can two pseudonyms be linked?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import (
    AsJson,
    FailAbove,
    Memory,
    Seed,
    exit_for_person,
    exit_for_risk,
    parse_memory,
    progress_bar,
    show,
    show_json,
)
from incrowd.cli.options import (
    Cluster,
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
    from incrowd.measures.linkability.rates import LinkRates


def linkability(
    crowd: CrowdFolder,
    source: Annotated[
        str, typer.Option("--source", help="The community the adversary starts from.", show_default=False)
    ],
    target: Annotated[
        str, typer.Option("--target", help="The community they search for a match.", show_default=False)
    ],
    user: Annotated[
        str | None, typer.Option("--user", help="One person, by name: their own two profiles.")
    ] = None,
    adversary: Annotated[
        str, typer.Option("--adversary", help="unigram (the papers'), or determined (the strongest we know).")
    ] = "unigram",
    min_posts: Annotated[int, typer.Option("--min-posts", help="Leave out profiles with fewer posts.")] = 10,
    model: Annotated[str, typer.Option("--model", help="unigram, indicator, tfidf or topics.")] = "unigram",
    distance: Annotated[
        str, typer.Option("--distance", help="jensen-shannon or angular-cosine.")
    ] = "jensen-shannon",
    rule: Annotated[
        str,
        typer.Option("--rule", help="How a distance becomes a probability: inverse, normalised, softmax."),
    ] = "inverse",
    half_life: Annotated[
        float | None, typer.Option("--half-life", help="Days after which a word counts half.")
    ] = None,
    tokens: TokenRule = "full",
    keep_stopwords: KeepStopwords = False,
    seed: Seed = 0,
    memory: Memory = "1GiB",
    cluster: Cluster = "local",
    kernel: Kernel = "auto",
    resume: Resume = None,
    verbose: Verbose = False,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well an adversary links the people who are in both communities.

    Other people never appear: results are rates or, with --user, that person's own. The risk for --fail-above
    is the share of people whose match comes first or, with --user, how probably they are found.
    """
    from incrowd.crowd import Crowd
    from incrowd.measures.linkability.assess import assess_person, link_rates
    from incrowd.measures.linkability.in_words import say_bound
    from incrowd.measures.linkability.spec import LinkabilityOptions

    options = LinkabilityOptions(
        source=source,
        target=target,
        min_posts=min_posts,
        adversary=adversary,  # type: ignore[arg-type]  # the value checks itself
        model=model,  # type: ignore[arg-type]
        distance=distance,  # type: ignore[arg-type]
        rule=rule,  # type: ignore[arg-type]
        half_life=half_life,
        text=text_options(tokens, keep_stopwords),
        seed=seed,
        memory=parse_memory(memory),
    )
    how = Computing(cluster=cluster, kernel=kernel, resume=resume, verbose=verbose)
    opened = Crowd(crowd)
    with progress_bar("comparing profiles") as progress, how.compute(options.memory, progress) as compute:
        if user is not None:
            assessment = assess_person(opened, options, opened.user(user), compute)
        else:
            rates = link_rates(opened, options, compute)
    if user is not None:
        if as_json:
            show_json(assessment.to_dict())
        else:
            show(assessment)
            if bound := say_bound(assessment):
                show(bound)
        exit_for_person([assessment], fail_above)
        return
    show_json(rates.to_dict()) if as_json else _show(rates)
    exit_for_risk(rates.hit_rates[0].hit.mean, fail_above)


def _show(rates: LinkRates) -> None:
    from rich.table import Table

    show(rates.sentence())
    table = Table(
        "true match among the first", "share of people", "95 % interval", "guessing", "shuffled pairs"
    )
    for rate in rates.hit_rates:
        table.add_row(
            str(rate.k),
            f"{rate.hit.mean:.1%}",
            f"{rate.hit.low:.1%} to {rate.hit.high:.1%}",
            f"{rate.guess:.1%}",
            f"{rate.shuffled:.1%}",
        )
    show(table)
    _show_figures(rates.to_dict())
    for note in rates.notes:
        show(f"[dim]{note}[/dim]")


def _show_figures(figures: dict[str, Any]) -> None:
    """Print the further numbers, each with what it means; the curves are in --json."""
    from rich.table import Table

    rows = [
        ("mean_distance", "mean distance inside the target, and from source to target"),
        ("match_below_mean", "match nearer than the average stranger"),
        ("conformity_080", "local matching set at least 0.8 of the matching set"),
        ("anonymity_larger", "crowd at home larger than the matching set: risk underestimated"),
        ("anonymity_matching_spearman", "correlation of crowd at home and matching set"),
        (
            "estimated_share_found",
            "estimated share of sources whose best target is right, and its 95 % range",
        ),
    ]
    table = Table(box=None, show_header=False)
    for name, meaning in rows:
        if name in figures:
            table.add_row(meaning, _figure(figures[name]))
    if "calibration" in figures:
        table.add_row("mean gap between how sure and how right", _figure(figures["calibration"]["error"]))
        table.add_row(
            "the same without knowing that there is a match", _figure(figures["calibration_open"]["error"])
        )
    show(table)


def _figure(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(_figure(part) for part in value.values())
    return "undefined" if value is None else f"{value:.3f}"
