"""Who is in which community, and how much each of them writes there.

Communities and activity have long tails: a few communities hold most people, a few people write most posts.
How much somebody writes in one community says nothing about how much they write in another; otherwise the
mere amount would link their profiles even when the linkability dial is at 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.crowd.synthetic.chance import (
    Ints,
    apportion,
    integers,
    lookup_table,
    normal,
    stream,
    zipf,
)

COMMUNITY_TAIL = 0.8
REDRAWS = 16


@dataclass(frozen=True)
class Members:
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

    def __add__(self, others: Members) -> Members:
        """Return these identities followed by the others."""
        pairs = ((getattr(self, name), getattr(others, name)) for name in ("user", "community", "posts"))
        return Members(*(np.concatenate(pair) for pair in pairs))


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
) -> Members:
    """Place users in communities and share out the posts; every count comes out exactly as asked."""
    activity = np.exp(normal(stream(seed, "communities per user"), np.arange(users)))
    places = apportion(activity, identities, low=1, high=communities)
    user, community = _place(places, communities, seed)
    weights = np.exp(tail * normal(stream(seed, "posts per identity"), np.arange(identities)))
    return Members(user, community, apportion(weights, posts, low=fewest, high=most))


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


def draw_cast(cast: tuple[Character, ...]) -> Members:
    """Return the identities of the cast, who are users 0, 1, ..."""
    rows = [
        (user, community, posts)
        for user, character in enumerate(cast)
        for community, posts in enumerate(character.posts)
        if posts
    ]
    return Members(*np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy())
