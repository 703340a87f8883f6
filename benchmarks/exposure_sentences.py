"""What would sentence embeddings add to the default's weighted words? On posts, and on people; rates only.

    python -m benchmarks.exposure_sentences [--data ../shared/data]

Posts: half of the background corpus teaches the words and, for each topic, a logistic regression on the mean vector of
a post's words (the extra `embeddings`). How much each counts is fitted on a quarter and judged on the last quarter.
People: log-odds of the shipped words and of a regression on the whole corpus, mixed in fixed shares; nothing is fitted
on people. Folded: weights that are in part what a word means, so that nobody needs the vectors afterwards; how much is
chosen on a quarter of the corpus. Takes some ten minutes.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from scipy.special import expit, logit

from benchmarks import exposure_reddit
from benchmarks._exposure_protocol import Task
from benchmarks.exposure_reddit import (
    LEARNT_MENTAL_HEALTH,
    MENTAL_HEALTH,
    OTHER_TOPICS,
    PROXIES,
    background,
    read,
    similarities,
    strength,
    task,
    with_weeks,
)
from incrowd.measures.exposure import learning
from incrowd.measures.exposure.evaluation import auc
from incrowd.measures.exposure.learnt_spaces import word_vectors
from incrowd.measures.exposure.space import default_space
from incrowd.measures.exposure.topics import starter_topics
from incrowd.text import TextOptions
from incrowd.text.tokeniser import Tokeniser

STRENGTH = 10.0
MIXTURES = (0.0, 0.2, 0.35, 0.5, 1.0)
"""Shares of the sentences' log-odds."""


class Sentences:
    """Posts as the sum of their words' vectors, of length below 1."""

    def __init__(self, posts: pl.Series) -> None:
        counts, words = self._counts(posts)
        used, vectors = np.asarray(counts.sum(axis=0)).ravel(), word_vectors(words)
        self.mean = used @ vectors / used.sum()
        spread = ((vectors - self.mean) ** 2).sum(axis=1)
        self.length = 2 * np.sqrt(used @ spread / used.sum())

    def _counts(self, posts: pl.Series) -> tuple[sp.csr_matrix, list[str]]:
        tokeniser = Tokeniser(TextOptions(keep_stopwords=True))
        tokens = tokeniser.numbers(posts)
        rows = np.repeat(np.arange(len(posts)), np.diff(tokens.ends, prepend=0))
        words = tokeniser.vocabulary().to_list()
        ones = np.ones(len(rows), np.float32)
        return sp.csr_matrix((ones, (rows, tokens.numbers)), shape=(len(posts), len(words))), words

    def of(self, posts: pl.Series) -> Any:
        counts, words = self._counts(posts)
        sums = counts @ (word_vectors(words) - self.mean)
        return sums / (np.linalg.norm(sums, axis=1)[:, None] + self.length)


def fit(vectors: Any, truth: Any, rounds: int = 300) -> Any:
    return learning.fit(sp.csr_matrix(vectors.astype(np.float64)), truth, strength=STRENGTH, rounds=rounds)


def on_posts(
    corpus: learning.Corpus, on: Any, vectors: Any, options: learning.LearnOptions
) -> dict[str, Any]:
    """Judge words, sentences and both on a quarter of the corpus that neither taught nor weighed."""
    topics = starter_topics()
    half = np.random.default_rng(options.seed).random(len(corpus.communities)) < 0.5
    taught = np.array([at for at, topic in enumerate(topics.topics) if topic.communities])
    fitted = learning._fit(corpus, on[:, taught], half, options)
    plain = fitted.weights / corpus.rarity[fitted.columns][:, None]
    words = np.asarray(corpus.features(fitted.columns, options.prior) @ plain)
    probe = fit(vectors[half], on[half][:, taught])
    sentences = vectors @ probe[:-1]
    weighs, judges = np.flatnonzero(~half)[::2], np.flatnonzero(~half)[1::2]
    found = {}
    for at, place in enumerate(taught):
        truth, both = on[:, place], np.stack([words[:, at], sentences[:, at]], axis=1)
        shares = learning.fit(sp.csr_matrix(both[weighs]), truth[weighs], strength=STRENGTH)[:2]
        votes = truth[judges].astype(float)
        columns = (both[judges, 0], both[judges, 1], both[judges] @ shares)
        found[topics.topics[place].name] = [round(auc(column, votes), 4) for column in columns]
    figures = np.array(list(found.values()))
    return {
        "median_words_sentences_both": np.median(figures, axis=0).round(4).tolist(),
        "lowest": figures.min(axis=0).round(4).tolist(),
        "both_better_in": int((figures[:, 2] > figures[:, 0]).sum()),
        "topics": found,
    }


def on_people(data: Path, on: Any, vectors: Any, sentences: Sentences) -> dict[str, Any]:
    """Judge mixtures of the shipped words and a regression on the whole corpus."""
    topics, space = starter_topics(), default_space()
    names = [*LEARNT_MENTAL_HEALTH, *(PROXIES.get(name, name) for name in OTHER_TOPICS)]
    places = {name: topics.place(name) for name in dict.fromkeys(names)}
    truth = on[:, list(places.values())]
    probe = fit(vectors, truth)
    shift = logit(learning.ON_TOPIC) - logit(truth.mean(axis=0))
    posts = read(data / "reddit_users" / "posts.jsonl.zst").rename({"author": "user", "t": "time"})
    posts = posts.with_columns(pl.col("community").str.to_lowercase(), pl.col("time").cast(pl.Int64))
    seen = posts.filter(~pl.col("community").str.contains(MENTAL_HEALTH)).sort("user", maintain_order=True)
    words = similarities(space, seen["text"])
    parts = [seen["text"][first : first + 50_000] for first in range(0, seen.height, 50_000)]
    told = np.concatenate(
        [(sentences.of(part) @ probe[:-1] + probe[-1] + shift).astype(np.float32) for part in parts]
    )
    groups = pl.read_csv(data / "reddit_users" / "users.csv")
    found = set(groups.filter(pl.col("seed_group") != "general")["author"])
    users = seen["user"].unique().sort()
    person = np.asarray(users.search_sorted(seen["user"]), np.int64)
    votes = users.is_in(list(found)).to_numpy()
    everybody = Task("", np.ones(seen.height, bool), person, seen["time"].to_numpy(), votes)
    posted = posts.select("user", "community").unique()

    def mixed(name: str, share: float) -> Any:
        plain = logit(np.clip(words[:, space.topics.place(name)].astype(np.float64), 1e-6, 1 - 1e-6))
        return expit((1 - share) * plain + share * told[:, list(places).index(name)])[:, None]

    result = {}
    for share in MIXTURES:
        together = np.mean(
            [strength(mixed(name, share), everybody, 0) for name in LEARNT_MENTAL_HEALTH], axis=0
        )
        each = {}
        for name, communities in OTHER_TOPICS.items():
            one = task(name, tuple(communities.split()), seen, posted)
            each[name] = with_weeks(strength(mixed(PROXIES.get(name, name), share), one, 0), one)["auc"][0]
        result[str(share)] = {
            "mental_health_together": with_weeks(together, everybody)["auc"],
            "mean_of_topics": round(float(np.mean(list(each.values()))), 4),
            "topics": each,
        }
    return result


def folded(data: Path, corpus: learning.Corpus, on: Any, options: learning.LearnOptions) -> dict[str, Any]:
    """Learn weights of which a part is what the word means; judge them on posts and on people."""
    topics, plain_weights = starter_topics(), learning._weights
    single = np.array([" " not in word for word in corpus.words])
    share = np.bincount(corpus.counts.indices, minlength=len(corpus.words)) * single
    share = share / share.sum()
    vectors = np.zeros((len(corpus.words), 256))
    vectors[single] = word_vectors([word for word in corpus.words if " " not in word])
    vectors[single] -= share @ vectors
    vectors /= np.sqrt(share @ (vectors**2).sum(axis=1))

    def weights(meaning: float, corpus: Any, columns: Any, on: Any, rows: Any, options: Any) -> Any:
        if not meaning:
            return plain_weights(corpus, columns, on, rows, options)
        features, rarity = corpus.features(columns, options.prior)[rows], corpus.rarity[columns][:, None]
        meant = meaning * vectors[columns]
        dense = (features @ sp.diags(1 / rarity.ravel())) @ meant
        both = sp.hstack([features, sp.csr_matrix(dense)]).tocsr()
        found = learning.fit(both, on[rows], strength=options.strength, rounds=options.rounds)
        return found[: len(columns)] * rarity + meant @ found[len(columns) : -1]

    half = np.random.default_rng(options.seed).random(len(corpus.communities)) < 0.5
    taught = np.array([at for at, topic in enumerate(topics.topics) if topic.communities])
    chooses, judges = np.flatnonzero(~half)[::2], np.flatnonzero(~half)[1::2]
    by_meaning, result = {}, {}
    try:
        for meaning in (0.0, 0.3, 1.0, 2.0, 4.0):
            learning._weights = partial(weights, meaning)
            fitted = learning._fit(corpus, on[:, taught], half, options)
            plain = fitted.weights / corpus.rarity[fitted.columns][:, None]
            told = np.asarray(corpus.features(fitted.columns, options.prior) @ plain)
            by_meaning[meaning] = [
                [auc(told[rows, at], on[rows, place].astype(float)) for at, place in enumerate(taught)]
                for rows in (chooses, judges)
            ]
        best = max(by_meaning, key=lambda one: np.mean(by_meaning[one][0]))
        learning._weights = partial(weights, best)
        result["people"] = exposure_reddit.on_people(data, learning.learn(corpus, topics, options).space)
    finally:
        learning._weights = plain_weights
    means = {str(one): np.mean(both, axis=1).round(4).tolist() for one, both in by_meaning.items()}
    return {"chosen": best, "mean_where_chosen_and_judged": means, **result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    data = parser.parse_args().data
    frame = read(data / "reddit_topic_corpus" / "submissions.jsonl.zst")
    posts = frame.select("community", text=background(data))
    options = learning.LearnOptions()
    corpus = learning.read_corpus(posts, starter_topics(), options)
    on = learning._posts_on_topics(corpus, starter_topics())
    sentences = Sentences(posts["text"])
    vectors = sentences.of(posts["text"])
    result = {
        "posts": on_posts(corpus, on, vectors, options),
        "people": on_people(data, on, vectors, sentences),
        "folded": folded(data, corpus, on, options),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
