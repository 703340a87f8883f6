"""How settings are chosen without the labels they are judged by, and how sure a figure is.

Used by exposure_reddit.py. A `Setting` is everything that is free once a space is learnt. `Task` is one topic on one
crowd: the posts that may be read, who is judged and who is labelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.measures.exposure.definition import breadth, mean_of_best, periods, strengths
from incrowd.measures.exposure.evaluation import average_precision, ndcg, r_precision_hits
from incrowd.measures.exposure.peaks import Collector
from incrowd.measures.exposure.spec import Dimension, method_name
from incrowd.measures.exposure.topics import TopicSet

WEEKS = (2, 3, 4, 5, 6, 8)
BREADTHS = (0.1, 0.3, 0.6)
DAYS = (7, 28)
RESAMPLES, SPLITS = 1_000, 20


@dataclass(frozen=True, order=True)
class Setting:
    """A learnt space and the free choices of the measure; None where a choice plays no part."""

    model: str
    dimension: Dimension
    weeks: int | None = None
    days: int | None = None
    breadth: float | None = None

    @property
    def space(self) -> str:
        """The kind of space."""
        return self.model.split("-")[0]

    def __str__(self) -> str:
        parts = [self.model, method_name(self.space, self.dimension)]
        if self.weeks is not None:
            parts.append(f"m={self.weeks} of {self.days} days")
        return " ".join(parts + ([] if self.breadth is None else [f"k={self.breadth}"]))


@dataclass(frozen=True, eq=False)
class Task:
    """Who is labelled for a topic, and which posts an adversary sees."""

    topic: str
    rows: Any
    """The posts that may be read."""
    person: Any
    """Who wrote each of them, numbered from 0 among the judged."""
    times: Any
    votes: Any
    """Whether each judged person is labelled."""


Risks = dict[Setting, Any]


def settings_of(paper_only: bool) -> tuple[Sequence[int], Sequence[int], Sequence[float]]:
    """Return the weeks, lengths of a period and breadths to try."""
    return ((3,), (7,), (0.3,)) if paper_only else (WEEKS, DAYS, BREADTHS)


def risks(model: str, similarities: Any, task: Task, topics: TopicSet, *, paper_only: bool = False) -> Risks:
    """Return everybody's risk for a task's topic under every setting."""
    return dict(_risks(model, similarities, task, topics, *settings_of(paper_only)))


def _risks(
    model: str, similarities: Any, task: Task, topics: TopicSet, weeks: Sequence[int], days: Sequence[int],
    breadths: Sequence[float],
) -> Iterator[tuple[Setting, Any]]:  # fmt: skip
    place = topics.place(task.topic)
    columns = [place, *topics.siblings(place)]
    values, people = similarities[task.rows][:, columns], len(task.votes)
    siblings = range(1, len(columns))
    for length in days:
        collector = Collector(people, len(columns))
        collector.add(task.person, periods(task.times, length), values)
        peaks = collector.finish()
        starts = np.searchsorted(peaks.person, np.arange(people))
        strength = strengths(peaks.values, starts)
        wide = {k: breadth(strength, siblings, k) for k in breadths}
        if length == days[0]:
            yield Setting(model, ""), strength[:, 0]
            for k, taken_off in wide.items():
                yield Setting(model, "D", breadth=k), strength[:, 0] - taken_off
        for m in weeks:
            lasting = mean_of_best(peaks.values[:, :1], starts, m)[:, 0]
            yield Setting(model, "T", m, length), lasting
            for k, taken_off in wide.items():
                yield Setting(model, "DT", m, length, k), lasting - taken_off


def best(merit: Mapping[Setting, float]) -> dict[str, Setting]:
    """Return the setting with the highest merit for each kind of space, the simplest of equals."""
    spaces = sorted({setting.space for setting in merit})
    return {
        space: max((s for s in merit if s.space == space), key=lambda s: (merit[s], -len(str(s))))
        for space in spaces
    }


def other_people(all_risks: Risks, bound: Any, control: Any, votes: Any, seed: int) -> dict[str, Any]:
    """Choose on half of the people, judge on the other half; many times over."""
    rng = np.random.default_rng(seed)
    rounds: list[dict[str, float]] = []
    chosen: dict[str, Counter[str]] = {}
    for _ in range(SPLITS):
        half = rng.permutation(len(votes)) < len(votes) // 2
        settings = best({s: average_precision(r[half], votes[half]) for s, r in all_risks.items()})
        found = {space: average_precision(all_risks[s][~half], votes[~half]) for space, s in settings.items()}
        leader = max(
            settings, key=lambda space: average_precision(all_risks[settings[space]][half], votes[half])
        )
        limit = average_precision(bound[~half], votes[~half])
        rounds.append(
            found
            | {f"{space} less BOW": value - found["BOW"] for space, value in found.items() if space != "BOW"}
            | {"supervised": limit, "control": average_precision(control[~half], votes[~half])}
            | {"share of the bound, best of the chosen half": found[leader] / limit}
        )
        for space, setting in settings.items():
            chosen.setdefault(space, Counter())[str(setting)] += 1
    names = rounds[0]
    return {
        "splits": SPLITS,
        "mean": {name: round(float(np.mean([one[name] for one in rounds])), 4) for name in names},
        "lowest_and_highest": {
            name: [round(f(one[name] for one in rounds), 4) for f in (min, max)] for name in names
        },
        "chosen": {space: dict(counted.most_common(4)) for space, counted in chosen.items()},
    }


def judged(methods: Mapping[str, Any], votes: Any, against: str, bound: str, seed: int) -> dict[str, Any]:
    """Return figures of merit with 95 % bootstrap intervals over people, all methods on the same samples."""
    rng = np.random.default_rng(seed)
    drawn: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(RESAMPLES):
        some = rng.integers(0, len(votes), len(votes))
        for name, values in methods.items():
            drawn[name].append(average_precision(values[some], votes[some]))
    maps = {name: average_precision(values, votes) for name, values in methods.items()}
    return {
        name: {
            "r_precision": round(float(r_precision_hits(values, votes).mean()), 4),
            "map": _with_interval(maps[name], np.array(drawn[name])),
            "ndcg": round(ndcg(values, votes), 4),
            "share_of_bound": _with_interval(
                maps[name] / maps[bound], np.array(drawn[name]) / np.array(drawn[bound])
            ),
            f"less_{against}": _with_interval(
                maps[name] - maps[against], np.array(drawn[name]) - np.array(drawn[against])
            ),
        }
        for name, values in methods.items()
    }


def _with_interval(value: float, drawn: Any) -> list[float]:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return [round(float(number), 4) for number in (value, low, high)]
