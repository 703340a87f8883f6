"""How people write: favourite words, punctuation, capitals, smilies, hours. And what they have a stake in.

One rule makes two profiles of a person alike: see :func:`shared_draws`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.crowd.synthetic.chance import Floats, Ints, integers, stream, uniform, zipf
from incrowd.crowd.synthetic.members import Members

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
    members: Members, linkability: Floats, traits: int, name: str, seed: int
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
    members: Members, linkability: Floats, *, first_made_up: int, made_up: int, function_words: int, seed: int
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
