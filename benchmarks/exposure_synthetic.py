"""Do breadth and time tell what they should? Made-up crowds with lasting, passing and professional interest.

    python benchmarks/exposure_synthetic.py [--seeds 20] [--users 300]

For every seed a crowd is made, scored in three spaces (learnt once, from another crowd) and judged against the
truth: lasting interest in a topic is sensitive. Prints mean MAP of every method and, for the comparisons that
matter, the mean difference with the two-sided p of a paired t-test over seeds.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import polars as pl

from incrowd.crowd import Crowd
from incrowd.measures.exposure.bag_of_words import BagOfWords
from incrowd.measures.exposure.comparison import baseline_risks
from incrowd.measures.exposure.evaluation import merit, paired_t_test
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.spec import DIMENSIONS, ExposureOptions, method_name
from incrowd.measures.exposure.topics import TopicSet, topic_set
from incrowd.measures.exposure.training import TrainOptions, documents, train_lda, train_word2vec
from incrowd.synthetic import SyntheticPosts

SHARES = {"lasting": 0.12, "passing": 0.12, "professional": 0.12}
AGAINST = {
    "passing": ["lasting", "passing"],
    "professional": ["lasting", "professional"],
    "none": ["lasting", "none"],
    "everybody": ["lasting", "passing", "professional", "none"],
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--users", type=int, default=300)
    parser.add_argument("--dims", type=int, default=40)
    return parser.parse_args()


def crowd_of(users: int, seed: int) -> SyntheticPosts:
    return SyntheticPosts(users=users, communities=3, posts=users * 60, states=SHARES, seed=seed)


def learn(topics: TopicSet, options: argparse.Namespace) -> list[Any]:
    text = crowd_of(200, 10_000).to_frame()["text"]
    lda = TrainOptions(dims=options.dims, rounds=100)
    vectors = TrainOptions(dims=options.dims, rounds=100)
    return [
        BagOfWords(topics),
        train_lda(documents([text], lda), topics, lda),
        train_word2vec(documents([text], vectors), topics, vectors),
    ]


def all_risks(crowd: Crowd, spaces: list[Any]) -> tuple[pl.Series, dict[str, dict[str, Any]]]:
    options = ExposureOptions()
    risks = baseline_risks(crowd, spaces[0].topics, options)
    for space in spaces:
        scored = score(crowd, space, options)
        for dimension in DIMENSIONS:
            values = scored.risks(dimension).T
            risks[method_name(space.name, dimension)] = dict(zip(space.topics.names, values, strict=True))
    return scored.users, risks


def one_seed(seed: int, spaces: list[Any], users: int) -> dict[str, dict[str, float]]:
    made = crowd_of(users, seed)
    order, risks = all_risks(Crowd.from_frame(made.to_frame()), spaces)
    truth = pl.DataFrame({"user": order}).join(
        made.truth.states, on="user", how="left", maintain_order="left"
    )
    found: dict[str, dict[str, float]] = {}
    for name, states in AGAINST.items():
        judged = truth["state"].is_in(states).to_numpy()
        votes = {
            t: ((truth["topic"] == t) & (truth["state"] == "lasting")).to_numpy()[judged] for t in made.topics
        }
        found[name] = {m: merit({t: (by[t][judged], votes[t]) for t in votes}).map for m, by in risks.items()}
    return found


def main() -> None:
    options = parse()
    spaces = learn(topic_set(crowd_of(10, 0).topics), options)
    seeds = [one_seed(seed, spaces, options.users) for seed in range(options.seeds)]
    values = {
        (against, method): np.array([one[against][method] for one in seeds])
        for against in AGAINST
        for method in seeds[0][against]
    }
    pairs = [
        *(("passing", f"{s.name}-T", s.name) for s in spaces),
        *(("professional", f"{s.name}-D", s.name) for s in spaces),
        *(
            ("everybody", f"{s.name}-DT", other)
            for s in spaces
            for other in (s.name, f"{s.name}-D", f"{s.name}-T")
        ),
        *((a, "LDA", other) for a in ("none", "everybody") for other in ("ENTROPY", "DIFF-PRIV")),
        *(("everybody", "LDA-DT", other) for other in ("ENTROPY", "DIFF-PRIV")),
    ]
    tests = [
        {
            "against": against,
            "method": method,
            "rival": rival,
            "difference": round(float((values[against, method] - values[against, rival]).mean()), 4),
            "p": paired_t_test(values[against, method], values[against, rival]),
        }
        for against, method, rival in pairs
    ]
    means = {a: {m: round(float(values[a, m].mean()), 4) for m in seeds[0][a]} for a in AGAINST}
    print(
        json.dumps(
            {"seeds": options.seeds, "users": options.users, "mean_map": means, "tests": tests}, indent=1
        )
    )


if __name__ == "__main__":
    main()
