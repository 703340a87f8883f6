"""How often is somebody personally concerned whose posts look like it? What exposure's probability rests on.

    python -m benchmarks.exposure_calibration --data ../shared/data

Of the people of `reddit_users`, who posted in communities of a topic (a proxy: took part, no diagnosis) is held
against the score of their other posts: the three best weeks, as `assess` reads them. One regression on the log odds of
that score, for all topics alike, is fitted on topics that are not about mental health, on every other person, and
judged on the other people and on mental health. Rates only.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import logit

from benchmarks.exposure_reddit import MENTAL_HEALTH, OTHER_TOPICS, PROXIES, read, similarities, task
from incrowd.measures.exposure.definition import periods
from incrowd.measures.exposure.scoring import PeakCollector
from incrowd.measures.exposure.space import default_space
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.statistics import auc, calibration_error, fit_logistic

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
    print(json.dumps(calibrate(scores(parser.parse_args().data)), indent=1))


if __name__ == "__main__":
    main()
