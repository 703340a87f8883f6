"""What do communities teach about recognising people? Prints the weights of `measures/recognition/history.py`.

    python -m benchmarks.recognition_learnt CROWD --communities GradSchool,ApplyingToCollege
    python -m benchmarks.recognition_learnt CROWD --communities AskAcademia,College --few

In each community everybody is tried out, and a regression is fitted to that community alone, without expectations from
elsewhere. The weights are averaged. Communities whose numbers are reported must not be among them.

With `--few`: how well does a regression rank everybody else that has seen 150 people of a community, as many as one
person's answer waits for, with these weights as expectation and without?

With `--ceiling`: how well could anybody know? Everybody's later posts are cut in two at random. What happened with one
part is held against the prediction, and against how the same attack fared with the other part, which nobody has in
advance.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.crowd import Crowd
from incrowd.measures.recognition.assess import community_histories
from incrowd.measures.recognition.history import EXPECTED, FEWEST, Contest, examples, learn
from incrowd.measures.recognition.measure import JUDGED
from incrowd.measures.recognition.spec import FEATURES, RIDGE, RecognitionOptions
from incrowd.statistics import Expected, auc

ALONE = 3.0
"""The ridge where nothing is expected."""
AMOUNT = 3
REPEATS = 20


def taught_by(crowd: Crowd, community: str) -> Expected | None:
    """Fit one community's weights; None: too few people."""
    o = RecognitionOptions(community=community)
    histories, _, _, _ = community_histories(crowd, o)
    tried = examples(histories, o.how, most=o.judged)
    if tried is None or len(tried.happened) < 2:
        return None
    models = tried.fit(slice(None), ALONE, None)
    least, most = min(models), max(models)
    moved = (models[most].weights - models[least].weights)[1:]
    return Expected(models[AMOUNT].weights[1:], moved / math.log(most / least), AMOUNT)


def from_few(crowd: Crowd, community: str) -> dict[str, dict[int, float]]:
    """Return the mean AUC of regressions that saw few people, by posts read, with and without expectations."""
    o = RecognitionOptions(community=community)
    tried = examples(community_histories(crowd, o)[0], o.how, most=o.judged)
    if tried is None:
        return {}
    found: dict[str, dict[int, float]] = {}
    for name, ridge, expected in (("alone", ALONE, None), ("expected", RIDGE, EXPECTED)):
        each: dict[int, list[float]] = {n: [] for n in tried.happened}
        for seed in range(REPEATS):
            drawn = np.random.default_rng(seed).permutation(len(tried.everybody))[:JUDGED]
            seen = np.isin(tried.person, drawn)
            for n, model in tried.fit(seen, ridge, expected).items():
                asked = ~seen & (tried.known == n)
                told = model.predict(tried.features[tried.person[asked]])
                each[n].append(auc(tried.share[asked] >= 0.5, told))
        found[name] = {n: round(float(np.mean(values)), 3) for n, values in each.items()}
    return found


def with_other_posts(crowd: Crowd, community: str) -> dict[int, dict[str, float]]:
    """Return how well the prediction, and other posts of the same time, rank those who are recognised."""
    o = RecognitionOptions(community=community)
    histories = community_histories(crowd, o)[0]
    lessons = learn(histories, o.how, most=o.judged)
    rng = np.random.default_rng(o.seed)
    mixed = [rng.permutation(posts) for posts in histories.part("later")]
    parts = tuple(one[: len(one) // 2] for one in mixed), tuple(one[len(one) // 2 :] for one in mixed)
    tried, others = (Contest(histories, histories.part("earlier"), part, o.how) for part in parts)
    found = {}
    for n, lesson in lessons.items():
        judged = lesson.judged
        enough = np.array([min(len(part[i]) for part in parts) >= n for i in judged.people])
        people = judged.people[enough]
        if len(people) < FEWEST:
            continue
        happened, other = tried.tried(n, people).first >= 0.5, others.tried(n, people)
        found[n] = {
            "people": len(people),
            "recognised": int(happened.sum()),
            "prediction": round(auc(happened, judged.predicted[enough]), 3),
            "other posts, by rank": round(auc(happened, -other.log_rank), 3),
            "other posts, by how often first": round(auc(happened, other.first), 3),
        }
    return found


def main() -> dict[str, Any] | None:
    """Run it on a crowd given by its folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("crowd", type=Path, nargs="?")
    parser.add_argument("--communities", default="GradSchool,ApplyingToCollege")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--ceiling", action="store_true")
    given = parser.parse_args()
    if given.crowd is None:
        print("   skipped: give the folder of a crowd, python -m benchmarks.recognition_learnt CROWD")
        return None
    names = given.communities.split(",")
    if given.few or given.ceiling:
        look = from_few if given.few else with_other_posts
        told = {name: look(Crowd(given.crowd), name) for name in names}
        print(json.dumps(told, indent=1))
        return told
    each = [taught_by(Crowd(given.crowd), name) for name in names]
    some = [one for one in each if one is not None]
    weights, moves = (np.mean([getattr(one, name) for one in some], axis=0) for name in ("weights", "moves"))
    told = {
        name: dict(zip(FEATURES, values.round(3).tolist(), strict=True))
        for name, values in (("weights", weights), ("moves", moves))
    }
    print(json.dumps(told, indent=1))
    return told


if __name__ == "__main__":
    main()
