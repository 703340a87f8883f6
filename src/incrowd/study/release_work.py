"""What the sections of the release study share: the table, its spellings, and what may leave at each threshold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from incrowd.measures.release import Budget, HolderIndex, SuppressOptions, suppress
from incrowd.study.release_data import Asked, Ints, ReleaseStudyOptions, Spelling

SWEEP = (3, 5, 7, 10, 14, 20, 27, 35, 50)
"""Thresholds of the curves; the paper goes up to 50."""
PATIENCE = 10
"""How many times the budget of a measurement thinning may take: it ends by itself, a busy machine makes it late."""


@dataclass(frozen=True, kw_only=True)
class Released:
    """What an answer may release at one threshold; NaN where the budget ended before there was a proof."""

    threshold: int
    values: int
    enough: int
    """Values with as many holders as the threshold; no more can leave."""
    released: float
    entries: float
    """Pairs of a person and a released value."""
    share: float
    """Of all entries."""


def release(index: HolderIndex, threshold: int, options: SuppressOptions) -> Released:
    """Thin an answer out and count what is left."""
    found = suppress(index, threshold, options=options)
    over = found.reason.startswith("over_budget")
    places = [index.position[value] for value in found.released]
    entries = np.nan if over else float(index.supports[places].sum())
    return Released(
        threshold=threshold,
        values=len(index.values),
        enough=int((index.supports >= threshold).sum()),
        released=np.nan if over else float(len(places)),
        entries=entries,
        share=ratio(entries, float(index.supports.sum())),
    )


@dataclass(frozen=True, eq=False)
class Work:
    """The table, the options, and what several sections need."""

    asked: Asked
    options: ReleaseStudyOptions
    spellings: tuple[Spelling, ...]

    def suppression(self, class_size: int | None = None) -> SuppressOptions:
        """Return the engine's options for one question."""
        return SuppressOptions(budget=Budget(seconds=PATIENCE * self.options.seconds), class_size=class_size)

    @property
    def tidied(self) -> Spelling:
        """The spelling that a real release would use."""
        return self.spellings[1]

    @cached_property
    def everybody(self) -> dict[str, HolderIndex]:
        """For each spelling, who lists what."""
        return {one.name: self.asked.index(one.number) for one in self.spellings}

    @cached_property
    def curves(self) -> dict[str, list[Released]]:
        """For each spelling, what the answer for everybody may release at each threshold of the sweep."""
        thresholds = sorted({*SWEEP, *self.options.thresholds})
        options = self.suppression()
        return {
            name: [release(index, threshold, options) for threshold in thresholds]
            for name, index in self.everybody.items()
        }

    @cached_property
    def chosen(self) -> list[Ints]:
        """Classes looked at in detail: large enough for the lowest threshold; a seeded sample if many."""
        least = min(self.options.thresholds)
        large = [one for classes in self.asked.classes.values() for one in classes if len(one) >= least]
        if len(large) <= self.options.classes:
            return large
        some = np.random.default_rng(self.options.seed).choice(
            len(large), self.options.classes, replace=False
        )
        return [large[place] for place in np.sort(some)]


def ratio(part: float, whole: float) -> float:
    """Divide; nothing of nothing is not known."""
    return part / whole if whole else np.nan


def percent(share: float | np.floating[Any]) -> float:
    """Write a share as percent, with a thousandth of a percent as the finest step."""
    return round(100 * float(share), 3)


def at_threshold(curve: list[Released], threshold: int) -> Released:
    """Return the point of a curve."""
    return next(one for one in curve if one.threshold == threshold)


def count(number: float) -> int | float:
    """Write a whole number as one; NaN stays."""
    return number if np.isnan(number) else int(number)
