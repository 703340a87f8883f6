"""Does a card tell who is in it? Membership inference against cards made with and without a person.

The attacker knows every word of the person, how cards are made and how much noise is in them, and has as many other
people of the same community to compare with: everything but who is in the card. For each word, and for each range of
lengths, they compare how likely what the card says is with and without the person (a likelihood ratio, the best test
there is where noise is independent), and add that up. Words that are not listed count as well: their sums lay below the
line.

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
from scipy.special import log_ndtr
from scipy.stats import t

from incrowd.cards.laws import POST_STEPS, Community, step_of
from incrowd.cards.make import SMALLEST, CardOptions, safe_statistics
from incrowd.cards.members import Members
from incrowd.cards.noise import Noise, shrunk
from incrowd.errors import InputError
from incrowd.statistics import auc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Progress = Callable[[float, float | None, str], None]


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
    scores: dict[bool, list[tuple[Floats, NDArray[np.bool_]]]] = {False: [], True: []}
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
            published = safe_statistics(inner, options.k, options.noise(), name)
            scores[rare].append((MembershipAttack(published, known, options).scores(chosen), inside))
            size = len(inner)
    return Audit(
        community=name,
        cards=cards,
        members=size,
        ordinary=_advantage(scores[False]),
        rarest=_advantage(scores[True]),
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


def unshrunk(sums: Floats, noise: Noise) -> Floats:
    """Return the noisy sums that :func:`incrowd.cards.make.shrunk` was given, by halving intervals."""
    low, high = sums.copy(), 8 * sums
    for _ in range(40):
        middle = (low + high) / 2
        above = shrunk(middle, noise.word_spread(middle)) > sums
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


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
        self.seen[places] = unshrunk(noise.sums(published), noise)
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
        below = np.where(self.users[word] < 2 * self.k, 0.0, below)
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


def _advantage(trials: list[tuple[Floats, NDArray[np.bool_]]]) -> Advantage:
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


def _best_line(trials: list[tuple[Floats, NDArray[np.bool_]]]) -> float:
    """Return the score from which on the attacker says "inside", where that is right most often."""
    score, truth = (np.concatenate([one[side] for one in trials]) for side in (0, 1))
    order = np.argsort(-score)
    gain = np.cumsum(np.where(truth[order], 1 / max(truth.sum(), 1), -1 / max((~truth).sum(), 1)))
    return float(score[order[int(gain.argmax())]])


def _difference(trial: tuple[Floats, NDArray[np.bool_]], line: float) -> float:
    """Return how much more often people inside are said to be than people outside."""
    score, inside = trial
    if not inside.any() or inside.all():
        return math.nan
    yes = score >= line
    return float(yes[inside].mean() - yes[~inside].mean())
