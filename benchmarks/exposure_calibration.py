"""How often is somebody personally concerned whose posts look like it? What exposure's probability rests on.

    python -m benchmarks.exposure_calibration --data ../shared/data

Of the people of `reddit_users`, who posted in communities of a topic (a proxy: took part, no diagnosis) is held
against the score of their other posts: the three best weeks, as `assess` reads them. One regression on the log odds of
that score, for all topics alike, is fitted on topics that are not about mental health, on every other person, and
judged on the other people and on mental health. Rates only.

    python -m benchmarks.exposure_calibration --data ../shared/data --one-word

asks the same of each of the four communities in which somebody wrote most, as `assess` does, for people who are among
the first tenth there and whose interest looks like a passing one: of those whose posts would not point to the topic
without a single word, and of the others. A second regression is fitted to the first of these, on the same topics and
people, and judged likewise.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import logit

from benchmarks.exposure_reddit import MENTAL_HEALTH, OTHER_TOPICS, PROXIES, read, similarities, task
from incrowd.measures.exposure.assess import OwnPosts
from incrowd.measures.exposure.definition import periods
from incrowd.measures.exposure.scoring import PeakCollector
from incrowd.measures.exposure.space import Encoder, default_space
from incrowd.measures.exposure.spec import CALIBRATED, LINES, Calibration, ExposureOptions
from incrowd.measures.protocol import SMALLEST_CROWD
from incrowd.statistics import auc, calibration_error, fit_logistic
from incrowd.text import TextOptions

MENTAL = ("anxiety", "bipolar", "eating-disorders", "self-harm")
BINS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def scores(data: Path) -> dict[str, tuple[Any, Any]]:
    """Return, by topic, everybody's score and whether they took part in its communities."""
    space = default_space()
    posts = read(data / "reddit_users" / "posts.jsonl.zst").rename({"author": "user", "t": "time"})
    posts = posts.with_columns(pl.col("community").str.to_lowercase(), pl.col("time").cast(pl.Int64))
    seen = posts.filter(~pl.col("community").str.contains(MENTAL_HEALTH)).sort("user", maintain_order=True)
    similar = similarities(space, seen["text"])
    posted = posts.select("user", "community").unique()
    found = {}
    for name, places in OTHER_TOPICS.items():
        one = task(name, tuple(places.split()), seen, posted)
        collector = PeakCollector(len(one.votes), len(space.topics), space=space)
        collector.add(one.person, periods(one.times), similar[one.rows])
        place = space.topics.place(PROXIES.get(name, name))
        risks = collector.finish().risks(space.topics, "T", ExposureOptions())[:, place]
        known = ~np.isnan(risks)
        found[name] = risks[known], one.votes[known] > 0.5
    return found


LARGEST = 4
"""Communities of each person, those where they wrote most."""
FIRST_TENTH = 0.1
Passing = dict[str, tuple[Any, Any, Any, Any]]


def passing_interests(data: Path) -> Passing:
    """Return, by topic, of everybody with a passing interest in one community: person, score, one word, took part."""
    space, options = default_space(), ExposureOptions()
    posts = read(data / "reddit_users" / "posts.jsonl.zst").rename({"author": "user", "t": "time"})
    posts = posts.with_columns(pl.col("community").str.to_lowercase(), pl.col("time").cast(pl.Int64))
    posted = posts.select("user", "community").unique()
    seen = posts.filter(~pl.col("community").str.contains(MENTAL_HEALTH))
    there = (
        seen.group_by("user", "community")
        .len()
        .sort("user", "len", "community", descending=[False, True, False])
    )
    members = seen.group_by("community").agg(members=pl.col("user").n_unique())
    units = (
        there.group_by("user", maintain_order=True)
        .head(LARGEST)
        .join(members, on="community", maintain_order="left")
    )
    units = units.filter(pl.col("members") >= SMALLEST_CROWD).with_row_index("unit")
    seen = seen.join(units.select("user", "community", "unit"), on=["user", "community"]).sort(
        "unit", maintain_order=True
    )
    words, of = Encoder(space, TextOptions()).encode(seen["text"]), seen["unit"].to_numpy().astype(np.int64)
    similar, when = space.similarities(words), periods(seen["time"].to_numpy())
    collector = PeakCollector(len(units), len(space.topics), space=space)
    collector.add(of, when, similar, np.diff(words.bounds))
    peaks = collector.finish()
    risks, strength = peaks.risks(space.topics, "T", options), peaks.strength
    starts, lines = np.searchsorted(of, np.arange(len(units) + 1)), LINES[space.name]
    found = {}
    for name, places in OTHER_TOPICS.items():
        topic, own = space.topics.place(PROXIES.get(name, name)), places.split()
        table = units.with_columns(
            risk=pl.Series(risks[:, topic]).fill_nan(None), strength=pl.Series(strength[:, topic])
        )
        rank = pl.col("risk").rank("min", descending=True).over("community")
        first = rank <= (FIRST_TENTH * pl.col("members")).clip(1)
        passing = pl.col("risk") < lines.passing_below * pl.col("strength")
        table = table.filter(
            ~pl.col("community").is_in(own), first, passing, pl.col("strength") > lines.nothing_up_to
        )

        def rests_on_one(unit: int, topic: int = topic) -> bool:
            mine = slice(int(starts[unit]), int(starts[unit + 1]))
            posts = OwnPosts(when[mine], words.part(mine.start, mine.stop), similar[mine])
            return bool(posts.rests_on(space, topic))

        labelled = posted.filter(pl.col("community").is_in(own))["user"].unique()
        one = np.array([rests_on_one(unit) for unit in table["unit"].to_list()], bool)
        took_part = table["user"].is_in(labelled.implode()).to_numpy()
        found[name] = table["user"].to_numpy(), table["risk"].to_numpy(), one, took_part
    return found


def one_word(found: Passing) -> dict[str, Any]:
    """Fit the regression of those whose interest rests on one word, and judge it and the one for everybody."""
    everybody = np.unique(np.concatenate([people for people, *_ in found.values()]))
    half = {name: np.searchsorted(everybody, people) % 2 == 0 for name, (people, *_) in found.items()}
    taught = [name for name in found if name not in MENTAL]

    def column(names: Sequence[str], place: int, which: Callable[[str], Any]) -> Any:
        return np.concatenate([found[name][place][which(name)] for name in names])

    teaches = lambda name: half[name] & found[name][2]  # noqa: E731
    model = fit_logistic(log_odds(column(taught, 1, teaches)), column(taught, 3, teaches).astype(float), 1e-6)
    slope = float(model.weights[1] / model.spread[0])
    how = Calibration(float(model.weights[0] - slope * model.mean[0]), slope)
    judged: dict[str, Any] = {}
    for kind, names in (("other people", taught), ("mental health", list(MENTAL))):
        for words in (True, False):
            asked = lambda name: (name in MENTAL or ~half[name]) & (found[name][2] == words)  # noqa: B023, E731
            scores, concerned = column(names, 1, asked), column(names, 3, asked)
            usual = CALIBRATED["WORDS", "T"].probability(scores)
            told = np.minimum(usual, how.probability(scores)) if words else usual
            judged[f"{kind}, {'one word' if words else 'several'}"] = [
                {
                    "above": above,
                    "people": int(some.sum()),
                    "told before": round(float(usual[some].mean()), 3),
                    "told": round(float(told[some].mean()), 3),
                    "took part": round(float(concerned[some].mean()), 3),
                }
                for above in (0.0, 0.12)
                if (some := usual > above).any()
            ]
    return {"level": round(how.level, 3), "slope": round(how.slope, 3), "judged": judged}


def log_odds(risks: Any) -> Any:
    """Return scores as log odds, one column."""
    return logit(np.clip(risks, 1e-4, 1 - 1e-4))[:, None]


def calibrate(found: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
    """Fit on some, judge on others."""
    taught = [name for name in found if name not in MENTAL]
    parts = [(log_odds(found[name][0][::2]), found[name][1][::2]) for name in taught]
    model = fit_logistic(np.vstack([x for x, _ in parts]), np.concatenate([y for _, y in parts]), 1e-6)
    slope = float(model.weights[1] / model.spread[0])
    level = float(model.weights[0] - slope * model.mean[0])
    judged = {}
    for name, (risks, votes) in found.items():
        some = slice(1, None, 2) if name in taught else slice(None)
        p, y = np.asarray(model.predict(log_odds(risks[some]))), votes[some]
        judged[name] = {
            "taught": name in taught,
            "labelled": round(float(y.mean()), 4),
            "predicted": round(float(p.mean()), 4),
            "auc": round(auc(y, p), 3),
            "calibration_error": round(calibration_error(p, y), 4),
            "bins": [
                [low, int(there.sum()), *np.round([p[there].mean(), y[there].mean()], 3).tolist()]
                for low, high in itertools.pairwise(BINS)
                if (there := (p > low) & (p <= high)).sum() >= 20
            ],
        }
    return {"level": round(level, 3), "slope": round(slope, 3), "topics": judged}


def main() -> None:
    """Print the regression and how it does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--one-word", action="store_true", help="Ask about interests that rest on one word.")
    given = parser.parse_args()
    told = one_word(passing_interests(given.data)) if given.one_word else calibrate(scores(given.data))
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
