"""`incrowd microdata`: publish statistics, score a list, evaluate a crowd, assess one person."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import (
    AsJson,
    Cluster,
    Computing,
    FailAbove,
    Memory,
    Resume,
    Seed,
    exit_for_person,
    exit_for_risk,
    in_groups,
    parse_memory,
    progress_bar,
    show,
    show_json,
)

if TYPE_CHECKING:
    from incrowd.measures.microdata.evaluation import Evaluation
    from incrowd.measures.microdata.spec import Knowledge, ProfileFilter, ScoreSpec
    from incrowd.measures.microdata.statistics import Statistics, Taste

app = typer.Typer(
    no_args_is_help=True, help="If your items leaked without your name, how many others would fit?"
)

CrowdFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A crowd with items (incrowd ingest --kind items).")
]


class RoundingRule(StrEnum):
    """How a share of a profile becomes a number of items."""

    HALF_UP = "half-up"
    FLOOR = "floor"
    CEIL = "ceil"


@dataclass(frozen=True, kw_only=True)
class ItemChoices:
    """Which profiles take part, and which items count as rare."""

    fewest: Annotated[
        int, typer.Option("--min-items", min=1, help="Leave out profiles with fewer items.")
    ] = 8
    most: Annotated[int, typer.Option("--max-items", min=1, help="Leave out profiles with more items.")] = (
        5000
    )
    rare_below: Annotated[
        int, typer.Option("--rare-below", min=1, help="An item is rare if fewer people have it.")
    ] = 100
    rare_fraction: Annotated[
        float | None, typer.Option("--rare-fraction", help="Rare as a share of the crowd instead, e.g. 0.01.")
    ] = None

    def profiles(self) -> ProfileFilter:
        """Return whose items are looked at."""
        from incrowd.errors import InputError
        from incrowd.measures.microdata.spec import ProfileFilter

        if self.most < self.fewest:
            raise InputError(
                f"--max-items: expected at least --min-items, which is {self.fewest}; got {self.most}"
            )
        return ProfileFilter(fewest=self.fewest, most=self.most)

    def score(self) -> ScoreSpec:
        """Return how profiles are scored."""
        from incrowd.measures.microdata.spec import ScoreSpec

        return ScoreSpec(rare_below=self.rare_below, rare_fraction=self.rare_fraction)


@app.command()
@in_groups
def publish(
    crowd: CrowdFolder,
    out: Annotated[Path, typer.Option("--out", help="Where to write the statistics (JSON).")],
    page: Annotated[
        Path | None, typer.Option("--page", help="Also write the client as an offline HTML page.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Private folder of secrets between releases.", show_default="in DIR"),
    ] = None,
    smallest: Annotated[
        int, typer.Option("--smallest", min=1, help="No published number is about fewer people.")
    ] = 10,
    groups: Annotated[
        int | None, typer.Option("--groups", min=1, help="So many groups instead of finding out.")
    ] = None,
    taste: Annotated[
        int, typer.Option("--taste", min=0, help="Also publish counts for so many taste groups.")
    ] = 0,
    *,
    choices: ItemChoices,
    literal: Annotated[
        bool, typer.Option("--literal", help="Publish exact counts as the paper does. Unsafe: studies only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Publish popularity statistics with which people can score themselves."""
    from incrowd.crowd import Crowd
    from incrowd.measures.microdata import provider
    from incrowd.measures.microdata.spec import GroupSpec, ReleaseSpec
    from incrowd.measures.microdata.statistics import load_state, save_state

    opened = Crowd(crowd)
    _require_items(opened)
    folder = state or crowd / "microdata-release"
    spec = ReleaseSpec(crowd=smallest, taste_groups=taste, literal=literal)
    with progress_bar("counting") as progress:
        progress(0, None, "counting items")
        tally = provider.Tally.count(opened.items(), choices.score())
        previous = load_state(folder)
        publish_it = partial(
            provider.publish,
            tally,
            state=previous,
            release=spec,
            groups=GroupSpec(exactly=groups),
            profiles=choices.profiles(),
        )
        made = publish_it()
        if taste:
            made = publish_it(taste=_taste(opened, out, made[0], spec, tally.threshold, previous.secret))
    statistics, after = made
    # The state first: a release that nobody remembers must not be out.
    save_state(after, folder)
    statistics.write(out)
    if page is not None:
        _write_page(statistics, page)
    summary = _publication(statistics, tally.items.height, out, page)
    show_json(summary) if as_json else show(_sentences(summary))


@app.command()
def score(
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="Your items: one a line, JSON, or a table.")],
    statistics: Annotated[
        Path, typer.Option("--statistics", help="The provider's published statistics, or a card with items.")
    ],
    label: Annotated[Path | None, typer.Option("--label", help="Also draw the label (SVG).")] = None,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Score your own list of items with published statistics; the risk is 1 - score."""
    from incrowd.measures.microdata.card_section import read_statistics
    from incrowd.measures.microdata.client import read_items, score_assessments
    from incrowd.measures.microdata.client import score as score_items
    from incrowd.report.label import microdata_label, paper_label
    from incrowd.report.page import write

    result = score_items(read_items(items), read_statistics(statistics))
    picture = microdata_label(result)
    if label is not None:
        write(label, picture.svg())
    assessments = score_assessments(result)
    if as_json:
        show_json(result.to_dict() | {
            "label": picture.verdict,
            "label_paper": paper_label(result).verdict,
            "assessments": [one.to_dict() for one in assessments],
        })  # fmt: skip
    else:
        from rich.console import Group

        show(Group(picture.terminal(), *assessments))
    exit_for_risk(1 - result.score, fail_above)


@app.command()
@in_groups
def evaluate(
    crowd: CrowdFolder,
    *,
    choices: ItemChoices,
    percent: Annotated[
        str, typer.Option("--percent", help="How much of a profile they know: 10 or 5-20.")
    ] = "5-20",
    known: Annotated[
        int | None, typer.Option("--known", min=1, help="They know so many items, instead of a share.")
    ] = None,
    rounding: Annotated[
        RoundingRule, typer.Option("--rounding", help="How a share becomes a number of items.")
    ] = RoundingRule.HALF_UP,
    device: Annotated[str, typer.Option("--device", help="cpu, or gpu for one NVIDIA card.")] = "cpu",
    memory: Memory = "1GiB",
    cluster: Cluster = "local",
    resume: Resume = None,
    as_json: AsJson = False,
) -> None:
    """Compute everybody's exact crowd and compare the scores a client can compute with it."""
    from incrowd.crowd import Crowd
    from incrowd.errors import InputError
    from incrowd.measures.microdata import evaluation
    from incrowd.measures.microdata.table import item_table

    if device not in ("cpu", "gpu"):
        raise InputError(f"--device: expected cpu or gpu, got '{device}'")
    profiles, knowledge = choices.profiles(), _knowledge(percent, known, rounding)
    how = Computing(cluster=cluster, resume=resume)
    with progress_bar("reading items") as progress, how.engine() as engine:
        table = item_table(Crowd(crowd), profiles)
        result = evaluation.evaluate(
            table, knowledge=knowledge, score=choices.score(), memory=parse_memory(memory),
            device="gpu" if device == "gpu" else "cpu", engine=engine, progress=progress,
        )  # fmt: skip
    plain = result.to_dict() | {"profiles": {"fewest": choices.fewest, "most": choices.most}}
    show_json(plain) if as_json else show(_evaluation(result))


@app.command()
def assess(
    crowd: CrowdFolder,
    user: Annotated[str, typer.Option("--user", help="Whom to assess, by name (or id in the crowd).")],
    adversary: Annotated[
        list[str] | None, typer.Option("--adversary", help="Only this adversary; may be given again.")
    ] = None,
    memory: Memory = "1GiB",
    seed: Seed = 0,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Assess one person against every adversary; the risk is how often whoever knows three items picks them out."""
    from incrowd.crowd import Crowd
    from incrowd.measures.microdata.assess import assess_person
    from incrowd.measures.microdata.set_sizes import Effort

    with progress_bar("reading items") as progress:
        found = assess_person(
            Crowd(crowd), user, adversaries=adversary, effort=Effort(seed=seed),
            memory=parse_memory(memory), progress=progress,
        )  # fmt: skip
    if as_json:
        show_json({"assessments": [one.to_dict() for one in found]})
    else:
        from rich.console import Group

        show(Group(*found))
    exit_for_person(found, fail_above)


def _require_items(crowd: Any) -> None:
    from incrowd.errors import InputError

    if crowd.items().head(1).collect().is_empty():
        raise InputError(
            f"{crowd.path}: expected items, got none; import some with: incrowd ingest --kind items"
        )


def _taste(
    crowd: Any, out: Path, statistics: Statistics, spec: Any, threshold: int, secret: bytes
) -> tuple[Taste, ...]:
    """Repeat the taste groups that are out already; fit them only once."""
    from incrowd.measures.microdata.provider import publish_taste
    from incrowd.measures.microdata.statistics import load_statistics
    from incrowd.measures.microdata.table import item_table

    if out.exists() and (before := load_statistics(out).taste):
        return before
    return publish_taste(item_table(crowd), statistics.activity, spec, threshold, secret)


def _write_page(statistics: Statistics, path: Path) -> None:
    from incrowd.crowd.disk import PUBLIC
    from incrowd.report.page import microdata_page, write

    write(path, microdata_page(statistics), PUBLIC)


def _publication(statistics: Statistics, counted: int, out: Path, page: Path | None) -> dict[str, Any]:
    return {
        "release": statistics.number,
        "date": statistics.date,
        "users": statistics.users,
        "items_counted": counted,
        "items_listed": len(statistics.popularity),
        "groups": [{"centre": one.centre, "people": one.people} for one in statistics.groups],
        "rounded_down_to": 1 if statistics.parameters["literal"] else statistics.parameters["crowd"],
        "taste_groups": len(statistics.taste),
        "statistics": str(out),
        "page": None if page is None else str(page),
    }


def _sentences(summary: dict[str, Any]) -> str:
    from incrowd.result import say_count

    listed, counted = summary["items_listed"], summary["items_counted"]
    which = (
        f"all {counted:,} items are listed"
        if listed == counted
        else f"{listed:,} of {counted:,} items are listed; the others are too rare to be named"
    )
    step = summary["rounded_down_to"]
    rounded = f", rounded down to {step:,}s" if step > 1 else ""
    lines = [
        f"Release {summary['release']}: {summary['users']:,} people, {which}.",
        f"{say_count(len(summary['groups']), 'group')}, riskiest first{rounded}: "
        + ", ".join(f"{one['people']:,} people around {one['centre']:.2f}" for one in summary["groups"]),
        f"Statistics: {summary['statistics']}",
    ]
    return "\n".join(lines + ([f"Client page: {summary['page']}"] if summary["page"] else []))


def _knowledge(percent: str, known: int | None, rounding: str) -> Knowledge:
    from incrowd.measures.microdata.spec import Knowledge

    if known is not None:
        return Knowledge(percents=(), items=(known,))
    rule: Any = str(rounding)
    return Knowledge(percents=_percents(percent), rounding=rule)


def _percents(text: str) -> tuple[float, ...]:
    from incrowd.errors import InputError

    low, _, high = text.partition("-")
    try:
        found = (float(low),) if not high else tuple(float(p) for p in range(int(low), int(high) + 1))
    except ValueError:
        found = ()
    if not found or not all(0 < percent <= 100 for percent in found):
        raise InputError(
            f"--percent: expected a number above 0 and up to 100, or a range such as 5-20; got '{text}'"
        )
    return found


def _evaluation(result: Evaluation) -> Any:
    from rich.console import Group
    from rich.table import Table

    plain = result.to_dict()
    table = Table(
        "score", "Spearman", "Kendall", title="Agreement with the exact crowd (1 = same order)", box=None
    )
    for name, one in plain["scores"].items():
        table.add_row(name, *(("–" if v is None else f"{v:.3f}") for v in one.values()))
    lines = [
        f"{plain['users']:,} people, {plain['items']:,} items, {plain['entries']:,} entries.",
        f"The adversary: {plain['adversary']}.",
        f"Half of them hide among {plain['median_crowd']:.1f} people or fewer (exact, themselves included); "
        f"{plain['share_below']['2']:.0%} among fewer than 2.",
        *plain["warnings"],
    ]
    return Group("\n".join(lines), "", table)
