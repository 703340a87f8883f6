"""The mathematics of R-Susceptibility: how strongly, how narrowly and how lastingly posts point to a topic.

Paper 004, definitions 4 to 9, with the corrections of NOTES.md. `similarities` has one row per post and one
column a topic. `peaks` has one row for each (person, period), sorted by person, with the largest similarity
of the period's posts; person i owns the rows from ``starts[i]`` up to the next start. The
period `UNDATED` holds posts without a time: they count for strength and breadth, and for no period.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]

DAY = 86_400
MONDAY = 4 * DAY  # 1970 began on a Thursday
UNDATED = np.iinfo(np.int64).min
AT_ONCE = 2**16
"""Periods that are put in order at a time: more would only take more memory."""


def periods(times: ArrayLike, days: int = 7) -> NDArray[np.int64]:
    """Number the periods in which UTC seconds fall; seven days are ISO weeks, from Monday to Sunday.

    >>> periods([0, 3 * 86_400 + 86_399, 4 * 86_400]).tolist()
    [-1, -1, 0]
    """
    return np.asarray((np.asarray(times, np.int64) - MONDAY) // (days * DAY))


@cache
def place_in_order(k: float, size: int) -> int:
    """Return ceil(k · size), exactly: 0.3 means three tenths, not the nearest binary number.

    >>> place_in_order(0.3, 10), place_in_order(0.3, 4), place_in_order(0.1, 0)
    (3, 2, 0)
    """
    return math.ceil(Fraction(str(k)) * size)


def strengths(peaks: ArrayLike, starts: ArrayLike) -> Floats:
    """Return everybody's strength of interest, str(U, Y): the largest similarity of any post to each topic."""
    values = np.asarray(peaks)
    return np.maximum.reduceat(values, np.asarray(starts), axis=0) if values.size else values


def breadth(strength: ArrayLike, siblings: Sequence[int], k: float) -> Floats:
    """Return how strongly people write about the rest of a topic's domain.

    The ceil(k·n)-th largest strength over the n siblings; 0 if the topic has none.

    >>> breadth([[0.9, 0.5, 0.1, 0.3]], [1, 2, 3], 0.3).tolist()
    [0.5]
    """
    values = np.asarray(strength, dtype=np.float64)
    place = place_in_order(k, len(siblings))
    if place == 0:
        return np.zeros(len(values))
    return np.asarray(-np.partition(-values[:, list(siblings)], place - 1, axis=1)[:, place - 1])


def means_of_best(
    peaks: ArrayLike, starts: ArrayLike, several: Sequence[int], *, literal: bool = False
) -> list[Floats]:
    """Return the mean of everybody's m best periods for each topic, once for every m.

    Somebody with fewer periods is padded with zeros, so that one burst does not count fully; `literal` takes
    the mean of those that are there.

    >>> [one.ravel().tolist() for one in means_of_best([[0.8], [0.25], [0.5]], [0, 1], [1, 2])]
    [[0.8, 0.5], [0.4, 0.375]]
    """
    values, begins = np.asarray(peaks, dtype=np.float64), np.asarray(starts)
    sizes = np.diff(np.append(begins, len(values)))
    best = np.zeros((len(several), len(begins), values.shape[1]))
    for size in np.unique(sizes[sizes > 0]):  # people with as many periods are looked at together
        same = np.flatnonzero(sizes == size)
        for some in np.array_split(same, math.ceil(len(same) * size / AT_ONCE)):
            ordered = -np.sort(-values[begins[some, None] + np.arange(size)], axis=1)
            sums = np.cumsum(ordered, axis=1)
            for at, m in enumerate(several):
                best[at, some] = sums[:, min(m, size) - 1]
    divisors = [np.minimum(sizes, m) if literal else np.full(len(begins), m) for m in several]
    with np.errstate(invalid="ignore", divide="ignore"):
        return [np.asarray(sums / divisor[:, None]) for sums, divisor in zip(best, divisors, strict=True)]


def person_risk(
    similarities: ArrayLike,
    post_periods: ArrayLike,
    topic: int,
    siblings: Sequence[int],
    *,
    dimension: str = "",
    k: float = 0.3,
    m: int = 3,
    breadth_over: str = "periods",
    pooling: str = "largest",
    literal: bool = False,
) -> float:
    """Return one person's risk for one topic, straight from the definitions: the reference.

    NaN if time matters and no post has a time.

    >>> posts = [[0.9, 0.1], [0.0, 1.0]]
    >>> person_risk(posts, [0, 1], 0, [1], dimension="D"), person_risk(posts, [0, 1], 0, [1], dimension="T")
    (-0.09999999999999998, 0.3)
    """
    rows, weeks = np.asarray(similarities, np.float64), np.asarray(post_periods)
    timed = "T" in dimension
    strength = rows.mean(axis=0) if pooling == "mean" else rows.max(axis=0)
    seen = _lasting(rows, weeks, m, literal=literal) if timed else strength
    risk = float(seen[topic])
    if "D" not in dimension or math.isnan(risk):
        return risk
    if literal:
        seen = rows[rows[:, topic].argmax()]
    elif timed and breadth_over == "posts":
        seen = strength
    others = sorted([topic, *siblings]) if literal and not timed else list(siblings)
    place = place_in_order(k, len(others))
    return risk - (float(sorted(seen[others], reverse=True)[place - 1]) if place else 0.0)


def _lasting(rows: Floats, weeks: Ints, m: int, *, literal: bool) -> Floats:
    """One person's mean of the m best periods for each topic; NaN without a dated post."""
    peaks = [rows[weeks == week].max(axis=0) for week in sorted(set(weeks.tolist()) - {UNDATED})]
    if not peaks:
        return np.full(rows.shape[1], np.nan)
    best = np.sort(np.stack(peaks), axis=0)[::-1][:m]
    return np.asarray(best.sum(axis=0) / (len(best) if literal else m))


def alert_ranks(risks: ArrayLike) -> NDArray[np.int64]:
    """Rank people by risk, 1 = most exposed; equals share the most exposed rank. Undefined come last.

    >>> alert_ranks([0.2, 0.9, 0.9, float("nan")]).tolist()
    [3, 1, 1, 4]
    """
    values = undefined_last(risks)
    return np.searchsorted(np.sort(-values), -values, side="left") + 1


def average_ranks(risks: ArrayLike) -> NDArray[np.float64]:
    """Rank people by risk, 1 = most exposed; equals share the average of their places.

    >>> average_ranks([0.2, 0.9, 0.9]).tolist()
    [3.0, 1.5, 1.5]
    """
    values = -undefined_last(risks)
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + 1 + np.searchsorted(ordered, values, "right")) / 2


def undefined_last(risks: ArrayLike) -> Floats:
    """Return risks with minus infinity for undefined ones, so that they come last."""
    values = np.asarray(risks, np.float64)
    return np.where(np.isnan(values), -np.inf, values)
