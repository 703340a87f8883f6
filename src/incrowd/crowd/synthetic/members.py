"""Who writes, and how: people with communities and topics, their habits of style, and the marks these leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.arrays import Floats, Ints
from incrowd.crowd.synthetic.chance import apportion, integers, lookup_table, normal, stream, uniform, zipf
from incrowd.crowd.synthetic.sentences import Sentences

COMMUNITY_TAIL = 0.8
REDRAWS = 16


@dataclass(frozen=True)
class MadeUpMembers:
    """Every identity: a user in a community, with a number of posts. Sorted by user."""

    user: Ints
    community: Ints
    posts: Ints

    @cached_property
    def post_bounds(self) -> Ints:
        """Identity *i* wrote the posts from bound *i* up to bound *i* + 1."""
        return np.concatenate([[0], np.cumsum(self.posts)])

    @cached_property
    def home(self) -> Ints:
        """The identity under which each user writes most."""
        order = np.lexsort((-self.posts, self.user))
        first = np.flatnonzero(np.diff(self.user[order], prepend=-1))
        return np.asarray(order[first])

    def __add__(self, others: MadeUpMembers) -> MadeUpMembers:
        """Return these identities followed by the others."""
        pairs = ((getattr(self, name), getattr(others, name)) for name in ("user", "community", "posts"))
        return MadeUpMembers(*(np.concatenate(pair) for pair in pairs))


def draw_members(
    *,
    users: int,
    communities: int,
    identities: int,
    posts: int,
    fewest: int,
    most: int,
    tail: float,
    seed: int,
) -> MadeUpMembers:
    """Place users in communities and share out the posts; every count comes out exactly as asked."""
    activity = np.exp(normal(stream(seed, "communities per user"), np.arange(users)))
    places = apportion(activity, identities, low=1, high=communities)
    user, community = _place(places, communities, seed)
    weights = np.exp(tail * normal(stream(seed, "posts per identity"), np.arange(identities)))
    return MadeUpMembers(user, community, apportion(weights, posts, low=fewest, high=most))


def _place(places: Ints, communities: int, seed: int) -> tuple[Ints, Ints]:
    """Give each user as many different communities as they have places; leave no community empty."""
    user = np.repeat(np.arange(len(places)), places)
    layer = np.arange(len(user)) - np.repeat(np.cumsum(places) - places, places)
    user = user[np.lexsort((user, layer))]  # everybody's first place, then everybody's second, ...
    popularity = lookup_table(zipf(communities, COMMUNITY_TAIL))
    community = np.arange(len(user)) % communities
    redraw = np.flatnonzero(np.arange(len(user)) >= communities)
    for attempt in range(REDRAWS):
        key = stream(seed, f"community, attempt {attempt}")
        community[redraw] = popularity[integers(key, redraw, len(popularity))]
        redraw = _repeated(user * communities + community)
    while len(redraw):  # whoever is in nearly every community: walk on to the next free one
        community[redraw] = (community[redraw] + 1) % communities
        redraw = _repeated(user * communities + community)
    order = np.lexsort((community, user))
    return user[order], community[order]


def _repeated(pairs: Ints) -> Ints:
    """Return the places of values that occurred before."""
    order = np.argsort(pairs, kind="stable")
    again = np.diff(pairs[order], prepend=-1) == 0
    return np.asarray(np.sort(order[again]))


@dataclass(frozen=True, kw_only=True)
class Character:
    """Somebody placed in the crowd on purpose, with a known story."""

    name: str
    posts: tuple[int, ...]
    """How many posts they write in community 0, 1, ...; 0 means not a member."""
    linkability: float
    topic: str
    state: str
    sentences: Sentences | None = None
    """What they say, if they speak in whole sentences; None: they write as everybody does."""


def draw_cast(cast: tuple[Character, ...]) -> MadeUpMembers:
    """Return the identities of the cast, who are users 0, 1, ..."""
    rows = [
        (user, community, posts)
        for user, character in enumerate(cast)
        for community, posts in enumerate(character.posts)
        if posts
    ]
    return MadeUpMembers(*np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy())


FAVOURITES = 28
"""Favourite words of an identity, used more often than others use them."""
FAVOURITE_FUNCTION_WORDS = 6
FAVOURITE_TAIL = 0.6
FAVOURITE_RANKS = (100, 6_000)
"""Favourites are ordinary words of middling frequency (ranks among the made-up words)."""
HABITS = ("capitals", "exclamation", "ellipsis", "bare", "comma", "smiley", "which_smiley", "hour")

LASTING, PASSING, PROFESSIONAL, NONE = "lasting", "passing", "professional", "none"
STATES = (LASTING, PASSING, PROFESSIONAL, NONE)
TOPICAL_SHARE, TOPICAL_LEAST, TOPICAL_CEILING = 0.12, 8, 0.6
STRONG, WEAK = 0.45, 0.06


def shared_draws(
    members: MadeUpMembers, linkability: Floats, traits: int, name: str, seed: int
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Draw traits of every identity, and say which of them the person carries into every community.

    This is the linkability dial: each trait is the person's own with probability `linkability`, the same in
    all their communities, and otherwise drawn afresh for this community.
    """
    identities = len(members.user)
    cell = np.arange(identities * traits).reshape(identities, traits)
    shared = uniform(stream(seed, f"{name}: shared?"), cell) < linkability[members.user][:, None]
    of_person = uniform(stream(seed, f"{name}: person"), members.user[:, None] * traits + np.arange(traits))
    of_identity = uniform(stream(seed, f"{name}: identity"), cell)
    return np.where(shared, of_person, of_identity), shared


@dataclass(frozen=True)
class Styles:
    """The style of every identity, one row each."""

    favourites: npt.NDArray[np.int32]
    """Numbers of favourite words, dearest first."""
    function_words: npt.NDArray[np.int32]
    habits: npt.NDArray[np.float32]
    """One column for each of :data:`HABITS`, as rates, a choice, or an hour of the day."""
    shared: npt.NDArray[np.bool_]
    """Which favourites the person carries into all their communities."""


def draw_styles(
    members: MadeUpMembers,
    linkability: Floats,
    *,
    first_made_up: int,
    made_up: int,
    function_words: int,
    seed: int,
) -> Styles:
    """Give every identity its style."""
    low, high = (min(rank, made_up) for rank in FAVOURITE_RANKS)
    low = 0 if low == high else low
    words, shared = shared_draws(members, linkability, FAVOURITES, "favourites", seed)
    little, _ = shared_draws(members, linkability, FAVOURITE_FUNCTION_WORDS, "function words", seed)
    habits, _ = shared_draws(members, linkability, len(HABITS), "habits", seed)
    return Styles(
        favourites=(first_made_up + low + words * (high - low)).astype(np.int32),
        function_words=(little * function_words).astype(np.int32),
        habits=_habits(habits),
        shared=shared,
    )


def favourite_weights(count: int) -> Floats:
    """Return how dear the favourites are, dearest first."""
    return zipf(count, FAVOURITE_TAIL)


def _habits(draws: Floats) -> npt.NDArray[np.float32]:
    """Turn uniform draws into rates: most people write plainly, some overdo one thing."""
    capitals, exclamation, ellipsis, bare, comma, smiley, which, hour = draws.T
    columns = [
        np.select([capitals < 0.55, capitals < 0.8], [1.0, 0.05], 0.6),
        0.5 * exclamation**3,
        0.5 * ellipsis**4,
        0.6 * bare**3,
        0.12 * comma,
        0.4 * smiley**4,
        which,
        24.0 * hour,
    ]
    return np.column_stack(columns).astype(np.float32)


@dataclass(frozen=True)
class Stakes:
    """What each user has a stake in, and how many of their home identity's posts show it."""

    topic: Ints
    state: Ints
    """Position in :data:`STATES`."""
    posts: Ints


def draw_stakes(users: int, shares: Mapping[str, float], topics: int, seed: int) -> tuple[Ints, Ints]:
    """Give every user one topic and one state, both as numbers."""
    everybody = np.arange(users)
    borders = np.cumsum([shares.get(state, 0.0) for state in STATES[:-1]])
    state = np.searchsorted(borders, uniform(stream(seed, "state"), everybody), side="right")
    return integers(stream(seed, "topic"), everybody, topics), state


def topical_posts(posts: Ints, state: Ints, width: Ints) -> Ints:
    """Return how many posts show the stake: as many on each sibling for a professional, two for none."""
    some = np.maximum(np.ceil(posts * TOPICAL_SHARE), TOPICAL_LEAST)
    broad = some * np.where(state == STATES.index(PROFESSIONAL), width, 1)
    shown = np.where(state == STATES.index(NONE), 2, broad)
    return np.asarray(np.minimum(shown, np.ceil(posts * TOPICAL_CEILING)), dtype=np.int64)


PLAIN, COMMA, STOP, QUESTION, EXCLAMATION, ELLIPSIS = range(6)
PUNCTUATION = [
    ("", "", " "),
    ("", ",", " "),
    ("", ".", " "),
    ("", "?", " "),
    ("", "!", " "),
    ("", "...", " "),
]

FIRST_SMILEY = len(PUNCTUATION)
SMILIES = [("", f" {smiley}", " ") for smiley in (":)", ":D", ";)", ":(", "xD", "^^", ":P", "<3")]

QUOTE_OPENS = FIRST_SMILEY + len(SMILIES)
QUOTE_CLOSES = QUOTE_OPENS + 1
QUOTE = [("&gt; ", "", " "), ("", "", "\n\n")]

FIRST_WART = QUOTE_CLOSES + 1
WARTS = [
    ("*", "*", " "),
    ("**", "**", " "),
    ("~~", "~~", " "),
    ("`", "`", " "),
    ("^", "", " "),
    ("/u/", "", " "),
    ("", " &amp;", " "),
    ("&lt;", "&gt;", " "),
    ("", "&#39;s", " "),
    ("[", "](https://www.example.com/page?id=7&amp;ref=a)", " "),
    ("[", '](http://example.org/wiki/A_(b) "title")', " "),
    ("", " https://www.example.org/watch?v=x1Y", " "),
    ("", " http://sub.example.net", "\n\n"),
    ("", " \U0001f602", " "),
    ("", " \U0001f469\u200d\U0001f52c\u2764\ufe0f", " "),
    ("", "oooooo!!!!!!", " "),
    ("caf\u00e9-", "", " "),
    ("", "e\u0301", " "),
    ("# ", "", "\n\n"),
    ("* ", "", "\n"),
    ("", " 42", " "),
    ("\u201c", "\u201d", " "),
]

MARKS = PUNCTUATION + SMILIES + QUOTE + WARTS
CAPITAL = 128
"""Added to a mark: the word begins with a capital letter."""


def column(part: int) -> pl.Series:
    """Return one part of every mark: 0 before, 1 after, 2 gap."""
    return pl.Series([mark[part] for mark in MARKS], dtype=pl.String)
