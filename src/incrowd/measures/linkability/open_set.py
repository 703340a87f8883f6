"""Is the best target right, where nobody says that there is one?

Two profiles are each other's best if the target is the source's best and the source the target's best. Their *margin*
is how far the two stand before the next candidates of both sides, the two leads added up. Its unit is how fast the
resemblances of the candidates behind them fall off, from the second to the tenth: these are strangers' in any case, and
the best of many strangers leads by about an exponential amount of that unit, whatever the two communities and however
large they are. A true pair leads by several times as much on either side, the more the more was written. So the margins
of two communities are a mixture of two sums of two exponentials, and how many are *wide* shows without labels (a
two-groups model, after Efron 2008; the unit after Rényi's representation of order statistics).

Not everybody who stands out is a match: second accounts and copied texts do, too. How many strangers look like a match
is known from practice only, and roughly; the judged margins cannot tell them from matches. So what is not known is
averaged over: the share of matches (beforehand as likely to be none at all as some, and then every order of magnitude
as likely as the next), that of look-alikes, and how far strangers and matches stand out in these two communities.
Where hardly anybody has a match, no margin makes sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHARES = np.append(0.0, np.geomspace(1e-4, 1 - 1e-5, 300))
"""Shares of matches among the pairs that are each other's best: none, and every order of magnitude."""
SHARES_BEFOREHAND = np.append(0.5, np.full(300, 0.5 / 300))
WIDE_SHARES = np.geomspace(2e-5, 0.999, 250)
"""Shares of margins that are wide: matches and look-alikes together."""
NORMAL_STEPS = np.linspace(-2.5, 2.5, 11)
"""Standard normal values at which what is known roughly is tried."""
LEADS = 2
"""A margin is the sum of so many leads: that of the target and that of the source."""
SCALE, SCALE_DOUBT = 1.12, 0.08
"""What a stranger leads by, in units of how fast those behind fall off, and by how much, as a logarithm, that differs
between pairs of communities. These and the next ones were measured on communities of `reddit_users`."""
WIDTH, WIDTH_DOUBT = 4.5, 0.2
"""How many times as far a match stands out if the shorter profile has USUAL_WORDS words, and how far off that is."""
USUAL_WORDS, WORDS_POWER = 1_000.0, 0.22
"""With twice as many words a match stands out 2 ** 0.22 = 1.16 times as far."""
FEWEST_WORDS, MOST_WORDS = 20, 20_000
WIDTH_STEPS = NORMAL_STEPS[1::2]
LEAST_WIDTH = 1.2
DIFFERS = 0.4
"""By how much the width differs between people, as a logarithm."""
PEOPLE_STEPS = np.linspace(-1.6, 1.6, 5)
PEOPLE_LIKELY = np.exp(-0.5 * PEOPLE_STEPS**2) / np.exp(-0.5 * PEOPLE_STEPS**2).sum()
BEFOREHAND = 20
"""So many matches of practice weigh as much as what is expected of their width."""
GAMMA_LOG_MEAN, GAMMA_LOG_VARIANCE = 0.42278, 0.64493
"""Of the logarithm of a sum of two exponentials of mean 1: 1 - Euler's constant, and pi² / 6 - 1."""
LOOKALIKES = (0.01, 1.0)
"""Strangers who look like a match, as a share of strangers, before practice; and how far off, as a logarithm."""
LOOKALIKES_DIFFER = 0.5
"""By how much the share of look-alikes differs between pairs of communities, as a logarithm."""
MOST_MARGINS = 2_048
"""More margins than these are counted in steps."""
FEWEST_STRANGERS = 5
"""A practice pair with fewer strangers' margins teaches nothing about them."""
BEHIND = 10
"""So many of the highest resemblances tell how fast they fall off."""
GAPS_OF_ALL = 50
"""The fall-off behind all pairs together counts as much as so many gaps behind a pair itself."""


@dataclass(frozen=True)
class Share:
    """A share of sources, and the range it lies in with 95 %."""

    mean: float
    low: float
    high: float


def fall_off(highest: Any) -> tuple[Floats, int]:
    """Return how fast each row's resemblances fall off behind the best one, and how many gaps say so.

    `highest` has each row's highest ones in falling order. If they fall off exponentially, the gap behind the j-th one
    is on average one j-th of the scale (Rényi 1953), so j times the gap is the scale each time. The gap behind the best
    is left out: a match makes it wide.
    """
    values = np.asarray(highest, np.float64)
    places = np.arange(2, values.shape[1])
    if not len(places):
        return np.zeros(len(values)), 0
    return np.asarray(((values[:, 1:-1] - values[:, 2:]) * places).mean(axis=1)), len(places)


def margins(best: Any, second: Any, rival: Any, behind: Any, gaps: int) -> Floats:
    """Return how far each source and its best target lead on both sides; 0: they are not each other's best.

    `second` is the source's second best target, `rival` the best other source of its best target, `behind` how fast
    resemblances fall off behind both of them, by so many `gaps`.
    """
    leads = [np.subtract(best, other, dtype=np.float64) for other in (second, rival)]
    mutual = (np.minimum(*leads) > 0) & np.isfinite(np.maximum(*leads))
    if not mutual.any() or not gaps:
        return np.zeros(len(mutual))
    unit = (GAPS_OF_ALL * np.mean(behind[mutual]) + gaps * behind) / (GAPS_OF_ALL + gaps)
    usable = mutual & (unit > 0)
    return np.asarray(np.divide(leads[0] + leads[1], unit, out=np.zeros(len(mutual)), where=usable))


@dataclass(frozen=True)
class OpenSet:
    """What practice taught about margins."""

    scale: float = SCALE
    """Half the mean margin of strangers: how far they lead on one side."""
    width: float = WIDTH
    """How many times as far a match stands out, by USUAL_WORDS words."""
    differs: float = DIFFERS
    """By how much that differs between people, as a logarithm."""
    lookalikes: float = LOOKALIKES[0]
    """Share of strangers who stand out as far as matches do."""
    lookalikes_doubt: float = LOOKALIKES[1]
    """How far off that may be, as a logarithm."""
    one_sided: float = 0.15
    """Right targets that are not each other's best with their source, for each that is."""

    def found(self, margin: Any, words: Any) -> tuple[Floats, Share]:
        """Return how likely each source's best target is right, and the share of sources it is right for.

        `words`: how many the shorter profile of each source and its best target has.
        """
        values = np.asarray(margin, np.float64)
        mutual = values > 0
        probability = np.zeros(len(values))
        if not mutual.any():
            return probability, Share(0.0, 0.0, 0.0)
        seen, at = _counted(values[mutual], _wider(np.asarray(words)[mutual]), self.scale)
        likelihood, wide = self._evidence(seen)
        believed, true_given_wide = self._beliefs(likelihood)
        probability[mutual] = (wide @ true_given_wide)[at]
        beside = self.one_sided * probability.sum()
        probability[~mutual] = min(beside / max((~mutual).sum(), 1), 0.5)
        of_all = mutual.mean() * (1 + self.one_sided)
        ends = np.interp((0.025, 0.975), believed.cumsum(), SHARES)
        mean, low, high = (min(1.0, float(of_all * part)) for part in (believed @ SHARES, *ends))
        return probability, Share(mean, min(low, mean), max(high, mean))

    def _evidence(self, seen: Seen) -> tuple[Floats, Floats]:
        """Return the log likelihood of each of WIDE_SHARES, and for each margin how likely it is a wide one under it.

        The scale of strangers' margins and the width of matches' are averaged over.
        """
        settings = [
            (scale, self.width * np.exp(WIDTH_DOUBT * step), -0.5 * step**2)
            for scale in self._scales(seen)
            for step in WIDTH_STEPS
        ]
        each = np.array([self._mixture(seen, *some)[0] + unusual for *some, unusual in settings])
        weights = np.exp(each - each.max(axis=0))
        likelihood = each.max(axis=0) + np.log(weights.sum(axis=0))
        weights /= weights.sum(axis=0)
        wide = np.zeros((len(WIDE_SHARES), len(seen.margins)))
        for weight, (scale, width, _) in zip(weights, settings, strict=True):
            if weight.max() > 1e-4:
                wide += weight[:, None] * self._mixture(seen, scale, width)[1]
        return likelihood, wide.T

    def _scales(self, seen: Seen) -> Floats:
        """Return scales around the likeliest one (by EM), as far apart as so many margins leave in doubt."""
        scale, share, known, leads = self.scale, 0.1, 1 / SCALE_DOUBT**2, 0.0
        for _ in range(100):
            ratio = self._wide_to_narrow(seen, scale, self.width)
            wide = share * ratio / (1 + share * (ratio - 1))
            share = float(np.clip(seen.times @ wide / seen.times.sum(), 1e-6, 1 - 1e-6))
            strangers = seen.times * (1 - wide)
            leads = LEADS * float(strangers.sum())
            scale = (known * self.scale + float(strangers @ seen.margins)) / (known + leads)
        doubt = 1 / np.sqrt(known + leads)
        return np.asarray(scale * np.exp(doubt * NORMAL_STEPS))

    def _mixture(self, seen: Seen, scale: float, width: float) -> tuple[Floats, Floats]:
        """Return the log likelihood of each of WIDE_SHARES, and how likely each margin is wide under it."""
        ratio = self._wide_to_narrow(seen, scale, width)
        mixed = 1 + WIDE_SHARES[:, None] * (ratio - 1)
        strangers = -(seen.times @ (seen.margins / scale)) - LEADS * seen.times.sum() * np.log(scale)
        unusual = 0.5 * (np.log(scale / self.scale) / SCALE_DOUBT) ** 2
        return np.log(mixed) @ seen.times + strangers - unusual, WIDE_SHARES[:, None] * ratio / mixed

    def _wide_to_narrow(self, seen: Seen, scale: float, width: float) -> Floats:
        """Return how many times as likely each margin is for somebody who stands out; people differ in how far."""
        widths = [
            np.maximum(width * seen.wider * np.exp(self.differs * step), LEAST_WIDTH) for step in PEOPLE_STEPS
        ]
        times = [
            np.exp(np.minimum(seen.margins * (1 - 1 / wide) / scale, 600)) / wide**LEADS for wide in widths
        ]
        return np.asarray(PEOPLE_LIKELY @ np.array(times))

    def _beliefs(self, likelihood: Floats) -> tuple[Floats, Floats]:
        """Return how far each of SHARES is believed, and what to weigh each of WIDE_SHARES with.

        That is the belief in it times the part of the wide ones who are matches.
        """
        doubt = np.hypot(self.lookalikes_doubt, LOOKALIKES_DIFFER)
        alike = np.minimum(self.lookalikes * np.exp(doubt * NORMAL_STEPS), 0.9)
        together = SHARES[:, None] + (1 - SHARES[:, None]) * alike
        place = np.abs(np.log(together)[:, :, None] - np.log(WIDE_SHARES)).argmin(axis=2)
        before = SHARES_BEFOREHAND[:, None] * np.exp(-0.5 * NORMAL_STEPS**2)
        belief = before * np.exp(likelihood[place] - likelihood.max())
        belief /= belief.sum()
        matches = belief * SHARES[:, None] / together
        true_given_wide = np.zeros(len(WIDE_SHARES))
        np.add.at(true_given_wide, place, matches)
        return belief.sum(axis=1), true_given_wide

    def among(self, strangers: Floats, wider: Floats) -> tuple[float, float]:
        """Return the share of strangers who stand out like a match, and how far off it may be, as a logarithm."""
        steps = np.linspace(-4, 4, 81)
        shares = np.minimum(LOOKALIKES[0] * np.exp(LOOKALIKES[1] * steps), 0.5)
        ratio = self._wide_to_narrow(Seen(strangers, wider, np.ones(len(strangers))), 1.0, self.width)
        evidence = np.array([np.log1p(share * (ratio - 1)).sum() for share in shares]) - 0.5 * steps**2
        belief = np.exp(evidence - evidence.max())
        belief /= belief.sum()
        logs = np.log(shares)
        mean = float(belief @ logs)
        return float(np.exp(mean)), float(np.sqrt(belief @ (logs - mean) ** 2))


UNTAUGHT = OpenSet()
"""What is expected before practice."""


@dataclass(frozen=True)
class Seen:
    """Margins to look at."""

    margins: Floats
    wider: Floats
    """How many times as far as usual a match of so many words stands out."""
    times: Floats
    """How many are like it."""


def _wider(words: Any) -> Floats:
    return np.asarray((np.clip(words, FEWEST_WORDS, MOST_WORDS) / USUAL_WORDS) ** WORDS_POWER)


def _counted(values: Floats, wider: Floats, scale: float) -> tuple[Seen, NDArray[np.int64]]:
    """Return the margins to look at, and which of them each value is; many are put into steps."""
    if len(values) > MOST_MARGINS:
        step = scale / 25
        values = (np.floor(np.minimum(values, 100 * scale) / step) + 0.5) * step
        wider = np.exp2(np.round(4 * np.log2(wider)) / 4)
    pairs, at, times = np.unique(
        np.column_stack([values, wider]), axis=0, return_inverse=True, return_counts=True
    )
    return Seen(pairs[:, 0], pairs[:, 1], times.astype(np.float64)), at.ravel()


Lesson = tuple[Floats, Any, NDArray[np.bool_]]
"""Margin, words and whether the best target is right, of every source of a pair of communities."""


def learn(lessons: Sequence[Lesson]) -> OpenSet:
    """Learn from the margins of other pairs of communities; what is expected beforehand counts as a few cases."""
    scales = [SCALE if one is None else one for one in map(_scale_of, lessons)]
    scale = _usual_scale(lessons)
    strangers, matches, wider, one_sided, counted = [], [], [], 0, 0
    for (margin, words, right), own in zip(lessons, scales, strict=True):
        wrong, found = (margin > 0) & ~right, (margin > 0) & right
        strangers.append(margin[wrong] / own)
        wider.append(_wider(words[wrong]))
        matches.append(np.log(margin[found] / (scale * _wider(words[found]))))
        one_sided += int((right & (margin <= 0)).sum())
        counted += int(found.sum())
    if not counted:
        return UNTAUGHT
    width, differs = _widths(np.concatenate(matches))
    taught = OpenSet(scale=scale, width=width, differs=differs, one_sided=(one_sided + 0.5) / (counted + 1))
    alike, doubt = taught.among(np.concatenate(strangers), np.concatenate(wider))
    return replace(taught, lookalikes=alike, lookalikes_doubt=doubt)


def _scale_of(lesson: Lesson) -> float | None:
    """Return what strangers of one pair of communities lead by; None: they are too few to say."""
    margin, _, right = lesson
    wrong = margin[(margin > 0) & ~right]
    return float(wrong.mean()) / LEADS if len(wrong) >= FEWEST_STRANGERS else None


def _usual_scale(lessons: Sequence[Lesson]) -> float:
    """Return what strangers lead by, as the mean of what is expected and what each lesson says, by their doubt."""
    logs, certain = [np.log(SCALE)], [SCALE_DOUBT**-2]
    for lesson in lessons:
        scale = _scale_of(lesson)
        if scale is not None:
            margin, _, right = lesson
            leads = LEADS * int(((margin > 0) & ~right).sum())
            logs.append(np.log(scale))
            certain.append(1 / (SCALE_DOUBT**2 + 1 / leads))
    return float(np.exp(np.average(logs, weights=certain)))


def _widths(logs: Floats) -> tuple[float, float]:
    """Return the width of matches and how it differs between people, from the logs of how far they stand out."""
    cases, expected = len(logs), np.log(WIDTH)
    spread = float(logs.var()) - GAMMA_LOG_VARIANCE
    width = (cases * (float(logs.mean()) - GAMMA_LOG_MEAN) + BEFOREHAND * expected) / (cases + BEFOREHAND)
    differs = (cases * spread + BEFOREHAND * DIFFERS**2) / (cases + BEFOREHAND)
    return float(np.exp(width)), float(np.sqrt(max(differs, 0.0)))
