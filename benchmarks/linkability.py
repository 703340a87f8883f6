"""How many people each adversary links, on real communities beside the project if they are there.

    python -m benchmarks linkability
    python -m benchmarks.linkability --pair AskAcademia GradSchool     only this pair, for the table of NOTES.md
    python -m benchmarks.linkability --calibration                     how sure and how right `determined` is
    python -m benchmarks.linkability --calibration reddit_users        on the other crowd; --pairs 60: some pairs
    python -m benchmarks.linkability --sampled      whether certainty from a sample of targets covers that from all

Reads ../shared/data/reddit_college or reddit_users; prints rates only. Without it a synthetic crowd is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
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
    BINS,
    PRACTISED,
    DeterminedAttack,
    _highest,
    _identities,
    _margins,
    _practice_communities,
    _practise,
    _read,
    attack_on,
    words_of,
)
from incrowd.measures.linkability.link_model import Resemblance, _cosines
from incrowd.measures.linkability.open_set import fall_off
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
    view = Resemblance(sources, targets, ("words",))._views[0]
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


AWAY = {0.0: 1, 0.5: 2, 0.8: 3, 0.95: 5, 0.99: 10}
"""Shares of the true targets that are taken away, so that fewer and fewer have a match, and how often it is drawn anew
who: the fewer are left, the more draws it takes for enough cases."""


def calibration(crowd: Crowd, most: int | None = None) -> dict[str, Any]:
    """Judge directed pairs of communities by a model that never saw them, with fewer and fewer matches.

    `most`: so many pairs at most, drawn at random, in both directions.
    """
    identities = _identities(crowd, 10)
    users = {str(name): part["user"].sort().to_numpy() for (name,), part in identities.group_by("community")}
    met = identities.join(identities, on="user").filter(pl.col("community") < pl.col("community_right"))
    counted = met.group_by("community", "community_right").len().filter(pl.col("len") >= 10)
    both = sorted(counted.select("community", "community_right").iter_rows())
    needed = {name for pair in both for name in pair}  # practice is on these, too
    habits_of = {name: _read(crowd, name, 10) for name in sorted(needed)}
    models: dict[Any, Any] = {}
    judged: dict[float, list[list[dict[str, Any]]]] = {
        away: [[] for _ in range(n)] for away, n in AWAY.items()
    }
    if most is not None:
        chosen = np.random.default_rng(0).permutation(len(both))[: most // 2]
        both = [both[place] for place in np.sort(chosen)]
    for source, target in (way for a, b in both for way in ((a, b), (b, a))):
        practice = tuple(_practice_communities(identities, {source, target}))
        if practice not in models:
            models[practice] = _practise(
                crowd,
                LinkabilityOptions(source=source, target=target),
                identities,
                habits_of,
                open_set=True,
            )
        attack = attack_on(habits_of[source], habits_of[target], *models[practice])
        utilities = attack.resemblance.utilities(slice(None), attack.model.weights)
        shared = np.intersect1d(users[source], users[target])
        for away, draws in judged.items():
            for draw, found in enumerate(draws):
                order = np.random.default_rng(draw).permutation(shared)
                left = ~np.isin(
                    habits_of[target].identities["user"].to_numpy(), order[: round(away * len(order))]
                )
                found.append(certainties(attack, utilities, left))
        done = len(judged[0.0][0])
        print(f"{done} of {2 * len(both)} {_judged(**_all_of(judged[0.0][0]))}", file=sys.stderr, flush=True)
    return {f"{away:.0%} taken away": _summed(draws) for away, draws in judged.items()}


def _all_of(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.concatenate([pair[name] for pair in pairs]) for name in ("sure", "right")}


def certainties(attack: DeterminedAttack, utilities: Any, left: Any) -> dict[str, Any]:
    """Return how sure the adversary is of each source, with and without knowing that it has a match, and how right.

    Only these targets are `left`; who of them resembles everybody stays as it was among all.
    """
    kept = utilities[:, left]
    best, highest = kept.argmax(axis=1), _highest(kept, axis=1)
    found = {"best": best, "highest": highest[:, 0], "second": highest[:, 1], "behind": fall_off(highest)[0]}
    words = np.minimum(words_of(attack.sources), words_of(attack.targets)[left][best])
    chances = attack.model.given_match(kept).max(axis=1)
    sure = attack.model.open_set.found(_margins(found, _highest(kept, axis=0)), words)[0]
    names = attack.targets.identities["user"].to_numpy()[left]
    own = attack.sources.identities["user"].to_numpy()
    return {
        "sure": np.minimum(sure, chances),
        "closed": chances[np.isin(own, names)],
        "right": names[best] == own,
        "has": np.isin(own, names),
    }


def _summed(draws: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return what a draw has on average, and the same with all draws in one, where few cases hide less."""
    each = [_one_draw(pairs) for pairs in draws]
    together = _one_draw([pair for pairs in draws for pair in pairs])
    return {
        "draws": len(draws),
        "a draw": {name: _mean([one[name] for one in each]) for name in each[0]},
        "draws beyond chance": {
            name: sum(one[name]["error"] > one[name]["by chance"] for one in each)
            for name in ("open", "closed")
        },
        "all draws": {name: together[name] for name in ("open", "called 10 % or more", "closed")},
    }


def _mean(each: list[Any]) -> Any:
    if isinstance(each[0], dict):
        return {name: _mean([one[name] for one in each]) for name in each[0]}
    return float(np.mean(each))


def _one_draw(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return errors over all pairs together, and how many pairs are further off than chance explains."""
    sure, right = _all_of(pairs).values()
    closed = np.concatenate([pair["closed"] for pair in pairs])
    found = np.concatenate([pair["right"][pair["has"]] for pair in pairs])
    errors = [_error(pair["sure"], pair["right"]) for pair in pairs]
    likely = sure >= 0.1
    return {
        "open": _judged(sure, right),
        "called 10 % or more": _judged(sure[likely], right[likely]),
        "closed": _judged(closed, found),
        "pairs": len(pairs),
        "pairs above .05": sum(error > 0.05 for error in errors),
        "pairs above .05 and beyond chance": sum(
            error > 0.05 and error > _perfect(pair["sure"])[1]
            for error, pair in zip(errors, pairs, strict=True)
        ),
        "worst pair": max(errors),
        "mean of pairs": float(np.mean(errors)),
        "mean of pairs, perfect": float(np.mean([_perfect(pair["sure"])[0] for pair in pairs])),
    }


def _judged(sure: Any, right: Any) -> dict[str, float]:
    """Return how sure and how right, and what a perfectly calibrated forecaster would show with as many cases.

    `perfect` is that forecaster's error on average, `by chance` what they stay below 19 times of 20.
    """
    perfect, by_chance = _perfect(sure)
    return {
        "cases": len(sure),
        "right": int(right.sum()),
        "expected": float(sure.sum()),
        "error": _error(sure, right),
        "perfect": perfect,
        "by chance": by_chance,
        "debiased": _debiased(sure, right),
    }


def _debiased(sure: Any, right: Any) -> float:
    """Return the root mean square gap in ten bins of as many cases each, without the part that few cases explain.

    Kumar, Liang, Ma: Verified Uncertainty Calibration (2019). 0 where chance explains all of it.
    """
    if len(sure) < 2 * BINS:
        return float("nan")
    parts = np.array_split(np.argsort(sure, kind="stable"), BINS)
    gaps = [
        (np.mean(sure[part] - right[part]) ** 2 - np.var(right[part]) / (len(part) - 1)) * len(part)
        for part in parts
    ]
    return float(np.sqrt(max(np.sum(gaps) / len(sure), 0.0)))


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


def _error(sure: Any, right: Any) -> float:
    """Return the mean gap between how sure and how right, in ten bins."""
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(place, sure - right)).sum() / max(len(sure), 1))


def _perfect(sure: Any, draws: int = 400) -> tuple[float, float]:
    """Return the error of somebody perfectly calibrated with as many cases: its mean, and what 19 of 20 stay below."""
    generator = np.random.default_rng(0)
    errors = [_error(sure, generator.random(len(sure)) < sure) for _ in range(draws)]
    return float(np.mean(errors)), float(np.quantile(errors, 0.95))


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pair", nargs=2, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--calibration", nargs="?", const="reddit_college", metavar="DATA")
    parser.add_argument("--pairs", type=int, help="So many directed pairs at most for --calibration.")
    parser.add_argument("--sampled", action="store_true")
    asked = parser.parse_args()
    only = asked.pair
    if asked.calibration:
        with tempfile.TemporaryDirectory() as folder:
            made, name = crowd(Path(folder) / "crowd", asked.calibration)
            return {"data": name, **calibration(made, asked.pairs)}
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
