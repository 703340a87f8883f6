"""How does a rank among made-up people become a probability of being found among real ones?

    python -m benchmarks.card_learnt CROWD              fit, and report where nothing was fitted

Prints the weights of ``measures/recognition/from_card.py``: they are fitted on people of three communities of the
crowd with cards of their own, and on people of all its communities with the card inside. Reported are two other
communities and ``reddit_users``. Nobody who is judged is in a card; a real attack looks for their later posts among
everybody's earlier ones.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.default_card import among, people
from incrowd import default_card
from incrowd.cards.card import Card, text_facts
from incrowd.cards.make import CardOptions, safe_statistics
from incrowd.cards.members import read_members
from incrowd.cards.noise import Blur
from incrowd.crowd import Crowd
from incrowd.distances.profile_index import word_keys
from incrowd.measures.made_up_rivals import MadeUpRivals, counted_posts
from incrowd.measures.person import post_words
from incrowd.measures.recognition.assess import words_of
from incrowd.measures.recognition.definition import halves
from incrowd.measures.recognition.from_card import gone_on, rehearsed
from incrowd.measures.recognition.history import Histories, contest
from incrowd.measures.recognition.spec import KNOWN, How
from incrowd.profiles.habits import post_habits
from incrowd.statistics import auc, calibration_error

FITTED = ("College", "ApplyingToCollege", "CollegeRant", "the card inside")
REPORTED = ("GradSchool", "AskAcademia", "reddit_users")
FEWEST_POSTS = 6
RIDGE = 3.0
TOGETHER = 3_500
"""People of all communities together, as many as the card inside is of."""


@dataclass(frozen=True)
class Tried:
    """One person, tried with n posts: what a card says of them, and how often they were found."""

    rank: float
    words: float
    found: float


def tried(pool: pl.DataFrame, judged: list[str], card: Card, name: str) -> dict[str, dict[int, list[Tried]]]:
    """Ask the card about the earlier half of people's posts, and let a real attack look for the later half."""
    pool = pool.sort("user", "time", "text")
    names = pool["user"].unique().sort().to_list()
    starts = np.searchsorted(pool["user"].to_numpy().astype(str), np.array([*names, "~" * 40]))
    habits = post_habits(pool["text"])
    histories = Histories(
        posts=habits,
        words=words_of(habits),
        days=pool["time"].to_numpy() / 86_400,
        of=tuple(np.arange(a, b) for a, b in itertools.pairwise(starts)),
    )
    trial = contest(histories, "earlier", "later", How(6, 0, 2**29))
    places = np.searchsorted(np.array(names), np.array(judged))
    asked = {
        int(at): by_card(pool, histories.of[at], card, name) for at in places if len(histories.of[at]) > 3
    }
    report: dict[str, dict[int, list[Tried]]] = {
        "posts": {n: [] for n in KNOWN},
        "accounts": {n: [] for n in KNOWN},
    }
    for k, n in enumerate(KNOWN):
        able = np.intersect1d(list(asked), trial.can_be_tried(n))
        for at, found in zip(able.tolist(), trial.tried(n, able).first.tolist(), strict=True):
            for question, (ranks, words) in asked[at].items():
                if not math.isnan(ranks[k]):
                    report[question][n].append(Tried(float(ranks[k]), math.log(max(words, 1)), found))
    return report


def by_card(pool: pl.DataFrame, rows: Any, card: Card, name: str) -> dict[str, tuple[Any, float]]:
    """Return what `incrowd assess` and `incrowd link` go by: log ranks, and how many words there are."""
    cut = halves(len(rows))[0]
    first, second = (
        among(card, pool[half.tolist()].select("community", "time", "text", link=pl.lit(None, pl.String)))
        for half in (rows[:cut], rows[cut:])
    )
    made, users = first.made_up(name)
    rivals = MadeUpRivals.of(made.counts, made.rare, users, first.members(name))
    said = [post_words(one.posts["text"], card.text) for one in (first, second)]
    keys = [word_keys(one.vocabulary) for one in said]
    others = np.union1d(*keys)
    known, read = (
        counted_posts(one.matrix, own, made.keys, others, halves(one.matrix.shape[0])[0])
        for one, own in zip(said, keys, strict=True)
    )
    everything, later = np.arange(known.counts.shape[0]), np.arange(read.counts.shape[0])
    linked = gone_on([rivals.log_rank(known, everything, read, later, n) for n in KNOWN])
    words = float(known.counts.sum())
    return {"posts": (rehearsed(rivals, known, known), words), "accounts": (linked, words)}


def trials(crowd: Crowd, name: str) -> dict[str, dict[int, list[Tried]]]:
    """Try people of one community, or of all with the card inside."""
    from benchmarks.default_card import _DRAWN

    _DRAWN.clear()
    rng = np.random.default_rng(7)
    if name == "reddit_users":
        others = people("mental_health")
        judged = drawn(others["user"].unique().sort(), 300, rng)
        pool = pl.concat([people("general"), others.filter(pl.col("user").is_in(judged))])
        return tried(pool, judged, default_card(), "Reddit")
    posts = crowd.posts().collect() if name == "the card inside" else crowd.posts(community=name).collect()
    pool = posts.select("user", "community", "time", "text")
    if name == "the card inside":
        pool = pool.filter(pl.col("user").is_in(drawn(pool["user"].unique().sort(), TOGETHER, rng)))
        return tried(pool, able_people(pool, 350, rng), default_card(), "Reddit")
    judged = able_people(pool, 250, rng)
    options = CardOptions(communities=(name,))
    members = read_members(crowd, [name], options.text).without(judged)
    community = safe_statistics(members, options.k, Blur(), name)
    head = {
        "text": text_facts(options.text),
        "communities": [{"name": name, **community.facts(), "accuracy": None}],
    }
    return tried(pool, judged, Card.made(head, [community.tables()]), name)


def able_people(pool: pl.DataFrame, most: int, rng: np.random.Generator) -> list[str]:
    """Draw people who wrote enough to be cut in halves, at most half of them."""
    able = pool.group_by("user").len().filter(pl.col("len") >= FEWEST_POSTS)["user"].sort()
    return drawn(able, min(most, len(able) // 2), rng)


def drawn(users: pl.Series, count: int, rng: np.random.Generator) -> list[str]:
    """Draw some people by lot."""
    return sorted(rng.choice(users.to_numpy(), count, replace=False).tolist())


def fitted(examples: list[Tried]) -> list[float]:
    """Return the weights of a logistic regression on rank and words, drawn a little towards nothing."""
    x, y = features(examples), np.array([one.found for one in examples])
    middle, spread = x.mean(axis=0), x.std(axis=0)
    turned = np.column_stack([np.ones(len(x)), (x - middle) / spread])

    def loss(weights: Any) -> float:
        odds = turned @ weights
        return float(np.sum(np.logaddexp(0, odds) - y * odds) + RIDGE * np.sum(weights[1:] ** 2))

    weights = minimize(loss, np.zeros(3)).x
    slopes = weights[1:] / spread
    return [round(float(part), 3) for part in (weights[0] - slopes @ middle, *slopes)]


def features(examples: list[Tried]) -> Any:
    """Return rank and words, a row for each."""
    return np.array([(one.rank, one.words) for one in examples])


def judged_by(weights: list[float], examples: list[Tried]) -> dict[str, float]:
    """Say how well some weights do for some people."""
    found = np.array([one.found for one in examples])
    told = expit(weights[0] + features(examples) @ weights[1:])
    return {
        "people": len(examples),
        "found": round(float(found.mean()), 3),
        "predicted": round(float(told.mean()), 3),
        "auc": round(auc(found >= 0.5, told), 3),
        "calibration_error": round(calibration_error(told, found), 3),
        "highest_in_fifty": round(float(np.quantile(told, 0.98)), 2),
    }


def main() -> dict[str, Any] | None:
    """Run it on a crowd given by its folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("crowd", type=Path, nargs="?")
    given = parser.parse_args()
    if given.crowd is None:
        print("   skipped: give the folder of a crowd, python -m benchmarks.card_learnt CROWD")
        return None
    crowd = Crowd(given.crowd)
    each = {name: trials(crowd, name) for name in (*FITTED, *REPORTED)}
    report: dict[str, Any] = {}
    for question in ("posts", "accounts"):
        for n in KNOWN:
            weights = fitted([one for name in FITTED for one in each[name][question][n]])
            report[f"{question}, {n} read"] = {
                "weights": weights,
                **{
                    name: judged_by(weights, each[name][question][n])
                    for name in each
                    if each[name][question][n]
                },
            }
    return report


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
