"""One person's risks for all topics at once: what a stream needs after every post."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from incrowd.measures.exposure.definition import UNDATED, Floats, place_in_order
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import TopicSet


class PersonRisks:
    """The corrected definitions for one person, laid out so that all topics take a few array operations."""

    def __init__(self, topics: TopicSet, options: ExposureOptions) -> None:
        self._options = options
        siblings = [topics.siblings(topic) for topic in range(len(topics))]
        widest = max(map(len, siblings), default=0)
        # Topics with fewer siblings are filled up with one that nobody writes about.
        nobody = len(topics)
        self._siblings = np.array([row + [nobody] * (widest - len(row)) for row in siblings], np.intp)
        places = np.array([place_in_order(options.breadth, len(row)) for row in siblings])
        self._with_siblings = np.flatnonzero(places)
        self._from_the_top = widest - places[self._with_siblings]

    def risks(self, weeks: Mapping[int, Floats]) -> Floats:
        """Return the risk for every topic from the peaks of each period; NaN where time is unknown."""
        peaks = np.stack(list(weeks.values())).astype(np.float64)
        strength = peaks.max(axis=0)
        risk = self._lasting(weeks, peaks) if "T" in self._options.dimension else strength.copy()
        if "D" in self._options.dimension and len(self._with_siblings):
            known = np.append(risk if self._options.breadth_over == "periods" else strength, -np.inf)
            ordered = np.sort(known[self._siblings[self._with_siblings]], axis=1)
            risk[self._with_siblings] -= ordered[np.arange(len(ordered)), self._from_the_top]
        return risk

    def _lasting(self, weeks: Mapping[int, Floats], peaks: Floats) -> Floats:
        dated = np.fromiter(weeks, np.int64, len(weeks)) != UNDATED
        if not dated.any():
            return np.full(peaks.shape[1], np.nan)
        m = self._options.weeks
        # Added from the largest down, as for a whole crowd, so that both agree to the last bit.
        best = -np.sort(-peaks[dated], axis=0)[:m]
        return np.asarray(np.cumsum(best, axis=0)[-1] / m)
