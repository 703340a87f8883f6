"""Everybody's strongest moments: the little that must be kept of the posts to score people.

Posts pass by once, in any order and in batches of any size. What stays is the largest similarity to each
topic in every period in which somebody wrote; memory grows with people and periods, not with posts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.exposure.definition import (
    UNDATED,
    Floats,
    Ints,
    breadth,
    means_of_best,
    strengths,
)
from incrowd.measures.exposure.spec import Dimension, ExposureOptions
from incrowd.measures.exposure.topics import TopicSet

MERGE_AT = 262_144


@dataclass(frozen=True, eq=False)
class Peaks:
    """One row a (person, period), sorted by person and period; one column a topic."""

    person: Ints
    period: NDArray[np.int64]
    values: Floats
    people: int
    leading: Floats | None = None
    """For the literal definitions: the post most similar to each topic, as similarities to all topics."""

    @cached_property
    def strength(self) -> Floats:
        """Everybody's strength of interest in each topic."""
        return strengths(self.values, np.searchsorted(self.person, np.arange(self.people)))

    def lasting(self, m: int, *, literal: bool = False) -> Floats:
        """Return the mean of everybody's m best periods; NaN for people without any dated post."""
        return self.lasting_over([m], literal=literal)[0]

    def lasting_over(self, several: Sequence[int], *, literal: bool = False) -> list[Floats]:
        """Return :meth:`lasting` for several m."""
        dated = self.period != UNDATED
        person = self.person[dated]
        starts = np.searchsorted(person, np.arange(self.people))
        undated = np.bincount(person, minlength=self.people) == 0
        found = means_of_best(self.values[dated], starts, several, literal=literal)
        for means in found:
            means[undated] = np.nan
        return found

    def risks(self, topics: TopicSet, dimension: Dimension, options: ExposureOptions) -> Floats:
        """Return everybody's risk for every topic: definition 5, 7, 8 or 9."""
        timed = "T" in dimension
        base = self.lasting(options.weeks, literal=options.literal) if timed else self.strength
        risk = np.array(base, dtype=np.float64)
        if "D" not in dimension:
            return risk
        everything = base if options.breadth_over == "periods" else self.strength
        for topic in range(len(topics)):
            # As printed, definition 7 ranks over the whole domain, definition 9 over the rest of it.
            whole = options.literal and not timed
            others = topics.domain(topic) if whole else topics.siblings(topic)
            seen = self.leading[:, topic] if options.literal and self.leading is not None else everything
            risk[:, topic] -= breadth(seen, others, options.breadth)
        return risk


class Collector:
    """Takes batches of scored posts and keeps the peaks."""

    def __init__(self, people: int, topics: int, *, literal: bool = False) -> None:
        self._people, self._topics = people, topics
        self._parts: list[tuple[Ints, NDArray[np.int64], Floats]] = []
        self._waiting = 0
        self._leading = np.full((people, topics, topics), -np.inf) if literal else None

    def add(self, person: Ints, period: NDArray[np.int64], similarities: Floats) -> None:
        """Add posts: who wrote them, in which period, how similar they are to each topic."""
        if not len(person):
            return
        if self._leading is not None:
            self._lead(person, similarities)
        self._parts.append(_largest(person, period, similarities))
        self._waiting += len(self._parts[-1][0])
        if self._waiting > MERGE_AT and len(self._parts) > 1:
            self._merge()

    def _lead(self, person: Ints, similarities: Floats) -> None:
        leading = self._leading
        if leading is None:
            return
        for topic in range(self._topics):
            # Stable: among equals the earliest post leads.
            order = np.lexsort((-similarities[:, topic], person))
            first = order[np.diff(person[order], prepend=-1) != 0]
            better = first[similarities[first, topic] > leading[person[first], topic, topic]]
            leading[person[better], topic] = similarities[better]

    def _merge(self) -> None:
        columns = zip(*self._parts, strict=True)
        self._parts = [_largest(*(np.concatenate(column) for column in columns))]
        self._waiting = 0

    def finish(self) -> Peaks:
        """Return the peaks of everybody who was added."""
        if not self._parts:
            empty = np.zeros((0, self._topics))
            return Peaks(np.zeros(0, np.int64), np.zeros(0, np.int64), empty, 0)
        self._merge()
        return Peaks(*self._parts[0], people=self._people, leading=self._leading)


def _largest(
    person: Ints, period: NDArray[np.int64], values: Floats
) -> tuple[Ints, NDArray[np.int64], Floats]:
    order = np.lexsort((period, person))
    person, period = person[order], period[order]
    changes = (person[1:] != person[:-1]) | (period[1:] != period[:-1])
    new = np.flatnonzero(np.concatenate([[True], changes]))
    return person[new], period[new], np.maximum.reduceat(values[order], new, axis=0)
