"""`incrowd study`: a paper's tables and figures on a crowd, one subcommand per study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import (
    AsJson,
    AttributeChoices,
    Cluster,
    Computing,
    Memory,
    Resume,
    Seed,
    TopicWords,
    in_groups,
    parse_memory,
    progress_bar,
    show,
    show_json,
    topic_words,
    writable,
)

if TYPE_CHECKING:
    from incrowd.study.figures import Study
    from incrowd.study.matched import PairStudyOptions

app = typer.Typer(no_args_is_help=True, help="Run a paper's experiments on a crowd.")

CrowdFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The crowd to study.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", callback=writable, help="Where to write the report (one offline HTML file)."),
]

Paper = Annotated[
    bool,
    typer.Option(
        "--paper", help="The paper's own settings, whatever else is given; the crowd must be large."
    ),
]


def finish(study: Study, out: Path | None, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    """Write the report if asked, and say what came out; JSON has more if there is more."""
    if out is not None:
        from incrowd.report.page import study_page, write

        write(out, study_page(study))
    if as_json:
        show_json(study.to_dict() | {"report": None if out is None else str(out)} | dict(more or {}))
        return
    show(
        f"{study.summary}\n" + (f"Report: {out}" if out else "Give --out report.html for tables and figures.")
    )


@app.command()
def microdata(
    crowd: CrowdFolder,
    out: Out = None,
    paper: Paper = False,
    sample: Annotated[int, typer.Option("--sample", help="People in the simulated parts.")] = 200,
    fewest: Annotated[int, typer.Option("--min-items", help="Leave out profiles with fewer items.")] = 8,
    most: Annotated[int, typer.Option("--max-items", help="Leave out profiles with more items.")] = 5000,
    memory: Memory = "1GiB",
    cluster: Cluster = "local",
    resume: Resume = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """How well do people hide in a table of items, and does their own score tell them (paper 002)?"""
    from incrowd.crowd import Crowd
    from incrowd.measures.microdata.spec import ProfileFilter
    from incrowd.measures.microdata.table import item_table
    from incrowd.study.microdata import microdata_study
    from incrowd.study.microdata_questions import StudyOptions

    options = StudyOptions(sample=sample, seed=seed, memory=parse_memory(memory))
    how = Computing(cluster=cluster, resume=resume)
    with progress_bar("reading items") as progress, how.engine() as engine:
        profiles = ProfileFilter() if paper else ProfileFilter(fewest=fewest, most=most)
        table = item_table(Crowd(crowd), profiles)
        study = microdata_study(table, options, progress, engine)
    finish(study, out, as_json)


MinPosts = Annotated[int, typer.Option("--min-posts", help="Leave out profiles with fewer posts.")]


@dataclass(frozen=True, kw_only=True)
class PairChoices:
    """Which identities and which pairs of communities take part."""

    paper: Paper = False
    min_posts: MinPosts = 20
    min_profiles: Annotated[
        int, typer.Option("--min-profiles", help="Leave out communities with fewer profiles of any length.")
    ] = 10
    min_pairs: Annotated[
        int, typer.Option("--min-pairs", help="Leave out pairs of communities that share fewer people.")
    ] = 5
    drop_largest: Annotated[
        int, typer.Option("--drop-largest", help="Leave out the largest communities.")
    ] = 0
    memory: Memory = "1GiB"

    def options(self) -> PairStudyOptions:
        """The same for the study."""
        from incrowd.study.matched import PairStudyOptions

        memory = parse_memory(self.memory)
        if self.paper:
            return PairStudyOptions.of_the_papers(memory)
        return PairStudyOptions(
            min_posts=self.min_posts,
            min_profiles=self.min_profiles,
            min_pairs=self.min_pairs,
            drop_largest=self.drop_largest,
            memory=memory,
        )


@app.command()
@in_groups
def anonymity(
    crowd: CrowdFolder,
    out: Out = None,
    *,
    pairs: PairChoices,
    how: Computing,
    as_json: AsJson = False,
) -> None:
    """How well do people hide in their communities (paper 000, table 1, figures 2 and 3)?"""
    from incrowd.crowd import Crowd
    from incrowd.study.anonymity import anonymity_study

    options = pairs.options()
    with progress_bar("counting words") as progress, how.compute(options.memory) as compute:
        study = anonymity_study(Crowd(crowd), options, progress, compute)
    finish(study, out, as_json)


@app.command()
@in_groups
def linkability(
    crowd: CrowdFolder,
    out: Out = None,
    source: Annotated[
        str | None, typer.Option("--source", help="First community of the pair shown in detail.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="Second community of that pair.")] = None,
    *,
    pairs: PairChoices,
    how: Computing,
    as_json: AsJson = False,
) -> None:
    """Who can be linked despite a crowd (paper 003, figures 5 to 12)?"""
    from incrowd.crowd import Crowd
    from incrowd.study.linkability import linkability_study

    options = pairs.options()
    with progress_bar("counting words") as progress, how.compute(options.memory) as compute:
        study = linkability_study(
            Crowd(crowd),
            options,
            source=source,
            target=target,
            topics=pairs.paper,
            progress=progress,
            compute=compute,
        )
    finish(study, out, as_json)


@app.command()
def exposure(
    crowd: CrowdFolder,
    labels: Annotated[
        Path, typer.Option("--labels", help="CSV with user, topic, vote (0 to 1): what judges said.")
    ],
    model: Annotated[
        list[Path] | None, typer.Option("--model", help="A space learnt by `exposure train`. Repeat it.")
    ] = None,
    topics: Annotated[
        Path | None, typer.Option("--topics", help="Your own topics (TOML) instead of the starter set.")
    ] = None,
    community: Annotated[str | None, typer.Option("--community", help="Rank within this community.")] = None,
    judges: Annotated[
        int | None, typer.Option("--judges", min=2, help="Judges per person, to tell how far they agree.")
    ] = None,
    out: Out = None,
    paper: Paper = False,
    memory: Memory = "1GiB",
    as_json: AsJson = False,
) -> None:
    """How well can an adversary tell who looks exposed (paper 004, tables 3 to 6)?"""
    from incrowd.cli.exposure import all_spaces
    from incrowd.crowd import Crowd
    from incrowd.measures.exposure.comparison import read_labels
    from incrowd.measures.exposure.spec import ExposureOptions
    from incrowd.study.exposure import exposure_study

    opened = Crowd(crowd)
    options = ExposureOptions(
        community=community, breadth_over="posts" if paper else "periods", memory=parse_memory(memory)
    )
    with progress_bar("comparing posts") as progress:
        judged = read_labels(labels, opened)
        study = exposure_study(opened, all_spaces(model, topics), judged, options, progress, judges=judges)
    finish(study, out, as_json)


@app.command()
@in_groups
def belief(
    crowd: CrowdFolder,
    out: Out = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="As --people 400 --sigma 0.5: the paper names no settings.")
    ] = False,
    people: Annotated[int, typer.Option("--people", help="Held-out people looked at, at most.")] = 400,
    sigma: Annotated[float, typer.Option("--sigma", help="What the tried policy allows, 0 to 1.")] = 0.5,
    *,
    attributes: AttributeChoices,
    topics: TopicWords = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """What do published attributes and words give away, how honestly, and what repairs it (paper 000, section 4)?"""
    from incrowd.crowd import Crowd
    from incrowd.study.belief import belief_study
    from incrowd.study.belief_experiments import BeliefStudyOptions

    options = BeliefStudyOptions(seed=seed)
    if not paper:
        options = replace(options, people=people, sigma=sigma)
    opened = Crowd(crowd)
    with progress_bar("hiding and guessing") as progress:
        study = belief_study(attributes.table(opened), options, opened, topic_words(topics), progress)
    finish(study, out, as_json)


@app.command()
def disclosures(
    crowd: CrowdFolder,
    out: Out = None,
    language: Annotated[str, typer.Option("--language", help="The language of the posts.")] = "en",
    as_json: AsJson = False,
) -> None:
    """How often do people's posts tell what an attributes table says of them, and how often rightly?"""
    from incrowd.crowd import Crowd
    from incrowd.measures.disclosures.spec import DisclosureOptions
    from incrowd.study.disclosures import disclosure_rates, disclosures_study

    options, opened = DisclosureOptions(language=language), Crowd(crowd)
    with progress_bar("reading posts") as progress:
        rates = disclosure_rates(opened, options, progress)
        study = disclosures_study(opened, rates, options)
    finish(study, out, as_json, {"attributes": {name: one.to_dict() for name, one in rates.items()}})


@app.command()
def release(
    crowd: CrowdFolder,
    out: Out = None,
    paper: Paper = False,
    attribute: Annotated[
        str | None, typer.Option("--attribute", help="What queries ask for: an attribute, or items.")
    ] = None,
    threshold: Annotated[
        list[int] | None, typer.Option("--threshold", min=2, help="Least q; may be given several times.")
    ] = None,
    aliases: Annotated[
        Path | None,
        typer.Option("--aliases", help='Known other names: {"LOTR": "The Lord of the Rings", ...}.'),
    ] = None,
    select_by: Annotated[
        list[str] | None,
        typer.Option(
            "--select-by",
            help="An attribute by which queries select; may be given again.",
            show_default="all but the one asked for",
        ),
    ] = None,
    classes: Annotated[int, typer.Option("--classes", min=1, help="Classes looked at, at most.")] = 40,
    seconds: Annotated[float, typer.Option("--seconds", help="Time budget of one question.")] = 1.0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """How much of its answers may leave the database, and by which rule (paper 001, figures 4 and 5)?"""
    from incrowd.crowd import Crowd
    from incrowd.measures.release.canonical import read_aliases
    from incrowd.study.release import release_study
    from incrowd.study.release_data import ReleaseStudyOptions

    options = ReleaseStudyOptions(
        attribute=attribute,
        aliases=read_aliases(aliases) if aliases else {},
        thresholds=(10, 27) if paper else tuple(threshold or (10, 27)),
        select_by=tuple(select_by or ()),
        classes=classes,
        seconds=seconds,
        seed=seed,
        timed=paper,
    )
    with progress_bar("reading who lists what") as progress:
        study = release_study(Crowd(crowd), options, progress)
    finish(study, out, as_json)


@app.command()
def validity(
    crowd: CrowdFolder,
    out: Out = None,
    community: Annotated[
        list[str] | None,
        typer.Option(
            "--community", help="Look at this community; may be given again.", show_default="the largest"
        ),
    ] = None,
    people: Annotated[
        int, typer.Option("--people", help="Attacked for each number of posts, at most.")
    ] = 400,
    rivals: Annotated[int, typer.Option("--rivals", help="Among whom they are looked for, at most.")] = 600,
    question: Annotated[
        list[str] | None,
        typer.Option("--question", help="posts, links or items; may be given again.", show_default="all"),
    ] = None,
    memory: Memory = "1GiB",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Is what people are told true? Predictions from earlier data, held against attacks that they do not use."""
    from incrowd.crowd import Crowd
    from incrowd.study.attacked import QUESTIONS, ValidityOptions
    from incrowd.study.validity import validity_study

    options = ValidityOptions(
        communities=tuple(community or ()),
        questions=tuple(question or QUESTIONS),
        people=people,
        rivals=rivals,
        seed=seed,
        memory=parse_memory(memory),
    )
    with progress_bar("predicting") as progress:
        study = validity_study(Crowd(crowd), options, progress)
    finish(study, out, as_json)


@app.command()
def card(
    crowd: CrowdFolder,
    source: Annotated[
        str, typer.Option("--source", help="The community people come from.", show_default=False)
    ],
    target: Annotated[
        str, typer.Option("--target", help="The community a card is made of.", show_default=False)
    ],
    out: Out = None,
    min_posts: MinPosts = 10,
    crowds: Annotated[int, typer.Option("--crowds", min=1, help="Made-up crowds to average over.")] = 10,
    k: Annotated[int, typer.Option("--k", min=2, help="List a word only if so many people use it.")] = 10,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="Make the card differentially private.")
    ] = None,
    memory: Memory = "1GiB",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """How well does a card stand in for a community, for people who are not in it?"""
    from incrowd.crowd import Crowd
    from incrowd.study.card import CardStudyOptions, card_rates, card_study

    options = CardStudyOptions(
        source=source,
        target=target,
        min_posts=min_posts,
        crowds=crowds,
        k=k,
        epsilon=epsilon,
        seed=seed,
        memory=parse_memory(memory),
    )
    opened = Crowd(crowd)
    with progress_bar("counting words") as progress:
        rates = card_rates(opened, options, progress)
        study = card_study(opened, rates, options)
    finish(study, out, as_json, rates.to_dict())
