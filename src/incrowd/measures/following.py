"""What `watch` asks of a measure: numbers that follow new posts, and the lines that a person draws for them.

Posts are added to a crowd one by one; numbers stay what the measures would say from scratch. Other people's posts move
one other profile each: it is compared with the person's again, and nobody else's. The person's own posts move their
profile: it is compared with everybody's again, through the prepared index.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.distances.profile_index import NO_WORDS, Profile, distance
from incrowd.distances.reductions import rounded
from incrowd.errors import InputError
from incrowd.measures.prepared import PreparedCrowd
from incrowd.result import say_count
from incrowd.text.reference import tokenise


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


class GrowingCrowd:
    """A prepared crowd and what was added since, seen by one person."""

    def __init__(self, crowd: PreparedCrowd, user: str) -> None:
        self.crowd, self.user = crowd, user
        self._words: dict[str, GrowingWords] = {}

    def words(self, community: str) -> GrowingWords:
        """Return a community's words, followed from now on."""
        if community not in self._words:
            self._words[community] = GrowingWords(self.crowd, community)
        return self._words[community]

    def add(self, post: FollowedPost) -> None:
        """Take in a post."""
        if post.community in self._words:
            self._words[post.community].add(post.user, tokenise(post.text, self.crowd.text))


class GrowingWords:
    """A community's words, and what was added since."""

    def __init__(self, crowd: PreparedCrowd, community: str) -> None:
        self.community = community
        self.base = crowd.words(community) if community in crowd.population.communities else None
        self._crowd = crowd
        self.added: dict[str, Profile] = {}
        self._posts: dict[str, int] = {}

    def add(self, user: str, words: list[str]) -> None:
        """Take in a post."""
        self.added[user] = self.added.get(user, NO_WORDS).plus(Profile.of_words(words))
        self._posts[user] = self._posts.get(user, 0) + 1

    def row(self, user: str) -> int | None:
        """Return a person's row in the index."""
        return None if self.base is None else self.base.row_of(user)

    def profile(self, user: str) -> Profile:
        """Return a person's words now."""
        before = NO_WORDS if self.base is None else self.base.profile(self.row(user))
        return before.plus(self.added[user]) if user in self.added else before

    def posts(self, user: str) -> int:
        """Return how many posts a person has now."""
        return self._crowd.population.of(user).get(self.community, 0) + self._posts.get(user, 0)


class Neighbours:
    """Everybody else in a community within some distance of one of the person's profiles."""

    def __init__(
        self, own: GrowingWords, there: GrowingWords, user: str, limit: Callable[[], float], least: int
    ) -> None:
        self._own, self.there, self._user, self._limit = own, there, user, limit
        self._least = least
        self.compare_all()

    def compare_all(self) -> None:
        """Compare with everybody again."""
        self._profile, self._at = self._own.profile(self._user), self._limit()
        base = self.there.base
        if base is None or math.isnan(self._at):
            self._inside: NDArray[np.bool_] = np.zeros(0 if base is None else len(base), bool)
            self._eligible = self._inside.copy()
        else:
            self._eligible = np.asarray(base.posts >= self._least)
            self._inside = base.squares(self._profile).within(self._at)
            mine = self.there.row(self._user)
            if mine is not None:
                self._inside[mine] = self._eligible[mine] = False
        self._moved: dict[str, tuple[bool, bool]] = {}
        for user in self.there.added:
            self.compare(user)

    def compare(self, user: str) -> None:
        """Compare with one person again."""
        if user == self._user or math.isnan(self._at):
            return
        row = self.there.row(user)
        if row is not None:
            self._inside[row] = self._eligible[row] = False
        theirs = self.there.profile(user)
        eligible = not theirs.empty and self.there.posts(user) >= self._least
        apart, limit = rounded(np.array([distance(self._profile, theirs), self._at]))
        self._moved[user] = bool(eligible and apart <= limit), eligible

    def reading(self) -> LineReading:
        """Return how many people there are to hide among, the person included."""
        if math.isnan(self._at):
            each = "" if self._own is self.there else " in each"
            reason = f"it takes {say_count(self._least, 'post')} of yours with words{each}"
            return LineReading(value=math.nan, of=0, reason=reason)
        moved = self._moved.values()
        near = int((self._inside & self._eligible).sum()) + sum(near for near, _ in moved)
        people = int(self._eligible.sum()) + sum(eligible for _, eligible in moved)
        return LineReading(value=1 + near, of=1 + people)


class NeighbourFollower(Follower):
    """Follows lines that each count the neighbours of one profile."""

    def __init__(self, user: str, neighbours: Mapping[Line, Neighbours]) -> None:
        self._user, self._neighbours = user, neighbours

    def add(self, post: FollowedPost) -> set[Line]:
        """Compare again what a post has moved."""
        return {line for line in self._neighbours if self._moves(line, post)}

    def _moves(self, line: Line, post: FollowedPost) -> bool:
        one = self._neighbours[line]
        if post.user == self._user and post.community in (line.community, line.target):
            one.compare_all()
            return True
        if post.community == one.there.community:
            one.compare(post.user)
            return True
        return False

    def reading(self, line: Line) -> LineReading:
        """Return how many people there are to hide among."""
        return self._neighbours[line].reading()


def neighbours_of(
    crowd: GrowingCrowd, lines: Iterable[Line], find: Callable[[GrowingCrowd, Line], Neighbours]
) -> NeighbourFollower:
    """Follow lines, given how to find the neighbours of each."""
    return NeighbourFollower(crowd.user, {line: find(crowd, line) for line in lines})
