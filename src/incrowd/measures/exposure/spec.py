"""The choices of the exposure measure, as a value, and the adversaries by name."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import numpy as np

from incrowd.errors import InputError
from incrowd.text.options import TextOptions

Dimension = Literal["", "D", "T", "DT"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
"""Strength alone; with breadth; with time; with both."""
BreadthOver = Literal["periods", "posts"]
BASELINES = ("ENTROPY", "DIFF-PRIV")

ADVERSARIES: dict[str, str] = {
    "WORDS": "someone who has learnt from other communities which words go with a topic and reads everybody's posts",
    "BOW": "someone who knows which words go with a topic and reads everybody's posts",
    "LDA": "someone who has learnt from other texts what goes with a topic and reads everybody's posts",
    "W2V": "someone who has learnt from other texts which words are related and reads everybody's posts",
    "EMB": "someone with a language model trained on a large part of the web, who reads everybody's posts",
}


@dataclass(frozen=True, kw_only=True)
class InterestLines:
    """From where on an interest is called professional, and below what it is called passing.

    Both are shares of the strength of interest: of what the rest of the domain reaches (breadth), and of what the
    m best periods reach on average (time).
    """

    professional_from: float
    passing_below: float
    nothing_up_to: float = 0.0
    """A post up to here says nothing about a topic."""


LINES: dict[str, InterestLines] = {
    "WORDS": InterestLines(professional_from=0.8, passing_below=0.7, nothing_up_to=0.05),
    "BOW": InterestLines(professional_from=0.75, passing_below=0.65),
    "LDA": InterestLines(professional_from=0.8, passing_below=0.7),
    "W2V": InterestLines(professional_from=0.95, passing_below=0.85),
    "EMB": InterestLines(professional_from=0.8, passing_below=0.7),
}
"""What tells known states of synthetic people apart best (benchmarks/exposure_synthetic.py); see NOTES.md."""


@dataclass(frozen=True)
class Calibration:
    """How often somebody with a score is personally concerned: log odds = level + slope times the score's log odds."""

    level: float
    slope: float

    def probability(self, scores: Any) -> Any:
        """Return how likely people with these scores are concerned; NaN where there is no score."""
        clipped = np.clip(np.asarray(scores, np.float64), 1e-4, 1 - 1e-4)
        return 1 / (1 + np.exp(-self.level) * ((1 - clipped) / clipped) ** self.slope)


CALIBRATED = {("WORDS", "T"): Calibration(-1.128, 0.5)}
"""By space and dimension: measured on people who took part in communities of a topic, with posts they wrote elsewhere
(benchmarks/exposure_calibration.py, topics that are not about mental health); the others are not calibrated."""
BY_ONE_WORD = {("WORDS", "T"): Calibration(-2.099, 0.069)}
"""The same of people whose passing interest rests on a single word: a bishop may be a piece of chess. However strongly
the word points to the topic, few of them are concerned (`--one-word`, judged on the other half of the people)."""


@dataclass(frozen=True, kw_only=True)
class ExposureOptions:
    """In which community, and what counts as broad and as lasting."""

    community: str | None = None
    """None: everybody in the crowd, over all communities."""
    dimension: Dimension = "T"
    breadth: float = 0.3
    """k: the share of a domain's other topics that somebody must write about to look professional."""
    breadth_over: BreadthOver = "periods"
    """For -DT: the rest of the domain is measured like the topic, by the m best periods. "posts": by the best of all
    posts, as in the paper; a stray post on another topic then takes off as much as a lasting interest adds."""
    weeks: int = 3
    """m: an interest is lasting if it shows in so many periods."""
    days: int = 7
    """The length of a period; 7: ISO weeks in UTC."""
    literal: bool = False
    """The definitions as printed, for comparison; see NOTES.md for what is wrong with them."""
    text: TextOptions = field(default_factory=TextOptions)
    memory: int = 2**30

    def __post_init__(self) -> None:
        if self.dimension not in DIMENSIONS:
            raise InputError(f"dimension must be one of '', D, T, DT; got '{self.dimension}'")
        if not 0 < self.breadth <= 1:
            raise InputError(f"breadth must be above 0 and at most 1, got {self.breadth}")
        if self.breadth_over not in get_args(BreadthOver):
            raise InputError(f"breadth_over must be periods or posts, got '{self.breadth_over}'")
        if self.weeks < 1 or self.days < 1:
            raise InputError("the number of periods and their length in days must be at least 1")

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        chosen = {part.name: getattr(self, part.name) for part in fields(self)}
        chosen["text"] = self.text.hash
        del chosen["memory"]
        return chosen


def method_name(space: str, dimension: Dimension) -> str:
    """Return the paper's name of a method, e.g. LDA-DT.

    >>> method_name("LDA", "DT"), method_name("BOW", "")
    ('LDA-DT', 'BOW')
    """
    return f"{space}-{dimension}" if dimension else space
