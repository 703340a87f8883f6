"""Everybody's scores in a community, prepared: memory-mapped, kept up to date as posts come, and counted for a card."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.crowd.array_cache import find_row, identities
from incrowd.measures.exposure.assess import BEYOND_SINGLE_WORDS, SINGLE_WORDS, OwnPosts
from incrowd.measures.exposure.definition import UNDATED, Floats, periods
from incrowd.measures.exposure.scoring import Peaks, score
from incrowd.measures.exposure.space import Encoder, Space, WordLists
from incrowd.measures.exposure.spec import LINES, ExposureOptions
from incrowd.measures.following import FollowedPost, Follower, GrowingCrowd, Line, LineReading
from incrowd.measures.person import NewPost
from incrowd.measures.protocol import AdvisorOptions, PreparedCrowd

if TYPE_CHECKING:
    import polars as pl

    from incrowd.cards.noise import Noise


MOST_SCORED = 5_000
"""In a larger community so many people, drawn at random, are scored to rank one person among all."""
MANY_TEXTS = 200
"""From here on texts are read by the compiled tokeniser, which takes a moment to start."""


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
        """Return the person's risk for every topic, as the measure computes it for everybody."""
        own = Peaks(np.zeros(len(self.periods), np.int64), self.periods, self.values, people=1)
        return np.asarray(own.risks(space.topics, options.dimension, options)[0])


@dataclass(frozen=True, eq=False)
class CommunityScores:
    """Everybody's risk for each topic in one community, and the periods behind it, memory-mapped."""

    names: NDArray[Any]
    rows: NDArray[np.int64]
    risks: Floats
    """People down, topics across."""
    starts: NDArray[np.int64]
    period: NDArray[np.int64]
    values: Floats
    """The periods of row i lie from ``starts[i]`` on."""
    held: NDArray[np.int64]
    """How many known words everybody wrote."""
    members: int
    """How many people there are; more than rows where only a sample was scored."""

    @classmethod
    def of(
        cls, crowd: PreparedCrowd, space: Space, options: ExposureOptions, most: int | None = None
    ) -> CommunityScores:
        """Score everybody's posts once; `most`: those of a sample of at most so many people."""

        def make() -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
            scored = score(crowd.crowd(), space, options, most=most)
            names, rows = identities(scored.users.to_list())
            peaks = scored.peaks
            arrays = {
                "names": names,
                "rows": rows,
                "risks": scored.risks(),
                "starts": np.searchsorted(peaks.person, np.arange(peaks.people + 1)).astype(np.int64),
                "period": peaks.period,
                "values": peaks.values,
                "held": np.zeros(peaks.people, np.int64) if peaks.words is None else peaks.words,
            }
            return arrays, {"members": scored.people}

        question = options.parameters() | {"space": space.hash, "kind": space.name, "words": "counted"}
        question |= {} if most is None else {"most": most}
        arrays, about = crowd.arrays("topics", question, make)
        return cls(**arrays, members=about["members"])

    @property
    def is_sample(self) -> bool:
        """True if somebody who wrote here may not be among the rows."""
        return self.members > len(self.risks)

    def row_of(self, user: str) -> int | None:
        """Return a person's row, or None if they wrote nothing here."""
        return find_row(self.names, self.rows, user)

    def weeks(self, row: int | None) -> Weeks:
        """Return the periods of a row; none for None."""
        if row is None:
            return Weeks(np.zeros(0, np.int64), np.zeros((0, self.values.shape[1]), self.values.dtype))
        span = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return Weeks(np.asarray(self.period[span]), np.asarray(self.values[span]))


NO_WORDS = WordLists(np.zeros(0, np.int32), np.zeros(1, np.int64))


class PostScorer:
    """Scores one post at a time in a space, without the cost of setting up whole columns of texts."""

    def __init__(self, space: Space, options: ExposureOptions) -> None:
        self.space, self.options = space, options
        self._encoder = Encoder(space, options.text)
        self._known: dict[str, NDArray[np.int32]] = {}

    def words(self, text: str) -> list[str]:
        """Return the post's words and pairs that the space knows, in order."""
        return self._encoder.words(text)

    def lists(self, text: str) -> WordLists:
        """Return the post as the space sees it."""
        return self._encoder.encode_one(text)

    def many(self, texts: pl.Series) -> list[NDArray[np.int32]]:
        """Return each of some posts as the space sees it; the same texts come again with every change tried."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if len(new) > MANY_TEXTS:
            lists = self._encoder.encode(texts)
            found = {text: lists.part(at, at + 1).words for at, text in enumerate(texts)}
        else:
            found = {text: self._encoder.encode_one(text).words for text in new}
        self._known |= found
        return [self._known[text] for text in texts]

    def new_posts(self, posts: Sequence[NewPost]) -> OwnPosts:
        """Return posts that are not in the crowd, scored one by one."""
        lists = [self.lists(one.text) for one in posts]
        bounds = np.cumsum([0, *(len(one.words) for one in lists)]).astype(np.int64)
        words = WordLists(np.concatenate([NO_WORDS.words, *(one.words for one in lists)]), bounds)
        similar = np.zeros((len(lists), len(self.space.topics)))
        for row, one in enumerate(lists):
            similar[row] = self.space.similarities(one)[0]
        return OwnPosts(np.array([self.period(one.time) for one in posts], np.int64), words, similar)

    def period(self, time: int | None) -> int:
        """Return the period of a post."""
        return UNDATED if time is None else int(periods(time, self.options.days))


def kept_words(
    crowd: PreparedCrowd, space: Space, user: str, community: str, posts: Callable[[], OwnPosts]
) -> list[str | None]:
    """Return what each topic rests on in somebody's posts (:meth:`OwnPosts.rests_on`); found out once."""

    def find() -> dict[str, NDArray[Any]]:
        found, topics = posts(), range(len(space.topics))
        words = [found.rests_on(space, topic) for topic in topics]
        return {
            "points": np.array([one is not None for one in words]),
            "word": np.array([one or "" for one in words]),
        }

    question = {"what": "rests on one word", "space": space.hash, "user": user, "community": community}
    kept = crowd.answer(question, find)
    both = zip(kept["points"].tolist(), kept["word"].tolist(), strict=True)
    return [str(word) if points else None for points, word in both]


class GrowingScores:
    """A community's scores, and what was added since."""

    def __init__(self, crowd: PreparedCrowd, scorer: PostScorer) -> None:
        self._scorer = scorer
        there, community = crowd.population.communities, scorer.options.community
        known = bool(there) if community is None else community in there
        self._base = CommunityScores.of(crowd, scorer.space, scorer.options) if known else None
        self._risks = np.array(self._base.risks) if self._base else np.zeros((0, len(scorer.space.topics)))
        self._rows: dict[str, int] = {}
        self._weeks: dict[str, Weeks] = {}
        self._held: dict[str, int] = {}

    def add(self, post: FollowedPost) -> None:
        """Take in a post: one person's row changes, and no other."""
        row = self._row(post.user)
        weeks = self._weeks.get(post.user) or self._before(post.user)
        lists, space = self._scorer.lists(post.text), self._scorer.space
        weeks = weeks.plus(self._scorer.period(post.time), np.asarray(space.similarities(lists)[0]))
        self._weeks[post.user] = weeks
        risks = weeks.risks(space, self._scorer.options)
        known = (
            0 if self._base is None or row is None or post.user in self._rows else int(self._base.held[row])
        )
        self._held[post.user] = self._held.get(post.user, known) + len(lists.words)
        if self._held[post.user] < space.enough:
            risks[:] = math.nan
        if row is None:
            row = self._rows[post.user] = len(self._risks)
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

    def reading(self, user: str, topic: str) -> LineReading:
        """Return a person's rank for a topic."""
        at, row = self._scorer.space.topics.place(topic), self._row(user)
        if row is None or math.isnan(self._risks[row, at]):
            return LineReading(value=math.nan, of=len(self._risks), reason="you have no dated posts there")
        column = self._risks[:, at]
        mine = float(column[row])
        faint = self._scorer.space.name == "BOW" and mine < BEYOND_SINGLE_WORDS
        # Nobody is above themselves, so their own place may stay in; undefined risks are above nobody.
        rank = 1 + int((column > mine).sum())
        heard = mine - LINES[self._scorer.space.name].nothing_up_to
        score = mine if heard > 0 else min(heard, 0.0)
        return LineReading(value=rank, of=len(column), score=score, looks=SINGLE_WORDS if faint else "")


class TopicFollower(Follower):
    """Follows lines that are about ranks for topics."""

    def __init__(
        self, crowd: GrowingCrowd, lines: Sequence[Line], options: AdvisorOptions, space: Space
    ) -> None:
        self._user, self._lines = crowd.user, tuple(lines)
        self._scores: dict[str | None, GrowingScores] = {}
        for line in self._lines:
            space.topics.place(str(line.topic))
            if line.community not in self._scores:
                chosen = ExposureOptions(community=line.community, text=options.text)
                self._scores[line.community] = GrowingScores(crowd.crowd, PostScorer(space, chosen))

    def add(self, post: FollowedPost) -> set[Line]:
        """Score a post in its community, and over the whole crowd."""
        touched: set[Line] = set()
        for place in (post.community, None):
            if place in self._scores:
                self._scores[place].add(post)
                touched |= {line for line in self._lines if line.community == place}
        return touched

    def reading(self, line: Line) -> LineReading:
        """Return the person's rank for the line's topic."""
        return self._scores[line.community].reading(self._user, str(line.topic))


# What a card tells about sensitive topics: how many people show each one how strongly, and nothing finer.

EDGES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Strengths at which people are counted; up to the first, nothing points to the topic."""
MOST_TOPICS = 10
"""A person counts for so many topics at most, those they show most: it bounds what one person can move."""
SURE = 1.645
"""Times the noise: nine of ten numbers are within."""


def topic_table(risks: NDArray[np.floating[Any]], space: Space, noise: Noise) -> pl.DataFrame:
    """Count, with noise, how many people show each sensitive topic more strongly than each edge.

    `risks` has a row for each person, topics across. Columns: topic, above, people, give_or_take.
    """
    import polars as pl

    names = space.topics.sensitive
    shown = np.nan_to_num(risks[:, [space.topics.place(name) for name in names]], nan=0.0)
    floor = np.sort(shown, axis=1)[:, -min(MOST_TOPICS, shown.shape[1])][:, None]
    kept = (shown >= np.maximum(floor, EDGES[0])) & (
        np.argsort(np.argsort(-shown, axis=1), axis=1) < MOST_TOPICS
    )
    step = np.searchsorted(EDGES, shown, side="left") - 1
    counted = np.zeros((len(names), len(EDGES)), np.int64)
    person, topic = np.nonzero(kept & (step >= 0))
    np.add.at(counted, (topic, step[person, topic]), 1)
    noisy = noise.counts("sections", counted, reach=math.sqrt(MOST_TOPICS))
    above = np.maximum.accumulate(np.maximum(np.cumsum(noisy[:, ::-1], axis=1), 0.0), axis=1)[:, ::-1]
    spread = noise.spread("sections", math.sqrt(MOST_TOPICS)) * np.sqrt(np.arange(len(EDGES), 0, -1))
    return pl.DataFrame(
        {
            "topic": np.repeat(names, len(EDGES)),
            "above": np.tile(np.array(EDGES, np.float32), len(names)),
            "people": np.round(above).ravel().astype(np.int32),
            "give_or_take": np.tile(np.ceil(SURE * spread), len(names)).astype(np.int32),
        }
    )


def made_up_scores(table: pl.DataFrame, space: Space, people: int) -> CommunityScores:
    """Make up as many people as the community has, who show topics as the card says; no two of their topics belong
    together, so that only one topic at a time can be looked at.
    """
    risks = np.zeros((people, len(space.topics)))
    for (name,), part in table.sort("above").group_by("topic", maintain_order=True):
        if name in space.topics.sensitive:
            counts = np.minimum(part["people"].to_numpy(), people)
            risks[:, space.topics.place(str(name))] = _spread_out(part["above"].to_numpy(), counts, people)
    nobody = np.zeros(0, np.int64)
    return CommunityScores(
        names=np.zeros(0, "S32"),
        rows=nobody,
        risks=risks,
        starts=np.zeros(people + 1, np.int64),
        period=nobody,
        values=np.zeros((0, len(space.topics))),
        held=np.zeros(people, np.int64),
        members=people,
    )


def _spread_out(edges: NDArray[Any], above: NDArray[Any], people: int) -> Floats:
    """Return risks, largest first, of which so many lie above each edge, evenly within each step."""
    found = np.zeros(people)
    ends = [*edges[1:], 1.0]
    inside = above - np.append(above[1:], 0)
    for low, high, before, count in zip(edges, ends, np.append(above[1:], 0), inside, strict=True):
        found[before : before + count] = high - (high - low) * (np.arange(count) + 0.5) / max(count, 1)
    return found


def rank_between(table: pl.DataFrame, topic: str, risk: float) -> tuple[float, float]:
    """Return between which ranks somebody lies who shows a topic so strongly; infinity: as many as there are.

    The card counts people in steps of strength: whoever is in a higher step ranks before, and of the same step nobody
    knows who does. Each count is off by the noise of its own.
    """
    import polars as pl

    part = table.filter(pl.col("topic") == topic).sort("above")
    before, same = part.filter(pl.col("above") > risk), part.filter(pl.col("above") <= risk)
    best = before["people"][0] - before["give_or_take"][0] if before.height else 0.0
    worst = same["people"][-1] + same["give_or_take"][-1] if same.height else math.inf
    return max(1.0 + best, 1.0), 1.0 + worst
