"""Lines that a person draws, and the numbers that follow new posts: what `watch` asks of a measure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from incrowd.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: say so when the number falls to it."""

    measure: str
    community: str | None
    """For two communities: where an adversary starts."""
    at: int
    """People to hide among (alert below it), or a rank (alert at it or before it)."""
    target: str | None = None
    topic: str | None = None

    def __post_init__(self) -> None:
        if self.at < 1:
            raise InputError(f"policy: a line of {self.measure} must be at least 1, got {self.at}")
        if self.target is not None and self.community == self.target:
            raise InputError(
                f"policy: source and target are both '{self.target}'; linking needs two communities"
            )

    @property
    def key(self) -> str:
        """What makes it the same line after a restart."""
        parts = (self.measure, self.community, self.target, self.topic, self.at)
        return "|".join(str(part) for part in parts if part is not None)


@dataclass(frozen=True, kw_only=True)
class LineReading:
    """Where a person stands on one line at the moment."""

    value: float
    """People to hide among, or a rank; NaN: cannot tell."""
    of: int
    score: float = math.inf
    """For a rank, the score behind it: without any score nobody is exposed, whatever their rank."""
    looks: str = ""
    """For a rank, what it looks like, where that is less than it seems."""
    reason: str = ""
    """Why it cannot be told."""

    @property
    def defined(self) -> bool:
        """False if it cannot be told."""
        return not math.isnan(self.value)

    @property
    def silent(self) -> bool:
        """True for a rank that is only shared with everybody who never wrote about the topic."""
        return self.score <= 0


@dataclass(frozen=True)
class FollowedPost:
    """A post that the crowd did not have; the user is the store's id."""

    user: str
    community: str
    time: int | None
    text: str


class Follower(ABC):
    """The readings of one measure's lines of one person, kept up to date as posts arrive."""

    @abstractmethod
    def add(self, post: FollowedPost) -> set[Line]:
        """Take in a post; return the lines whose reading may have changed."""

    @abstractmethod
    def reading(self, line: Line) -> LineReading:
        """Return where the person stands on a line."""
