"""A community becomes the part of a card: safe counts first, then laws from them, then how good it is.

While it is made, some people are held out of the words: for them, and for people from elsewhere, real distances are
compared with distances to made-up people (the correction), and how far counts are off all the same becomes the interval
of everything that is measured with the card.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.cards.laws import (
    AS_IT_IS,
    ENDLESS,
    POST_STEPS,
    WORD_STEPS,
    Community,
    Correction,
    ends,
    step_of,
)
from incrowd.cards.made_up import MadeUp, made_up_people
from incrowd.cards.members import Members, WordCounts, read_elsewhere, word_shares
from incrowd.cards.noise import Blur, Noise, Private
from incrowd.distances import pair_distances, pairwise
from incrowd.distances.profile_index import Keys
from incrowd.errors import InputError
from incrowd.statistics import spearman
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Progress = Callable[[float, float | None, str], None]

SMALLEST = 100
"""Communities with fewer people have no card."""
EVERYBODY = "everybody"
"""What the people of all communities together are called."""
CLEAR_COUNT = 3.5
"""A number of people is told if it is so many times the noise."""
CLEAR_SHARE = 30
"""A mean share is told if its people are so many times the noise: then it is off by about 0.04."""
FEWEST_ALIKE = 40
"""Least number of people in a range of lengths."""
MOST_HELD_OUT, FEWEST_HELD_OUT = 75, 20
"""Members held out while the card is made, at most, and at least for an answer."""
MOST_TRIED = 400
"""Members who are in the card, to whom the correction is fitted, at most."""
COMPARED_POSTS = 10
"""All these, and those they are compared with, have at least so many posts."""
MOST_ELSEWHERE = 300
"""People from elsewhere with whom it is tried, too, at most."""
MOST_MOVED = 0.25
"""Nobody who is asked about moves the correction by more than so much, as a part of how uncertain it is."""
CORRECTION_NOISE = 3.0
"""Noise on the correction, as a part of how uncertain it is: hardly anybody who asks or is a neighbour shows in it."""
FITTINGS = 6
"""Rounds of fitting and of weighing down whoever moves it by more."""
RANKS = (3, 4, 6, 8, 11, 15, 20, 28, 40, 55, 75, 100, 140, 200, 280, 400, 560)
"""The correction is fitted to the distances of the so manieth nearest people, as far as these are a third of all."""
OVERSAMPLED = 8
"""How many made-up people are drawn for each there is, where they are only counted."""
COUNTED = 16_000
"""At least so many are drawn where single people's numbers are counted: chance in drawing few would count, too."""
COVERED = (0.88, 0.9, 0.92, 0.94, 0.96)
"""Share of held-out people whose true number lies within the interval, on average over these: one would rest on few.
Higher than nine in ten, because those held out are few."""
LEAST_REACH = 2.6
"""Of few held-out people all may happen to fit well."""
UNKNOWN_REACH = 4.0
"""Where nobody was held out: more than was measured for any community of our own."""
UNEVEN = 0.2
"""How far numbers of people differ beyond chance, as a share; the interval's shape, not its width."""
WIDE = 4
"""Steps of words put together where shares are summed up: fewer numbers, more people behind each."""
SHARE_UNIT = 100
"""Shares are summed up in hundredths: noise is added to whole numbers."""
MOST_SPREAD = 0.06
"""So far somebody counts whose listed share is off the mean, squared: what one may move, the noise has to hide."""
LEAST_SPREAD = 1 / 600
"""Of that, the least: a hundredth."""


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

    def noise(self) -> Noise:
        """Return what makes the numbers of a community safe."""
        if self.epsilon is None:
            return Blur()
        return Private(self.epsilon, self.delta, self.words_each, self.posts_part)


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How well a card of the other members did for those who were held out; rounded, as these are few."""

    people: int
    """Held out, and with enough posts to tell."""
    spearman: float | None
    """None: everybody has as many."""
    same_side: float
    """Share on the same side of ten people."""
    median_exact: float
    median_card: float
    reach: float
    """Half the width of the interval, see :func:`interval`."""


def describe(
    members: Members,
    options: CardOptions,
    name: str,
    progress: Progress | None = None,
    elsewhere: WordCounts | None = None,
) -> tuple[Community, Accuracy | None, Noise]:
    """Describe a community so that it may be published; people from elsewhere, if there are any, help to correct it."""
    members = members.without(options.leave_out) if options.leave_out else members
    if len(members) < SMALLEST:
        raise InputError(
            f"'{name}' has {len(members):,} people with words: fewer than {SMALLEST} are too few to be published. "
            "Put several communities together, or leave --community out: then everybody counts as one."
        )
    told = progress or (lambda done, total, what: None)
    told(0, 2, f"{name}: counting people")
    noise = options.noise()
    # Comparing people with each other is not private: a private card has no correction.
    held = np.zeros(0, np.int64) if noise.facts() is not None else held_out(members, options.seed)
    made = safe_statistics(members, options.k, noise, name, held)
    told(1, 2, f"{name}: comparing members held out with made-up people")
    # Noise may have left nobody with as many posts as those held out.
    if len(held) < FEWEST_HELD_OUT or made.how_many(COMPARED_POSTS) < 1:
        return made, None, noise
    corrected, accuracy = rehearsed(members, held, elsewhere, made, options.seed)
    told(2, 2, f"{name}: done")
    return corrected, accuracy, noise


def people_elsewhere(crowd: Crowd, community: str, options: CardOptions) -> WordCounts | None:
    """Read people of a crowd who do not write in a community, for :func:`describe`; a private card takes none."""
    if options.epsilon is not None:
        return None
    return read_elsewhere(
        crowd,
        community,
        options.text,
        most=MOST_ELSEWHERE,
        min_posts=COMPARED_POSTS,
        leave_out=options.leave_out,
        seed=options.seed,
    )


def safe_statistics(members: Members, k: int, noise: Noise, name: str, held: Ints | None = None) -> Community:
    """Sum up words, lengths and hours, and let only noisy sums out; words of those held out do not count."""
    rest = np.setdiff1d(np.arange(len(members)), np.zeros(0, np.int64) if held is None else held)
    listed, sums = noise.words(members.counts[rest], members.vocabulary, k)
    if not len(listed):
        raise InputError(
            f"'{name}': no word is used by enough of its {len(members):,} people to be listed. "
            "Put several communities together, or allow more with a larger --epsilon."
        )
    table, spread = _listed(members, listed, noise)
    people = max(float(SMALLEST), float(noise.counts("people", np.array([len(members)]), reach=1.0)[0]))
    without_words = Community(
        people=rounded_people(round(people)),
        words=tuple(members.vocabulary[place] for place in listed.tolist()),
        shares=np.ones(len(listed)),
        lengths=_lengths(members, noise),
        listed=table,
        spread=spread,
        hours=_hours(members, noise),
        concentration=ENDLESS,
    )
    # Those whose words count are never the true number, which noise is to hide.
    counted = max(people - len(members) + len(rest), 1.0)
    shares = noise.shares(sums * without_words.people / counted, without_words)
    return replace(
        without_words, shares=np.array([float(f"{share:.2g}") for share in np.clip(shares, 1e-7, 1.0)])
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
    cells = (len(WORD_STEPS) + WIDE - 1) // WIDE
    table = np.zeros((len(POST_STEPS), cells), np.int64)
    np.add.at(table, (step_of(members.posts, POST_STEPS), step_of(members.words, WORD_STEPS) // WIDE), 1)
    told = noise.counts("lengths", table, reach=1.0)
    # Noise in the many empty cells would add up to people who wrote a hundred thousand words.
    told[told < CLEAR_COUNT * noise.spread("lengths", 1.0)] = 0.0
    noisy = np.repeat(told / WIDE, WIDE, axis=1)[:, : len(WORD_STEPS)]
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
    off = noise.spread("listed", SHARE_UNIT * math.sqrt(2)) / SHARE_UNIT
    enough = np.flatnonzero(noisy[0] >= max(60.0, 0.02 * float(noisy[0].sum()), CLEAR_SHARE * off))
    if not enough.size:
        enough = np.array([int(noisy[0].argmax())])
    mean = np.clip(noisy[1, enough] / np.maximum(noisy[0, enough], 1.0), 0.02, 0.98).round(2)
    table = pl.DataFrame({"words_step": enough.astype(np.int64), "mean": mean})
    # Only of those who wrote enough that chance hardly moves the share.
    long = words >= WORD_STEPS[enough[len(enough) // 2]]
    expected = np.interp(np.log(words), np.log(WORD_STEPS[enough]) + math.log(2), mean)
    chance = expected * (1 - expected) / np.maximum(words, 1)
    excess = np.clip(((share - expected) ** 2 - chance) / MOST_SPREAD, -1.0, 1.0)[long]
    sums = np.round(SHARE_UNIT * np.array([len(excess), excess.sum()])).astype(np.int64)
    people, squares = noise.counts("spread", sums, reach=SHARE_UNIT * math.sqrt(2)) / SHARE_UNIT
    return table, round(math.sqrt(MOST_SPREAD * min(max(squares / max(people, 1.0), LEAST_SPREAD), 1.0)), 2)


def _hours(members: Members, noise: Noise) -> Floats:
    sums = np.round(SHARE_UNIT * members.hours.sum(axis=0)).astype(np.int64)
    # Somebody's shares add up to 1 and none exceeds it, so they move all hours together by 1 at most; rounding the
    # sum, not the shares, moves it by less than a hundredth more.
    noisy = np.maximum(noise.counts("hours", sums, reach=SHARE_UNIT + math.sqrt(24)), 1.0)
    return np.asarray((noisy / noisy.sum()).round(3))


# The rehearsal


def held_out(members: Members, seed: int) -> Ints:
    """Choose members whose words stay out of the card, to try it on."""
    chosen = able(members, seed)
    return np.sort(chosen[: min(MOST_HELD_OUT, len(chosen) // 4)])


def able(members: Members, seed: int) -> Ints:
    """Return, in an order by lot, members with enough posts, and words in either half of them."""
    first, second = members.halves()
    written = (np.diff(first.indptr) > 0) & (np.diff(second.indptr) > 0)
    enough = np.flatnonzero(written & (members.posts >= COMPARED_POSTS))
    return np.random.default_rng([seed, 1]).permutation(enough)


def rehearsed(
    members: Members, held: Ints, elsewhere: WordCounts | None, draft: Community, seed: int
) -> tuple[Community, Accuracy]:
    """Correct a community so that as many made-up as real people are near, then try it on those held out.

    The correction is fitted to members and to people from elsewhere. Members who are in the card will do: what one of
    them adds to it is far below the noise. How good it is, those held out tell: how many people are as near to one half
    of their posts as the other half is?
    """
    _, there = compared(members)
    asked_about = np.setdiff1d(able(members, seed)[: len(held) + MOST_TRIED], held)
    found = [asking(members, asked_about, draft, seed)]
    if elsewhere is not None and len(elsewhere) > 0:
        others = word_shares(elsewhere.counts)
        asked = ProfileDistances.of(others, elsewhere.keys, draft, seed + 2)
        real = np.asarray(pairwise(*together(others, elsewhere.vocabulary, there, members.vocabulary)))
        found.append(asked.terms_at(real, told_near(draft)))
    terms, distances = (np.concatenate([one[part] for one in found]) for part in (0, 1))
    community = replace(draft, correction=CorrectionFit.of(terms, distances).noisy())
    halves = [word_shares(half) for half in members.halves()]
    profiles = sp.vstack([halves[0][held], halves[1][held]], format="csr")
    own = np.tile(
        pair_distances(halves[0][held], halves[1][held], np.column_stack([np.arange(len(held))] * 2)), 2
    )
    exact = (apart(profiles, np.tile(held, 2), members) <= own[:, None]).sum(axis=1)
    asked = ProfileDistances.of(profiles, members.keys, community, seed + 3, at_least=COUNTED)
    return community, _accuracy(exact, made_up_near(community, asked, own, COMPARED_POSTS), len(held))


def compared(members: Members) -> tuple[Ints, sp.csr_matrix]:
    """Return those with enough posts to be somebody's neighbours, and what they write."""
    practised = np.flatnonzero(members.posts >= COMPARED_POSTS)
    return practised, word_shares(members.counts[practised])


def apart(profiles: sp.csr_matrix, who: Ints, members: Members) -> Floats:
    """Return how far profiles of members are from all others with enough posts."""
    practised, there = compared(members)
    real = np.asarray(pairwise(profiles, there))
    real[practised == who[:, None]] = np.inf  # nobody is their own neighbour
    return real


def told_near(draft: Community) -> int:
    """Return among how many people the near ones are: as the card says, not in truth.

    So what noise did to that number is corrected, too.
    """
    return max(draft.how_many(COMPARED_POSTS), 1)


def ranks_among(people: int) -> list[int]:
    """Return the ranks of neighbours that the correction is fitted to."""
    return [rank for rank in RANKS if rank < people / 3] or [1]


def asking(members: Members, who: Ints, draft: Community, seed: int) -> tuple[Floats, Floats]:
    """Return what the correction is fitted to: terms and real distances of some members (one half of their posts)."""
    profiles = word_shares(members.halves()[0][who])
    asked = ProfileDistances.of(profiles, members.keys, draft, seed + 1)
    return asked.terms_at(apart(profiles, who, members), told_near(draft))


@dataclass(frozen=True, eq=False)
class CorrectionFit:
    """The correction before noise, and how uncertain it is."""

    weights: Floats
    spread: Floats
    """Covariance of the weights, by how far each profile that asked moved them."""
    basis: Floats
    """The weights of these are those of the correction, whose terms nearly depend on each other."""

    @classmethod
    def of(cls, terms: Floats, distances: Floats) -> CorrectionFit:
        """Fit by least squares so that nobody who is asked about shows.

        For each profile that asks, and each rank: the terms of the correction, and the real distance. Each profile
        moves the weights by some amount; all of these together tell how uncertain the weights are. A profile that would
        move them by more than :data:`MOST_MOVED` of that counts for less.
        """
        _, sizes, axes = np.linalg.svd(terms.reshape(-1, terms.shape[-1]), full_matrices=False)
        kept = sizes > 1e-7 * sizes[0]
        basis = axes[kept].T / sizes[kept]
        turned = terms @ basis
        counts = np.ones(len(terms))
        for _ in range(FITTINGS):
            weighed = turned * counts[:, None, None]
            curvature = np.einsum("ari,arj->ij", weighed, turned)
            weights = np.linalg.solve(curvature, np.einsum("ari,ar->i", weighed, distances))
            off = distances - turned @ weights
            moves = np.linalg.solve(curvature, np.einsum("ari,ar->ia", weighed, off)).T
            spread = moves.T @ moves
            counts *= np.minimum(1.0, MOST_MOVED / np.maximum(lengths_in(moves, spread), 1e-12))
        return cls(weights, spread, basis)

    def noisy(self, rng: np.random.Generator | None = None) -> Correction:
        """Return the correction as it may be published."""
        rng = rng or np.random.default_rng(secrets.randbits(128))
        told = self.basis @ rng.multivariate_normal(self.weights, self.noise, method="eigh")
        return Correction(tuple(float(f"{weight:.6g}") for weight in told))

    @property
    def noise(self) -> Floats:
        """Covariance of the noise."""
        return CORRECTION_NOISE**2 * self.spread

    def turned(self, correction: Correction) -> Floats:
        """Return a published correction in the terms of :attr:`basis`."""
        return np.asarray(np.linalg.lstsq(self.basis, np.array(correction.weights), rcond=None)[0])


def lengths_in(moves: Floats, spread: Floats) -> Floats:
    """Return how long each row is, where noise of that covariance has length one in every direction."""
    inverse = np.linalg.pinv(spread, hermitian=True)
    return np.asarray(np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", moves, inverse, moves), 0.0)))


def _accuracy(exact: Ints, made: Floats, people: int) -> Accuracy:
    """Compare real and made-up neighbours."""
    error = np.abs(np.log((exact + 1) / (made + 1))) / _scale(made)
    alike = spearman(exact, made)
    return Accuracy(
        people=people,
        spearman=None if math.isnan(alike) else round(alike, 2),
        same_side=round(float(np.mean((exact >= 10) == (made >= 10))), 2),
        median_exact=float(f"{np.median(exact):.2g}"),
        median_card=float(f"{np.median(made):.2g}"),
        reach=math.ceil(10 * max(float(np.quantile(error, COVERED).mean()), LEAST_REACH)) / 10,
    )


@dataclass(frozen=True, eq=False)
class ProfileDistances:
    """Some profiles, and how far made-up people of a community are from each."""

    made_up: Floats
    """Profiles down, made-up people across."""
    different: Ints
    """How many different words each has."""
    listed: Floats
    """Which share of its words is listed."""

    @classmethod
    def of(
        cls,
        shares: sp.csr_matrix,
        keys: Keys,
        community: Community,
        seed: int,
        min_posts: int = COMPARED_POSTS,
        at_least: int = 0,
    ) -> ProfileDistances:
        """Make up people, several times as many as there are: chance in drawing them would count, too."""
        profiles = on_card(shares, keys, community)
        size = max(OVERSAMPLED * community.how_many(min_posts), at_least)
        people = made_up_people(community, min_posts=min_posts, people=size, seed=seed)
        listed = np.asarray(profiles[:, : len(community.words)].sum(axis=1)).ravel()
        return cls(distances_to(profiles, people), np.diff(shares.indptr), listed)

    def laws(self) -> tuple[Floats, Floats, Ints, Floats]:
        """Return what the correction goes by, a value for each profile."""
        return self.made_up.mean(axis=1), self.made_up.std(axis=1), self.different, self.listed

    def terms_at(self, real: Floats, people: int) -> tuple[Floats, Floats]:
        """Return the terms of the correction at some ranks of made-up distances, and the real distances there.

        A row for each profile, and in it one for each rank.
        """
        ranks = ranks_among(min(people, real.shape[1]))
        near = np.sort(real, axis=1)[:, [rank - 1 for rank in ranks]]
        alike = np.quantile(self.made_up, [(rank - 0.5) / people for rank in ranks], axis=1).T
        laws = (np.asarray(law)[:, None] for law in self.laws())
        return AS_IT_IS.terms(alike, *laws), near


def together(
    a: sp.csr_matrix, a_words: Sequence[str], b: sp.csr_matrix, b_words: Sequence[str]
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return rows over two vocabularies over one."""
    place = {word: at for at, word in enumerate(b_words)}
    for word in a_words:
        place.setdefault(word, len(place))
    columns = np.array([place[word] for word in a_words], np.int64)
    # A copy: sorting moves the numbers, too, and those of `a` are its own.
    moved = sp.csr_matrix((a.data.copy(), columns[a.indices], a.indptr), shape=(a.shape[0], len(place)))
    moved.sort_indices()
    return moved, sp.csr_matrix((b.data, b.indices, b.indptr), shape=(b.shape[0], len(place)))


def on_card(shares: sp.csr_matrix, keys: Keys, community: Community) -> sp.csr_matrix:
    """Return word shares over a community's words, and in a last column what none of them stands for."""
    place = community.places(keys)
    place = np.where(place >= 0, place, len(community.keys))
    choice = sp.csr_matrix(
        (np.ones(len(place)), (np.arange(len(place)), place)), shape=(len(place), len(community.keys) + 1)
    )
    return sp.csr_matrix(shares @ choice)


def made_up_near(community: Community, asked: ProfileDistances, limits: Floats, min_posts: int) -> Floats:
    """Return how many people of a community each profile has within its limit, as made-up people suggest."""
    within = community.correction.made_up_limit(limits, *asked.laws())
    near = (asked.made_up <= within[:, None]).sum(axis=1)
    return np.asarray(near * community.how_many(min_posts) / max(asked.made_up.shape[1], 1))


def distances_to(profiles: sp.csr_matrix, people: MadeUp) -> Floats:
    """Return how far made-up people are from profiles (see :func:`on_card`)."""
    # What people share with nobody lies in one column for all of them, which no profile has.
    none = sp.csr_matrix((len(people), 1))
    rows = sp.hstack([people.counts, none, sp.csr_matrix(people.rare.astype(float)[:, None])], format="csr")
    padded = sp.hstack([profiles, sp.csr_matrix((profiles.shape[0], 1))], format="csr")
    return np.asarray(pairwise(padded, word_shares(rows)))


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
