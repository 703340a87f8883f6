"""How fast is exposure? The default and LDA's fold-in beside tomotopy's inference, and one post of a stream.

    python benchmarks/exposure.py [--posts 1000000] [--topics 20] [--dims 500] [--users 10000]

Prints one JSON document. The model is learnt from made-up posts (a few rounds: its quality does not matter
here, its size does); the posts scored are made up too.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from typing import Any

import numpy as np

from incrowd.measures.exposure.learnt_spaces import LdaSpace
from incrowd.measures.exposure.scoring import LiveExposure
from incrowd.measures.exposure.space import Encoder, WeightedWords, default_space
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import TopicSet, starter_topics
from incrowd.measures.exposure.training import TrainOptions, documents, train_lda
from incrowd.synthetic import SyntheticPosts
from incrowd.text import TextOptions

PEER_POSTS = 400
STREAM_POSTS = 500


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--posts", type=int, default=1_000_000)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--dims", type=int, default=500)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--background", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=20)
    return parser.parse_args()


def learn(options: argparse.Namespace) -> tuple[LdaSpace, list[list[str]]]:
    topics = TopicSet(starter_topics().topics[: options.topics])
    made = SyntheticPosts(users=options.background // 50, communities=10, posts=options.background, seed=7)
    chosen = TrainOptions(dims=options.dims, rounds=options.rounds)
    posts = documents([made.to_frame()["text"]], chosen)
    return train_lda(posts, topics, chosen), posts


def score_posts(space: LdaSpace | WeightedWords, options: argparse.Namespace) -> dict[str, float]:
    """Tokenise, fold in and compare, batch by batch; posts are made outside the clock."""
    made = SyntheticPosts(
        users=max(10, options.posts // 100), communities=10, posts=options.posts, fewest_posts=10, seed=1
    )
    encoder = Encoder(space, TextOptions())
    space.similarities(encoder.encode(next(made.frames(1_000))["text"]))  # compile
    spent, words, encode, worked = 0.0, 0, 0.0, 0.0
    for frame in made.frames(50_000):
        begin, from_here = time.perf_counter(), time.process_time()
        lists = encoder.encode(frame["text"])
        encode += time.perf_counter() - begin
        space.similarities(lists)
        spent += time.perf_counter() - begin
        worked += time.process_time() - from_here
        words += len(lists.words)
    return {
        "posts": options.posts,
        "seconds": spent,
        "cpu_seconds": worked,
        "tokenising_seconds": encode,
        "posts_per_second": options.posts / spent,
        "known_words_per_post": words / options.posts,
    }


def peer(posts: list[list[str]], options: argparse.Namespace) -> dict[str, float]:
    """tomotopy's default inference on a model of the same size and the same kind of posts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import tomotopy
    model = tomotopy.LDAModel(k=options.dims, alpha=0.1, eta=0.01, seed=0, min_cf=5)
    for post in posts:
        model.add_doc(post)
    model.train(options.rounds, workers=1)
    some = [model.make_doc(post) for post in posts[:PEER_POSTS]]
    begin, from_here = time.perf_counter(), time.process_time()
    for one in some:
        model.infer(one)
    single, worked = PEER_POSTS / (time.perf_counter() - begin), time.process_time() - from_here
    some = [model.make_doc(post) for post in posts[:PEER_POSTS]]
    begin = time.perf_counter()
    model.infer(some)
    return {
        "default_posts_per_second": single,
        "default_posts_per_cpu_second": PEER_POSTS / worked,
        "batch_posts_per_second": PEER_POSTS / (time.perf_counter() - begin),
    }


def stream(space: LdaSpace, users: int) -> dict[str, float]:
    """One post at a time, with everybody's risks in memory and a hundred lines watched."""
    live = LiveExposure(space, ExposureOptions())
    made = SyntheticPosts(
        users=users, communities=10, posts=users * 20, fewest_posts=10, identities=users, seed=2
    )
    frame = made.to_frame().head(users + STREAM_POSTS)
    names = made.user_names.to_list()
    for user, row in zip(names, frame.head(users).iter_rows(named=True), strict=True):
        live.add_post(user, row["time"], row["text"])
    for user in names[:100]:
        live.watch(user, space.topics.names[0], 50)
    taken, worked = [], []
    for row in frame.tail(STREAM_POSTS).iter_rows(named=True):
        begin, from_here = time.perf_counter(), time.thread_time()
        live.add_post(row["user"], row["time"], row["text"])
        taken.append(time.perf_counter() - begin)
        worked.append(time.thread_time() - from_here)
    return {
        "people": users,
        "median_ms": 1e3 * float(np.median(taken)),
        "p95_ms": 1e3 * float(np.quantile(taken, 0.95)),
        # Without the time that other programs on the machine took.
        "p95_cpu_ms": 1e3 * float(np.quantile(worked, 0.95)),
    }


def main() -> None:
    options = parse()
    space, posts = learn(options)
    ours = score_posts(space, options)
    default = score_posts(default_space(), options)
    theirs = peer(posts, options)
    result: dict[str, Any] = {
        "dims": options.dims,
        "topics": options.topics,
        "entries_per_word": len(space.dims) / len(space.words),
        "scoring": ours,
        "default": default,
        "default_topics": len(default_space().topics),
        "default_times_tomotopy": default["posts_per_second"] / theirs["default_posts_per_second"],
        "default_times_tomotopy_by_cpu_time": default["posts"]
        / default["cpu_seconds"]
        / theirs["default_posts_per_cpu_second"],
        "tomotopy": theirs,
        "times_default_inference": ours["posts_per_second"] / theirs["default_posts_per_second"],
        # On a busy machine CPU time says more than the clock; ours counts both cores.
        "times_default_inference_by_cpu_time": ours["posts"]
        / ours["cpu_seconds"]
        / theirs["default_posts_per_cpu_second"],
        "times_batch_inference": ours["posts_per_second"] / theirs["batch_posts_per_second"],
        "stream": stream(space, options.users),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
