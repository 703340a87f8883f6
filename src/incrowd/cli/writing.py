"""What writing gives away: incrowd anonymity (who writes alike), linkability, recognition and link (two accounts)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import (
    AsJson,
    Community,
    Computing,
    CrowdFolder,
    FailAbove,
    Memory,
    Seed,
    WordChoices,
    exit_for_person,
    exit_for_risk,
    in_groups,
    parse_memory,
    progress_bar,
    show,
    show_json,
    writable,
)

if TYPE_CHECKING:
    from incrowd.measures.anonymity.assess import CommunityAnonymity
    from incrowd.measures.linkability.rates import LinkRates
    from incrowd.measures.recognition.assess import CommunityRecognition, MemberRecognition
    from incrowd.measures.recognition.link import AccountLink


@in_groups
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
    *,
    words: WordChoices,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Write the crowd sizes over the radius as an SVG picture."),
    ] = None,
    memory: Memory = "1GiB",
    how: Computing,
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
        text=words.text,
        memory=parse_memory(memory),
    )
    opened = Crowd(crowd)
    person = opened.user(user) if user else None
    with progress_bar("comparing members") as progress, how.compute(options.memory, progress) as compute:
        result = community_anonymity(opened, options, compute=compute)
    if picture is not None:
        _draw_crowds(result, picture)
    if person is not None:
        assessment = member_anonymity(result, person, mentioned_by(opened, options, person))
        show_json(assessment.to_dict()) if as_json else show(assessment)
        exit_for_person([assessment], fail_above)
        return
    show_json(result.to_dict()) if as_json else _show_crowds(result)
    exit_for_risk(float((result.sizes < wanted).mean()), fail_above)


def _show_crowds(result: CommunityAnonymity) -> None:
    from rich.table import Table

    show(result.sentence())
    table = Table("members", "crowd of at most", "radius for the wanted crowd", title="From the most exposed")
    frame = result.to_frame()
    for share in (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9):
        row = frame.row(max(0, round(share * frame.height) - 1), named=True)
        table.add_row(f"{share:.0%}", f"{row['crowd']:,}", f"{row['radius_needed']:.3f}")
    show(table)


def _draw_crowds(result: CommunityAnonymity, picture: Path) -> None:
    picture.write_text(result.chart(), encoding="utf-8")


@in_groups
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
    *,
    words: WordChoices,
    seed: Seed = 0,
    memory: Memory = "1GiB",
    how: Computing,
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
        text=words.text,
        seed=seed,
        memory=parse_memory(memory),
    )
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
    show_json(rates.to_dict()) if as_json else _show_rates(rates)
    exit_for_risk(rates.hit_rates[0].hit.mean, fail_above)


def _show_rates(rates: LinkRates) -> None:
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


def recognition(
    crowd: CrowdFolder,
    community: Community,
    user: Annotated[
        str | None, typer.Option("--user", help="One member, by name: how few posts it takes.")
    ] = None,
    draws: Annotated[int, typer.Option("--draws", help="How often posts are drawn from each history.")] = 6,
    judged: Annotated[
        int, typer.Option("--judged", help="Try out at most so many people for each number of posts.")
    ] = 1_500,
    candidates: Annotated[
        int, typer.Option("--candidates", help="Compare with at most so many people; more are sampled.")
    ] = 5_000,
    seed: Seed = 0,
    memory: Memory = "1GiB",
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Find out how few posts, read elsewhere, it takes to recognise a member of a community.

    The later half of everybody's posts is held against the earlier half. The risk for --fail-above is the
    probability of being named after three posts: of the person or, without --user, of a member on average.
    """
    from incrowd.crowd import Crowd
    from incrowd.measures.recognition.assess import (
        community_recognition,
        member_recognition,
        recognition_assessment,
    )
    from incrowd.measures.recognition.spec import DEFAULT_KNOWN, RecognitionOptions

    options = RecognitionOptions(
        community=community,
        draws=draws,
        judged=judged,
        candidates=candidates,
        seed=seed,
        memory=parse_memory(memory),
    )
    opened = Crowd(crowd)
    person = opened.user(user) if user else None
    with progress_bar("holding later posts against earlier ones"):
        result = community_recognition(opened, options, keep=person)
        member = member_recognition(result, person) if person is not None else None
    if as_json:
        show_json(result.to_dict() | (member.to_dict() if member is not None else {}))
    else:
        _show_recognition(result, member)
    if member is not None:
        exit_for_person([recognition_assessment(member, options, opened.data_hash)], fail_above)
        return
    found = result.to_dict()["posts_known"][str(DEFAULT_KNOWN)]["found"]
    exit_for_risk(float("nan") if found is None else found, fail_above)


def _show_recognition(result: CommunityRecognition, member: MemberRecognition | None) -> None:
    from rich.table import Table

    from incrowd.result import say_percent

    if member is not None:
        show(f"It takes, to recognise you half of the time in {member.community}: {member.say_takes()}.")
    else:
        show(result.sentence())
    own = ["you", "90 % interval"] if member is not None else []
    table = Table("posts read elsewhere", "members tried", "recognised", "predicted", *own)
    for n, part in result.to_dict()["posts_known"].items():
        shares = [
            say_percent(part[name]) if part["people"] else "cannot tell" for name in ("found", "predicted")
        ]
        mine = []
        if member is not None and int(n) in member.probability:
            low, high = member.interval[int(n)]
            mine = [say_percent(member.probability[int(n)]), f"{say_percent(low)} to {say_percent(high)}"]
        table.add_row(n, f"{part['people']:,}", *shares, *mine)
    show(table)


WORDS_SHOWN = 12


def link(
    main: Annotated[Path, typer.Argument(help="The export of your main account.", show_default=False)],
    other: Annotated[Path, typer.Argument(help="The export of your other account.", show_default=False)],
    card: Annotated[
        Path | None, typer.Option("--card", help="Whom to compare with; left out: the card inside.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Your main account, if the first file holds several.")
    ] = None,
    other_user: Annotated[
        str | None, typer.Option("--other-user", help="Your other account, if the second file holds several.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", callback=writable, help="Also write the answer as one HTML file.")
    ] = None,
    seed: Seed = 0,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Can your two accounts be linked? Takes an export of each; nothing is stored and nothing is sent.

    The risk for --fail-above is the probability that somebody who has read both would put your first account first
    among the people of the card, looking for the writer of the second; where that cannot be told, it counts as above.
    """
    from incrowd.measures.card_crowd import crowd_of_export
    from incrowd.measures.recognition.link import link_accounts

    with progress_bar("reading") as progress:
        first = crowd_of_export([main], user, card, seed=seed)
        progress(1, 3, "reading")
        second = crowd_of_export([other], other_user, card, seed=seed)
        progress(2, 3, "comparing")
        found = link_accounts(first, second)
    if html is not None:
        from incrowd.report.page import page, write

        write(html, page("Can your two accounts be linked?", found.to_html(), data=found.to_dict()))
    if as_json:
        show_json(found.to_dict())
    else:
        _show_link(found)
        if html is not None:
            show(f"Page: {html}")
    exit_for_risk(found.probability, fail_above)


def _show_link(found: AccountLink) -> None:
    from rich.table import Table
    from rich.text import Text

    show(Text(found.sentence(), style="bold"))
    if found.found.reason:
        return
    table = Table("what gives you away", "share", box=None, header_style="dim")
    for part in found.shown[:WORDS_SHOWN]:
        table.add_row(Text(part.what), f"{part.contribution / max(found.likeness, 1e-9):.0%}")
    show(table)
    show(
        f"[dim]Estimated from a card of {found.found.members - 1:,} people, by the words of both accounts; style and "
        "phrases are allowed for on average. No guarantee against others.[/dim]"
    )
