"""People who write: communities, styles, stakes in topics; their texts, and what is true of them.

Word profiles also come without any text: what a distance benchmark needs of 58,091 identities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from incrowd.arrays import Floats, Ints
from incrowd.crowd.schema import COLUMNS
from incrowd.crowd.synthetic.chance import (
    Array,
    bits,
    integers,
    interleave,
    lookup_table,
    normal,
    stream,
    uniform,
    zipf,
)
from incrowd.crowd.synthetic.members import (
    FAVOURITE_FUNCTION_WORDS,
    FAVOURITES,
    HABITS,
    LASTING,
    NONE,
    PASSING,
    PROFESSIONAL,
    STATES,
    STRONG,
    WEAK,
    Character,
    MadeUpMembers,
    Stakes,
    Styles,
    column,
    draw_cast,
    draw_members,
    draw_stakes,
    draw_styles,
    favourite_weights,
    topical_posts,
)
from incrowd.crowd.synthetic.table import CHUNK, SyntheticTable, require
from incrowd.crowd.synthetic.words import (
    FUNCTION_WORDS,
    Topics,
    Vocabulary,
    community_names,
    default_topics,
    user_names,
)
from incrowd.crowd.tables import series_of, utf8

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
        default_factory=lambda: {LASTING: 0.05, PASSING: 0.05, PROFESSIONAL: 0.05}
    )
    """The share of users with each kind of stake in a topic; the others have none."""
    topics: Topics = field(default_factory=default_topics)
    occasional: float = 0.004
    """The share of content words that are a topic's word by the way, without any stake."""
    vocabulary: int = 50_000
    real_words: tuple[str, ...] = ()
    """Words that take the place of the most frequent made-up ones."""
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
        require(set(self.states) <= set(STATES), "states", f"some of {STATES}", set(self.states))
        require(sum(self.states.values()) <= 1, "states", "shares adding up to at most 1", dict(self.states))
        for who in self.cast:
            require(who.topic in self.topics, "cast", f"a topic out of {list(self.topics)}", who.topic)
            require(who.state in STATES, "cast", f"a state out of {STATES}", who.state)
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
        return Vocabulary(self.topics, self.vocabulary, self.real_words)

    @cached_property
    def members(self) -> MadeUpMembers:
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
        return cast + MadeUpMembers(others.user + len(self.cast), others.community, others.posts)

    @cached_property
    def dial(self) -> Floats:
        """The linkability of every user."""
        dial = np.full(self.users, self.linkability)
        dial[: len(self.cast)] = [character.linkability for character in self.cast]
        return dial

    @cached_property
    def styles(self) -> Styles:
        """How every identity writes."""
        return draw_styles(
            self.members,
            self.dial,
            first_made_up=self.lexicon.first_made_up,
            made_up=self.vocabulary,
            function_words=len(FUNCTION_WORDS),
            seed=self.seed,
        )

    @cached_property
    def stakes(self) -> Stakes:
        """What every user has a stake in."""
        names, known = list(self.topics), slice(0, len(self.cast))
        topic, state = draw_stakes(self.users, self.states, len(names), self.seed)
        topic[known] = [names.index(character.topic) for character in self.cast]
        state[known] = [STATES.index(character.state) for character in self.cast]
        widths = np.array([len(siblings) for siblings in self.lexicon.siblings])
        posts = self.members.posts[self.members.home]
        return Stakes(topic, state, topical_posts(posts, state, widths[topic]))

    @cached_property
    def _writer(self) -> Writer:

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
            "text": self._spoken(
                post,
                identity,
                self._writer.texts(post, identity, self._subjects(post, identity), topic, focus),
            ),
        }
        return pl.DataFrame(columns, schema=COLUMNS["posts"])

    def _spoken(self, post: Ints, identity: Ints, texts: pl.Series) -> pl.Series:
        """Put whole sentences in the place of the posts of those who speak in them."""
        for number, said in self._sentences.items():
            mine = np.flatnonzero(identity == number)
            ordinal = post[mine] - self.members.post_bounds[number]
            texts = texts.scatter(mine, said.gather(ordinal)) if len(mine) else texts
        return texts

    @cached_property
    def _sentences(self) -> dict[int, pl.Series]:
        """All posts of each identity that speaks in sentences."""
        found = {}
        for number in np.flatnonzero(self.members.user < len(self.cast)).tolist():
            who = self.cast[self.members.user[number]]
            if who.sentences is None:
                continue
            post = np.arange(*self.members.post_bounds[number : number + 2])
            topic, _, _ = self._stake_of(post, np.full(len(post), number))
            found[number] = pl.Series(
                who.sentences.posts(
                    self.place_names[int(self.members.community[number])],
                    who.topic,
                    self._writer.lengths(post).tolist(),
                    (topic >= 0).tolist(),
                    self.seed,
                )
            )
        return found

    def _stake_of(self, post: Ints, identity: Ints) -> tuple[Ints, Floats, Ints]:
        """Return each post's sensitive topic (-1: none), how strongly it shows, and its week (-1: any)."""
        user, stakes = self.members.user[identity], self.stakes
        ordinal = post - self.members.post_bounds[identity]
        shows = (self.members.home[user] == identity) & (ordinal < stakes.posts[user])
        state, own = stakes.state[user], stakes.topic[user]
        topic = np.where(state == STATES.index(PROFESSIONAL), self._sibling(own, ordinal), own)
        focus = np.where(state == STATES.index(NONE), WEAK, STRONG)
        burst = integers(stream(self.seed, "burst"), user, self.weeks)
        spread = (ordinal + uniform(stream(self.seed, "spread"), post)) * self.weeks
        steady = np.minimum(spread / np.maximum(stakes.posts[user], 1), self.weeks - 1).astype(np.int64)
        week = np.where(state == STATES.index(PASSING), burst, steady)
        week[state == STATES.index(NONE)] = -1
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
        usual = self.styles.habits[identity, HABITS.index("hour")].astype(np.float64)
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


LONGEST_POST = 400
LENGTH_SPREAD = 0.8
WORD_TAIL, SUBJECT_TAIL, SUBJECT_WORDS = 1.1, 1.0, 1_500
FUNCTION_SHARE, FAVOURITE_FUNCTION_SHARE, SUBJECT_SHARE = 0.42, 0.15, 0.3
WART_SHARE = 0.01


class Writer:
    """Writes the posts of one crowd."""

    def __init__(self, crowd: SyntheticPosts) -> None:
        from incrowd.crowd.synthetic import kernels

        self._kernel = kernels
        self._crowd = crowd
        self._words, self._word_ends = crowd.lexicon.spelling
        parts = [column(part) for part in range(3)]
        self._marks, self._mark_ends = utf8(pl.concat(parts))
        self._mark_sizes = np.diff(self._mark_ends).reshape(3, -1)
        self._word_key, self._mark_key = stream(crowd.seed, "words"), stream(crowd.seed, "marks")
        self._tables = kernels.Tables(
            function_words=lookup_table(zipf(len(FUNCTION_WORDS), 0.9, shift=1.0)),
            background=lookup_table(zipf(crowd.vocabulary, WORD_TAIL, shift=3.0)),
            subject=lookup_table(zipf(min(SUBJECT_WORDS, crowd.vocabulary), SUBJECT_TAIL, shift=2.0)),
            favourite=lookup_table(favourite_weights(FAVOURITES)),
            favourite_function=lookup_table(favourite_weights(FAVOURITE_FUNCTION_WORDS)),
            salient_bounds=crowd.lexicon.salient_bounds,
            first_made_up=crowd.lexicon.first_made_up,
        )
        self._shares = kernels.SourceShares(
            function=FUNCTION_SHARE,
            favourite_function=FAVOURITE_FUNCTION_SHARE,
            favourite=crowd.individuality,
            stray=crowd.occasional,
            subject=SUBJECT_SHARE,
        )

    def texts(self, post: Ints, identity: Ints, subject_key: Array, topic: Ints, focus: Floats) -> pl.Series:
        """Return the text of each post."""
        bounds = np.concatenate([[0], np.cumsum(self.lengths(post))])
        words, signs = np.empty(bounds[-1], dtype=np.int32), np.empty(bounds[-1], dtype=np.uint8)
        chunk = self._kernel.Chunk(post, identity, bounds, subject_key, topic, focus)
        styles, warts = self._crowd.styles, WART_SHARE if self._crowd.warts else 0.0
        self._kernel.draw_words(
            self._word_key, chunk, self._tables, self._shares, styles.favourites, styles.function_words, words
        )
        self._kernel.draw_marks(self._mark_key, post, identity, bounds, styles.habits, warts, signs)
        return self._spell(bounds, words, signs)

    def lengths(self, post: Ints) -> Ints:
        """Return the number of words of each post: a lognormal tail, never none."""
        median = self._crowd.words_per_post / np.exp(LENGTH_SPREAD**2 / 2)
        lengths = median * np.exp(LENGTH_SPREAD * normal(stream(self._crowd.seed, "length"), post))
        return np.asarray(np.clip(np.rint(lengths), 1, LONGEST_POST), dtype=np.int64)

    def _spell(self, bounds: Ints, words: Array, signs: Array) -> pl.Series:
        ends = np.zeros(len(bounds), dtype=np.int64)
        self._kernel.measure(bounds, words, signs, self._word_ends, self._mark_sizes, ends)
        text = np.empty(ends[-1], dtype=np.uint8)
        self._kernel.spell(
            bounds, words, signs, self._words, self._word_ends, self._marks, self._mark_ends, text
        )
        return series_of(text, ends)


@dataclass(frozen=True)
class PostsTruth:
    """The truth of a crowd of posts, as frames."""

    crowd: SyntheticPosts

    @property
    def identities(self) -> pl.DataFrame:
        """Columns user, community, posts: every identity."""
        members = self.crowd.members
        return pl.DataFrame(
            {
                "user": self.crowd.user_names.gather(members.user),
                "community": self.crowd.place_names.gather(members.community),
                "posts": members.posts,
            }
        )

    @property
    def pairs(self) -> pl.DataFrame:
        """Columns user, source, target: the same user in two communities, each pair once."""
        places = self.identities.with_row_index("place").select("user", "community", "place")
        both = places.join(places, on="user", suffix="_target").filter(
            pl.col("place") < pl.col("place_target")
        )
        return both.select("user", source="community", target="community_target")

    @property
    def states(self) -> pl.DataFrame:
        """Columns user, topic, domain, state, community: one row per user.

        The stake shows in one community only, the one in which the user writes most. A *professional* writes
        about every topic of the domain; *none* used a word of the topic once or twice.
        """
        crowd, names = self.crowd, pl.Series(list(self.crowd.topics))
        domains = pl.Series([topic.domain for topic in crowd.topics.values()])
        return pl.DataFrame(
            {
                "user": crowd.user_names,
                "topic": names.gather(crowd.stakes.topic),
                "domain": domains.gather(crowd.stakes.topic),
                "state": pl.Series(STATES).gather(crowd.stakes.state),
                "community": crowd.place_names.gather(crowd.members.community[crowd.members.home]),
            }
        )

    @property
    def styles(self) -> pl.DataFrame:
        """One row per identity: favourite words, dearest first; which of them go everywhere; habits."""
        styles, words = self.crowd.styles, self.crowd.lexicon.words
        favourites = words.gather(styles.favourites.ravel()).reshape(styles.favourites.shape)
        habits = {name: styles.habits[:, column] for column, name in enumerate(HABITS)}
        return self.identities.select("user", "community").with_columns(
            favourites=favourites.cast(pl.List(pl.String)),
            shared=pl.Series(styles.shared).cast(pl.List(pl.Boolean)),
            **{name: pl.Series(values) for name, values in habits.items()},
        )


PROFILES_PER_COMMUNITY = 30
PROFILE_TAIL, SIZE_SPREAD = 1.05, 0.5


def profiles(
    identities: int,
    *,
    vocabulary: int = 50_000,
    distinct: int = 1_800,
    communities: int | None = None,
    seed: int = 0,
) -> csr_array:
    """Return word distributions of identities as sparse rows that add up to 1.

    Every identity draws words until it has its number of distinct ones, a lognormal number about `distinct`
    on average. Half of the words come from everybody's Zipf distribution, half from its community's, so
    overlaps are as uneven as in real text.

    Examples
    --------
    >>> profiles(10, vocabulary=500, distinct=40).shape
    (10, 500)
    """
    from scipy.sparse import csr_array

    from incrowd.crowd.synthetic.kernels import fill_profiles

    require(identities >= 1, "identities", "at least 1", identities)
    require(1 <= distinct <= vocabulary // 2, "distinct", f"1 to {vocabulary // 2}", distinct)
    groups = communities or max(1, identities // PROFILES_PER_COMMUNITY)
    spread = np.exp(
        SIZE_SPREAD * normal(stream(seed, "distinct"), np.arange(identities)) - SIZE_SPREAD**2 / 2
    )
    sizes = np.clip(np.rint(distinct * spread), 1, vocabulary // 2).astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    words = np.empty(bounds[-1], dtype=np.int32)
    shares = np.empty(bounds[-1], dtype=np.float64)
    table = lookup_table(zipf(vocabulary, PROFILE_TAIL, shift=2.0))
    keys = stream(seed, "profile"), stream(seed, "community words")
    fill_profiles(*keys, bounds, groups, table, vocabulary, words, shares)
    index_type = np.int64 if bounds[-1] > np.iinfo(np.int32).max else np.int32
    return csr_array((shares, words, bounds.astype(index_type)), shape=(identities, vocabulary))
