"""How settings are chosen without the labels they are judged by, and how sure a figure is (exposure_reddit.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.measures.exposure.definition import periods
from incrowd.measures.exposure.evaluation import (
    Setting,
    average_precision,
    held_out,
    leave_people_out,
    middle,
    ndcg,
    r_precision_hits,
    tried,
)
from incrowd.measures.exposure.scoring import PeakCollector
from incrowd.measures.exposure.topics import TopicSet

DAYS = (7, 28)


@dataclass(frozen=True)
class Choice:
    """A learnt space, the length of a period and a setting of the measure."""

    model: str
    days: int
    setting: Setting

    @property
    def as_in_the_paper(self) -> bool:
        """Weeks, m = 3 and k = 0.3."""
        return self.days == 7 and self.setting.weeks in (None, 3) and self.setting.breadth in (None, 0.3)

    def __str__(self) -> str:
        length = "" if self.setting.weeks is None else f" of {self.days} days"
        return f"{self.setting}{length} ({self.model})"


@dataclass(frozen=True, eq=False)
class Task:
    """One topic: who is labelled for it, and which posts an adversary sees."""

    topic: str
    rows: Any
    """The posts that may be read."""
    person: Any
    """Who wrote each of them, numbered from 0 among the judged."""
    times: Any
    votes: Any
    """1 for judged people who are labelled, 0 for the others."""

    @property
    def weeks_written(self) -> Any:
        """In how many weeks everybody wrote anything at all."""
        weeks = np.unique(np.stack([self.person, periods(self.times)]), axis=1)[0]
        return np.bincount(weeks, minlength=len(self.votes)).astype(float)


def risks(model: str, similarities: Any, task: Task, topics: TopicSet) -> Iterator[tuple[Choice, Any]]:
    """Yield everybody's risk for a task's topic under every setting."""
    place = topics.place(task.topic)
    columns = [place, *topics.siblings(place)]
    domain = TopicSet(tuple(topics.topics[column] for column in columns))
    values = similarities[task.rows][:, columns]
    for days in DAYS:
        collector = PeakCollector(len(task.votes), len(columns))
        collector.add(task.person, periods(task.times, days), values)
        for setting, found in tried(model.split("-")[0], collector.finish(), domain, task.topic):
            if setting.weeks is not None or days == DAYS[0]:
                yield Choice(model, days, setting), found.astype(np.float32)


def best(merit: Mapping[Choice, float]) -> dict[str, Choice]:
    """Return the choice with the highest merit for each kind of space."""
    spaces = dict.fromkeys(choice.setting.space for choice in merit)
    return {s: max((c for c in merit if c.setting.space == s), key=merit.__getitem__) for s in spaces}


def matched(task: Task, seed: int) -> Any:
    """Choose as many labelled as other people of each number of weeks, at random, so that weeks tell nothing."""
    rng, weeks = np.random.default_rng(seed), task.weeks_written
    chosen = np.zeros(len(weeks), bool)
    for count in np.unique(weeks):
        sides = [np.flatnonzero((weeks == count) & (task.votes == side)) for side in (1, 0)]
        for side in sides:
            chosen[rng.permutation(side)[: min(map(len, sides))]] = True
    return chosen


def over_topics(
    tasks: Sequence[Task], all_risks: Mapping[str, Mapping[Choice, Any]], seed: int
) -> dict[str, Any]:
    """Judge each topic with what was chosen on all other topics; then again on people matched by weeks."""
    maps = {
        task.topic: {c: average_precision(r, task.votes) for c, r in all_risks[task.topic].items()}
        for task in tasks
    }
    choices = next(iter(maps.values()))
    found: dict[str, dict[str, list[float]]] = {"all": {}, "matched_by_weeks": {}}
    for task in tasks:
        others = [maps[topic] for topic in maps if topic != task.topic]
        chosen = best({c: float(np.mean([one[c] for one in others])) for c in choices})
        alike = matched(task, seed)
        for space, choice in chosen.items():
            values = all_risks[task.topic][choice]
            found["all"].setdefault(space, []).append(maps[task.topic][choice])
            found["matched_by_weeks"].setdefault(space, []).append(
                average_precision(values[alike], task.votes[alike])
            )
    return {name: _topic_table(by_space, seed) for name, by_space in found.items()}


def _topic_table(by_space: Mapping[str, list[float]], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    plain = np.array(by_space["BOW"])
    drawn = rng.integers(0, len(plain), (10_000, len(plain)))
    return {
        space: {
            "map": round(float(np.mean(values)), 4),
            "less_BOW": _with_interval(
                float((values - plain).mean()), (np.array(values) - plain)[drawn].mean(axis=1)
            ),
            "topics_above_BOW": int((np.array(values) > plain).sum()),
        }
        for space, values in by_space.items()
    }


def other_people(
    here: Mapping[Choice, Any], fixed: Mapping[str, Any], votes: Any, seed: int
) -> dict[str, Any]:
    """Choose on half of the people, judge on the other half; many times over."""
    by_space: dict[str, dict[Any, dict[str, Any]]] = {name: {name: {"": one}} for name, one in fixed.items()}
    for choice, values in here.items():
        by_space.setdefault(choice.setting.space, {})[choice] = {"": values}
    found = held_out(by_space, {"": votes}, seed=seed)
    bound, plain = found["supervised"].maps, found["BOW"].maps
    return {
        name: {
            "map": _with_interval(one.maps.mean(), one.maps),
            "share_of_bound": _with_interval((one.maps / bound).mean(), one.maps / bound),
            "less_BOW": _with_interval((one.maps - plain).mean(), one.maps - plain),
            "splits_above_BOW": int((one.maps > plain).sum()),
            "chosen": dict(one.chosen.most_common(3)),
        }
        for name, one in found.items()
    }


def judged(methods: Mapping[str, Any], votes: Any, against: str, seed: int) -> dict[str, Any]:
    """Return figures of merit with 95 % jackknife intervals over people, all methods on the same people."""
    found = leave_people_out(
        {name: {"": values} for name, values in methods.items()},
        {"": votes},
        {"": range(len(votes))},
        seed=seed,
    )
    bound = "supervised"
    return {
        name: {
            "r_precision": round(float(r_precision_hits(values, votes).mean()), 4),
            "map": _rounded(found[name].value, found[name].interval()),
            "ndcg": round(ndcg(values, votes), 4),
            "share_of_bound": _rounded(
                found[name].value / found[bound].value, found[name].ratio(found[bound])
            ),
            f"less_{against}": _rounded(
                found[name].value - found[against].value, found[name].difference(found[against])
            ),
        }
        for name, values in methods.items()
    }


def _with_interval(value: float, drawn: Any) -> list[float]:
    return _rounded(value, middle(drawn))


def _rounded(value: float, ends: tuple[float, float]) -> list[float]:
    return [round(float(number), 4) for number in (value, *ends)]
