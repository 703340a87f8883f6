"""How often a link that the determined adversary is so sure of today comes first again with other posts.

    python -m benchmarks.link_odds LEARN JUDGE [--pairs 14] [--min-posts 6]

LEARN and JUDGE are crowds (or folders of ../shared/data with posts). Everybody's posts in each community are cut in the
middle, by time. The earlier halves say how sure the adversary is of each true pair; the later halves, attacked by the
same adversary, say whether the true profile comes first. A logistic regression of the second on the first, and on how
much there is to read, is learnt on one crowd and judged on the other; its numbers stand in
`measures/linkability/found_again.py`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from incrowd.crowd import Crowd
from incrowd.measures.linkability.determined import prepare
from incrowd.measures.linkability.found_again import columns
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.statistics import Logistic, auc, calibration_error, fit_logistic
from incrowd.study.validity_questions import _halves, _largest_pairs

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
FEWEST = 15


def opened(name: str, folder: Path) -> Crowd:
    """Open a crowd, or import the posts of a folder of the shared data."""
    if Path(name).exists():
        return Crowd(Path(name))
    made = Crowd.create(folder / name)
    made.ingest([SHARED / name / "posts.jsonl.zst"], kind="posts", columns={"user": "author", "time": "t"})
    return made


def again(crowd: Crowd, pairs: int, min_posts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what the earlier halves tell of each true pair, and whether the later halves are linked."""
    halves = _halves(
        crowd.posts().select("user", "community", "time", "text").collect(), ["user", "community"]
    )
    both = _largest_pairs(halves, min_posts)[:pairs]
    earlier, later = (
        Crowd.from_frame(halves.filter(some).drop("later")) for some in (~pl.col("later"), pl.col("later"))
    )
    told, happened = [], []
    for source, target in [way for pair in both for way in (pair, pair[::-1])]:
        options = LinkabilityOptions(
            source=source, target=target, min_posts=min_posts, adversary="determined"
        )
        first = prepare(earlier, options)
        second = prepare(later, options, (first.model, first.practice))
        found = dict(zip(second.people, second.judged()["nearer"][second.pairs[:, 0]] == 0, strict=True))
        there = np.isin(first.people, second.people)
        if there.sum() < FEWEST:
            continue
        told.append(columns(first.certainty().sure, first.words)[there])
        happened.append(np.array([found[one] for one in first.people[there]], float))
        print(
            f"{source} to {target}: {there.sum()} people, linked again {happened[-1].mean():.2f}", flush=True
        )
    return np.concatenate(told), np.concatenate(happened)


def main() -> None:
    """Learn on one crowd, judge on another."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("learn")
    parser.add_argument("judge")
    parser.add_argument("--pairs", type=int, default=14)
    parser.add_argument("--min-posts", type=int, default=6)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        crowds = {name: opened(name, Path(folder)) for name in (given.learn, given.judge)}
        (x, y), (x_new, y_new) = (again(one, given.pairs, given.min_posts) for one in crowds.values())
    learnt: Logistic = fit_logistic(x, y)
    for part, values in vars(learnt).items():
        print(part, np.array2string(values, precision=4, separator=", "))
    for name, rows, truth in ((given.learn, x, y), (given.judge, x_new, y_new)):
        predicted = learnt.predict(rows)
        sure = 1 / (1 + np.exp(-rows[:, 0]))
        print(
            f"{name}: {len(truth)} cases, told {predicted.mean():.3f}, linked again {truth.mean():.3f}, "
            f"calibration error {calibration_error(predicted, truth):.3f} "
            f"(of how sure: {calibration_error(sure, truth):.3f}), AUC {auc(truth > 0.5, predicted):.3f}"
        )


if __name__ == "__main__":
    main()
