"""How well does exposure find people on real text? Depression, by a proxy label; rates only.

    python benchmarks/exposure_reddit.py [--data ../shared/data] [--models DIR] [--weeks 3]

Spaces are learnt from a background corpus without authors (reddit_topic_corpus). On reddit_users people are
ranked for depression from the posts they wrote outside mental-health communities, two fifths of them hidden.
The proxy: somebody posted in r/depression or r/SuicideWatch. It is no diagnosis. The bound is a supervised
model on the same posts (logistic regression on TF-IDF, cross-validated), which has seen other people's labels.

Every setting was chosen on half of the people (the development half); figures are about the other half. A control
says how much of a result needs no words at all: it counts in how many of the m periods somebody wrote anything.

Prints one JSON document with figures of merit and bootstrap intervals; no text and no person is shown.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import zstandard

from incrowd.crowd import Crowd
from incrowd.measures.exposure.bag_of_words import BagOfWords
from incrowd.measures.exposure.comparison import baseline_risks
from incrowd.measures.exposure.evaluation import Merit, merit
from incrowd.measures.exposure.model_file import load_space, save_space
from incrowd.measures.exposure.scoring import Scored, score
from incrowd.measures.exposure.spec import DIMENSIONS, ExposureOptions, method_name
from incrowd.measures.exposure.topics import starter_topics
from incrowd.measures.exposure.training import (
    TrainOptions,
    documents,
    learn_embeddings,
    train_lda,
    train_word2vec,
)

TOPIC = "depression"
PROXY = ("depression", "suicidewatch")
MENTAL_HEALTH = (
    "depress|suicid|selfharm|anxiety|bipolar|bpd|borderline|ptsd|schizo|eatingdisorder|mentalillness|mentalhealth|"
    "therapy|antidepress|psychiat|sad|lonely|socialskills|adhd|ocd|traumatoolbox|kindvoice|offmychest|anhedonia"
)
HIDDEN = 0.4
FIGURES = ("r_precision_micro", "p_at_5", "map", "ndcg")
LENGTHS = (1, 3, 5, 8, 12)
"""Numbers of weeks tried for -T."""
MANY_WEEKS = 6
PENALTY = 1.0
"""Of the supervised bound; the best of 1, 3 and 10 on the development half."""
LEARN = {"lda": train_lda, "w2v": train_word2vec, "emb": learn_embeddings}
ROUNDS = {"lda": 150, "w2v": 200, "emb": 1}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--dims", type=int, default=100)
    parser.add_argument("--weeks", type=int, default=3, help="m of -T and -DT.")
    parser.add_argument("--models", type=Path, help="Folder to keep learnt spaces in.")
    parser.add_argument("--people", type=int, help="Take so many people at random [default: all].")
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def read(path: Path) -> pl.DataFrame:
    with path.open("rb") as file:
        plain = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file).read()
    return pl.read_ndjson(io.BytesIO(plain))


def spaces(options: argparse.Namespace) -> list[Any]:
    """Learn the spaces, or read those that an earlier run has kept."""
    posts: list[list[str]] = []
    found = [BagOfWords(starter_topics())]
    for name, learn in LEARN.items():
        kept = options.models / f"{name}-{options.dims}-{options.seed}.npz" if options.models else None
        if kept is not None and kept.exists():
            found.append(load_space(kept))
            continue
        chosen = TrainOptions(dims=options.dims, rounds=ROUNDS[name], seed=options.seed)
        posts = posts or documents([background(options.data)], chosen)
        found.append(learn(posts, starter_topics(), chosen))
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            save_space(found[-1], kept, {"seed": options.seed})
    return found


def background(data: Path) -> pl.Series:
    corpus = read(data / "reddit_topic_corpus" / "submissions.jsonl.zst")
    return corpus.select(pl.concat_str("title", "text", separator=" ", ignore_nulls=True)).to_series()


def people(options: argparse.Namespace) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the posts an adversary sees, and who is labelled."""
    posts = read(options.data / "reddit_users" / "posts.jsonl.zst").rename({"author": "user", "t": "time"})
    if options.people is not None:
        everybody = posts["user"].unique().sort()
        posts = posts.filter(
            pl.col("user").is_in(everybody.sample(options.people, seed=options.seed).implode())
        )
    place = pl.col("community").str.to_lowercase()
    labelled = posts.group_by("user").agg(vote=place.is_in(PROXY).any().cast(pl.Float64))
    seen = posts.filter(~place.str.contains(MENTAL_HEALTH))
    kept = np.random.default_rng(options.seed).random(seen.height) >= HIDDEN
    seen = seen.filter(pl.Series(kept)).select("user", "community", pl.col("time").cast(pl.Int64), "text")
    return seen, labelled.join(seen.select("user").unique(), on="user", how="semi")


def interval(risks: Any, votes: Any, options: argparse.Namespace) -> dict[str, list[float]]:
    rng = np.random.default_rng(options.seed)
    drawn = []
    for _ in range(options.resamples):
        some = rng.integers(0, len(votes), len(votes))
        drawn.append([getattr(merit({TOPIC: (risks[some], votes[some])}), name) for name in FIGURES])
    low, high = np.quantile(np.array(drawn), [0.025, 0.975], axis=0)
    return {
        name: [round(float(a), 4), round(float(b), 4)] for name, a, b in zip(FIGURES, low, high, strict=True)
    }


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


def weeks_written(scored: Scored) -> Any:
    """In how many weeks everybody wrote anything at all."""
    return np.bincount(scored.peaks.person, minlength=len(scored.users)).astype(float)


def figures(risks: dict[str, Any], votes: Any, options: argparse.Namespace) -> dict[str, Any]:
    merits: dict[str, Merit] = {name: merit({TOPIC: (values, votes)}) for name, values in risks.items()}
    bound = merits["supervised"].map
    return {
        name: {figure: round(getattr(one, figure), 4) for figure in FIGURES}
        | {
            "interval": interval(risks[name], votes, options),
            "share_of_supervised_map": round(one.map / bound, 3),
        }
        for name, one in merits.items()
    }


def maps(risks: dict[str, Any], votes: Any) -> dict[str, float]:
    return {name: round(merit({TOPIC: (values, votes)}).map, 4) for name, values in risks.items()}


def main() -> None:
    options = parse()
    if not (options.data / "reddit_users").exists():
        sys.exit(f"{options.data}: the evaluation data is not there; nothing was measured")
    learnt = spaces(options)
    seen, labelled = people(options)
    crowd = Crowd.from_frame(seen)
    asked = ExposureOptions(memory=4 * 2**30, weeks=options.weeks)
    place = learnt[0].topics.place(TOPIC)
    risks = {
        name: by_topic[TOPIC] for name, by_topic in baseline_risks(crowd, learnt[0].topics, asked).items()
    }
    scored = {space.name: score(crowd, space, asked) for space in learnt}
    for name, one in scored.items():
        for dimension in DIMENSIONS:
            risks[method_name(name, dimension)] = one.risks(dimension)[:, place]
    active, users = weeks_written(scored["BOW"]), scored["BOW"].users
    votes = labelled.sort("user")["vote"].to_numpy()
    assert labelled.sort("user")["user"].to_list() == users.to_list()
    risks["control"] = np.minimum(active, options.weeks)
    risks["supervised"] = supervised(seen, users, votes, options.seed)
    sweep = {
        f"{name} m={m}": one.peaks.risks(one.space.topics, "T", replace(asked, weeks=m))[:, place]
        for name, one in scored.items()
        for m in LENGTHS
    } | {f"control m={m}": np.minimum(active, m) for m in LENGTHS}
    development = np.random.default_rng(1).random(len(votes)) < 0.5

    def of(some: Any, values: dict[str, Any]) -> dict[str, Any]:
        return {name: one[some] for name, one in values.items()}

    others, often = ~development, ~development & (active >= MANY_WEEKS)
    print(json.dumps({
        "people": len(votes), "labelled": int(votes.sum()), "posts": seen.height, "weeks": options.weeks,
        "judged": int(others.sum()), "chance": round(float(votes[others].mean()), 4),
        "methods": figures(of(others, risks), votes[others], options),
        "map_of_T_over_m": maps(of(others, sweep), votes[others]),
        "development": {"map": maps(of(development, risks), votes[development]),
                        "map_of_T_over_m": maps(of(development, sweep), votes[development])},
        "everybody": maps(risks, votes),
        f"who_wrote_in_{MANY_WEEKS}_weeks": {
            "people": int(often.sum()), "chance": round(float(votes[often].mean()), 4),
            "map": maps(of(often, risks), votes[often]),
        },
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
