"""A community becomes the part of a card: safe counts first, then laws from them, then how good it is.

While it is made, some people are held out and a rehearsal is made of the others: the concentration is chosen so that
held-out people have as many made-up people near them as real ones, and what is left of the difference becomes the
interval of everything that is measured with the card.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.cards.laws import ENDLESS, MOST_WORDS, POST_STEPS, WORD_STEPS, Community, ends, step_of
from incrowd.cards.made_up import MadeUp, made_up_people
from incrowd.cards.members import Members, word_shares
from incrowd.cards.noise import Blur, Noise, Private
from incrowd.distances import pair_distances, pairwise
from incrowd.distances.profile_index import Keys, word_keys
from incrowd.errors import InputError
from incrowd.text.options import TextOptions

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Progress = Callable[[float, float | None, str], None]

SMALLEST = 100
"""Communities with fewer people have no card."""
EVERYBODY = "everybody"
"""What the people of all communities together are called."""
ZIPF_RANGE = 6.0
"""Logarithm of how many times commoner the commonest rare words are than the rarest: about 400 times."""
MOST_SHARED = 30.0
"""How many times fewer rare words than by Zipf's law there may be."""
CLEAR_COUNT = 3.5
"""A number of people is told if it is so many times the noise."""
FEWEST_ALIKE = 20
"""Least number of people in a range of lengths."""
MOST_HELD_OUT, FEWEST_HELD_OUT = 150, 20
"""Members held out while the card is made, at most, and at least for an answer."""
PRACTISED_POSTS = (20, 10)
"""They have at least so many posts, the first of these if there are enough of them: half must say something."""
COMPARED_POSTS = 10
"""Those they are compared with have so many."""
OVERSAMPLED = 4
"""How many made-up people are drawn for each there is, where they are only counted."""
COVERED = 0.92
"""Share of held-out people whose true number lies within the interval."""
LEAST_REACH = 1.5
"""Of few held-out people all may happen to fit well."""
UNKNOWN_REACH = 3.0
"""Where nobody was held out: more than was measured for any community of our own."""
UNEVEN = 0.3
"""How far numbers of people differ beyond chance, as a share; the interval's shape, not its width."""
WIDE = 4
"""Steps of words put together where shares are summed up: fewer numbers, more people behind each."""
SHARE_UNIT = 100
"""Shares are summed up in hundredths: noise is added to whole numbers."""


@dataclass(frozen=True, kw_only=True)
class CardOptions:
    """Which communities go into a card, and how safe it is."""

    communities: tuple[str, ...] = ()
    """Their names; none: all people of the crowd as one."""
    k: int = 10
    """A word is listed only if at least so many people use it."""
    epsilon: float | None = None
    """Differentially private with this much privacy loss; None: blurred, which is measured and not proved."""
    delta: float = 1e-6
    words_each: int = 200
    """Over a public background: of one person, at most so many different words count."""
    text: TextOptions = field(default_factory=TextOptions)
    posts_part: float = 1.0
    """Of the privacy loss, what is for posts; the rest is for people's lists of items."""
    leave_out: frozenset[str] = frozenset()
    """People (ids of the store) who are not in it."""
    seed: int = 0
    """Decides who is held out; noise is never seeded."""
    memory: int = 2**30

    def __post_init__(self) -> None:
        if self.k < 2:
            raise InputError(f"--k must be at least 2, got {self.k}")
        if len(set(self.communities)) != len(self.communities):
            raise InputError("--community names a community twice")
        self.noise()

    def noise(self, people: int = SMALLEST) -> Noise:
        """Return what makes the numbers of a community of so many people safe."""
        if self.epsilon is None:
            return Blur(people)
        return Private(self.epsilon, self.delta, self.words_each, self.posts_part)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How well a card of the other members did for those who were held out."""

    people: int
    """Held out, and with enough posts to tell."""
    spearman: float
    same_side: float
    """Share on the same side of ten people."""
    median_exact: float
    median_card: float
    reach: float
    """Half the width of the interval, see :func:`interval`."""


def describe(
    members: Members, options: CardOptions, name: str, progress: Progress | None = None
) -> tuple[Community, Accuracy | None, Noise]:
    """Describe a community so that it may be published."""
    members = members.without(options.leave_out) if options.leave_out else members
    if len(members) < SMALLEST:
        raise InputError(
            f"'{name}' has {len(members):,} people with words: fewer than {SMALLEST} are too few to be published. "
            "Put several communities together, or leave --community out: then everybody counts as one."
        )
    told = progress or (lambda done, total, what: None)
    told(0, 2, f"{name}: counting people")
    noise = options.noise(len(members))
    # Comparing people with each other is not private: a private card goes by Zipf's law alone.
    held = np.zeros(0, np.int64) if noise.facts() is not None else held_out(members, options.seed)
    others = members.only(np.setdiff1d(np.arange(len(members)), held))
    made = safe_statistics(others, options.k, noise, name, held_out=len(held))
    told(1, 2, f"{name}: comparing members held out with made-up people")
    if len(held) < FEWEST_HELD_OUT:
        return made, None, noise
    near = Neighbours.of(members, held, others, made, options.seed)
    alike = near.best_likeness()
    told(2, 2, f"{name}: done")
    return alike.on(made), near.accuracy(alike), noise


def safe_statistics(members: Members, k: int, noise: Noise, name: str, held_out: int = 0) -> Community:
    """Sum up words, lengths and hours, and let only noisy sums out; those held out count as people only."""
    listed, sums = noise.words(word_shares(members.counts), members.vocabulary, k)
    if not len(listed):
        raise InputError(
            f"'{name}': no word is used by enough of its {len(members):,} people to be listed. "
            "Put several communities together, or allow more with a larger --epsilon."
        )
    table, spread = _listed(members, listed, noise)
    people = max(
        float(SMALLEST), float(noise.counts("people", np.array([len(members) + held_out]), reach=1.0)[0])
    )
    counted = max(people - held_out, 1.0)  # never the true number, which noise is to hide
    shares = np.array([float(f"{share:.2g}") for share in np.clip(sums / counted, 1e-7, 1.0)])
    unlisted = 1 - float(table["mean"][table.height // 2])
    return Community(
        people=rounded_people(round(people)),
        words=tuple(members.vocabulary[place] for place in listed.tolist()),
        shares=shares,
        lengths=_lengths(members, noise),
        listed=table,
        spread=spread,
        hours=_hours(members, noise),
        concentration=ENDLESS,
        rare_words=int(float(f"{rare_words(shares, unlisted):.2g}")),
    )


def rounded_people(people: int) -> int:
    """Round a number of people to two digits, to tens at least.

    >>> rounded_people(1234), rounded_people(118)
    (1200, 120)
    """
    step = max(10, 10 ** (len(str(people)) - 2))
    return int(round(people / step) * step)


def _lengths(members: Members, noise: Noise) -> pl.DataFrame:
    """Count people by posts and words, and put ranges of words together until enough people are in each."""
    pairs = (len(WORD_STEPS) + 1) // 2
    table = np.zeros((len(POST_STEPS), pairs), np.int64)
    np.add.at(table, (step_of(members.posts, POST_STEPS), step_of(members.words, WORD_STEPS) // 2), 1)
    told = noise.counts("lengths", table, reach=1.0)
    # Noise in the many empty cells would add up to people who wrote a hundred thousand words.
    told[told < CLEAR_COUNT * noise.spread("lengths", 1.0)] = 0.0
    noisy = np.repeat(told / 2, 2, axis=1)[:, : len(WORD_STEPS)]
    least = max(FEWEST_ALIKE, 4 * noise.spread("lengths", 1.0))
    rows = [(posts, *found) for posts in range(len(POST_STEPS)) for found in ranges(noisy[posts], least)]
    if not rows:
        rows = [(0, 1, 1000, SMALLEST)]
    return pl.DataFrame(rows, schema=["posts_step", "words_from", "words_to", "people"], orient="row")


def ranges(counts: Floats, least: float) -> list[tuple[int, int, int]]:
    """Put neighbouring steps of words together, from the longest on, until each range has at least so many people.

    Returns where ranges begin and end, and how many people are in each. The longest ends where a few have written so
    much: how much the one with the most words wrote is nobody's business. What is left over at the short end joins its
    neighbour.

    >>> ranges(np.array([30.0, 2.0, 25.0, 4.0, 9.0] + [0.0] * 29), 20)
    [(1, 3, 30), (3, 8, 40)]
    """
    found: list[tuple[int, int, int]] = []
    ending = np.flatnonzero(np.cumsum(counts[::-1])[::-1] >= least / 4)
    end = int(ends(WORD_STEPS)[ending[-1]]) if ending.size else 0
    inside = 0.0
    for step in range(len(WORD_STEPS) - 1, -1, -1):
        inside += float(counts[step])
        if inside >= least:
            first = int(WORD_STEPS[step])
            found.append((first, end, round(inside / 5) * 5))
            inside, end = 0.0, first
    if found and inside > 0:
        first, last, people = found.pop()
        found.append((1, last, people + round(inside / 5) * 5))
    return found[::-1]


def _listed(members: Members, listed: Ints, noise: Noise) -> tuple[pl.DataFrame, float]:
    """Return the mean share of listed words of people who wrote about as much, and how far people differ from it."""
    words = members.words
    share = np.asarray(members.counts[:, listed].sum(axis=1)).ravel() / np.maximum(words, 1)
    step = step_of(words, WORD_STEPS) // WIDE * WIDE
    sums = np.zeros((2, len(WORD_STEPS)), np.int64)
    for row, value in enumerate((np.ones(len(share)), share)):
        np.add.at(sums[row], step, np.round(SHARE_UNIT * value).astype(np.int64))
    noisy = noise.counts("listed", sums, reach=SHARE_UNIT * math.sqrt(2)) / SHARE_UNIT
    enough = np.flatnonzero(noisy[0] >= max(60.0, 0.02 * float(noisy[0].sum())))
    if not enough.size:
        enough = np.array([int(noisy[0].argmax())])
    mean = np.clip(noisy[1, enough] / np.maximum(noisy[0, enough], 1.0), 0.02, 0.98).round(2)
    table = pl.DataFrame({"words_step": enough.astype(np.int64), "mean": mean})
    # Only of those who wrote enough that chance hardly moves the share.
    long = words >= WORD_STEPS[enough[len(enough) // 2]]
    expected = np.interp(np.log(words), np.log(WORD_STEPS[enough]) + math.log(2), mean)
    chance = expected * (1 - expected) / np.maximum(words, 1)
    excess = np.clip((share - expected) ** 2 - chance, -1.0, 1.0)[long]
    sums = np.round(SHARE_UNIT * np.array([len(excess), excess.sum()])).astype(np.int64)
    people, squares = noise.counts("spread", sums, reach=SHARE_UNIT * math.sqrt(2)) / SHARE_UNIT
    return table, round(math.sqrt(min(max(squares / max(people, 1.0), 1e-4), 0.06)), 2)


def _hours(members: Members, noise: Noise) -> Floats:
    sums = np.round(SHARE_UNIT * members.hours.sum(axis=0)).astype(np.int64)
    # Somebody's shares add up to 1 and none exceeds it, so they move all hours together by 1 at most; rounding the
    # sum, not the shares, moves it by less than a hundredth more.
    noisy = np.maximum(noise.counts("hours", sums, reach=SHARE_UNIT + math.sqrt(24)), 1.0)
    return np.asarray((noisy / noisy.sum()).round(3))


# The rehearsal


@dataclass(frozen=True)
class Likeness:
    """How like each other people write, as one number: 0 as independent draws do.

    Above 0 they are less alike, because everybody repeats their own words: 1 / concentration. Below 0 they are more
    alike, because they share more of their rare words.
    """

    value: float = 0.0

    def on(self, community: Community) -> Community:
        """Return a community whose people are so alike."""
        if self.value > 0:
            return replace(community, concentration=float(f"{1 / self.value:.2g}"))
        fewer = community.rare_words / (1 + MOST_SHARED * -self.value)
        return replace(community, concentration=ENDLESS, rare_words=max(1, int(float(f"{fewer:.2g}"))))


def rare_words(shares: Floats, unlisted: float) -> int:
    """Return as if how many equally common words the unlisted ones are, from the listed ones.

    By Zipf's law, words with a share above s are as many as c / s, up to the smallest listed share t. The chance that
    two rare words are the same is then t / (m z), where m is the share of rare words altogether and z the logarithm of
    the range of their shares; its inverse is the number looked for.
    """
    least = float(np.quantile(shares, 0.05))
    return int(min(max(unlisted, 0.02) * ZIPF_RANGE / least, MOST_WORDS / 2))


def held_out(members: Members, seed: int) -> Ints:
    """Choose members who stay out of the card, to try it on: some of those with enough posts in either half."""
    first, second = members.halves()
    written = (np.diff(first.indptr) > 0) & (np.diff(second.indptr) > 0)
    for posts in PRACTISED_POSTS:
        able = np.flatnonzero(written & (members.posts >= posts))
        if len(able) >= 4 * MOST_HELD_OUT:
            break
    rng = np.random.default_rng([seed, 1])
    return np.sort(rng.permutation(able)[: min(MOST_HELD_OUT, len(able) // 4)])


@dataclass(frozen=True, eq=False)
class Neighbours:
    """People held out: how many of the others are as near to one half of their posts as the other half is."""

    draft: Community
    vocabulary: tuple[str, ...]
    profiles: sp.csr_matrix
    """Word shares of the first halves."""
    own: Floats
    """How far each person's halves are apart."""
    exact: Ints
    compared: int
    """How many others there are."""
    seed: int

    @classmethod
    def of(cls, members: Members, held: Ints, others: Members, draft: Community, seed: int) -> Neighbours:
        """Compare the halves of those held out with each other and with all others."""
        first, second = (word_shares(half[held]) for half in members.halves())
        own = pair_distances(first, second, np.column_stack([np.arange(len(held))] * 2))
        practised = others.only(others.posts >= COMPARED_POSTS)
        exact = (np.asarray(pairwise(first, word_shares(practised.counts))) <= own[:, None]).sum(axis=1)
        return cls(draft, members.vocabulary, first, np.asarray(own), exact, len(practised), seed)

    def made_up(self, alike: Likeness, crowd: int = 0) -> Floats:
        """Return how many made-up people are as near."""
        community = alike.on(self.draft)
        profiles = on_card(self.profiles, self.keys, community)
        return made_up_within(community, profiles, self.own, min_posts=COMPARED_POSTS, seed=self.seed + crowd)

    @cached_property
    def keys(self) -> Keys:
        """The numbers of the words of the profiles."""
        return word_keys(self.vocabulary)

    def best_likeness(self) -> Likeness:
        """Return the likeness at which made-up and real neighbours are equally many, for half of the people.

        Of those who hide among some, not nearly all: the others would be the same at any likeness.
        """
        some = (self.exact >= 5) & (self.exact <= self.compared / 2)
        if some.sum() < FEWEST_HELD_OUT / 2:
            some = self.exact > 0

        def excess(value: float) -> float:
            made = self.made_up(Likeness(value))
            return float(np.median(np.log((made[some] + 1) / (self.exact[some] + 1)))) if some.any() else 0.0

        low, high = (0.0, 1 / 400) if excess(0.0) > 0 else (-1.0, 0.0)
        for _ in range(7):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return Likeness((low + high) / 2)

    def accuracy(self, alike: Likeness, crowds: int = 4) -> Accuracy:
        """Compare real and made-up neighbours."""
        from scipy.stats import spearmanr

        made, exact = np.stack([self.made_up(alike, crowd + 1) for crowd in range(crowds)]), self.exact
        error = np.abs(np.log((exact + 1) / (made + 1))) / _scale(made)
        return Accuracy(
            people=len(exact),
            spearman=round(float(np.mean([spearmanr(exact, one).statistic for one in made])), 3),
            same_side=round(float(np.mean((exact >= 10) == (made >= 10))), 3),
            median_exact=float(np.median(exact)),
            median_card=float(np.mean(np.median(made, axis=1))),
            reach=round(max(float(np.quantile(error, COVERED)), LEAST_REACH), 2),
        )


def on_card(shares: sp.csr_matrix, keys: Keys, community: Community) -> sp.csr_matrix:
    """Return word shares over a community's words, and in a last column what none of them stands for."""
    place = community.places(keys)
    place = np.where(place >= 0, place, len(community.keys))
    choice = sp.csr_matrix(
        (np.ones(len(place)), (np.arange(len(place)), place)), shape=(len(place), len(community.keys) + 1)
    )
    return sp.csr_matrix(shares @ choice)


def made_up_within(
    community: Community, profiles: sp.csr_matrix, limits: Floats, *, min_posts: int, seed: int
) -> Floats:
    """Return how many people of a community each profile has within its limit, as made-up people suggest.

    Several times as many are drawn as there are, and counted for as many fewer: chance in the drawing would be as
    large as all other errors together.
    """
    size = OVERSAMPLED * community.how_many(min_posts)
    people = made_up_people(community, min_posts=min_posts, people=size, seed=seed)
    return np.asarray(within(profiles, people, limits) / OVERSAMPLED)


def within(profiles: sp.csr_matrix, people: MadeUp, limits: Floats) -> Ints:
    """Count the made-up people that each profile (see :func:`on_card`) has within its limit."""
    # What people share with nobody lies in one column for all of them, which no profile has.
    none = sp.csr_matrix((len(people), 1))
    rows = sp.hstack([people.counts, none, sp.csr_matrix(people.rare.astype(float)[:, None])], format="csr")
    padded = sp.hstack([profiles, sp.csr_matrix((profiles.shape[0], 1))], format="csr")
    return np.asarray((np.asarray(pairwise(padded, word_shares(rows))) <= limits[:, None]).sum(axis=1))


def _scale(people: Any) -> Floats:
    """Return how uncertain the logarithm of a number of people is: chance of few, and unevenness."""
    return np.asarray(np.sqrt(1 / (np.asarray(people, float) + 1) + UNEVEN**2))


def interval(people: Any, reach: float) -> tuple[Floats, Floats]:
    """Return where the number in the real community lies, if a card's made-up people say so many.

    >>> low, high = interval(20.0, 0.0)
    >>> float(low.round(6)), float(high.round(6))
    (20.0, 20.0)
    """
    value = np.asarray(people, float)
    factor = np.exp(reach * _scale(value))
    return np.maximum((value + 1) / factor - 1, 0.0), (value + 1) * factor - 1
