"""A private card over a public background: which words there are is public, how many people use them is told.

Naming words costs a private card most: a word shows only if far more people use it than the noise might add. If the
words come from a corpus that anybody may publish, none has to be named. Noise is added to how many people use each
public word; where the noise drowns the number, words are counted in groups, and the corpus tells them apart. No word
that only the people use is in such a card, and a number of theirs only where, noise and all, at least k people are
behind it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.cards.laws import ENDLESS, Community, unused
from incrowd.cards.made_up import made_up_people
from incrowd.cards.make import CardOptions, safe_statistics
from incrowd.cards.members import Members
from incrowd.cards.noise import SPENT, Private, library
from incrowd.errors import InputError
from incrowd.text.options import TextOptions
from incrowd.text.tokeniser import Tokeniser

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FEWEST_COMMUNITIES = 3
"""A background word is one that so many communities of the corpus use: no names of somebody's friends."""
CLEAR = 4.0
"""So many times the noise above k, a number is taken to be of at least k people."""
TOGETHER = 300
"""So many words that noise drowns are counted together."""
FEWEST_USERS = 0.5
"""People, for words that hardly anybody uses."""
MOST_DIFFERENT = 1_000
"""A person's different words count up to here when it is fitted how repetitive people are."""
EASED = 10.0
"""Concentration, times that which fits the number of different words: see :func:`repetitive_as`."""


@dataclass(frozen=True, eq=False)
class Background:
    """The words of a public corpus, and how often each is written."""

    words: tuple[str, ...]
    shares: Floats
    """Adds up to 1."""

    @classmethod
    def of(cls, texts: pl.Series, communities: Iterable[str], options: TextOptions) -> Background:
        """Count the words of public texts; every community counts the same, however much is of it."""
        tokeniser = Tokeniser(options)
        tokens = tokeniser.numbers(texts)
        names, place = np.unique(np.asarray(list(communities)), return_inverse=True)
        owner = np.repeat(place, tokens.lengths)
        vocabulary = tokeniser.vocabulary()
        shape = (len(names), len(vocabulary))
        counted = sp.coo_matrix((np.ones(len(owner)), (owner, tokens.numbers)), shape=shape).tocsr()
        total = np.maximum(np.asarray(counted.sum(axis=1)).ravel(), 1.0)
        shares = np.asarray((sp.diags(1 / total) @ counted).mean(axis=0)).ravel()
        common = np.flatnonzero(np.bincount(counted.indices, minlength=shape[1]) >= FEWEST_COMMUNITIES)
        words = vocabulary.gather(common.tolist())
        order = words.arg_sort().to_numpy()
        kept = shares[common][order]
        return cls(tuple(words.gather(order.tolist()).to_list()), kept / kept.sum())


@dataclass
class OverBackground(Private):
    """Differentially private, over public words; nothing is spent on naming them."""

    background: Background | None = None

    def words(self, counts: sp.csr_matrix, names: tuple[str, ...], k: int) -> tuple[Ints, Floats]:
        """Return the public words, which have to be among the names, and about how many people use each."""
        if self.background is None:
            raise ValueError("a card over a background needs the background")
        place_of = {name: place for place, name in enumerate(names)}
        public = np.array([place_of[word] for word in self.background.words], np.int64)
        reach = math.sqrt(self.words_each)
        scale = reach / math.sqrt(2 * (1 - sum(SPENT.values())) * self.budget)
        self.spent["words"] = library().noise_rho(scale, reach)
        users = _users(sp.csr_matrix(counts[:, public]), self.background.shares, self.words_each)
        noisy = np.array(library().gaussian(scale)(users.tolist()), np.float64)
        return public, blended(noisy, scale, self.background.shares, k)

    def shares(self, sums: Floats, community: Community) -> Floats:
        """Return shares of what is written: the sums are how many people use a word."""
        return shares_from_users(np.clip(sums / community.people, 1e-7, 0.99), community)


def _users(used: sp.csr_matrix, shares: Floats, most: int) -> Ints:
    """Count who uses each word; of a person, only so many words count, those that are commonest in the background.

    The order is public, so what one person adds stays bounded; words that noise would drown anyway go first.
    """
    order = np.argsort(-shares, kind="stable")
    rows = sp.csr_matrix(used[:, order])
    rows.sort_indices()
    place = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], np.diff(rows.indptr))
    users = np.zeros(len(shares), np.int64)
    users[order] = np.bincount(rows.indices[place < most], minlength=len(shares))
    return users


def blended(noisy: Floats, scale: float, shares: Floats, k: int) -> Floats:
    """Return how many people use each word: as the people say where they are clearly many, else as the background.

    Words whose number noise drowns are taken together, :data:`TOGETHER` of about the same share in the background: how
    many people use them on average is clear again, and the background tells them apart.
    """
    clear = noisy >= k + CLEAR * scale
    if not clear.any():
        raise InputError("the noise drowns every word; allow a larger --epsilon, or put more people together")
    users = np.array(noisy)
    drowned = np.flatnonzero(~clear)
    ordered = drowned[np.argsort(-shares[drowned], kind="stable")]
    for group in np.array_split(ordered, max(1, len(ordered) // TOGETHER)):
        average = max(float(noisy[group].mean()), FEWEST_USERS)
        users[group] = average * shares[group] / shares[group].mean()
    return np.where(clear, users, np.clip(users, FEWEST_USERS, k + CLEAR * scale))


def describe_over(
    members: Members, background: Background, options: CardOptions, name: str
) -> tuple[Community, Private]:
    """Describe a community over a public background; whatever is told of its people went through the noise."""
    if options.epsilon is None:
        raise InputError("--background goes with --epsilon: without it words are named as they are")
    noise = OverBackground(options.epsilon, options.delta, options.words_each, background=background)
    members = _with_words(members, background.words)
    made = safe_statistics(members, options.k, noise, name)
    return repetitive_as(members, made, noise), noise


def shares_from_users(users: Floats, community: Community) -> Floats:
    """Return the share of what people write that words have which so many people use, by the laws of lengths."""
    grid = np.exp(np.linspace(math.log(1e-8), math.log(0.9), 600))
    lengths = community.lengths
    length = np.sqrt(lengths["words_from"].to_numpy() * lengths["words_to"].to_numpy())
    written, place = np.unique(np.round(length * community.listed_share(length)), return_inverse=True)
    weight = np.bincount(place, lengths["people"].to_numpy()) / float(lengths["people"].sum())
    used = (1 - unused(grid[:, None], np.maximum(written, 1.0)[None, :], ENDLESS)) @ weight
    # Strictly rising but for rounding at its upper end, where everybody uses the word.
    rising = np.maximum.accumulate(used) + np.arange(len(grid)) * 1e-12
    return np.asarray(np.exp(np.interp(np.log(users), np.log(rising), np.log(grid))))


def _with_words(members: Members, words: tuple[str, ...]) -> Members:
    """Return the same people, with room for words that none of them uses."""
    known = set(members.vocabulary)
    more = tuple(word for word in words if word not in known)
    empty = sp.csr_matrix((len(members), len(more)), dtype=members.counts.dtype)
    counts, first = (sp.hstack([rows, empty], format="csr") for rows in (members.counts, members.first))
    return replace(members, counts=counts, first=first, vocabulary=(*members.vocabulary, *more))


def repetitive_as(members: Members, community: Community, noise: Private) -> Community:
    """Choose the concentration at which made-up people use about as many different words as real ones.

    Only the sum of everybody's different words is told. Fitted to it alone, people are too repetitive where distances
    are concerned: the concentration is :data:`EASED`.
    """
    place_of = {word: place for place, word in enumerate(members.vocabulary)}
    listed = sp.csr_matrix(members.counts[:, [place_of[word] for word in community.words]])
    different = np.minimum(np.diff(listed.indptr), MOST_DIFFERENT)
    told = noise.counts("concentration", np.array([different.sum()]), reach=float(MOST_DIFFERENT))
    wanted = float(told[0]) / community.people

    def too_many(concentration: float) -> bool:
        made = made_up_people(replace(community, concentration=concentration), people=600, seed=1)
        return float(np.minimum(np.diff(made.counts.indptr), MOST_DIFFERENT).mean()) > wanted

    if not too_many(ENDLESS):
        return community
    low, high = math.log(100), math.log(1e6)
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (low, middle) if too_many(math.exp(middle)) else (middle, high)
    return replace(community, concentration=float(f"{EASED * math.exp((low + high) / 2):.2g}"))
