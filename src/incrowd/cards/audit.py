"""Does a card tell who is in it? Membership inference against cards made with and without a person.

The attacker knows every word of the person, how cards are made and how much noise is in them, and has as many other
people of the same community to compare with: everything but who is in the card. For each word, and for each range of
lengths, they compare how likely what the card says is with and without the person (a likelihood ratio, the best test
there is where noise is independent), and add that up. Words that are not listed count as well: their sums lay below the
line.

The correction is attacked by itself and together with words and lengths: by how far the person would move its weights,
as somebody who is asked about and as a neighbour of others, against its noise and against chance in who else is in the
card. Beside it stands what no attacker can surpass: how far it moves when nobody but one person goes (`moved`).

*Advantage* is how much more often the attacker says "in the card" of those who are than of those who are not: 0 is
guessing, 1 is certainty. Where the attacker draws the line for one half of the cards is learnt from the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr
from scipy.stats import t

from incrowd.cards import noise as noises
from incrowd.cards.laws import POST_STEPS, Community, Correction, step_of
from incrowd.cards.make import (
    COMPARED_POSTS,
    MOST_MOVED,
    MOST_TRIED,
    SMALLEST,
    CardOptions,
    CorrectionFit,
    ProfileDistances,
    able,
    apart,
    asking,
    compared,
    lengths_in,
    ranks_among,
    safe_statistics,
    told_near,
)
from incrowd.cards.members import Members, word_shares
from incrowd.cards.noise import Noise
from incrowd.distances import pairwise
from incrowd.errors import InputError
from incrowd.statistics import auc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Progress = Callable[[float, float | None, str], None]
Trial = tuple[Floats, NDArray[np.bool_]]
"""The scores of some people, and who of them is in the card."""
MOVED_A_CARD = 10
"""So many people leave each card, one by one."""
SEED = 0
"""Of whom a card is fitted to: not secret."""


@dataclass(frozen=True, kw_only=True)
class Advantage:
    """What the attacker reaches against one kind of people."""

    people: int
    advantage: float
    interval: tuple[float, float]
    """Where it lies, 95 of 100 times, over other cards and people."""
    auc: float
    """How often somebody in the card scores higher than somebody who is not; 0.5 is guessing."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """How far the correction moves when one person leaves and all others stay, as a part of its noise."""

    people: int
    median: float
    largest: float
    advantage: float
    """What somebody reaches against the one who moves it most, who knows everybody else and every number but noise."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """How well membership in a card can be told."""

    community: str
    cards: int
    members: int
    """People in each card."""
    ordinary: Advantage
    """Members as they are."""
    rarest: Advantage
    """The same people, writing nothing but the rarest words that cards list."""
    correction: Advantage | None
    """Members as they are, by the weights of the correction alone; None: private cards do not have it from people."""
    together: Advantage | None
    """The same by words, lengths and the correction."""
    moved: Moved | None
    """How far one person moves the weights."""

    @property
    def attacks(self) -> dict[str, Advantage]:
        """Every attack that was tried, by what it goes by."""
        tried = {
            "members, by words and lengths": self.ordinary,
            "with the rarest words": self.rarest,
            "members, by the correction": self.correction,
            "members, by all of it": self.together,
        }
        return {by: found for by, found in tried.items() if found is not None}

    @property
    def worst(self) -> float:
        """The largest advantage over guessing."""
        return max(0.0, *(found.advantage for found in self.attacks.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return what `incrowd card audit --json` prints."""
        return asdict(self)


def audit_community(
    members: Members,
    options: CardOptions,
    name: str,
    *,
    cards: int = 40,
    planted: int = 40,
    seed: int = 0,
    progress: Progress | None = None,
) -> Audit:
    """Make cards of halves of a community with planted people, and attack each.

    Parameters
    ----------
    planted
        People planted in each trial, half of each kind; half of them are in the card.
    """
    if len(members) < 2 * SMALLEST + planted:
        raise InputError(
            f"'{name}' has {len(members):,} people with words; an audit splits them and needs {2 * SMALLEST + planted}"
        )
    rng = np.random.default_rng([seed, 4])
    scores: dict[bool, list[Trial]] = {False: [], True: []}
    by_correction: list[Trial] = []
    both: list[Trial] = []
    moved: list[Floats] = []
    size = 0
    for card in range(cards):
        if progress:
            progress(card, cards, f"{name}: making and attacking cards")
        order = rng.permutation(len(members))
        people, reference, rest = _three_parts(order, planted)
        known = members.only(reference)
        for rare in (False, True):
            chosen = members.only(people[: planted // 2] if not rare else people[planted // 2 :])
            inside = rng.permutation(len(chosen)) < len(chosen) // 2
            if rare:
                chosen = with_rarest_words(chosen, known, options, rng)
            inner = joined(members.only(rest), chosen.only(inside))
            noise = options.noise()
            published = safe_statistics(inner, options.k, noise, name)
            found = MembershipAttack(published, known, options).scores(chosen)
            size = len(inner)
            if not rare and noise.facts() is None and published.how_many(COMPARED_POSTS) > 1:
                attack = CorrectionAttack(published, known)
                asked = able(inner, SEED)[:MOST_TRIED]
                fit = CorrectionFit.of(*asking(inner, asked, published, SEED))
                more = attack.scores(chosen, fit.noisy())
                by_correction.append((more, inside))
                both.append((found + more, inside))
                moved.append(attack.moved(inner, fit, np.random.default_rng([seed, 5, card]), MOVED_A_CARD))
            scores[rare].append((found, inside))
    return Audit(
        community=name,
        cards=cards,
        members=size,
        ordinary=advantage_of(scores[False]),
        rarest=advantage_of(scores[True]),
        correction=advantage_of(by_correction) if by_correction else None,
        together=advantage_of(both) if both else None,
        moved=_moved(np.concatenate(moved)) if moved else None,
    )


def _moved(lengths: Floats) -> Moved:
    largest = float(lengths.max())
    # Two Gaussians so far apart overlap so much.
    return Moved(
        people=len(lengths),
        median=round(float(np.median(lengths)), 3),
        largest=round(largest, 3),
        advantage=round(float(2 * ndtr(largest / 2) - 1), 4),
    )


def _three_parts(order: Ints, planted: int) -> tuple[Ints, Ints, Ints]:
    """Return who is planted, whom the attacker knows, and who is in the card anyway."""
    half = (len(order) - planted) // 2
    return order[:planted], order[planted : planted + half], order[planted + half :]


def joined(a: Members, b: Members) -> Members:
    """Return two groups over the same words as one."""
    return Members(
        counts=sp.vstack([a.counts, b.counts], format="csr"),
        first=sp.vstack([a.first, b.first], format="csr"),
        vocabulary=a.vocabulary,
        users=np.concatenate([a.users, b.users]),
        posts=np.concatenate([a.posts, b.posts]),
        hours=np.concatenate([a.hours, b.hours]),
    )


def with_rarest_words(
    people: Members, known: Members, options: CardOptions, rng: np.random.Generator
) -> Members:
    """Return the same people with every word replaced by one that is just about listed: the most telling ones."""
    noise = options.noise()
    line = noise.line(options.k)
    sums = np.asarray(noise.added(known.counts).sum(axis=0)).ravel()
    order = np.argsort(np.abs(np.log(np.maximum(sums, 1e-9) / line)))
    near = order[: max(200, int(np.diff(people.counts.indptr).max(initial=1)))]
    counts = people.counts.copy()
    for row in range(counts.shape[0]):
        span = slice(counts.indptr[row], counts.indptr[row + 1])
        counts.indices[span] = rng.choice(near, counts.indptr[row + 1] - counts.indptr[row], replace=False)
    counts = sp.csr_matrix((counts.data, counts.indices, counts.indptr), shape=counts.shape)
    counts.sort_indices()
    return Members(counts, people.first, people.vocabulary, people.users, people.posts, people.hours)


def before_shrinking(sums: Floats, noise: Noise, k: int) -> Floats:
    """Return the noisy sums of which a card tells what they are on average."""
    noisy = np.geomspace(noise.line(k) / 4, 2 * float(sums.max(initial=1.0)) + 8 * noise.line(k), 4_000)
    rising = np.minimum.accumulate(noise.likely(noisy, k)[::-1])[::-1]  # as it is, but for hardly any noise
    return np.asarray(np.interp(sums, rising, noisy))


class MembershipAttack:
    """A likelihood ratio for each person: the card with them against the card without."""

    def __init__(self, published: Community, known: Members, options: CardOptions) -> None:
        place_of = {word: place for place, word in enumerate(known.vocabulary)}
        places = np.array([place_of[word] for word in published.words], np.int64)
        noise = options.noise()
        shares = noise.added(known.counts)
        scale = published.people / len(known)
        # What the sum would be without the person, as the attacker's own people have it, and how far it may be off:
        # the noise of the card, chance in who is in it, chance in whom the attacker knows.
        self.expected = np.asarray(shares.sum(axis=0)).ravel() * scale
        squares = np.asarray(shares.multiply(shares).sum(axis=0)).ravel()
        chance = squares * scale * (1 + scale)
        least = float(shares.data.mean()) ** 2  # a word that the attacker never saw may be there all the same
        rounding = (0.03 * self.expected) ** 2  # two digits are published
        self.variance = np.maximum(chance, least) + noise.word_spread(self.expected) ** 2 + rounding
        self.line, self.k = noise.line(options.k), options.k
        self.users = np.bincount(shares.indices, minlength=len(known.vocabulary)) * scale
        self.seen = np.full(len(known.vocabulary), np.nan)
        self.seen[places] = before_shrinking(noise.sums(published), noise, options.k)
        self.published, self.known, self.noise = published, known, noise

    def scores(self, people: Members) -> Floats:
        """Return the log likelihood ratio of each person."""
        shares = self.noise.added(people.counts)
        owner = np.repeat(np.arange(len(people)), np.diff(shares.indptr))
        word, adds = shares.indices, shares.data
        expected, variance, seen = self.expected[word], self.variance[word], self.seen[word]
        spread = np.sqrt(variance)
        listed = adds * (seen - expected) / variance - adds**2 / (2 * variance)
        below = log_ndtr((self.line - expected - adds) / spread) - log_ndtr((self.line - expected) / spread)
        # What few of the attacker's people use may be missing for another reason: too few people.
        below = np.where(self.users[word] < 2 * self.k + 3 * noises.MORE_PEOPLE, 0.0, below)
        ratio = np.where(np.isnan(seen), below, listed)
        return np.bincount(owner, ratio, len(people)) + self._lengths(people)

    def _lengths(self, people: Members) -> Floats:
        """Compare how many people wrote about as much as each with how many the attacker's own people suggest."""
        table = self.published.lengths
        first, end = table["words_from"].to_numpy(), table["words_to"].to_numpy()
        step, counts = table["posts_step"].to_numpy(), table["people"].to_numpy()

        def rows(some: Members) -> Ints:
            inside = (
                (step_of(some.posts, POST_STEPS)[:, None] == step)
                & (some.words[:, None] >= first)
                & (some.words[:, None] < end)
            )
            return np.where(inside.any(axis=1), inside.argmax(axis=1), -1)

        scale = self.published.people / len(self.known)
        mine = rows(self.known)
        expected = np.bincount(mine[mine >= 0], minlength=len(counts)) * scale
        # Several steps make a range, each with noise of its own, and counts are rounded to fives.
        variance = expected * (1 + scale) + 4 * self.noise.spread("lengths", 1.0) ** 2 + 2
        ratio = ((counts - expected) - 0.5) / variance
        return np.append(ratio, 0.0)[rows(people)]


class CorrectionAttack:
    """The correction with a person against the correction without.

    The attacker's own people stand for the others in the card, about whom they are asked and among whom neighbours are
    counted; whom made-up people are follows from the card. People from elsewhere, about whom a card asks as well, are
    left out: that leaves more weight to everybody who is there.
    """

    def __init__(self, published: Community, known: Members) -> None:
        self.published, self.known = published, known
        self.asked = able(known, SEED)[:MOST_TRIED]
        self.profiles = word_shares(known.halves()[0][self.asked])
        self.real = np.sort(apart(self.profiles, self.asked, known), axis=1)
        self.ranks = np.array(ranks_among(min(told_near(published), self.real.shape[1]))) - 1
        made_up = ProfileDistances.of(self.profiles, known.keys, published, SEED + 1)
        self.terms, self.distances = made_up.terms_at(self.real, told_near(published))
        self.fit = CorrectionFit.of(self.terms, self.distances)

    def scores(self, people: Members, correction: Correction) -> Floats:
        """Return the log likelihood ratio of each person."""
        moves = self._as_asked(people) + self._as_neighbours(people)
        # Noise, and chance in who is in the card and in whom the attacker knows.
        inverse = np.linalg.pinv(2 * self.fit.spread + self.fit.noise, hermitian=True)
        seen = self.fit.turned(correction) - self.fit.weights
        return np.asarray(moves @ inverse @ seen - np.einsum("ai,ij,aj->a", moves, inverse, moves) / 2)

    def _as_asked(self, people: Members) -> Floats:
        """Return how far people move the correction when it is fitted to them, too: those with enough posts may be."""
        moves = np.zeros((len(people), len(self.fit.weights)))
        asks = np.sort(able(people, SEED))
        if not asks.size:
            return moves
        together = joined(self.known, people)
        terms, distances = asking(together, len(self.known) + asks, self.published, SEED)
        turned = (terms @ self.fit.basis)[:, : self.terms.shape[1]]
        off = distances[:, : self.terms.shape[1]] - turned @ self.fit.weights
        own = self._moved_by(turned, off)
        own *= np.minimum(1.0, MOST_MOVED / np.maximum(lengths_in(own, self.fit.spread), 1e-12))[:, None]
        # Of more people than that, so many are drawn.
        moves[asks] = own * min(1.0, MOST_TRIED / len(able(self.known, SEED)))
        return moves

    def _as_neighbours(self, people: Members) -> Floats:
        """Return how far people move it as one more neighbour of those it is fitted to."""
        moves = np.zeros((len(people), len(self.fit.weights)))
        practised, profiles = compared(people)
        if not practised.size:
            return moves
        there = self.real[:, self.ranks]
        before = np.where(self.ranks > 0, self.real[:, self.ranks - 1], 0.0)
        turned = self.terms @ self.fit.basis
        far = np.asarray(pairwise(self.profiles, profiles))
        for place, apart_by in zip(practised.tolist(), far.T, strict=True):
            nearer = np.minimum(np.maximum(apart_by[:, None], before), there) - there
            moves[place] = self._moved_by(turned, nearer).sum(axis=0)
        return moves

    def _moved_by(self, turned: Floats, off: Floats) -> Floats:
        """Return how far the weights move for distances that are off by so much, a row for each who is asked about."""
        ours = self.terms @ self.fit.basis
        curvature = np.einsum("ari,arj->ij", ours, ours)
        return np.asarray(np.linalg.solve(curvature, np.einsum("ari,ar->ia", turned, off)).T)

    def moved(self, members: Members, fit: CorrectionFit, rng: np.random.Generator, most: int) -> Floats:
        """Return how far the weights move, in parts of their noise, when one of some people leaves."""
        who = able(members, SEED)[:MOST_TRIED]
        terms, _ = asking(members, who, self.published, SEED)
        real = apart(word_shares(members.halves()[0][who]), who, members)
        practised, _ = compared(members)
        ranks = np.array(ranks_among(min(told_near(self.published), len(practised)))) - 1
        lengths = []
        for gone in rng.permutation(len(practised))[:most].tolist():
            others = np.delete(real, gone, axis=1)
            stay = who != practised[gone]
            near = np.partition(others, ranks, axis=1)[:, ranks]
            without = CorrectionFit.of(terms[stay], near[stay])
            apart_by = fit.turned(Correction(tuple(without.basis @ without.weights))) - fit.weights
            lengths.append(float(lengths_in(apart_by[None, :], fit.noise)[0]))
        return np.array(lengths)


def advantage_of(trials: list[Trial]) -> Advantage:
    """Draw the line where it does best on every second card, then count on the others; and the other way round.

    The interval is Student's, over cards: with a line drawn on other cards each tells the advantage without bias.
    """
    halves = trials[::2], trials[1::2] or trials
    lines = [_best_line(half) for half in halves]
    found = np.array([_difference(trial, lines[1 - place % 2]) for place, trial in enumerate(trials)])
    found = found[~np.isnan(found)]
    mean = float(found.mean()) if len(found) else math.nan
    reach = 2.0
    if len(found) > 1:
        reach = float(t.ppf(0.975, len(found) - 1) * found.std(ddof=1) / math.sqrt(len(found)))
    score, truth = (np.concatenate([one[side] for one in trials]) for side in (0, 1))
    return Advantage(
        people=len(truth),
        advantage=round(mean, 4),
        interval=(round(max(mean - reach, -1.0), 4), round(min(mean + reach, 1.0), 4)),
        auc=round(auc(truth, score), 4),
    )


def _best_line(trials: list[Trial]) -> float:
    """Return the score from which on the attacker says "inside", where that is right most often."""
    score, truth = (np.concatenate([one[side] for one in trials]) for side in (0, 1))
    order = np.argsort(-score)
    gain = np.cumsum(np.where(truth[order], 1 / max(truth.sum(), 1), -1 / max((~truth).sum(), 1)))
    return float(score[order[int(gain.argmax())]])


def _difference(trial: Trial, line: float) -> float:
    """Return how much more often people inside are said to be than people outside."""
    score, inside = trial
    if not inside.any() or inside.all():
        return math.nan
    yes = score >= line
    return float(yes[inside].mean() - yes[~inside].mean())
