"""What would take all pairs of people comes from a fixed random sample, with an interval; exact where that is cheap.

One person is compared with everybody. Where they stand *among* everybody takes everybody's own comparison with
everybody: the square of the crowd. Some people, drawn once for all who ask, are enough to say how many come before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_PAIRS = 10**8
"""Everybody is compared with everybody where that is no more pairs than this: in communities of up to 10,000 people."""
FEWEST_SAMPLED = 300
COVERAGE = 0.95


def sampled_rows(people: int, among: int | None = None, *, exact: bool = False) -> NDArray[np.int64] | None:
    """Return which of so many people are compared with everybody (`among`: with so many), in order; None: all.

    The sample depends on nothing but these numbers: it is the same for everybody who asks.

    >>> sampled_rows(10_000) is None
    True
    >>> len(sampled_rows(1_000_000))
    300
    """
    among = people if among is None else among
    if exact or people * among <= MOST_PAIRS:
        return None
    return draw(people, max(FEWEST_SAMPLED, MOST_PAIRS // among))


def draw(people: int, most: int) -> NDArray[np.int64] | None:
    """Return at most so many of the people, at random, in order; None: all."""
    if most >= people:
        return None
    return np.sort(np.random.default_rng([people, most]).choice(people, most, replace=False))


@dataclass(frozen=True)
class SampledRank:
    """Where somebody stands among others of whom some were looked at: 1 = nobody comes before."""

    rank: int
    interval: tuple[int, int] | None
    """Holds the true rank 95 times of 100; None: everybody was looked at."""
    sampled: int

    @classmethod
    def of(cls, before: int, sampled: int, others: int) -> SampledRank:
        """Say where somebody stands if `before` of `sampled` of all `others` come before.

        >>> SampledRank.of(3, 10, 10)
        SampledRank(rank=4, interval=None, sampled=10)
        >>> SampledRank.of(2, 400, 100_000).rank
        501
        """
        if sampled >= others or not sampled:
            return cls(1 + before, None, sampled)
        low, high = (share * others for share in share_interval(before, sampled))
        # Those who were seen are certain.
        first = max(int(np.floor(low)), before)
        last = min(int(np.ceil(high)), others - (sampled - before))
        return cls(1 + round(before / sampled * others), (1 + first, 1 + last), sampled)

    def to_dict(self) -> dict[str, object]:
        """Return what an assessment's parameters say about the rank; nothing if it is exact."""
        if self.interval is None:
            return {}
        return {"rank_interval": list(self.interval), "rank_sampled": self.sampled}


def share_interval(hits: int, tries: int, coverage: float = COVERAGE) -> tuple[float, float]:
    """Return the ends of the exact interval of a share (Clopper & Pearson 1934), which never covers less."""
    from scipy.special import betaincinv  # a draft asks for no interval, and need not wait for it

    tail = (1 - coverage) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, tries - hits + 1, tail))
    high = 1.0 if hits == tries else float(betaincinv(hits + 1, tries - hits, 1 - tail))
    return low, high
