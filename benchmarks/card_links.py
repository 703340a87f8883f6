"""How probably the determined adversary links two profiles: as a card tells it, and as it turns out among real people.

    python -m benchmarks.card_links CROWD              fit, and report where nothing was fitted

Prints the weights of ``measures/linkability/from_card.py``: they are fitted on people with ten posts in both of two
communities of the crowd (a folder with ``reddit_college``), each pair both ways, by a card of the second without them.
Reported are another pair of communities, and people of ``reddit_users`` who are not in the card inside, by that card:
their two largest subreddits, among everybody's two halves.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import minimize

from benchmarks.default_card import NAME, among, people
from incrowd import default_card
from incrowd.cards.card import Card, text_facts
from incrowd.cards.make import CardOptions, safe_statistics
from incrowd.cards.members import read_members
from incrowd.cards.noise import Blur
from incrowd.crowd import Crowd
from incrowd.measures.linkability.determined import DeterminedAttack, prepare
from incrowd.measures.linkability.from_card import PairFromCard, Places, probability
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.person import Person
from incrowd.measures.prepared import YOU
from incrowd.statistics import auc, calibration_error

FITTED = (("College", "CollegeRant"), ("College", "ApplyingToCollege"))
REPORTED = (("AskAcademia", "GradSchool"),)
MIN_POSTS, JUDGED, RIDGE = 10, 400, 3.0


def attacked(crowd: Crowd, source: str, target: str) -> tuple[DeterminedAttack, Any]:
    """Return the attack, and how often it is right about each person in both; ties share the place."""
    options = LinkabilityOptions(source=source, target=target, min_posts=MIN_POSTS, adversary="determined")
    attack = prepare(crowd, options)
    found, rows = attack.judged(), attack.pairs[:, 0]
    return attack, np.where(found["nearer"][rows] > 0, 0.0, 1 / (1 + found["ties"][rows]))


def by_card(card: Card, posts: pl.DataFrame, judged: list[str], places: Places) -> Any:
    """Return what goes into the probability of each person: log rank, and log words of the shorter profile."""
    asked, rivals = [], {}
    for user in judged:
        mine = posts.filter(pl.col("user") == user).select("community", "time", "text")
        crowd = among(card, mine.with_columns(link=pl.lit(None, pl.String)))
        pair = PairFromCard(crowd, places, MIN_POSTS, 0, rivals)
        told = pair.assess(Person(YOU, crowd), explain=False)
        about = {"log_rank": np.nan, "words": np.nan} if told is None else told.assumptions.parameters
        asked.append((about["log_rank"], np.log(about["words"])))
    return np.array(asked)


def of_communities(crowd: Crowd, source: str, target: str) -> tuple[Any, Any]:
    """Ask about everybody in both, by a card of the second community without them."""
    from benchmarks.default_card import _DRAWN

    _DRAWN.clear()
    attack, found = attacked(crowd, source, target)
    judged, options = attack.people.tolist(), CardOptions(communities=(target,))
    members = read_members(crowd, [target], options.text).without(judged)
    community = safe_statistics(members, options.k, Blur(), target)
    about = {"name": target, **community.facts(), "accuracy": None}
    card = Card.made({"text": text_facts(options.text), "communities": [about]}, [community.tables()])
    posts = crowd.posts().filter(pl.col("community").is_in([source, target])).collect()
    return by_card(card, posts, judged, Places(source, target, target)), found


def of_card_inside(seed: int = 7) -> tuple[Any, Any]:
    """Ask about people who write a lot in two subreddits; everybody else is cut in halves by time."""
    from benchmarks.default_card import _DRAWN

    _DRAWN.clear()
    rng, others = np.random.default_rng(seed), people("mental_health")
    counted = others.group_by("user", "community").len().filter(pl.col("len") >= MIN_POSTS)
    ranked = counted.sort("user", "len", "community", descending=[False, True, False]).with_columns(
        place=pl.int_range(pl.len()).over("user")
    )
    two = ranked.filter((pl.col("place") < 2) & (pl.len().over("user") > 1))
    able = two["user"].unique().sort().to_numpy()
    judged = sorted(rng.choice(able, min(JUDGED, len(able)), replace=False).tolist())
    named = two.with_columns(
        name=pl.when(pl.col("place") == 0).then(pl.lit("there")).otherwise(pl.lit("here"))
    )
    columns = {"user": "user", "community": "name", "time": "time", "text": "text"}
    mine = others.filter(pl.col("user").is_in(judged)).join(named, on=["user", "community"]).select(**columns)
    half = pl.int_range(pl.len()).over("user") < pl.len().over("user") // 2
    rest = people("general").sort("user", "time", "text")
    rest = rest.with_columns(name=pl.when(half).then(pl.lit("there")).otherwise(pl.lit("here"))).select(
        **columns
    )
    attack, found = attacked(Crowd.from_frame(pl.concat([mine, rest]), plain_names=True), "here", "there")
    there = np.isin(attack.people, judged)
    asked = by_card(default_card(), mine, attack.people[there].tolist(), Places("here", "there", NAME))
    return asked, found[there]


def fitted(asked: Any, found: Any) -> list[float]:
    """Return the weights of a logistic regression, drawn a little towards nothing."""
    middle, spread = asked.mean(axis=0), asked.std(axis=0)
    turned = np.column_stack([np.ones(len(asked)), (asked - middle) / spread])

    def loss(weights: Any) -> float:
        odds = turned @ weights
        return float(np.sum(np.logaddexp(0, odds) - found * odds) + RIDGE * np.sum(weights[1:] ** 2))

    weights = minimize(loss, np.zeros(turned.shape[1])).x
    slopes = weights[1:] / spread
    return [round(float(part), 3) for part in (weights[0] - slopes @ middle, *slopes)]


def judged_by(asked: Any, found: Any) -> dict[str, float]:
    """Say how well the built-in weights do, and how often groups of people lie between their ends."""
    told = [probability(rank, float(np.exp(words))) for rank, words in asked]
    chances, ends = np.array([one for one, _ in told]), np.array([pair for _, pair in told])
    covered = []
    for group in np.array_split(np.argsort(chances, kind="stable"), 10):
        rate = float(found[group].mean())
        chance = 2 * np.sqrt(max(rate * (1 - rate), 0.02) / len(group))
        low, high = ends[group].mean(axis=0)
        covered.append(low - chance <= rate <= high + chance)
    return {
        "people": len(found),
        "found": round(float(found.mean()), 3),
        "predicted": round(float(chances.mean()), 3),
        "auc": round(auc(found >= 0.5, chances), 3),
        "calibration_error": round(calibration_error(chances, found), 3),
        "groups_covered": float(np.mean(covered)),
    }


def main() -> dict[str, Any] | None:
    """Run it on a crowd given by its folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("crowd", type=Path, nargs="?")
    given = parser.parse_args()
    if given.crowd is None:
        print("   skipped: give the folder of a crowd, python -m benchmarks.card_links CROWD")
        return None
    crowd = Crowd(given.crowd)
    each = {
        f"{source} to {target}": of_communities(crowd, source, target)
        for one, two in (*FITTED, *REPORTED)
        for source, target in ((one, two), (two, one))
    } | {"reddit_users (card inside)": of_card_inside()}
    learnt = [each[f"{source} to {target}"] for a, b in FITTED for source, target in ((a, b), (b, a))]
    weights = fitted(*(np.concatenate([one[part] for one in learnt]) for part in (0, 1)))
    return {"weights": weights} | {name: judged_by(*one) for name, one in each.items()}


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
