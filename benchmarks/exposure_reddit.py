"""How well does exposure find people on real text? Depression, by a proxy label; rates only.

    python benchmarks/exposure_reddit.py [--data ../shared/data] [--dims 100] [--rounds 150]

Spaces are learnt from a background corpus without authors (reddit_topic_corpus). On reddit_users people are
ranked for depression from the posts they wrote outside mental-health communities, two fifths of them hidden.
The proxy: somebody posted in r/depression or r/SuicideWatch. It is no diagnosis. The bound is a supervised
model on the same posts (logistic regression on TF-IDF, cross-validated), which has seen other people's labels.

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
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.spec import DIMENSIONS, ExposureOptions, method_name
from incrowd.measures.exposure.topics import starter_topics
from incrowd.measures.exposure.training import TrainOptions, documents, train_lda, train_word2vec

TOPIC = "depression"
PROXY = ("depression", "suicidewatch")
MENTAL_HEALTH = (
    "depress|suicid|selfharm|anxiety|bipolar|bpd|borderline|ptsd|schizo|eatingdisorder|mentalillness|mentalhealth|"
    "therapy|antidepress|psychiat|sad|lonely|socialskills|adhd|ocd|traumatoolbox|kindvoice|offmychest|anhedonia"
)
HIDDEN = 0.4
FIGURES = ("r_precision_micro", "p_at_5", "map", "ndcg")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--dims", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=150)
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
    topics = starter_topics()
    kept = (
        {name: options.models / f"{name}-{options.dims}.npz" for name in ("lda", "w2v")}
        if options.models
        else {}
    )
    if kept and all(path.exists() for path in kept.values()):
        return [BagOfWords(topics), *(load_space(path) for path in kept.values())]
    corpus = read(options.data / "reddit_topic_corpus" / "submissions.jsonl.zst")
    texts = corpus.select(pl.concat_str("title", "text", separator=" ", ignore_nulls=True)).to_series()
    chosen = TrainOptions(dims=options.dims, rounds=options.rounds, seed=options.seed)
    posts = documents([texts], chosen)
    learnt = {"lda": train_lda(posts, topics, chosen), "w2v": train_word2vec(posts, topics, chosen)}
    for name, path in kept.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        save_space(learnt[name], path, {"seed": options.seed})
    return [BagOfWords(topics), *learnt.values()]


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
    model = LogisticRegression(C=10, max_iter=300)
    return cross_val_predict(model, features, votes > 0.5, cv=folds, method="predict_proba")[:, 1]


def main() -> None:
    options = parse()
    if not (options.data / "reddit_users").exists():
        sys.exit(f"{options.data}: the evaluation data is not there; nothing was measured")
    learnt = spaces(options)
    seen, labelled = people(options)
    crowd = Crowd.from_frame(seen)
    asked = ExposureOptions(memory=4 * 2**30)
    place = learnt[0].topics.place(TOPIC)
    risks = {
        name: by_topic[TOPIC] for name, by_topic in baseline_risks(crowd, learnt[0].topics, asked).items()
    }
    sweeps = {}
    for space in learnt:
        scored = score(crowd, space, asked)
        for dimension in DIMENSIONS:
            risks[method_name(space.name, dimension)] = scored.risks(dimension)[:, place]
        sweeps[space.name] = {
            m: scored.peaks.risks(space.topics, "T", replace(asked, weeks=m))[:, place]
            for m in (1, 3, 6, 12, 24)
        }
    users = scored.users
    votes = labelled.sort("user")["vote"].to_numpy()
    assert labelled.sort("user")["user"].to_list() == users.to_list()
    risks["supervised"] = supervised(seen, users, votes, options.seed)

    def judged(values: Any) -> Merit:
        return merit({TOPIC: (values, votes)})

    merits = {name: judged(values) for name, values in risks.items()}
    bound = merits["supervised"].map
    print(json.dumps({
        "people": len(votes), "labelled": int(votes.sum()), "posts": seen.height, "chance": float(votes.mean()),
        "methods": {
            name: {figure: round(getattr(one, figure), 4) for figure in FIGURES}
            | {"interval": interval(risks[name], votes, options), "share_of_supervised_map": round(one.map / bound, 3)}
            for name, one in merits.items()
        },
        "map_of_T_over_m": {
            name: {m: round(judged(values).map, 4) for m, values in by_m.items()} for name, by_m in sweeps.items()
        },
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
