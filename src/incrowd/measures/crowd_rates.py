"""How a risk is spread over a whole crowd, as small frozen values: totals, and no count that could be one person's.

Beside each measure's own numbers: how many people stand at each level, question by question, by the rule of one
person's verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError
from incrowd.measures.findings import Level
from incrowd.measures.sampling import share_interval
from incrowd.result import Standing, Threat, to_plain
from incrowd.text.options import TextOptions
from incrowd.wording import say_percent

Sizes = NDArray[np.float64]

LINES = (2, 5, 10, 20, 50, 100)
"""Set sizes that people commonly ask for; below 2 means alone."""
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, kw_only=True)
class People:
    """How many people, and of how many; hidden if they are too few to be told without pointing at them."""

    count: int
    of: int
    smallest: int

    @classmethod
    def told(cls, count: int, of: int, smallest: int, *, above: int | None = None) -> People:
        """Return a count that points at nobody by subtraction either.

        If only a few are missing to the next larger number that is told (`above`, or all), that number is told
        instead: rounded up, so that a risk is never told too small. That nobody is at risk points at nobody, and
        is told as it is.
        """
        above = of if above is None else above
        rounded = count > 0 and above - count < smallest
        return cls(count=above if rounded else count, of=of, smallest=smallest)

    @property
    def hidden(self) -> bool:
        """True if it is some, but fewer than the smallest number that is told."""
        return 0 < self.count < self.smallest

    @property
    def share(self) -> float:
        """The share of people; NaN if hidden or of nobody."""
        return math.nan if self.hidden or not self.of else self.count / self.of

    @property
    def most(self) -> float:
        """The largest share it may be; NaN if of nobody."""
        return (self.smallest - 1 if self.hidden else self.count) / self.of if self.of else math.nan

    def sentence_start(self) -> str:
        """Say how many of all, as exactly as may be told; numbers may have been rounded up."""
        if self.count == self.of:
            return f"All or nearly all of the {self.of:,}"
        if self.hidden:
            return f"Fewer than {self.smallest} of the {self.of:,}"
        return f"At most {self.count:,} of the {self.of:,}" if self.count else f"None of the {self.of:,}"

    def words(self) -> str:
        """Say the count."""
        return f"fewer than {self.smallest}" if self.hidden else f"{self.count:,}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; what is hidden is not in them."""
        return {
            "people": None if self.hidden else self.count,
            "share": None if math.isnan(self.share) else self.share,
            "of": self.of,
            "fewer_than": self.smallest if self.hidden else None,
        }


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How a risk is spread over the people it was measured for: everybody's smallest set of people to hide in."""

    name: str
    threat: Threat
    meaning: str
    """What the sets are, for somebody who knows none of the papers."""
    adversary: str
    standing: str
    who: str
    """Whom it was measured for: everybody, or those of whom enough is known."""
    people: int
    below: tuple[tuple[int, People], ...]
    """For each line, the people with a smaller set."""
    quantiles: tuple[tuple[float, float], ...]
    """Share of people -> the size that so many have at most."""

    def under(self, size: int) -> People:
        """Return the people whose set is smaller than one of the lines."""
        return dict(self.below)[size]


@dataclass(frozen=True, kw_only=True)
class CommunityRisk:
    """One community that is large enough to be named."""

    community: str
    members: int
    alone: People
    small: People
    """Members with fewer people to hide among than wanted."""
    median: float


@dataclass(frozen=True, kw_only=True)
class TopicRisk:
    """One sensitive topic, over the whole crowd."""

    topic: str
    shown: People
    """People whose posts point to it at all."""
    highest_tenth: float
    """The score that a tenth of those people reach."""


@dataclass(frozen=True, kw_only=True)
class CrowdRates:
    """What one measure tells about everybody."""

    spreads: tuple[Spread, ...] = ()
    communities: tuple[CommunityRisk, ...] = ()
    """The worst of those that are large enough to be named, the worst first."""
    unnamed_communities: int = 0
    """Communities too small to be named."""
    topics: tuple[TopicRisk, ...] = ()
    exposed: People | None = None
    """People among the first for at least one topic."""
    not_measured: tuple[str, ...] = ()
    """What could not be looked at, and why."""


@dataclass(frozen=True, kw_only=True)
class CrowdOptions:
    """What counts as a crowd, and what is too few to be told."""

    radius: float = 0.8
    """Distance within which two writers of a community count as alike."""
    min_posts: int = 10
    """Profiles with fewer posts are not linked."""
    wanted: int = 10
    """The crowd everybody should have; one of the lines."""
    smallest: int = 10
    """Counts of people from 1 up to this are not told, and smaller communities are not named."""
    sampled: int = 100
    """So many people, chosen at random, are assessed one by one as `incrowd assess` does; all if there are no more."""
    seed: int = 0
    most_pairs: int = 30
    """Linking looks at so many pairs of communities, those with the most people in both."""
    worst: int = 10
    """So many of the worst communities are listed."""
    exposed: float = 0.01
    """Which share of people counts as the first for a topic."""
    space: Any = None
    """How an adversary recognises topics; None: by the words that come along."""
    text: TextOptions = field(default_factory=TextOptions)
    memory: int = 2**30

    def __post_init__(self) -> None:
        if not 0 <= self.radius <= 1:
            raise InputError(f"radius must be between 0 and 1, got {self.radius}")
        if self.wanted not in LINES:
            raise InputError(f"wanted must be one of {', '.join(map(str, LINES))}; got {self.wanted}")
        if self.smallest < 2 or min(self.min_posts, self.most_pairs, self.worst, self.sampled) < 1:
            raise InputError(
                "smallest must be at least 2; min_posts, most_pairs, worst and sampled at least 1"
            )
        if not 0 < self.exposed <= 1:
            raise InputError(f"exposed must be above 0 and at most 1, got {self.exposed}")

    def parameters(self) -> dict[str, Any]:
        """Return what decides the result, for the record."""
        names = (
            "radius",
            "min_posts",
            "wanted",
            "smallest",
            "sampled",
            "seed",
            "most_pairs",
            "worst",
            "exposed",
        )
        return {name: getattr(self, name) for name in names} | {"text": self.text.hash}


def smallest_by_person(people: NDArray[Any], sizes: Sizes) -> Sizes:
    """Return everybody's smallest set: the worst case counts, not an average."""
    _, person = np.unique(people, return_inverse=True)
    worst = np.full(int(person.max(initial=-1)) + 1, np.inf)
    np.minimum.at(worst, person.ravel(), sizes)
    return worst


def _lines(sizes: NDArray[Any], people: int, smallest: int) -> tuple[tuple[int, People], ...]:
    """Count the people below each line, from the largest down: each number is told next to the one above it."""
    found: list[tuple[int, People]] = []
    above = people
    for size in sorted(LINES, reverse=True):
        told = People.told(int((sizes < size).sum()), people, smallest, above=above)
        found.append((size, told))
        above = told.count
    return tuple(reversed(found))


def spread(
    sizes: Sizes,
    smallest: int,
    *,
    name: str,
    threat: Threat,
    meaning: str,
    adversary: str,
    standing: Standing,
    who: str = "people",
) -> Spread:
    """Summarise one number per person; a set of fewer than `size` people counts at every line above it."""
    sizes = np.asarray(sizes, dtype=np.float64)
    people = len(sizes)
    return Spread(
        name=name,
        threat=threat,
        meaning=meaning,
        adversary=adversary,
        standing=str(standing),
        who=who,
        people=people,
        below=_lines(sizes, people, smallest),
        quantiles=tuple(
            (share, float(np.quantile(sizes, share, method="inverted_cdf")))
            for share in SHARES
            # The most exposed person is nobody's business: a quantile needs enough people below it.
            if share * people >= smallest
        ),
    )


def told_share(people: People) -> float:
    """Return what a list may be sorted by without giving hidden counts away."""
    return 0.0 if people.hidden else people.share


@dataclass(frozen=True, kw_only=True)
class LevelRates:
    """How many people are at risk by one question, of those for whom it could be told."""

    name: str
    question: str
    told: People
    """People for whom it could be told, of all who were assessed."""
    close: People
    """At risk or at watch, of those."""
    at_risk: People
    sampled: bool
    """True if those who were assessed stand for a larger crowd."""

    @classmethod
    def of(
        cls, name: str, question: str, levels: Sequence[Level], *, smallest: int, sampled: bool
    ) -> LevelRates:
        """Count levels, one for each person; each number is told next to the larger one that it is part of."""
        severity = [level.severity for level in levels if level is not Level.CANNOT_TELL]
        told = People.told(len(severity), len(levels), smallest)
        close = sum(one >= Level.WATCH.severity for one in severity)
        close_told = People.told(close, told.count, smallest)
        at_risk = sum(one >= Level.AT_RISK.severity for one in severity)
        return cls(
            name=name,
            question=question,
            told=told,
            close=close_told,
            at_risk=People.told(at_risk, told.count, smallest, above=close_told.count),
            sampled=sampled,
        )

    @property
    def known(self) -> bool:
        """False if it could be told for so few people that nothing is said about them."""
        return bool(self.told.count) and not self.told.hidden

    @property
    def risk(self) -> float:
        """The share of people at risk; a hidden one is the largest it may be. NaN if it could be told for too few."""
        return self.at_risk.most if self.known else math.nan

    def interval(self, people: People) -> tuple[float, float] | None:
        """Return where the share of the whole crowd lies, 19 times out of 20; None if everybody was assessed.

        A number that is told may have been rounded up, and a hidden one may be anything below the smallest.
        """
        if not self.sampled or not self.known:
            return None
        rounding = people.smallest - 1
        most = rounding if people.hidden else people.count
        least = max(0, people.count - rounding) if not people.hidden else 0
        return share_interval(least, people.of)[0], share_interval(most, people.of)[1]

    def say(self, people: People) -> str:
        """Write a number of people as their share, with its interval where they stand for more."""
        if not self.known:
            return "–"
        share = (
            f"under {say_percent(people.smallest / people.of)}"
            if people.hidden
            else say_percent(people.share)
        )
        ends = self.interval(people)
        return share if ends is None else f"{share} ({say_percent(ends[0])} to {say_percent(ends[1])})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; what is hidden is not in them."""
        return {
            "question": self.question,
            "told": self.told.to_dict(),
            "at_risk_or_watch": self._with_interval(self.close),
            "at_risk": self._with_interval(self.at_risk),
        }

    def _with_interval(self, people: People) -> dict[str, Any] | None:
        return people.to_dict() | {"interval": to_plain(self.interval(people))} if self.known else None
