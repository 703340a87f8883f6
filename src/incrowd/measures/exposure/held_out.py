"""Settings chosen on some people and judged on others, so that no figure rests on a choice made with it in sight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from incrowd.measures.exposure.definition import Floats, breadth
from incrowd.measures.exposure.evaluation import average_precision, sensitive
from incrowd.measures.exposure.peaks import Peaks
from incrowd.measures.exposure.spec import Dimension, method_name
from incrowd.measures.exposure.topics import TopicSet

WEEKS = (2, 3, 4, 5, 6, 8)
BREADTHS = (0.1, 0.3, 0.6)
SPLITS = 20


@dataclass(frozen=True, order=True)
class Setting:
    """The free choices of the measure; None where one plays no part."""

    space: str
    dimension: Dimension
    weeks: int | None = None
    breadth: float | None = None

    def __str__(self) -> str:
        weeks = "" if self.weeks is None else f", m = {self.weeks}"
        broad = "" if self.breadth is None else f", k = {self.breadth}"
        return method_name(self.space, self.dimension) + weeks + broad


def tried(space: str, peaks: Peaks, topics: TopicSet, topic: str) -> Iterator[tuple[Setting, Floats]]:
    """Yield everybody's risk for one topic under every setting."""
    place = topics.place(topic)
    columns = [place, *topics.siblings(place)]
    domain = replace(peaks, values=peaks.values[:, columns])
    yield from _broad(space, "", None, domain.strength)
    for m, lasting in zip(WEEKS, domain.lasting_over(WEEKS), strict=True):
        yield from _broad(space, "T", m, lasting)


def _broad(space: str, time: str, weeks: int | None, values: Floats) -> Iterator[tuple[Setting, Floats]]:
    """Yield the first column, then less what the others reach for every k."""
    own = np.asarray(values[:, 0], np.float64)
    with_breadth: Dimension = "DT" if time else "D"
    yield Setting(space, "T" if time else "", weeks), own
    for k in BREADTHS:
        yield Setting(space, with_breadth, weeks, k), own - breadth(values, range(1, values.shape[1]), k)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """One space over all splits: MAP on people who had no say in the choice."""

    maps: Floats
    """One a split."""
    chosen: Counter[str]


def held_out(
    risks: Mapping[str, Mapping[Any, Mapping[str, Floats]]],
    votes: Mapping[str, Floats],
    *,
    splits: int = SPLITS,
    seed: int = 0,
) -> dict[str, HeldOut]:
    """Choose every space's setting on half of each topic's people, judge it on the rest; many times over.

    `risks` maps a space to settings to topics to judged people's risks; a space with one setting has no choice.
    All spaces see the same halves.
    """
    rng = np.random.default_rng(seed)
    maps: dict[str, list[float]] = {space: [] for space in risks}
    chosen: dict[str, Counter[str]] = {space: Counter() for space in risks}
    for _ in range(splits):
        half = {topic: _half(one, rng) for topic, one in votes.items()}
        for space, settings in risks.items():
            best = max(settings, key=lambda setting: _map(settings[setting], votes, half))
            rest = {topic: ~one for topic, one in half.items()}
            maps[space].append(_map(settings[best], votes, rest))
            chosen[space][str(best)] += 1
    return {space: HeldOut(np.array(maps[space]), chosen[space]) for space in risks}


def _half(votes: Floats, rng: np.random.Generator) -> Any:
    """Mark half of the sensitive people and half of the others."""
    marked = np.zeros(len(votes), bool)
    for side in (True, False):
        members = rng.permutation(np.flatnonzero(sensitive(votes) == side))
        marked[members[: len(members) // 2]] = True
    return marked


def _map(risks: Mapping[str, Floats], votes: Mapping[str, Floats], some: Mapping[str, Any]) -> float:
    each = [
        average_precision(risks[topic][some[topic]], votes[topic][some[topic]])
        for topic in votes
        if sensitive(votes[topic][some[topic]]).any()
    ]
    return float(np.mean(each)) if each else float("nan")


def map_intervals(
    risks: Mapping[str, Mapping[str, Floats]],
    votes: Mapping[str, Floats],
    *,
    resamples: int = 200,
    seed: int = 0,
) -> dict[str, Floats]:
    """Return each method's MAP over the same bootstrap samples of people: intervals, also of differences and ratios.

    Samples in which a topic has nobody sensitive leave that topic out.
    """
    rng = np.random.default_rng(seed)
    drawn: dict[str, list[float]] = {method: [] for method in risks}
    for _ in range(resamples):
        some = {topic: rng.integers(0, len(one), len(one)) for topic, one in votes.items()}
        for method, by_topic in risks.items():
            drawn[method].append(_map(by_topic, votes, some))
    return {method: np.array(values) for method, values in drawn.items()}


def interval(drawn: Floats | Sequence[float]) -> tuple[float, float]:
    """Return the middle 95 % of what was drawn."""
    low, high = np.nanquantile(np.asarray(drawn, np.float64), [0.025, 0.975])
    return float(low), float(high)
