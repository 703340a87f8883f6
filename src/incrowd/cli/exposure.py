"""`incrowd exposure`: where somebody ranks for a sensitive topic, as an adversary would see it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import (
    AsJson,
    FailAbove,
    Memory,
    Seed,
    exit_for_risk,
    in_groups,
    parse_memory,
    progress_bar,
    show,
    show_json,
)

if TYPE_CHECKING:
    from incrowd.measures.exposure.comparison import MethodComparison
    from incrowd.measures.exposure.space import Space
    from incrowd.measures.exposure.spec import ExposureOptions
    from incrowd.measures.exposure.topics import TopicSet
    from incrowd.result import Assessment

MOST_SHOWN = 3
app = typer.Typer(
    no_args_is_help=True, help="Where do you rank for a sensitive topic, to somebody who looks?"
)

CrowdFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A crowd with posts.")]
TopicFile = Annotated[
    Path | None, typer.Option("--topics", help="Your own topics (TOML) instead of the starter set.")
]
Model = Annotated[
    list[Path] | None,
    typer.Option(
        "--model", help="A space of `exposure train` or `exposure learn`.", show_default="learnt words"
    ),
]
Community = Annotated[
    str | None,
    typer.Option("--community", help="Rank within this community.", show_default="the whole crowd"),
]
Dimensions = Annotated[
    str, typer.Option("--dimension", help="T (time), DT (breadth and time), D, or none for strength alone.")
]
AsPrinted = Annotated[bool, typer.Option("--literal", help="The definitions as printed, for comparison.")]


@dataclass(frozen=True, kw_only=True)
class RankingChoices:
    """Whom to rank, by which spaces, and which interests count as lasting or broad."""

    community: Community = None
    model: Model = None
    file: TopicFile = None
    breadth: Annotated[
        float, typer.Option("--breadth", help="k: the share of a domain that makes it broad.")
    ] = 0.3
    breadth_over: Annotated[
        str,
        typer.Option(
            "--breadth-over", help="Measure breadth for DT by the best periods, or as in the paper: posts."
        ),
    ] = "periods"
    weeks: Annotated[
        int, typer.Option("--weeks", help="m: in how many periods a lasting interest shows.")
    ] = 3
    days: Annotated[int, typer.Option("--days", help="Length of a period in days.")] = 7
    memory: Memory = "1GiB"

    def options(self, dimension: str, literal: bool = False) -> ExposureOptions:
        """The same for the measure."""
        from incrowd.measures.exposure.spec import ExposureOptions

        return ExposureOptions(
            community=self.community,
            dimension="" if dimension == "none" else dimension,  # type: ignore[arg-type]  # the value checks itself
            breadth=self.breadth,
            breadth_over=self.breadth_over,  # type: ignore[arg-type]  # the value checks itself
            weeks=self.weeks,
            days=self.days,
            literal=literal,
            memory=parse_memory(self.memory),
        )


@app.command()
def topics(
    file: TopicFile = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the starter set to a file, to edit or translate.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the topics, their domains and words; check a file of your own."""
    from incrowd.measures.exposure.space import learnt_figures
    from incrowd.measures.exposure.topics import starter_file

    if out is not None:
        out.write_text(starter_file(), encoding="utf-8")
    chosen = _topics(file)
    if as_json:
        show_json({
            "topics": [
                {"name": t.name, "domain": t.domain, "sensitive": t.sensitive, "words": list(t.words)}
                for t in chosen.topics
            ],
            "hash": chosen.hash,
            "written": None if out is None else str(out),
            "learnt": learnt_figures() if file is None else None,
        })  # fmt: skip
        return
    from rich.table import Table

    table = Table("topic", "domain", "words")
    for topic in chosen.topics:
        name = topic.name if topic.sensitive else f"{topic.name} (everyday)"
        table.add_row(name, topic.domain, ", ".join(topic.words))
    show(table)
    if out is not None:
        show(f"Written to {out}; change it and pass it with --topics.")


@app.command()
def train(
    crowd: CrowdFolder,
    out: Annotated[Path, typer.Option("--out", help="Where to write the space (one file).")],
    space: Annotated[str, typer.Option("--space", help="lda, word2vec or embeddings.")] = "lda",
    dims: Annotated[int, typer.Option("--dims", help="Latent dimensions (embeddings come with 256).")] = 500,
    rounds: Annotated[int, typer.Option("--rounds", help="Passes over the corpus.")] = 300,
    min_count: Annotated[int, typer.Option("--min-count", help="Leave out words used less often.")] = 5,
    placing: Annotated[
        str, typer.Option("--placing", help="Where a topic lies in LDA: posts, or dimension as in the paper.")
    ] = "posts",
    literal: Annotated[
        bool,
        typer.Option("--literal", help="word2vec as in the paper; every post then looks like every topic."),
    ] = False,
    plain: Annotated[
        bool,
        typer.Option("--plain-cosine", help="The paper's cosine for LDA, max(0, cosine) alone for word2vec."),
    ] = False,
    community: Community = None,
    file: TopicFile = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a space from a background crowd: what an adversary knows before looking at anybody."""
    from incrowd.crowd import Crowd
    from incrowd.errors import InputError
    from incrowd.measures.exposure import training
    from incrowd.measures.exposure.learnt_spaces import save_space
    from incrowd.measures.exposure.scoring import post_batches
    from incrowd.measures.exposure.spec import ExposureOptions

    if space not in ("lda", "word2vec", "embeddings"):
        raise InputError(f"--space must be lda, word2vec or embeddings, got '{space}'")
    if not out.absolute().parent.is_dir():  # to be told after an hour of learning would be too late
        raise InputError(f"{out}: expected an existing folder to write to; make it, or choose another --out")
    chosen, opened = _topics(file), Crowd(crowd)
    options = training.TrainOptions(
        dims=dims,
        rounds=rounds,
        min_count=min_count,
        placing=placing,  # type: ignore[arg-type]  # the value checks itself
        literal=literal,
        plain=plain,
        seed=seed,
    )
    with progress_bar("reading posts") as progress:
        opened.posts(community)
        batches = post_batches(opened, ExposureOptions(community=community))
        posts = training.documents((batch["text"] for batch in batches), options)
        if space == "lda":
            learnt: Any = training.train_lda(posts, chosen, options, progress)
        elif space == "word2vec":
            progress(0, None, "learning word vectors")
            learnt = training.train_word2vec(posts, chosen, options)
        else:
            progress(0, None, "placing topics")
            learnt = training.learn_embeddings(posts, chosen, options)
    dims = learnt.topic_vectors.shape[1]
    origin = {
        "data_hash": opened.data_hash, "posts": len(posts), "dims": dims, "rounds": rounds, "placing": placing,
        "literal": literal, "plain_cosine": plain, "min_count": min_count, "text": options.text.hash, "seed": seed,
    }  # fmt: skip
    save_space(learnt, out, origin)
    result = {"space": learnt.name, "hash": learnt.hash, "words": len(learnt.words), "out": str(out)} | origin
    show_json(result) if as_json else show(
        f"Learnt {learnt.name} from {len(posts):,} posts: {len(learnt.words):,} words, {dims} dimensions. "
        f"Use it with --model {out}."
    )


@app.command()
def learn(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A crowd with posts, or a JSONL file of community, text and title (.zst too).",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the weights (one JSON file).")],
    weights: Annotated[int, typer.Option("--weights", help="Words and pairs kept for each topic.")] = 1_000,
    file: TopicFile = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn which words and pairs tell a topic, from communities about it; the default was made by this.

    The topic file says which communities a topic has. Half of the posts teach, the other half judges.
    """
    from incrowd.errors import InputError
    from incrowd.measures.exposure import learning, space

    if not out.absolute().parent.is_dir():
        raise InputError(f"{out}: expected an existing folder to write to; make it, or choose another --out")
    chosen, options = _topics(file), learning.LearnOptions(weights=weights, seed=seed)
    with progress_bar("reading posts") as progress:
        posts = _corpus(source)
        learnt = learning.learn(learning.read_corpus(posts, chosen, options), chosen, options, progress)
    about = learnt.about(posts, options)
    out.write_text(space.write_weighted(learnt.space, about), encoding="utf-8", newline="\n")
    if as_json:
        show_json(about | {"out": str(out)})
        return
    held = about["held_out"]
    show(
        f"{held['topics']} topics learnt from communities: held-out AUC {held['median']:.3f} in the middle, "
        f"{held['lowest']:.3f} at worst. {len(learnt.space.words):,} words and pairs. Use it with --model {out}."
    )


def _corpus(source: Path) -> Any:
    """Read community and text of all posts of a crowd or a file; a title is part of its text."""
    import polars as pl

    from incrowd.crowd import Crowd
    from incrowd.errors import SchemaError, UnreadableSource

    if source.is_dir():
        return Crowd(source).posts().select("community", "text").collect()
    try:
        frame = pl.read_ndjson(_unpacked(source))
    except FileNotFoundError:
        raise UnreadableSource(f"{source}: no such file or crowd") from None
    except (pl.exceptions.PolarsError, OSError):
        raise UnreadableSource(f"{source}: expected one JSON object a line with community and text") from None
    if missing := {"community", "text"} - set(frame.columns):
        raise SchemaError(f"{source}: expected community and text in every line; '{min(missing)}' is missing")
    parts = [name for name in ("title", "text") if name in frame.columns]
    return frame.select("community", text=pl.concat_str(parts, separator=" ", ignore_nulls=True))


def _unpacked(source: Path) -> bytes:
    from backports import zstd

    packed = source.read_bytes()
    return zstd.decompress(packed) if source.suffix == ".zst" else packed


@app.command()
def annotate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An LDA space learnt by `exposure train`.")],
    page: Annotated[
        Path | None, typer.Option("--page", help="Write a form for judges as an offline HTML page.")
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option("--sheet", help="Write the form as CSV, for crowdsourcing.")
    ] = None,
    votes: Annotated[
        list[Path] | None, typer.Option("--votes", help="Judges' answers (CSV). Repeat it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the judged topics as a topic file (TOML).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Have judges say which latent topics are sensitive; count their votes and how far they agree."""
    from incrowd.errors import InputError
    from incrowd.measures.exposure import training
    from incrowd.measures.exposure.learnt_spaces import LdaSpace, load_space

    space = load_space(model)
    if not isinstance(space, LdaSpace):
        raise InputError(f"{model}: only an LDA space has latent topics to judge, got {space.name}")
    if not (page or sheet or votes):
        raise InputError("say what to do: --page or --sheet to ask judges, --votes to count their answers")
    words = training.salient_words(space)
    result: dict[str, Any] = {"topics": len(words)}
    if page is not None:
        from incrowd.report.page import judges_page, write

        write(page, judges_page(words, training.DOMAINS))
    if sheet is not None:
        training.sheet(space).write_csv(sheet)
    if votes:
        verdict = training.decide(training.read_votes(votes, len(words)))
        result |= verdict.to_dict()
        if out is not None:
            out.write_text(training.topics_toml(space, verdict), encoding="utf-8")
    show_json(result) if as_json else show(_annotated(result))


@app.command()
@in_groups
def rank(
    crowd: CrowdFolder,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="A topic. Repeat it.", show_default="all")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="Your own name: where you rank and why.")] = None,
    quantiles: Annotated[
        Path | None,
        typer.Option(
            "--quantiles", help="A crowd's published quantiles: DIR then needs your own posts only."
        ),
    ] = None,
    *,
    ranking: RankingChoices,
    dimension: Dimensions = "T",
    literal: AsPrinted = False,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Definition 9: DT, breadth over all posts, k = 0.3, m = 3 weeks."),
    ] = False,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Rank people by how they look to an adversary; with --user your own place, otherwise only totals.

    Nobody else is ever named. The risk for --fail-above is the share of people who look less exposed than
    you, from 0 to 1, for your worst topic.
    """
    from incrowd.crowd import Crowd
    from incrowd.errors import InputError
    from incrowd.measures.exposure.assess import (
        assess_alone,
        assess_topics,
        load_quantiles,
        most_exposed_first,
        points_nowhere,
    )
    from incrowd.measures.exposure.scoring import score, summary

    if paper:
        dimension = "DT"
        ranking = replace(ranking, breadth=0.3, breadth_over="posts", weeks=3, days=7)
    options = ranking.options(dimension, literal)
    space, opened = _spaces(ranking.model, ranking.file)[0], Crowd(crowd)
    wanted = topic or list(space.topics.sensitive)
    for name in wanted:
        space.topics.place(name)
    if quantiles is not None and user is None:
        raise InputError("--quantiles tells one person their rank; add --user with your own name")
    person = None if user is None else opened.user(user)
    with progress_bar("comparing posts") as progress:
        scored = score(opened, space, options, progress)
        if person is None:
            totals = [summary(scored, name) for name in wanted]
        elif quantiles is None:
            found = assess_topics(opened, scored, person, wanted)
        else:
            published = load_quantiles(quantiles)
            found = most_exposed_first(assess_alone(scored, person, name, published) for name in wanted)
    if person is None:
        show_json({"people": len(scored.users), "topics": totals}) if as_json else _show_totals(totals)
        return
    if as_json:
        show_json({"assessments": [one.to_dict() for one in found]})
    else:
        _show_found(found)
    shown = (one for one in found if one.defined and not points_nowhere(one))
    worst = max((1 - one.value / (one.crowd_size or 1) for one in shown), default=0.0)
    exit_for_risk(worst, fail_above)


@app.command()
def sample(
    crowd: CrowdFolder,
    topic: Annotated[list[str], typer.Option("--topic", help="A topic to be judged. Repeat it.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the sheet (CSV).")],
    count: Annotated[int, typer.Option("--count", help="People for each topic.")] = 100,
    base: Annotated[
        float, typer.Option("--base", help="a: people are drawn with weight a^risk; 1 draws evenly.")
    ] = 100.0,
    community: Community = None,
    model: Model = None,
    file: TopicFile = None,
    dimension: Dimensions = "none",
    memory: Memory = "1GiB",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Draw people for judges to label, more from where the risk is; the sheet holds ids, no names and no posts."""
    from incrowd.crowd import Crowd
    from incrowd.measures.exposure.comparison import people_to_judge
    from incrowd.measures.exposure.scoring import score

    options = RankingChoices(community=community, memory=memory).options(dimension)
    with progress_bar("comparing posts") as progress:
        scored = score(Crowd(crowd), _spaces(model, file)[0], options, progress)
        drawn = people_to_judge(scored, topic, count, base, seed)
    drawn.write_csv(out)
    result = {"out": str(out), "rows": drawn.height, "topics": len(topic), "base": base, "seed": seed}
    show_json(result) if as_json else show(
        f"{drawn.height:,} rows to judge. Fill in vote (0 to 1) and pass the file to exposure evaluate --labels."
    )


@app.command()
@in_groups
def evaluate(
    crowd: CrowdFolder,
    labels: Annotated[
        Path, typer.Option("--labels", help="CSV with user, topic, vote (0 to 1): what judges said.")
    ],
    *,
    ranking: RankingChoices,
    literal: AsPrinted = False,
    as_json: AsJson = False,
) -> None:
    """Compare the methods on people whom judges have labelled; rates only."""
    from incrowd.crowd import Crowd
    from incrowd.measures.exposure.comparison import compare, read_labels

    options = ranking.options("DT", literal)
    opened = Crowd(crowd)
    with progress_bar("comparing posts") as progress:
        result = compare(
            opened,
            all_spaces(ranking.model, ranking.file),
            read_labels(labels, opened),
            options,
            progress,
        )
    show_json(result.to_dict()) if as_json else _show_comparison(result)


@app.command()
@in_groups
def publish(
    crowd: CrowdFolder,
    out: Annotated[Path, typer.Option("--out", help="Where to write the quantiles (JSON).")],
    smallest: Annotated[
        int, typer.Option("--smallest", help="No published number is about fewer people.")
    ] = 10,
    *,
    ranking: RankingChoices,
    dimension: Dimensions = "T",
    as_json: AsJson = False,
) -> None:
    """Publish a crowd's quantiles, with which people find their rank alone, without anybody's posts."""
    import json

    from incrowd.crowd import Crowd
    from incrowd.measures.exposure.assess import quantiles
    from incrowd.measures.exposure.scoring import score

    options = ranking.options(dimension)
    with progress_bar("comparing posts") as progress:
        made = quantiles(
            score(Crowd(crowd), _spaces(ranking.model, ranking.file)[0], options, progress), smallest
        )
    out.write_text(json.dumps(made.to_dict(), indent=1), encoding="utf-8")
    groups = len(made.edges) - 1
    result = {"out": str(out), "people": made.people, "groups": groups, "topics": len(made.risks)}
    show_json(result) if as_json else show(
        f"{len(made.risks)} topics, {made.people:,} people in {groups} groups; none has fewer than {smallest}."
    )


def _topics(file: Path | None) -> TopicSet:
    from incrowd.measures.exposure.topics import load_topics, starter_topics

    return starter_topics() if file is None else load_topics(file)


def _spaces(model: list[Path] | None, file: Path | None) -> list[Space]:
    """Return the spaces asked for; if none, a bag of words for topics of one's own, else the learnt words."""
    from incrowd.errors import InputError
    from incrowd.measures.exposure.learnt_spaces import load_space
    from incrowd.measures.exposure.space import BagOfWords, default_space, load_weighted

    if not model:
        return [default_space() if file is None else BagOfWords(_topics(file))]
    if file is not None:
        raise InputError(
            "--topics and --model exclude each other: a model brings the topics it was learnt with"
        )
    return [load_weighted(path) if path.suffix == ".json" else load_space(path) for path in model]


def all_spaces(model: list[Path] | None, file: Path | None) -> list[Space]:
    """Return the default, a bag of words and every model; all must have topics of the same names."""
    from incrowd.errors import InputError
    from incrowd.measures.exposure.space import BagOfWords, default_space

    spaces = _spaces(model, file)
    own = next((space for space in spaces if space.name not in ("BOW", "WORDS")), None)
    bag = BagOfWords(_topics(file) if own is None else own.topics)
    spaces = [space for space in spaces if space.name != "BOW"]
    default = default_space()
    if "WORDS" not in {space.name for space in spaces} and default.topics.names == bag.topics.names:
        spaces = [default, *spaces]
    # The default comes first: what is said about it is said about the first.
    spaces = sorted([*spaces, bag], key=lambda space: ("WORDS", "BOW", space.name).index(space.name))
    if len({space.topics.names for space in spaces}) > 1:
        raise InputError("the models were learnt with different topics; learn them again with the same file")
    if len({space.name for space in spaces}) < len(spaces):
        raise InputError("--model was given twice for the same kind of space; compare one of each kind")
    return spaces


def _annotated(result: dict[str, Any]) -> str:
    """Say what the judges decided, or that they can begin."""
    if "judged" not in result:
        return f"{result['topics']} topics are ready to be judged."
    kappa = "undefined" if result["kappa"] is None else f"{result['kappa']:.3f}"
    lines = [f"{row['domain']}: {row['sensitive']} of {row['topics']} sensitive" for row in result["domains"]]
    lines += [f"{row['judges']} judges say sensitive: {row['topics']} topics" for row in result["table_1"]]
    head = f"{result['sensitive']} of {result['judged']} topics are sensitive; Fleiss' kappa is {kappa}."
    return "\n".join([head, *lines])


def _show_found(found: list[Assessment]) -> None:
    """Show the topics in which the person stands out most, and say how many there are besides."""
    from incrowd.measures.exposure.assess import points_nowhere
    from incrowd.result import say_count

    silent = [one for one in found if points_nowhere(one)]
    heard = [one for one in found if not points_nowhere(one)]
    for one in heard[:MOST_SHOWN]:
        show(one)
    if len(heard) > MOST_SHOWN:
        more = say_count(len(heard) - MOST_SHOWN, "more topic")
        show(f"{more}, in which you stand out no more than that: choose one with --topic.")
    if len(silent) == 1:
        show(silent[0].sentence())
    elif silent:
        show(f"Nothing you wrote points to the {'other ' if heard else ''}{len(silent)} topics.")


def _show_totals(totals: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("topic", "people", "median risk", "highest tenth from")
    for row in totals:
        cells = (row["median"], row["highest_tenth_from"])
        table.add_row(row["topic"], f"{row['people']:,}", *("–" if v is None else f"{v:.3f}" for v in cells))
    show(table)


def _show_comparison(result: MethodComparison) -> None:
    from rich.table import Table

    columns = ("r_precision_micro", "r_precision_macro", "p_at_5", "map", "ndcg")
    table = Table("method", *columns)
    for name, one in result.methods.items():
        table.add_row(name, *(_figure(getattr(one, column)) for column in columns))
    show(table)
    reasons = {name: one.reason for name, one in result.methods.items() if one.reason}
    for reason in dict.fromkeys(reasons.values()):
        without = ", ".join(name for name, why in reasons.items() if why == reason)
        show(f"Undefined: {without}, because {reason}.")
    _show_auc(result)
    show(f"A random order would reach an r-precision of {result.chance:.3f}.")


def _show_auc(result: MethodComparison) -> None:
    from rich.table import Table

    table = Table("AUC", *result.judged)
    by_topic = result.auc()
    for method in next(iter(by_topic.values())):
        cells = []
        for each in by_topic.values():
            low, high = each[method].interval
            known = not math.isnan(each[method].value)
            cells.append(f"{each[method].value:.3f} ({low:.2f} to {high:.2f})" if known else "undefined")
        table.add_row(method, *cells)
    show(table)


def _figure(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}"
