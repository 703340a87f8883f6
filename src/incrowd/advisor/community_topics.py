"""One community's exposure, laid out so that one person's new post moves one row and no other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.advisor.arrays import find
from incrowd.measures.exposure.definition import UNDATED, Floats, periods
from incrowd.measures.exposure.scoring import Peaks
from incrowd.measures.exposure.space import Space, WordLists
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.text.reference import tokenise


@dataclass(frozen=True, eq=False)
class Weeks:
    """One person's periods in order, and how close they came to each topic in each."""

    periods: NDArray[np.int64]
    values: Floats

    def plus(self, period: int, similar: Floats) -> Weeks:
        """Return the periods after one more post."""
        at = int(np.searchsorted(self.periods, period))
        if at < len(self.periods) and self.periods[at] == period:
            values = np.array(self.values)
            values[at] = np.maximum(values[at], similar)
            return Weeks(self.periods, values)
        return Weeks(np.insert(self.periods, at, period), np.insert(self.values, at, similar, axis=0))

    def risks(self, space: Space, options: ExposureOptions) -> Floats:
        """Return the person's risk for every topic, as the measure computes it."""
        own = Peaks(np.zeros(len(self.periods), np.int64), self.periods, self.values, people=1)
        return np.asarray(own.risks(space.topics, options.dimension, options)[0])


@dataclass(frozen=True, eq=False)
class CommunityTopics:
    """Everybody's risk for each topic, and the periods behind it; see :mod:`incrowd.advisor.prepare`."""

    names: NDArray[Any]
    rows: NDArray[np.int64]
    risks: Floats
    """People down, topics across."""
    starts: NDArray[np.int64]
    period: NDArray[np.int64]
    values: Floats
    """The periods of row i lie from ``starts[i]`` on."""

    def __len__(self) -> int:
        return len(self.risks)

    def row_of(self, user: str) -> int | None:
        """Return a person's row, or None if they wrote nothing here."""
        return find(self.names, self.rows, user)

    def weeks(self, row: int | None) -> Weeks:
        """Return the periods of a row; none for None."""
        if row is None:
            return Weeks(np.zeros(0, np.int64), np.zeros((0, self.values.shape[1]), self.values.dtype))
        span = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return Weeks(np.asarray(self.period[span]), np.asarray(self.values[span]))


class PostScorer:
    """Scores one post at a time in a space, without the cost of setting up whole columns of texts."""

    def __init__(self, space: Space, options: ExposureOptions) -> None:
        self.space, self.options = space, options
        self._known = {word: place for place, word in enumerate(space.words)}

    def words(self, text: str) -> list[str]:
        """Return the post's words that the space knows, in order."""
        return [word for word in tokenise(text, self.options.text) if word in self._known]

    def lists(self, text: str) -> WordLists:
        """Return the post as the space sees it."""
        places = [self._known[word] for word in self.words(text)]
        return WordLists(np.array(places, np.int32), np.array([0, len(places)], np.int64))

    def similar(self, text: str) -> Floats:
        """Return the post's similarity to each topic."""
        return np.asarray(self.space.similarities(self.lists(text))[0])

    def period(self, time: int | None) -> int:
        """Return the period of a post."""
        return UNDATED if time is None else int(periods(time, self.options.days))


def rank(mine: float, others: Floats) -> int:
    """Return somebody's rank among others; 1 = most exposed, equals share the best rank, undefined comes last."""
    known = np.where(np.isnan(others), -np.inf, others)
    return 1 + int((known > (-np.inf if np.isnan(mine) else mine)).sum())
