"""What makes a card safe to publish: counts of people leave only with noise, and only if many people are behind them.

Two ways with the same verbs. :class:`Blur` is the default: enough noise that an attack which knows everything but the
people in the card finds out next to nothing about one of them; that is measured (`incrowd card audit`), not proved.
:class:`Private` is differentially private, a proof: everybody's contribution is bounded, noise and accounting are
OpenDP's. Noise comes from the operating system, never from a seed: whoever knew it could take it off again.
"""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.cards.laws import MUCH, Community, rooted_sums, shares_of_rooted
from incrowd.cards.members import word_shares
from incrowd.errors import InputError
from incrowd.opendp_library import OpenDP, least_threshold

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

REACH, LARGEST = 0.06, 0.02
"""Word shares of one person count so far: together (Euclidean), and of one word."""
BLUR = 4.5
"""Noise of the default on what everybody adds to a word, which has length 1 at most for all words of a person together.
docs/explanation/cards.md says how it was chosen."""
BLUR_COUNT = 5.0
"""Noise of the default on counts of people."""
CLEAR = 0.5
"""A word is listed if its noisy sum is so many times the noise: what little many such words tell together helps."""
MORE_PEOPLE = 10
"""The least number of people behind a word is drawn anew for each, so many above k on average: one person more decides
too rarely to show who it was."""
CLEARLY = 8.0
"""So many times the noise, sums are clear of it."""
ADDED = 0.05
"""So much somebody adds to a word that they use, on average (measured on two communities of a public crowd)."""
UNIT = 10_000
"""Shares are counted in ten-thousandths where noise is added to whole numbers."""


MOVED = (UNIT, REACH * UNIT, LARGEST * UNIT)
"""What one person moves, in units: so many words at most, so far together, and so far each."""


def shrunk(noisy: Floats, spread: Floats) -> Floats:
    """Return what noisy sums of listed words are on average: less, as those that noise lifted are listed, too.

    By Tweedie's formula, if sums above s are as many as 1 / s (Zipf's law): noisy + variance times the slope of the log
    density, -2 / noisy.

    >>> shrunk(np.array([2.0]), np.array([1.0])).tolist()
    [1.0]
    """
    return np.asarray(np.maximum(noisy - 2 * spread**2 / noisy, noisy / 4))


def expected_sums(noisy: Floats, spread: float, least: float) -> Floats:
    """Return what noisy sums are on average where sums above s are as many as 1 / s, down to `least` (Zipf's law).

    Where sums are not clear of the noise, as those of rarely used words are not, :func:`shrunk` is far off: there this
    is the mean of the posterior itself, summed up over a grid.

    >>> expected_sums(np.array([5.0, 40.0]), 4.0, 1.0).round(1).tolist()
    [2.8, 39.2]
    """
    noisy = np.asarray(noisy, float)
    sums = np.geomspace(least, max(20 * spread, 2 * least), 400)
    exponents = -((noisy[:, None] - sums) ** 2) / (2 * spread**2) - np.log(sums)
    likely = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return np.where(
        noisy > CLEARLY * spread,
        shrunk(noisy, np.full(len(noisy), spread)),
        likely @ sums / likely.sum(axis=1),
    )


class Noise(ABC):
    """How counts of people become numbers that may leave."""

    @abstractmethod
    def words(self, counts: sp.csr_matrix, names: tuple[str, ...], k: int) -> tuple[Ints, Floats]:
        """Return which words may be listed, and about how large what everybody adds to each is together.

        `counts` has a row for each person: how often they use each word.
        """

    @abstractmethod
    def added(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """Return what each person adds to the sum of each word."""

    @abstractmethod
    def shares(self, sums: Floats, community: Community) -> Floats:
        """Return the mean share of what people write of words that have such sums."""

    @abstractmethod
    def sums(self, community: Community) -> Floats:
        """Return the sums of a community's words again, from their shares: what an attacker does."""

    @abstractmethod
    def counts(self, what: str, values: Ints, *, reach: float) -> Floats:
        """Return counts with noise; `reach` is how far one person moves all of them together (Euclidean)."""

    @abstractmethod
    def word_spread(self, sums: Floats) -> Floats:
        """Return the standard deviation of the noise on sums."""

    @abstractmethod
    def line(self, k: int) -> float:
        """Return the noisy sum from which a word is listed."""

    def likely(self, noisy: Floats, k: int) -> Floats:
        """Return what noisy sums of listed words are on average."""
        return shrunk(noisy, self.word_spread(noisy))

    @abstractmethod
    def spread(self, what: str, reach: float) -> float:
        """Return the standard deviation of the noise that :meth:`counts` adds."""

    def facts(self) -> dict[str, Any] | None:
        """Return what is proved, for the head; None: nothing."""
        return None


@dataclass(frozen=True)
class Blur(Noise):
    """The default: measured, not proved.

    Everybody adds the roots of their counts over the root of how much they wrote: words of the middle, which tell
    people apart, stand out of the same noise better than by their shares, of which the commonest words have most. All
    that one person adds has length 1 at most, and less if they wrote little, from which little is to be learnt.
    """

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(secrets.randbits(128)))

    def words(self, counts: sp.csr_matrix, names: tuple[str, ...], k: int) -> tuple[Ints, Floats]:
        """List words of at least `k` people, and some more, whose noisy sum is above the line."""
        users = np.bincount(counts.indices, minlength=len(names))
        least = k - 1 + self.rng.geometric(1 / (1 + MORE_PEOPLE), len(names))
        sums = np.asarray(self.added(counts).sum(axis=0)).ravel()
        noisy = sums + BLUR * self.rng.standard_normal(len(sums))
        listed = np.flatnonzero((users >= least) & (noisy >= self.line(k)))
        return listed, self.likely(noisy[listed], k)

    def added(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """Return the roots of everybody's counts, each person's with a length of 1 at most."""
        written = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), MUCH)
        return sp.csr_matrix(sp.diags(1 / np.sqrt(written)) @ counts.astype(np.float64).sqrt())

    def shares(self, sums: Floats, community: Community) -> Floats:
        """Return the shares at which people of such lengths would have such sums."""
        return shares_of_rooted(sums / community.people, community)

    def sums(self, community: Community) -> Floats:
        """Return the sums of a community's words again."""
        return rooted_sums(community.shares, community) * community.people

    def word_spread(self, sums: Floats) -> Floats:
        """Return how much noise there is on sums."""
        return np.full(np.shape(sums), BLUR)

    def line(self, k: int) -> float:
        """Return the noisy sum from which a word is listed."""
        return CLEAR * BLUR

    def likely(self, noisy: Floats, k: int) -> Floats:
        """Return what noisy sums are on average, of words of about so many people at least."""
        return expected_sums(noisy, BLUR, ADDED * (k + MORE_PEOPLE))

    def counts(self, what: str, values: Ints, *, reach: float) -> Floats:
        """Add noise to counts."""
        return np.asarray(values + self.spread(what, reach) * self.rng.standard_normal(np.shape(values)))

    def spread(self, what: str, reach: float) -> float:
        """Return how much noise there is."""
        return BLUR_COUNT * reach


SPENT = {
    "people": 0.02,
    "lengths": 0.12,
    "listed": 0.06,
    "spread": 0.02,
    "hours": 0.03,
    "concentration": 0.05,
    "sections": 0.1,
}
"""Parts of the budget, in zero-concentrated terms, which add up; words have the rest."""


@dataclass
class Private(Noise):
    """Differentially private for people: a card with or without one of them is about as likely.

    One person's word shares count as far as `REACH` and `LARGEST`.
    """

    epsilon: float
    delta: float
    words_each: int = 200
    part: float = 1.0
    """Of the budget of a card that tells of people's lists, too: what is for this."""
    spent: dict[str, float] = field(default_factory=dict)
    """What each part cost, in zero-concentrated terms."""

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= 20 or not 0 < self.delta <= 1e-4:
            raise InputError(
                f"--epsilon must be above 0 and at most 20, --delta above 0 and at most 0.0001; got {self.epsilon:g} "
                f"and {self.delta:g}"
            )
        # Half of delta is for words that hardly anybody uses, half for turning the budget into epsilon.
        # A hair less than allowed, so that parts that add up to it do so in floating point, too.
        self.budget = self.part * library().most_rho(self.epsilon, self.delta / 2) * (1 - 1e-9)

    def words(self, counts: sp.csr_matrix, names: tuple[str, ...], k: int) -> tuple[Ints, Floats]:
        """List words whose noisy sum passes a threshold: one that hardly anybody uses does not, and `k` people must."""
        whole = self.added(counts)
        # Rounded down, so that the bounds still hold; shares add up to 1, so that no more than UNIT are above 0.
        whole.data = np.floor(whole.data * UNIT)
        sums = np.asarray(whole.sum(axis=0)).ravel().astype(np.int64)
        scale, threshold = self._word_scale(), round(self.line(k) * UNIT)
        self.spent["words"] = library().threshold_loss(scale, threshold, MOVED)[0]
        listed, noisy = above(sums, scale, threshold)
        return listed, shrunk(noisy, self.word_spread(noisy))

    def added(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """Return shares cut so that nobody counts for more than the bounds."""
        return bounded(word_shares(counts))

    def shares(self, sums: Floats, community: Community) -> Floats:
        """Return mean shares: the sums are of shares."""
        return np.asarray(sums / community.people)

    def sums(self, community: Community) -> Floats:
        """Return the sums of a community's words again."""
        return np.asarray(community.shares * community.people)

    def _word_scale(self) -> float:
        part = 1 - sum(SPENT.values())
        return REACH * UNIT / math.sqrt(2 * part * self.budget)

    def word_spread(self, sums: Floats) -> Floats:
        """Return how much noise there is on sums."""
        return np.full(np.shape(sums), self._word_scale() / UNIT)

    def line(self, k: int) -> float:
        """Return the noisy sum from which a word is listed: one that hardly anybody uses is not, nor one of few."""
        scale = self._word_scale()

        def lost(least: int) -> float:
            return library().threshold_loss(scale, least, MOVED)[1]

        return max(
            least_threshold(lost, self.part * self.delta / 2, above=math.ceil(LARGEST * UNIT)) / UNIT,
            k * LARGEST,
        )

    def counts(self, what: str, values: Ints, *, reach: float) -> Floats:
        """Add as much noise to counts as their part of the budget asks for."""
        scale = self.spread(what, reach)
        self.spent[what] = self.spent.get(what, 0.0) + library().noise_rho(scale, reach)
        flat = np.ravel(values).astype(np.int64)
        return np.array(library().gaussian(scale)(flat.tolist()), np.float64).reshape(np.shape(values))

    def spread(self, what: str, reach: float) -> float:
        """Return how much noise there is."""
        return reach / math.sqrt(2 * SPENT[what] * self.budget)

    def facts(self) -> dict[str, Any]:
        """Return what is proved, for the head."""
        if sum(self.spent.values()) > self.budget / (1 - 1e-9):
            raise AssertionError("a card spends more than its budget")
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": "with or without one person, all of their posts",
            "words_reach": REACH,
            "words_largest": LARGEST,
            "accountant": {
                "kind": "zero-concentrated",
                "library": "OpenDP",
                "rho": self.budget,
                "spent": self.spent,
            },
        }


def bounded(shares: sp.csr_matrix) -> sp.csr_matrix:
    """Return shares cut so that no person counts for more than the bounds."""
    cut = sp.csr_matrix((np.minimum(shares.data, LARGEST), shares.indices, shares.indptr), shape=shares.shape)
    length = np.sqrt(np.asarray(cut.multiply(cut).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(np.minimum(1.0, REACH / np.maximum(length, 1e-12))) @ cut)


def above(sums: Ints, scale: float, threshold: int) -> tuple[Ints, Floats]:
    """Return the places whose sums, with noise, reach a threshold, and these noisy sums, in whole again.

    Values go in by number: a name that holds a NUL would be cut there, and could then stand for another value.
    """
    there = {place: int(sums[place]) for place in np.flatnonzero(sums).tolist()}
    found = library().threshold(scale, threshold)(there)
    listed = np.array(sorted(found), np.int64)
    return listed, np.array([found[place] for place in listed.tolist()], np.float64) / UNIT


class _Library(OpenDP):
    """What cards ask of OpenDP."""

    def __init__(self) -> None:
        super().__init__("a differentially private card")
        opendp = self._opendp
        self._numbered = (
            opendp.map_domain(opendp.atom_domain(T=int), opendp.atom_domain(T=int)),
            opendp.l02inf_distance(opendp.absolute_distance(T=float)),
        )

    def noise_rho(self, scale: float, reach: float) -> float:
        """Return what it costs if one person moves the counts so far."""
        return float(self.gaussian(scale).map(reach))

    def threshold(self, scale: float, threshold: int) -> Any:
        """Return the same for numbered counts, of which only those pass that reach a threshold."""
        return self._opendp.m.make_gaussian_threshold(*self._numbered, scale=scale, threshold=threshold)

    def threshold_loss(
        self, scale: float, threshold: int, moved: tuple[int, float, float]
    ) -> tuple[float, float]:
        """Return the loss, and how probably a value shows that nobody else has.

        One person moves so many values, so far together (Euclidean), and so far each.
        """
        rho, delta = self.threshold(scale, threshold).map(moved)
        return float(rho), float(delta)


@cache
def library() -> _Library:
    """Return OpenDP's measurements."""
    return _Library()
