"""Posts of a made-up crowd whose truth is known: who is who, how they write, what they have a stake in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from incrowd.crowd.schema import COLUMNS
from incrowd.crowd.synthetic import style
from incrowd.crowd.synthetic.chance import (
    Array,
    Floats,
    Ints,
    bits,
    integers,
    interleave,
    normal,
    stream,
    uniform,
)
from incrowd.crowd.synthetic.members import Character, Members, draw_cast, draw_members
from incrowd.crowd.synthetic.table import CHUNK, SyntheticTable, require
from incrowd.crowd.synthetic.vocabulary import FUNCTION_WORDS, Topics, Vocabulary, default_topics
from incrowd.crowd.synthetic.words import community_names, user_names

if TYPE_CHECKING:
    from incrowd.crowd.synthetic.text import Writer
    from incrowd.crowd.synthetic.truth import PostsTruth

DAY = 86_400
MONDAY = 4 * DAY  # 1970 began on a Thursday
SUBJECTS_PER_COMMUNITY = np.array([0.6, 0.9, 1.0])
HOUR_SPREAD = 2.5


@dataclass(frozen=True, kw_only=True)
class SyntheticPosts(SyntheticTable):
    """A crowd that writes. Nothing is made until rows are asked for; only the people are kept in memory.

    Examples
    --------
    >>> crowd = SyntheticPosts(users=50, communities=3, seed=1)
    >>> crowd.to_frame().columns
    ['user', 'community', 'time', 'text']
    """

    kind = "posts"

    users: int = 1_000
    communities: int = 10
    identities: int | None = None
    """How many (user, community) pairs; two a user unless stated, as far as there are communities."""
    posts: int | None = None
    """How many posts in all; a hundred an identity unless stated."""
    fewest_posts: int = 20
    """The least an identity writes."""
    most_posts: int | None = None
    linkability: float = 0.5
    """0: a person's profiles share nothing, linking is guessing. 1: they write alike everywhere."""
    individuality: float = 0.18
    """The share of content words that are personal favourites: how much anybody stands out at all."""
    states: Mapping[str, float] = field(
        default_factory=lambda: {style.LASTING: 0.05, style.PASSING: 0.05, style.PROFESSIONAL: 0.05}
    )
    """The share of users with each kind of stake in a topic; the others have none."""
    topics: Topics = field(default_factory=default_topics)
    occasional: float = 0.004
    """The share of content words that are a topic's word by the way, without any stake."""
    vocabulary: int = 50_000
    subjects: int = 60
    """What communities talk about: each mixes three of these."""
    words_per_post: float = 25.0
    activity_tail: float = 0.8
    """Spread of the logarithm of posts per identity."""
    start: int = 1_388_966_400
    """UTC seconds of a Monday's midnight; the default is 6 January 2014."""
    weeks: int = 26
    warts: bool = False
    """Markdown, links, entities, quotes and emoji, as in real text."""
    cast: tuple[Character, ...] = ()
    """Users 0, 1, ... placed on purpose; counted in users, identities and posts."""
    community_names: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.users >= 1, "users", "at least 1", self.users)
        require(self.communities >= 1, "communities", "at least 1", self.communities)
        require(self.weeks >= 1, "weeks", "at least 1", self.weeks)
        require((self.start - MONDAY) % (7 * DAY) == 0, "start", "midnight UTC of a Monday", self.start)
        require(self.subjects >= 1, "subjects", "at least 1", self.subjects)
        require(self.vocabulary >= 100, "vocabulary", "at least 100 words", self.vocabulary)
        require(0 <= self.linkability <= 1, "linkability", "a number from 0 to 1", self.linkability)
        require(0 <= self.individuality < 0.5, "individuality", "a share from 0 to 0.5", self.individuality)
        require(0 <= self.occasional < 0.2, "occasional", "a share from 0 to 0.2", self.occasional)
        self._check_topics()
        self._check_counts()

    def _check_topics(self) -> None:
        worded = self.topics and all(topic.words for topic in self.topics.values())
        require(bool(worded), "topics", "at least one topic, each with words", list(self.topics))
        require(set(self.states) <= set(style.STATES), "states", f"some of {style.STATES}", set(self.states))
        require(sum(self.states.values()) <= 1, "states", "shares adding up to at most 1", dict(self.states))
        for who in self.cast:
            require(who.topic in self.topics, "cast", f"a topic out of {list(self.topics)}", who.topic)
            require(who.state in style.STATES, "cast", f"a state out of {style.STATES}", who.state)
            require(any(who.posts), "cast", "posts in some community", who.posts)
            require(len(who.posts) <= self.communities, "cast", f"{self.communities} communities", who.posts)

    def _check_counts(self) -> None:
        cast = draw_cast(self.cast)
        users, identities = self.users - len(self.cast), self.identity_count - len(cast.user)
        low, high = max(users, self.communities), users * self.communities
        require(users >= 1, "users", f"more than the cast of {len(self.cast)}", self.users)
        require(low <= identities <= high, "identities", f"{low} to {high} beside the cast's", identities)
        least, posts = identities * self.fewest_posts, self.rows - int(cast.posts.sum())
        largest = identities * self._most_posts
        require(least <= posts <= largest, "posts", f"{least} to {largest} beside the cast's", posts)

    @property
    def _most_posts(self) -> int:
        return self.rows if self.most_posts is None else self.most_posts

    @property
    def identity_count(self) -> int:
        """How many identities there are."""
        usual = max(self.users * min(2, self.communities), self.communities)
        return usual if self.identities is None else self.identities

    @property
    def rows(self) -> int:
        """How many posts there are."""
        return self.identity_count * 100 if self.posts is None else self.posts

    @property
    def truth(self) -> PostsTruth:
        """What is really so: identities, pairs, states and styles, as frames."""
        from incrowd.crowd.synthetic.truth import PostsTruth

        return PostsTruth(self)

    @cached_property
    def user_names(self) -> pl.Series:
        """The name of every user."""
        return user_names(self.users, tuple(character.name for character in self.cast))

    @cached_property
    def place_names(self) -> pl.Series:
        """The name of every community."""
        return community_names(self.communities, self.community_names)

    @cached_property
    def lexicon(self) -> Vocabulary:
        """Every word anybody may use."""
        return Vocabulary(self.topics, self.vocabulary)

    @cached_property
    def members(self) -> Members:
        """Who is where, and how much they write."""
        cast = draw_cast(self.cast)
        placed = int(cast.posts.sum())
        others = draw_members(
            users=self.users - len(self.cast),
            communities=self.communities,
            identities=self.identity_count - len(cast.user),
            posts=self.rows - placed,
            fewest=self.fewest_posts,
            most=self._most_posts,
            tail=self.activity_tail,
            seed=self.seed,
        )
        return cast + Members(others.user + len(self.cast), others.community, others.posts)

    @cached_property
    def dial(self) -> Floats:
        """The linkability of every user."""
        dial = np.full(self.users, self.linkability)
        dial[: len(self.cast)] = [character.linkability for character in self.cast]
        return dial

    @cached_property
    def styles(self) -> style.Styles:
        """How every identity writes."""
        return style.draw_styles(
            self.members,
            self.dial,
            first_made_up=self.lexicon.first_made_up,
            made_up=self.vocabulary,
            function_words=len(FUNCTION_WORDS),
            seed=self.seed,
        )

    @cached_property
    def stakes(self) -> style.Stakes:
        """What every user has a stake in."""
        names, known = list(self.topics), slice(0, len(self.cast))
        topic, state = style.draw_stakes(self.users, self.states, len(names), self.seed)
        topic[known] = [names.index(character.topic) for character in self.cast]
        state[known] = [style.STATES.index(character.state) for character in self.cast]
        widths = np.array([len(siblings) for siblings in self.lexicon.siblings])
        posts = self.members.posts[self.members.home]
        return style.Stakes(topic, state, style.topical_posts(posts, state, widths[topic]))

    @cached_property
    def _writer(self) -> Writer:
        from incrowd.crowd.synthetic.text import Writer

        return Writer(self)

    def frames(self, chunk: int = CHUNK) -> Iterator[pl.DataFrame]:
        """Yield the posts, people mixed as in a dump, `chunk` at a time."""
        require(chunk >= 1, "chunk", "at least 1 row", chunk)
        for first in range(0, self.rows, chunk):
            yield self._frame(np.arange(first, min(first + chunk, self.rows)))

    def _frame(self, position: Ints) -> pl.DataFrame:
        post = interleave(position, self.rows)
        identity = np.searchsorted(self.members.post_bounds, post, side="right") - 1
        topic, focus, week = self._stake_of(post, identity)
        columns = {
            "user": self.user_names.gather(self.members.user[identity]),
            "community": self.place_names.gather(self.members.community[identity]),
            "time": self._times(post, identity, week),
            "text": self._writer.texts(post, identity, self._subjects(post, identity), topic, focus),
        }
        return pl.DataFrame(columns, schema=COLUMNS["posts"])

    def _stake_of(self, post: Ints, identity: Ints) -> tuple[Ints, Floats, Ints]:
        """Return each post's sensitive topic (-1: none), how strongly it shows, and its week (-1: any)."""
        user, stakes = self.members.user[identity], self.stakes
        ordinal = post - self.members.post_bounds[identity]
        shows = (self.members.home[user] == identity) & (ordinal < stakes.posts[user])
        state, own = stakes.state[user], stakes.topic[user]
        topic = np.where(state == style.STATES.index(style.PROFESSIONAL), self._sibling(own, ordinal), own)
        focus = np.where(state == style.STATES.index(style.NONE), style.WEAK, style.STRONG)
        burst = integers(stream(self.seed, "burst"), user, self.weeks)
        spread = (ordinal + uniform(stream(self.seed, "spread"), post)) * self.weeks
        steady = np.minimum(spread / np.maximum(stakes.posts[user], 1), self.weeks - 1).astype(np.int64)
        week = np.where(state == style.STATES.index(style.PASSING), burst, steady)
        week[state == style.STATES.index(style.NONE)] = -1
        return np.where(shows, topic, -1), np.where(shows, focus, 0.0), np.where(shows, week, -1)

    def _sibling(self, topic: Ints, ordinal: Ints) -> Ints:
        """Go through a topic's domain in turn, as somebody does whose work it is."""
        rows = self.lexicon.siblings
        widest = max(map(len, rows))
        table = np.array([[row[i % len(row)] for i in range(widest)] for row in rows])
        widths = np.array([len(row) for row in rows])
        return np.asarray(table[topic, ordinal % widths[topic]])

    def _times(self, post: Ints, identity: Ints, week: Ints) -> Ints:
        """Return UTC seconds: a day in the given week, at about the hour this identity keeps."""
        anywhere = integers(stream(self.seed, "day"), post, self.weeks * 7)
        day = np.where(week >= 0, week * 7 + anywhere % 7, anywhere)
        usual = self.styles.habits[identity, style.HABITS.index("hour")].astype(np.float64)
        hour = (usual + HOUR_SPREAD * normal(stream(self.seed, "hour"), post)) % 24
        return np.asarray(self.start + day * DAY + np.minimum(hour * 3600, DAY - 1).astype(np.int64))

    def _subjects(self, post: Ints, identity: Ints) -> Array:
        """Return the key of what each post is about, out of what its community talks about."""
        choice = np.searchsorted(
            SUBJECTS_PER_COMMUNITY, uniform(stream(self.seed, "choice"), post), side="right"
        )
        place = self.members.community[identity] * len(SUBJECTS_PER_COMMUNITY) + choice
        subject = integers(stream(self.seed, "subject of community"), place, self.subjects)
        return bits(stream(self.seed, "subject"), subject)
