"""Predicted and happened: what the validity study is asked, and what it finds for some people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from incrowd.errors import InputError
from incrowd.measures.exposure.evaluation import auc_interval
from incrowd.measures.recognition.spec import KNOWN
from incrowd.statistics import auc, auc_of_rates

Floats = NDArray[np.float64]

QUESTIONS = ("posts", "links", "items")
BINS = 5
Z = 1.96
FEWEST = 40
"""Fewer people judged say nothing."""
FEWEST_FOUND = 10
"""Fewer people found, or not found, cannot be told from the others with any certainty."""


@dataclass(frozen=True, kw_only=True)
class ValidityOptions:
    """Which communities, and how much work."""

    communities: tuple[str, ...] = ()
    """Empty: the three largest."""
    known: tuple[int, ...] = (3, 10)
    people: int = 400
    """Attacked for each number of posts, at most."""
    rivals: int = 600
    """Among whom they are looked for, at most, themselves included."""
    draws: int = 4
    questions: tuple[str, ...] = ("posts", "links", "items")
    pairs: int = 5
    """Of communities, for links: those with the most people in both."""
    items_known: tuple[int, ...] = (3, 10)
    seed: int = 0
    memory: int = 2**30

    def __post_init__(self) -> None:
        if not self.known or set(self.known) - set(KNOWN):
            raise InputError(f"known must be some of {', '.join(map(str, KNOWN))}; got {self.known}")
        if self.people < FEWEST or self.rivals < FEWEST or self.draws < 1:
            raise InputError(f"people and rivals must be at least {FEWEST}, draws at least 1")
        if not self.questions or set(self.questions) - set(QUESTIONS):
            raise InputError(f"questions must be some of {', '.join(QUESTIONS)}; got {self.questions}")


@dataclass(frozen=True)
class Verdicts:
    """What was predicted for some people, and how often each attacker found them."""

    about: str
    """A community, a pair of communities, or everybody's items."""
    known: str
    """What the attackers know: "3 posts"."""
    predicted: Floats
    found: dict[str, Floats]
    question: str = "posts"
    found_before: Mapping[str, Floats] = field(default_factory=dict)
    """How often each attacker finds them in the earlier half, where that was tried."""
    within: NDArray[np.int64] | None = None
    """Only people of one group are compared with each other; None: all of them."""

    def found_often(self, attacker: str) -> int:
        """How many people the attacker finds at least half of the time."""
        return int((self.found[attacker] >= 0.5).sum())

    def too_few(self, attacker: str) -> str:
        """Say why an AUC would be noise; empty if it is not."""
        people, often = len(self.predicted), self.found_often(attacker)
        if often < FEWEST_FOUND:
            return f"too few found to tell: {often} of {people}"
        if people - often < FEWEST_FOUND:
            return f"too few not found to tell: {people - often} of {people}"
        return ""

    def auc(self, attacker: str) -> tuple[float, float, float]:
        """How well the prediction tells those found at least half of the time from the rest, with a 95 % interval."""
        often = self.found[attacker] >= 0.5
        found = [int(often[group].sum()) for group in self._groups]
        others = [int((~often[group]).sum()) for group in self._groups]
        compared = np.multiply(found, others)
        if not compared.sum():
            return math.nan, math.nan, math.nan
        each = [
            auc(often[group], self.predicted[group]) if pairs else 0.0
            for group, pairs in zip(self._groups, compared, strict=True)
        ]
        value = float(np.average(each, weights=compared))
        # As wide as if each of those found had been compared with so many others.
        return value, *auc_interval(value, sum(found), int(compared.sum()) / sum(found))

    def auc_of_attempts(self, attacker: str) -> tuple[float, float, float]:
        """Of an attempt that succeeded and one that failed: how often the first had the higher prediction.

        With a 95 % interval.
        """
        return self._ranked(self.found[attacker], self.predicted)

    @property
    def _groups(self) -> list[NDArray[np.bool_]]:
        """Who is compared with whom."""
        if self.within is None:
            return [np.ones(len(self.predicted), bool)]
        return [self.within == group for group in np.unique(self.within)]

    def auc_of_itself(self, attacker: str) -> tuple[float, float, float]:
        """The same for the attacker's own success in the earlier half: what could have been known in advance."""
        if attacker not in self.found_before:
            return math.nan, math.nan, math.nan
        return self._ranked(self.found[attacker], self.found_before[attacker])

    def _ranked(self, won: Floats, score: Floats) -> tuple[float, float, float]:
        """Compare attempts within groups; people are left out whole, since one person's attempts are alike."""
        groups = np.zeros(len(won), np.int64) if self.within is None else self.within
        return ranked_within(won, score, groups)

    def curve(self, attacker: str) -> tuple[Floats, Floats]:
        """Return predicted and found, in bins of equally many people."""
        parts = np.array_split(np.argsort(self.predicted, kind="stable"), BINS)
        return tuple(  # type: ignore[return-value]
            np.array([values[part].mean() for part in parts])
            for values in (self.predicted, self.found[attacker])
        )


def ranked_within(won: Floats, score: Floats, groups: NDArray[np.int64]) -> tuple[float, float, float]:
    """Return the AUC of attempts within groups, with a 95 % interval: each person is left out once (jackknife).

    The spread is taken of the log odds, which keeps the ends between 0 and 1. Where everything is in order (or
    nothing), leaving somebody out changes nothing: there it is as wide as if each person had tried once.
    """
    value = _auc_within(won, score, groups)
    others = np.arange(len(won))
    kept = (others[others != one] for one in others)
    each = np.array([_auc_within(won[rows], score[rows], groups[rows]) for rows in kept])
    if not 0 < value < 1 or not ((each > 0) & (each < 1)).all():
        return value, *auc_interval(value, max(won.sum(), 1), max((1 - won).sum(), 1))
    odds = logit(each)
    spread = math.sqrt((len(each) - 1) * float(np.mean((odds - odds.mean()) ** 2)))
    low, high = expit(logit(value) + Z * spread * np.array([-1, 1]))
    return value, float(low), float(high)


def _auc_within(won: Floats, score: Floats, groups: NDArray[np.int64]) -> float:
    """Average the AUC of each group by how many comparisons it holds."""
    parts = [groups == group for group in np.unique(groups)]
    compared = [float(won[part].sum() * (1 - won[part]).sum()) for part in parts]
    if not sum(compared):
        return math.nan
    each = [
        auc_of_rates(won[part], score[part]) if pairs else 0.0
        for part, pairs in zip(parts, compared, strict=True)
    ]
    return float(np.average(each, weights=compared))


def pooled(some: Sequence[Verdicts], about: str) -> Verdicts:
    """Put the people of several verdicts into one, in which only those who were together are compared."""
    first = some[0]
    return Verdicts(
        about,
        first.known,
        np.concatenate([one.predicted for one in some]),
        {name: np.concatenate([one.found[name] for one in some]) for name in first.found},
        question=first.question,
        within=np.repeat(np.arange(len(some)), [len(one.predicted) for one in some]),
    )
