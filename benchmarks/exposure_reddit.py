"""How well does exposure find people on real text? Depression, by a proxy label; rates only.

    python -m benchmarks.exposure_reddit [--data ../shared/data] [--models DIR]

Spaces are learnt from a background corpus without authors (reddit_topic_corpus). On reddit_users people are
ranked for depression from the posts they wrote outside mental-health communities, two fifths of them hidden.
The proxy: somebody posted in r/depression or r/SuicideWatch. It is no diagnosis. The bound is a supervised
model on the same posts (logistic regression on TF-IDF, cross-validated), which has seen other people's labels.

Nothing is chosen by the labels it is judged by. There are two protocols:
1. other topics: of every space the size and the settings are those with the highest MAP over fifteen other topics,
   each with a proxy of its own (who posted in its communities, found from the posts outside of them). They are then
   judged on depression, over everybody. Likewise each of the sixteen topics by the other fifteen.
2. other people: twenty times, the settings are chosen on a random half of the people and judged on the other.

A control says how much of a result needs no words at all: it counts in how many weeks somebody wrote anything. All
is therefore judged again on people matched by that number, where the control is at chance.
Prints one JSON document with figures of merit and intervals; no text and no person is shown.

    python -m benchmarks.exposure_reddit --default

judges the default alone, in a minute: the learnt mental-health topics together against seed_group, over everybody and
among people who wrote in equally many weeks (five groups); every topic with a proxy against the people who posted in
its communities; and, on the background corpus, posts of professionals. How posts are pooled into a person (the mean),
and the options of `exposure learn`, were chosen on those of OTHER_TOPICS that are not about mental health, on half of
the people; mental health was not looked at for that.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from backports import zstd

from benchmarks._exposure_protocol import (
    Choice,
    Task,
    best,
    judged,
    matched,
    other_people,
    over_topics,
    risks,
)
from incrowd.crowd import Crowd
from incrowd.measures.exposure.comparison import baseline_risks
from incrowd.measures.exposure.definition import periods
from incrowd.measures.exposure.evaluation import auc, auc_interval, average_precision, leave_people_out
from incrowd.measures.exposure.learnt_spaces import load_space, save_space
from incrowd.measures.exposure.scoring import PeakCollector
from incrowd.measures.exposure.space import BagOfWords, Encoder, WeightedWords, default_space
from incrowd.measures.exposure.spec import DIMENSIONS, ExposureOptions, method_name
from incrowd.measures.exposure.topics import starter_topics
from incrowd.measures.exposure.training import (
    TrainOptions,
    documents,
    learn_embeddings,
    train_lda,
    train_word2vec,
)
from incrowd.text import TextOptions

TOPIC = "depression"
PROXY = ("depression", "suicidewatch")
MENTAL_HEALTH = (
    "depress|suicid|selfharm|anxiety|bipolar|bpd|borderline|ptsd|schizo|eatingdisorder|mentalillness|mentalhealth|"
    "therapy|antidepress|psychiat|sad|lonely|socialskills|adhd|ocd|traumatoolbox|kindvoice|offmychest|anhedonia"
)
OTHER_TOPICS = {
    "anxiety": (
        "anxiety socialanxiety healthanxiety anxietyhelp anxietydepression adhd_anxiety panicattack "
        "anxietymemes panicdisorder"
    ),
    "bipolar": (
        "bipolar bipolarreddit bipolar2 bipolar_irl bipolarsos bipolarart bipolarmemes "
        "bipolardisorderreddit bipolar1"
    ),
    "eating-disorders": (
        "edanonymous edanonymemes eatingdisorders fuckeatingdisorders bingeeatingdisorder "
        "anorexianervosa edanonymousadults bulimia anorexiarecovery bingeeating"
    ),
    "self-harm": (
        "selfharm madeofstyrofoam selfharmscars stopselfharm adultselfharm selfharm_memes selfharmpix "
        "selfinjury"
    ),
    "drugs": (
        "trees drugs lsd weed shrooms psychonaut leaves benzodiazepines kratom stims opiates dmt mdma "
        "addiction cocaine meth heroin redditorsinrecovery psychedelics petioles researchchemicals"
    ),
    "alcohol": ("stopdrinking cripplingalcoholism alcoholism alcoholicsanonymous dryalcoholics alcoholic"),
    "sexuality": (
        "lgbt bisexual actuallesbians askgaybros asexuality gaybros gay_irl lgbteens gay lesbianactually "
        "ainbow"
    ),
    "gender-identity": (
        "traaaaaaannnnnnnnnns nonbinary asktransgender ftm egg_irl trans ftmmen mtf transpositive "
        "genderqueer ask_transgender transgender"
    ),
    "religion": (
        "atheism christianity exmormon exchristian catholicism religion buddhism exmuslim truechristian "
        "islam debateanatheist judaism dankchristianmemes"
    ),
    "politics": (
        "politics politicalhumor sandersforpresident worldpolitics conservative libertarian "
        "politicalcompassmemes ourpresident ukpolitics politicaldiscussion yangforpresidenthq "
        "wayofthebern the_mueller democraticsocialism"
    ),
    "unemployment": (
        "jobs careerguidance cscareerquestions findapath recruitinghell unemployment unemployed "
        "careeradvice resumes getemployed"
    ),
    "debts": (
        "personalfinance povertyfinance personalfinancecanada ukpersonalfinance borrow studentloans ynab "
        "credit daveramsey creditcards"
    ),
    "chronic-illness": (
        "migraine fibromyalgia chronicpain ibs disability ehlersdanlos endo endometriosis cfs pots "
        "chronicillness"
    ),
    "abuse": (
        "raisedbynarcissists narcissisticabuse lifeafternarcissism abusiverelationships adultsurvivors "
        "raisedbyborderlines abuse survivorsofabuse rape rapecounseling"
    ),
    "divorce": ("breakups deadbedrooms marriage divorce exnocontact survivinginfidelity breakup adultery"),
}
"""Every topic of the starter set for which a hundred people or more posted in communities of its own."""
LEARNT_MENTAL_HEALTH = ("depression", "self-harm", "anxiety", "bipolar")
PROXIES = {"divorce": "relationship-trouble"}
"""Communities about breakups rather than divorces."""
TRADES = {
    "depression": ("depression SuicideWatch", "medicine"),
    "bipolar": ("bipolar BipolarReddit", "medicine"),
    "diabetes": ("diabetes", "medicine nutrition"),
    "legal-trouble": ("legaladvice", "LawSchool"),
    "debts": ("personalfinance", "financialindependence freelance"),
}
"""Who is concerned, and who deals with it by trade or out of interest."""
HIDDEN = 0.4
PENALTY = 1.0
"""Of the supervised bound: the best of 0.1, 0.3, 1 and 3 by its own cross-validated MAP, so as strong as it gets."""
LEARN = {"LDA": train_lda, "W2V": train_word2vec, "EMB": learn_embeddings}
SIZES = {"LDA": (100, 200, 500), "W2V": (100, 300), "EMB": (256,)}
ROUNDS = {"LDA": 150, "W2V": 200, "EMB": 1}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--models", type=Path, default=Path("build/exposure"), help="Folder to keep learnt spaces in."
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--default", action="store_true", help="Judge the default alone.")
    return parser.parse_args()


def read(path: Path) -> pl.DataFrame:
    return pl.read_ndjson(zstd.decompress(path.read_bytes()))


def background(data: Path) -> pl.Series:
    corpus = read(data / "reddit_topic_corpus" / "submissions.jsonl.zst")
    return corpus.select(pl.concat_str("title", "text", separator=" ", ignore_nulls=True)).to_series()


def spaces(options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Learn the spaces, or read those that an earlier run has kept."""
    yield "BOW", BagOfWords(starter_topics())
    options.models.mkdir(parents=True, exist_ok=True)
    posts: list[list[str]] = []
    for name, size in ((name, size) for name, sizes in SIZES.items() for size in sizes):
        kept = options.models / f"{name}-{size}-{options.seed}.npz"
        if not kept.exists():
            chosen = TrainOptions(dims=size, rounds=ROUNDS[name], seed=options.seed)
            posts = posts or documents([background(options.data)], chosen)
            save_space(LEARN[name](posts, starter_topics(), chosen), kept, {"seed": options.seed})
        yield f"{name}-{size}", load_space(kept)


def people(options: argparse.Namespace) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the posts an adversary sees, sorted by person, and in which communities everybody posted at all."""
    posts = read(options.data / "reddit_users" / "posts.jsonl.zst").rename({"author": "user", "t": "time"})
    posts = posts.with_columns(pl.col("community").str.to_lowercase(), pl.col("time").cast(pl.Int64))
    seen = posts.filter(~pl.col("community").str.contains(MENTAL_HEALTH))
    kept = np.random.default_rng(options.seed).random(seen.height) >= HIDDEN
    seen = seen.filter(pl.Series(kept)).sort("user", maintain_order=True)
    return seen.select("user", "community", "time", "text"), posts.select("user", "community").unique()


def task(topic: str, communities: tuple[str, ...], seen: pl.DataFrame, posted: pl.DataFrame) -> Task:
    """Return a topic as a task: its own communities are hidden, who posted there is labelled."""
    rows = (~seen["community"].is_in(communities)).to_numpy()
    writers = seen["user"].filter(pl.Series(rows))
    users = writers.unique().sort()
    labelled = posted.filter(pl.col("community").is_in(communities))["user"].unique()
    return Task(
        topic, rows, np.asarray(users.search_sorted(writers), np.int64), seen["time"].to_numpy()[rows],
        users.is_in(labelled.implode()).to_numpy().astype(float),
    )  # fmt: skip


def similarities(space: Any, texts: pl.Series) -> Any:
    parts = (texts[first : first + 50_000] for first in range(0, len(texts), 50_000))
    encoder = Encoder(space, TextOptions())
    return np.concatenate([space.similarities(encoder.encode(part)).astype(np.float32) for part in parts])


def supervised(seen: pl.DataFrame, users: pl.Series, votes: Any, seed: int) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    joined = seen.group_by("user").agg(pl.col("text").str.join(" ")).sort("user")
    assert joined["user"].to_list() == users.to_list()
    features = TfidfVectorizer(min_df=10, sublinear_tf=True).fit_transform(joined["text"].to_list())
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    model = LogisticRegression(C=PENALTY, max_iter=300)
    return cross_val_predict(model, features, votes > 0.5, cv=folds, method="predict_proba")[:, 1]


def default_alone(options: argparse.Namespace) -> dict[str, Any]:
    """Judge the default strength: no breadth, no time, nothing chosen here."""
    return on_people(options.data, default_space()) | {
        "professionals": professionals(options.data),
        "depression_with_the_defaults": depression_with_the_defaults(options),
    }


def on_people(data: Path, space: WeightedWords) -> dict[str, Any]:
    """Judge people's mean strength by the communities they took part in, whose posts are not read."""
    posts = read(data / "reddit_users" / "posts.jsonl.zst").rename({"author": "user", "t": "time"})
    posts = posts.with_columns(pl.col("community").str.to_lowercase(), pl.col("time").cast(pl.Int64))
    seen = posts.filter(~pl.col("community").str.contains(MENTAL_HEALTH)).sort("user", maintain_order=True)
    similar = similarities(space, seen["text"])
    posted = posts.select("user", "community").unique()
    groups = pl.read_csv(data / "reddit_users" / "users.csv").select("author", "seed_group")
    found = set(groups.filter(pl.col("seed_group") != "general")["author"])
    users = seen["user"].unique().sort()
    person = np.asarray(users.search_sorted(seen["user"]), np.int64)
    everybody = Task(
        "", np.ones(seen.height, bool), person, seen["time"].to_numpy(), users.is_in(list(found)).to_numpy()
    )
    together = np.mean(
        [strength(similar, everybody, space.topics.place(name)) for name in LEARNT_MENTAL_HEALTH], axis=0
    )
    each = {}
    for name, places in OTHER_TOPICS.items():
        one = task(name, tuple(places.split()), seen, posted)
        each[PROXIES.get(name, name)] = with_weeks(
            strength(similar, one, space.topics.place(PROXIES.get(name, name))), one
        )
    return {
        "people": len(users),
        "labelled": int(everybody.votes.sum()),
        "mental_health_together": with_weeks(together, everybody),
        "weeks_written_in_alone": with_weeks(everybody.weeks_written, everybody),
        "topics": each,
        "mean_of_topics": round(float(np.mean([one["auc"][0] for one in each.values()])), 4),
    }


def depression_with_the_defaults(options: argparse.Namespace) -> dict[str, Any]:
    """Judge the spaces that need no learning on depression, m = 3 weeks, k = 0.3; def9: breadth over all posts."""
    seen, posted = people(options)
    aim = task(TOPIC, PROXY, seen, posted)
    methods: dict[str, Any] = {"weeks written in": aim.weeks_written}
    for space in (default_space(), BagOfWords(starter_topics())):
        collector = PeakCollector(len(aim.votes), len(space.topics), space=space)
        collector.add(aim.person, periods(aim.times), similarities(space, seen["text"])[aim.rows])
        peaks, place = collector.finish(), space.topics.place(TOPIC)
        for dimension in DIMENSIONS:
            name = method_name(space.name, dimension)
            methods[name] = peaks.risks(space.topics, dimension, ExposureOptions())[:, place]
        paper = ExposureOptions(breadth_over="posts")
        methods[f"{space.name}-DT def9"] = peaks.risks(space.topics, "DT", paper)[:, place]
    found = leave_people_out(
        {name: {"": values} for name, values in methods.items()}, {"": aim.votes}, {"": range(len(aim.votes))}
    )
    return {"people": len(aim.votes), "chance": _rate(aim.votes)} | {
        name: {"map": _rounded(one.value, *one.interval()), "auc": round(auc(methods[name], aim.votes), 4)}
        for name, one in found.items()
    }


def strength(similar: Any, one: Task, place: int) -> Any:
    """Return everybody's mean similarity to a topic over the posts that may be read."""
    total = np.bincount(one.person, similar[one.rows, place], len(one.votes))
    return total / np.maximum(1, np.bincount(one.person, minlength=len(one.votes)))


def groups_of_weeks(weeks: Any, truth: Any, groups: int = 5) -> list[Any]:
    """Return groups of people who wrote in about equally many weeks, as equal in size as whole weeks allow.

    Only where both labelled people and others wrote in so many weeks: beyond, there is nobody to compare with.
    """
    low, high = max(weeks[truth].min(), weeks[~truth].min()), min(weeks[truth].max(), weeks[~truth].max())
    common = np.flatnonzero((weeks >= low) & (weeks <= high))
    numbers, sizes = np.unique(weeks[common], return_counts=True)
    starts, held, left = [0], 0, int(sizes.sum())
    for place, size in enumerate(sizes.tolist()):
        wanted = left / (groups - len(starts) + 1)
        if held and len(starts) < groups and held + size - wanted > wanted - held:
            left -= held
            held = 0
            starts.append(place)
        held += size
    group = np.searchsorted(numbers[starts], weeks[common], side="right") - 1
    parts = [common[group == number] for number in range(len(starts))]
    return [part for part in parts if 0 < truth[part].sum() < len(part)]


def with_weeks(values: Any, one: Task) -> dict[str, Any]:
    """Return the AUC with its interval, and its mean over five groups who wrote in equally many weeks."""
    truth = one.votes > 0.5
    value = auc(values, one.votes)
    parts = groups_of_weeks(np.asarray(one.weeks_written), truth)
    within = [auc(values[part], one.votes[part]) for part in parts]
    ends = auc_interval(value, int(truth.sum()), int((~truth).sum()))
    return {
        "auc": _rounded(value, *ends),
        "within_weeks": round(float(np.mean(within)), 4),
        "by_weeks": [round(one, 4) for one in within],
        "compared_within_weeks": round(sum(map(len, parts)) / len(truth), 4),
        "labelled": int(truth.sum()),
    }


def professionals(data: Path) -> dict[str, Any]:
    """Set posts of people concerned apart from posts of those who deal with it by trade, in the background corpus.

    These posts have taught the weights, half of them in what is judged by `exposure learn`; so it says what the default
    does with such posts, not how it would do on others.
    """
    corpus = read(data / "reddit_topic_corpus" / "submissions.jsonl.zst")
    space = default_space()
    similar = similarities(space, background(data))
    found = {}
    for topic, (concerned, trade) in TRADES.items():
        values = similar[:, space.topics.place(topic)]
        rows = [corpus["community"].is_in(names.split()).to_numpy() for names in (concerned, trade)]
        votes = np.repeat([1.0, 0.0], [int(one.sum()) for one in rows])
        value = auc(np.concatenate([values[one] for one in rows]), votes)
        found[topic] = {
            "against": trade,
            "auc": _rounded(value, *auc_interval(value, *(int(one.sum()) for one in rows))),
            "median_concerned": round(float(np.median(values[rows[0]])), 4),
            "median_trade": round(float(np.median(values[rows[1]])), 4),
        }
    return found


def _rounded(*values: float) -> list[float]:
    return [round(float(value), 4) for value in values]


def main() -> None:
    options = parse()
    if not (options.data / "reddit_users").exists():
        sys.exit(f"{options.data}: the evaluation data is not there; nothing was measured")
    if options.default:
        print(json.dumps(default_alone(options), indent=1))
        return
    topics = starter_topics()
    seen, posted = people(options)
    tasks = [task(name, tuple(places.split()), seen, posted) for name, places in OTHER_TOPICS.items()]
    tasks.append(task(TOPIC, PROXY, seen, posted))
    found: dict[str, dict[Choice, Any]] = {one.topic: {} for one in tasks}
    for name, space in spaces(options):
        similar = similarities(space, seen["text"])
        for one in tasks:
            found[one.topic] |= dict(risks(name, similar, one, topics))
        print(name, "scored", file=sys.stderr, flush=True)
    print(json.dumps(report(options, seen, tasks, found), indent=1))


def report(
    options: argparse.Namespace, seen: pl.DataFrame, tasks: list[Task], found: dict[str, dict[Choice, Any]]
) -> dict[str, Any]:
    *others, aim = tasks
    votes, here = aim.votes, found[TOPIC]
    merit = {
        choice: float(np.mean([average_precision(found[one.topic][choice], one.votes) for one in others]))
        for choice in here
    }
    chosen = best(merit)
    fixed = {
        name: by_topic[TOPIC]
        for name, by_topic in baseline_risks(
            Crowd.from_frame(seen), starter_topics(), ExposureOptions(memory=2**32)
        ).items()
    } | {
        "weeks written in": aim.weeks_written,
        "supervised": supervised(seen, seen["user"].unique().sort(), votes, options.seed),
    }
    as_chosen = {space: here[choice] for space, choice in chosen.items()}
    as_in_the_paper = {
        method_name(choice.setting.space, choice.setting.dimension): values
        for choice, values in here.items()
        if choice.as_in_the_paper and choice.model == chosen[choice.setting.space].model
    }
    alike = matched(aim, options.seed)
    return {
        "people": len(votes), "labelled": int(votes.sum()), "posts": seen.height, "chance": _rate(votes),
        "other_topics": {one.topic: [len(one.votes), int(one.votes.sum())] for one in others},
        "chance_on_other_topics": round(float(np.mean([one.votes.mean() for one in others])), 4),
        "chosen_on_other_topics": {
            space: {"choice": str(choice), "map_there": round(merit[choice], 4)} for space, choice in chosen.items()
        },
        "as_in_the_paper_on_other_topics": {
            str(choice): round(value, 4) for choice, value in merit.items() if choice.as_in_the_paper
        },
        "judged_on_depression": judged(as_chosen | fixed, votes, "BOW", options.seed),
        "judged_on_depression_matched_by_weeks": {"people": int(alike.sum()), "chance": 0.5} | judged(
            {name: values[alike] for name, values in (as_chosen | fixed).items()}, votes[alike], "BOW", options.seed
        ),
        "as_in_the_paper": judged(as_in_the_paper | fixed, votes, "BOW-T", options.seed),
        "every_topic_by_the_others": over_topics(tasks, found, options.seed),
        "other_people": other_people(
            here, {name: fixed[name] for name in ("weeks written in", "supervised")}, votes, options.seed
        ),
    }  # fmt: skip


def _rate(votes: Any) -> float:
    return round(float(votes.mean()), 4)


if __name__ == "__main__":
    main()
