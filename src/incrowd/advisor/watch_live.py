"""One person's numbers, kept up to date as posts arrive; always what the measures would say from scratch.

Other people's posts move one other profile each: it is compared with the person's again, and nobody else's. The
person's own posts move their profile: it is compared with everybody's again, through the prepared arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.advisor.community_topics import PostScorer, Weeks, rank
from incrowd.advisor.community_words import NOBODY
from incrowd.advisor.prepare import Shelf
from incrowd.advisor.watch_policy import Line, Reading
from incrowd.distances.profile_index import Profile, distance
from incrowd.distances.reductions import rounded
from incrowd.measures.exposure.assess import BEYOND_SINGLE_WORDS, SINGLE_WORDS
from incrowd.measures.exposure.space import Space
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.protocol import SMALLEST_CROWD, AdvisorOptions
from incrowd.result import say_count
from incrowd.text.reference import tokenise


@dataclass(frozen=True)
class NewPost:
    """A post that the crowd did not have; the user is the store's id."""

    user: str
    community: str
    time: int | None
    text: str


class LiveWords:
    """A community's words, and what was added since."""

    def __init__(self, shelf: Shelf, community: str) -> None:
        self.community = community
        self.base = shelf.words(community) if community in shelf.population.communities else None
        self._shelf = shelf
        self.added: dict[str, Profile] = {}
        self._posts: dict[str, int] = {}

    def add(self, user: str, words: list[str]) -> None:
        """Take in a post."""
        self.added[user] = self.added.get(user, NOBODY).plus(Profile.of_words(words))
        self._posts[user] = self._posts.get(user, 0) + 1

    def row(self, user: str) -> int | None:
        """Return a person's row among the prepared ones."""
        return None if self.base is None else self.base.row_of(user)

    def profile(self, user: str) -> Profile:
        """Return a person's words now."""
        before = NOBODY if self.base is None else self.base.profile(self.row(user))
        return before.plus(self.added[user]) if user in self.added else before

    def posts(self, user: str) -> int:
        """Return how many posts a person has now."""
        return self._shelf.population.of(user).get(self.community, 0) + self._posts.get(user, 0)


class Around:
    """Everybody else in a community within some distance of one of the person's profiles."""

    def __init__(
        self, own: LiveWords, there: LiveWords, user: str, limit: Callable[[], float], least: int
    ) -> None:
        self._own, self.there, self._user, self._limit = own, there, user, limit
        self._least = least
        self.refresh()

    def refresh(self) -> None:
        """Compare with everybody again."""
        self._profile, self._at = self._own.profile(self._user), self._limit()
        base = self.there.base
        if base is None or math.isnan(self._at):
            self._inside: NDArray[np.bool_] = np.zeros(0 if base is None else len(base), bool)
            self._eligible = self._inside.copy()
        else:
            self._eligible = np.asarray(base.posts >= self._least)
            self._inside = base.meeting(self._profile.keys).nearness(self._profile).within(self._at)
            mine = self.there.row(self._user)
            if mine is not None:
                self._inside[mine] = self._eligible[mine] = False
        self._moved: dict[str, tuple[bool, bool]] = {}
        for user in self.there.added:
            self.move(user)

    def move(self, user: str) -> None:
        """Compare with one person again."""
        if user == self._user or math.isnan(self._at):
            return
        row = self.there.row(user)
        if row is not None:
            self._inside[row] = self._eligible[row] = False
        theirs = self.there.profile(user)
        eligible = not theirs.empty and self.there.posts(user) >= self._least
        near = eligible and distance(self._profile, theirs) <= float(rounded(np.array(self._at)))
        self._moved[user] = near, eligible

    def reading(self) -> Reading:
        """Return how many people there are to hide among, the person included."""
        if math.isnan(self._at):
            each = "" if self._own is self.there else " in each"
            reason = f"it takes {say_count(self._least, 'post')} of yours with words{each}"
            return Reading(value=math.nan, of=0, reason=reason)
        moved = self._moved.values()
        near = int((self._inside & self._eligible).sum()) + sum(near for near, _ in moved)
        people = int(self._eligible.sum()) + sum(eligible for _, eligible in moved)
        return Reading(value=1 + near, of=1 + people)


class LiveTopics:
    """A community's exposure, and what was added since."""

    def __init__(self, shelf: Shelf, scorer: PostScorer) -> None:
        self._scorer = scorer
        community = scorer.options.community
        known = (
            bool(shelf.population.communities)
            if community is None
            else community in shelf.population.communities
        )
        self._base = shelf.topics(scorer.space, scorer.options) if known else None
        self._risks = np.array(self._base.risks) if self._base else np.zeros((0, len(scorer.space.topics)))
        self._rows: dict[str, int] = {}
        self._weeks: dict[str, Weeks] = {}

    def add(self, user: str, time: int | None, text: str) -> None:
        """Take in a post."""
        row = self._row(user)
        weeks = self._weeks.get(user) or self._before(user)
        weeks = weeks.plus(self._scorer.period(time), self._scorer.similar(text))
        self._weeks[user] = weeks
        risks = weeks.risks(self._scorer.space, self._scorer.options)
        if row is None:
            row = self._rows[user] = len(self._risks)
            self._risks = np.concatenate([self._risks, risks[None, :]])
        self._risks[row] = risks

    def _before(self, user: str) -> Weeks:
        if self._base is None:
            return Weeks(np.zeros(0, np.int64), np.zeros((0, len(self._scorer.space.topics))))
        return self._base.weeks(self._base.row_of(user))

    def _row(self, user: str) -> int | None:
        if user in self._rows:
            return self._rows[user]
        return None if self._base is None else self._base.row_of(user)

    def reading(self, user: str, topic: str) -> Reading:
        """Return a person's rank for a topic."""
        at, row = self._scorer.space.topics.place(topic), self._row(user)
        if row is None or math.isnan(self._risks[row, at]):
            return Reading(value=math.nan, of=len(self._risks), reason="you have no dated posts there")
        column = self._risks[:, at]
        mine = float(column[row])
        # Nobody is above themselves, so their own place may stay in.
        faint = self._scorer.space.name == "BOW" and mine < BEYOND_SINGLE_WORDS
        looks = SINGLE_WORDS if faint else ""
        return Reading(value=rank(mine, column), of=len(column), score=mine, looks=looks)


class LivePerson:
    """The readings of all lines of one person."""

    def __init__(
        self, shelf: Shelf, user: str, lines: Iterable[Line], space: Space, options: AdvisorOptions
    ) -> None:
        self._shelf, self._user, self._space, self._options = shelf, user, space, options
        self._words: dict[str, LiveWords] = {}
        self._topics: dict[str | None, LiveTopics] = {}
        self._around: dict[Line, Around] = {}
        self._lines = tuple(lines)
        for line in self._lines:
            self._prepare(line)

    def add(self, post: NewPost) -> set[Line]:
        """Take in a post; return the lines whose reading may have changed."""
        touched: set[Line] = set()
        if post.community in self._words:
            self._words[post.community].add(post.user, tokenise(post.text, self._options.text))
            touched |= {line for line in self._around if self._moves(line, post)}
        for place in (post.community, None):
            if place in self._topics:
                self._topics[place].add(post.user, post.time, post.text)
                touched |= {
                    line for line in self._lines if line.measure == "exposure" and line.community == place
                }
        return touched

    def reading(self, line: Line) -> Reading:
        """Return where the person stands; a handful of people is no crowd."""
        reading = self._measured(line)
        if reading.defined and reading.of < SMALLEST_CROWD:
            reason = f"fewer than {SMALLEST_CROWD} people are no crowd"
            return Reading(value=math.nan, of=reading.of, reason=reason)
        return reading

    def _measured(self, line: Line) -> Reading:
        if line.topic is not None:
            return self._topics[line.community].reading(self._user, line.topic)
        return self._around[line].reading()

    def _moves(self, line: Line, post: NewPost) -> bool:
        """Bring one line up to date; say whether it was touched."""
        around = self._around[line]
        if post.user == self._user and post.community in (line.community, line.target):
            around.refresh()
            return True
        if post.community == around.there.community:
            around.move(post.user)
            return True
        return False

    def _prepare(self, line: Line) -> None:
        if line.topic is not None:
            self._space.topics.place(line.topic)
            if line.community not in self._topics:
                topics = ExposureOptions(community=line.community, text=self._options.text)
                self._topics[line.community] = LiveTopics(self._shelf, PostScorer(self._space, topics))
            return
        own = self._live_words(str(line.community))
        if line.target is None:
            radius = self._options.radius
            self._around[line] = Around(
                own, own, self._user, lambda: math.nan if own.profile(self._user).empty else radius, 1
            )
            return
        there, least = self._live_words(line.target), self._options.min_posts

        def limit() -> float:
            if min(own.posts(self._user), there.posts(self._user)) < least:
                return math.nan
            return distance(own.profile(self._user), there.profile(self._user))

        self._around[line] = Around(own, there, self._user, limit, least)

    def _live_words(self, community: str) -> LiveWords:
        if community not in self._words:
            self._words[community] = LiveWords(self._shelf, community)
        return self._words[community]
