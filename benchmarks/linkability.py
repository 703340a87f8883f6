"""How many people each adversary links, on real communities beside the project if they are there.

    python -m benchmarks linkability
    python -m benchmarks.linkability --pair AskAcademia GradSchool     only this pair, for the table of NOTES.md
    python -m benchmarks.linkability --sampled      whether certainty from a sample of targets covers that from all

Reads ../shared/data/reddit_college or reddit_users; prints rates only. Without it a synthetic crowd is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from incrowd.crowd import Crowd
from incrowd.measures.linkability.assess import link_rates
from incrowd.measures.linkability.by_distance import true_pairs
from incrowd.measures.linkability.definition import hits_at
from incrowd.measures.linkability.determined import (
    PRACTISED,
    _read,
    attack_on,
)
from incrowd.measures.linkability.link_model import Resemblance, _cosines
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.profiles.habits import habits
from incrowd.synthetic import posts

SHARED = Path(os.environ.get("INCROWD_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
LEAST_PAIRS = 50


def crowd(folder: Path, name: str = "reddit_college") -> tuple[Crowd, str]:
    """Read a crowd under its own names, in a folder that goes: random pseudonyms would draw others each time."""
    data = SHARED / name / "posts.jsonl.zst"
    if data.exists():
        made = Crowd.create(folder, plain_names=True)
        made.ingest([data], kind="posts", columns={"user": "author", "time": "t"})
        return made, name
    print(f"{name} is not there: measuring a synthetic crowd instead")
    return posts(users=300, communities=4, identities=900, linkability=0.4, seed=1).crowd(folder), "synthetic"


def shared_pairs(crowd: Crowd, min_posts: int) -> list[tuple[str, str]]:
    ids = crowd.posts().group_by("user", "community").len().filter(pl.col("len") >= min_posts).collect()
    both = ids.join(ids, on="user").filter(pl.col("community") != pl.col("community_right"))
    counted = both.group_by("community", "community_right").len().filter(pl.col("len") >= LEAST_PAIRS)
    return [(a, b) for a, b, _ in counted.sort("len", "community", descending=True).iter_rows()]


def attack(crowd: Crowd, source: str, target: str, **changes: Any) -> dict[str, Any]:
    start = time.perf_counter()
    rates = link_rates(crowd, LinkabilityOptions(source=source, target=target, **changes)).to_dict()
    found = {
        "first": rates["precision_at"]["1"],
        "ten": rates["precision_at"]["10"],
        "seconds": time.perf_counter() - start,
    }
    if "calibration" in rates:
        found |= {
            "calibration_error": rates["calibration"]["error"],
            "calibration_error_open": rates["calibration_open"]["error"],
        }
    return found


def words_alone(crowd: Crowd, source: str, target: str) -> dict[str, dict[str, float]]:
    """Two steps on the way to `determined`: sublinear TF-IDF of words as written, without and with hubs taken out."""
    posts = crowd.posts().filter(pl.col("community").is_in([source, target])).collect()
    everybody = habits(posts, min_posts=10, families=("words",))
    community = everybody.identities["community"].to_numpy()
    places = [np.flatnonzero(community == name) for name in (source, target)]
    sources, targets = (everybody.only(community == name) for name in (source, target))
    pairs, _ = true_pairs(everybody.identities, *places)
    view = Resemblance(sources, targets, ("words",)).laid_out[0]
    everyone = np.arange(len(sources))
    plain, corrected = _cosines(view.sources, view.targets, everyone), view.scores(everyone)
    return {
        name: {f"{k}": found(scores, pairs, k) for k in (1, 10)}
        for name, scores in (("word TF-IDF, sublinear, cosine", plain), ("the same with CSLS", corrected))
    }


def found(scores: Any, pairs: Any, k: int) -> float:
    own = scores[pairs[:, 0], pairs[:, 1]]
    others = scores[pairs[:, 0]]
    nearer, tied = (others > own[:, None]).sum(axis=1), (others == own[:, None]).sum(axis=1) - 1
    return float(hits_at(nearer, k, tied).mean())


SAMPLED_PAIRS = (
    ("College", "ApplyingToCollege"),
    ("AskAcademia", "GradSchool"),
    ("ApplyingToCollege", "College"),
)


def sampled(crowd: Crowd, draws: int = 5) -> dict[str, Any]:
    """How often the interval of certainty from a random sample of targets holds the certainty from all of them."""
    generator, found = np.random.default_rng(0), {}
    for source, target in SAMPLED_PAIRS:
        attack = attack_on(_read(crowd, source, 10), _read(crowd, target, 10), PRACTISED, 0)
        utilities = attack.resemblance.utilities(attack.pairs[:, 0], PRACTISED.weights)
        own, targets = attack.pairs[:, 1], utilities.shape[1]
        truth = attack._certain(utilities, own, None).sure
        for size in (150, 500):
            some = replace(attack, targets=attack.targets.only(np.arange(size)))
            held = []
            for row, place in enumerate(own):
                others = np.delete(np.arange(targets), place)
                for _ in range(draws):
                    seen = np.append(place, generator.choice(others, size - 1, replace=False))
                    low, high = some._certain(utilities[row : row + 1, seen], np.zeros(1, int), None).ends[0]
                    held.append(low - 1e-9 <= truth[row] <= high + 1e-9)
            found[f"{source} -> {target}, {size}"] = float(np.mean(held))
    return found


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pair", nargs=2, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--sampled", action="store_true")
    asked = parser.parse_args()
    only = asked.pair
    if asked.sampled:
        with tempfile.TemporaryDirectory() as folder:
            made, name = crowd(Path(folder) / "crowd")
            return {"data": name, "covered": sampled(made)}
    ways: dict[str, dict[str, Any]] = {
        "unigram JS": {},
        "indicator JS": {"model": "indicator"},
        "TF-IDF cosine": {"model": "tfidf", "distance": "angular-cosine"},
        "determined": {"adversary": "determined"},
    }
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        made, name = crowd(Path(folder) / "crowd")
        for source, target in [only] if only else shared_pairs(made, 10):
            row = {way: attack(made, source, target, **changes) for way, changes in ways.items()}
            row |= {
                name: {"first": at["1"], "ten": at["10"]}
                for name, at in words_alone(made, source, target).items()
            }
            results[f"{source} -> {target}"] = row
            shown = "  ".join(f"{way} {found['first']:.3f}/{found['ten']:.3f}" for way, found in row.items())
            print(f"{source} -> {target}: {shown}", flush=True)
    return {"data": name, "pairs": results}


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
