"""People who do not exist, drawn from a card: as many as the community has, who write as it does.

Everything that counts people within a distance works on them as on the community itself, within distances that went
through :class:`incrowd.cards.laws.Correction`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.cards.laws import POST_STEPS, Community, ends
from incrowd.crowd.array_cache import identities
from incrowd.distances.profile_index import CommunityIndex, Keys, word_keys

MARKS = 2**16
"""So many places from 0 to 1 at which it is known which word a draw stands for."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MadeUp:
    """Made-up people of one community."""

    counts: sp.csr_matrix
    """People down, the community's words across."""
    rare: Ints
    """How many words each wrote that are not listed: these are nobody else's."""
    posts: Ints
    keys: Keys
    """The numbers of the words."""

    def __len__(self) -> int:
        return len(self.posts)

    def index(self) -> CommunityIndex:
        """Lay them out as measures read a community; what somebody shares with nobody is one word of their own."""
        names = [f"made-up person {number}" for number in range(len(self))]
        alone = np.flatnonzero(self.rare)
        own = sp.csr_matrix(
            (self.rare[alone], (alone, np.arange(len(alone)))), shape=(len(self), len(alone)), dtype=np.int64
        )
        keys = np.concatenate([self.keys, word_keys(names[row] for row in alone.tolist())])
        whole = sp.hstack([self.counts, own], format="csr", dtype=np.int64)
        sorted_names, rows = identities(names)
        return CommunityIndex.of_matrix(whole, keys, names=sorted_names, rows=rows, posts=self.posts)


def made_up_people(
    community: Community, *, min_posts: int = 1, people: int | None = None, seed: int = 0
) -> MadeUp:
    """Draw people from a community's laws.

    Parameters
    ----------
    min_posts
        Only people with at least so many posts, as measures leave others out.
    people
        How many; None: as many as the community has.
    seed
        Same seed, same people.
    """
    rng = np.random.default_rng([seed, 17])
    size = community.how_many(min_posts) if people is None else people
    posts, words = _drawn_lengths(community, size, min_posts, rng)
    listed = _drawn_listed(community, words, rng)
    owner, word = polya_urn(community.base, listed, community.concentration, rng)
    shape = (size, len(community.words))
    counts = sp.coo_matrix((np.ones(len(owner), np.int64), (owner, word)), shape=shape).tocsr()
    return MadeUp(counts, words - listed, posts, community.keys)


def _drawn_lengths(
    community: Community, size: int, min_posts: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Draw ranges of posts and words together, then numbers within each, evenly by logarithm."""
    weight, table = community.weights(min_posts), community.lengths
    if not size or not weight.sum():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    row = rng.choice(len(weight), size, p=weight / weight.sum())
    step = table["posts_step"].to_numpy()[row]
    posts = _between(np.maximum(POST_STEPS[step], min_posts), ends(POST_STEPS)[step], rng)
    first, end = table["words_from"].to_numpy()[row], table["words_to"].to_numpy()[row]
    return posts, _between(first, end, rng)


def _between(first: Ints, end: Ints, rng: np.random.Generator) -> Ints:
    """Draw whole numbers from `first` to before `end`, evenly by logarithm."""
    low, high = np.log(first), np.log(np.maximum(end, first + 1))
    return np.asarray(np.floor(np.exp(low + (high - low) * rng.random(len(first))) + 1e-9), np.int64)


def _drawn_listed(community: Community, words: Ints, rng: np.random.Generator) -> Ints:
    """Draw how many of each person's words are listed: a beta law around what is usual for so many words."""
    mean = np.clip(community.listed_share(words), 0.001, 0.999)
    variance = np.clip(community.spread**2, 1e-6, 0.9 * mean * (1 - mean))
    strength = mean * (1 - mean) / variance - 1
    share = rng.beta(mean * strength, (1 - mean) * strength)
    return np.asarray(rng.binomial(words, share), np.int64)


def polya_urn(
    base: Floats, written: Ints, concentration: float, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw words for people who wrote so many; return whose each is, and which.

    Person by person, the i-th word is new (from `base`) with probability a / (a + i), or else one of the i before
    it, each equally likely. All people at once: every word points at itself or at an earlier one, and following the
    pointers ends at the new word that it repeats.
    """
    total = int(written.sum())
    owner = np.repeat(np.arange(len(written), dtype=np.int32), written)
    first = np.repeat(np.cumsum(written) - written, written)
    before = np.arange(total) - first
    repeats = np.flatnonzero(rng.random(total) * (concentration + before) >= concentration)
    pointed = rng.random(total)
    word = _drawn(base, rng.random(total))
    if not len(repeats):
        return owner, word
    source = np.arange(total)
    source[repeats] = first[repeats] + (pointed[repeats] * before[repeats]).astype(np.int64)
    while not np.array_equal(further := source[source], source):
        source = further
    return owner, word[source]


def _drawn(base: Floats, draws: Floats) -> NDArray[np.int32]:
    """Return the word that each draw from 0 to 1 stands for, its share as wide as `base` says.

    Between two of many marks there is hardly ever a border: there the word is known without a search.
    """
    if not len(base):
        return np.zeros(len(draws), np.int32)
    borders = np.cumsum(base)
    marks = np.searchsorted(borders, np.arange(MARKS + 1) / MARKS * borders[-1], side="right").astype(
        np.int32
    )
    mark = (draws * MARKS).astype(np.int32)
    word = marks[mark]
    between = np.flatnonzero(word < marks[mark + 1])
    word[between] = np.searchsorted(borders, draws[between] * borders[-1], side="right")
    return np.asarray(np.minimum(word, len(base) - 1), np.int32)
