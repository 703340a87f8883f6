"""Is the best target right, where nobody says that there is one?

Two profiles are each other's best if the target is the source's best and the source the target's best. Their *margin*
is how far the two stand before every other candidate of either side, in units of the spread of the source's
resemblances. The best of many strangers stands before the next by about an exponential amount, whatever the size of
the two communities; a true pair stands out several times as far, again by about an exponential amount. So the margins
of two communities are a mixture of two exponentials, and how many are *wide* shows without labels (a two-groups model,
after Efron 2008).

Not everybody who stands out is a match: second accounts and copied texts do, too. How many strangers look like a match
is known from practice only, and roughly; the judged margins cannot tell them from matches. So what is not known is
averaged over: the share of matches (beforehand as likely to be none at all as some, and then every order of magnitude
as likely as the next), that of look-alikes, and how far strangers and matches stand out in these two communities.
Where hardly anybody has a match, no margin makes sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHARES = np.append(0.0, np.geomspace(1e-5, 1 - 1e-5, 300))
"""Shares of matches among the pairs that are each other's best: none, and every order of magnitude."""
SHARES_BEFOREHAND = np.append(0.5, np.full(300, 0.5 / 300))
WIDE_SHARES = np.geomspace(2e-5, 0.999, 250)
"""Shares of margins that are wide: matches and look-alikes together."""
NORMAL_STEPS = np.linspace(-2.5, 2.5, 11)
"""Standard normal values at which what is known roughly is tried."""
SCALE_DOUBT = 0.2
"""By how much, on the scale of logarithms, strangers' margins differ from those practised on."""
WIDTH_DOUBT = 0.4
"""Likewise for how many times as wide a match's margin is; both were measured on communities of `reddit_users`."""
WIDTH_STEPS = NORMAL_STEPS[1::2]
LEAST_WIDTH = 1.5
LOOKALIKES = (0.01, 1.0)
"""Strangers who look like a match, as a share of strangers, before practice; and how far off, as a logarithm."""
LOOKALIKES_DIFFER = 0.5
"""By how much the share of look-alikes differs between pairs of communities, as a logarithm."""
MOST_MARGINS = 2_048
"""More margins than these are counted in steps."""
FEWEST_STRANGERS = 5
"""A practice pair with fewer strangers' margins teaches nothing."""


@dataclass(frozen=True)
class Share:
    """A share of sources, and the range it lies in with 95 %."""

    mean: float
    low: float
    high: float


def margins(best: Any, second: Any, rival: Any, spread: Any) -> Floats:
    """Return how far each source and its best target stand before all others; 0: they are not each other's best.

    `second` is the source's second best target, `rival` the best other source of its best target.
    """
    before = np.minimum(
        np.subtract(best, second, dtype=np.float64), np.subtract(best, rival, dtype=np.float64)
    )
    usable = (np.asarray(spread) > 0) & (before > 0) & np.isfinite(before)
    return np.where(usable, before / np.where(usable, spread, 1.0), 0.0)


@dataclass(frozen=True)
class OpenSet:
    """What practice taught about margins."""

    scale: float = 0.27
    """Mean margin of strangers."""
    width: float = 7.0
    """How many times as far a match stands out."""
    lookalikes: float = LOOKALIKES[0]
    """Share of strangers who stand out as far as matches do."""
    lookalikes_doubt: float = LOOKALIKES[1]
    """How far off that may be, as a logarithm."""
    one_sided: float = 0.15
    """Right targets that are not each other's best with their source, for each that is."""

    def found(self, margin: Any) -> tuple[Floats, Share]:
        """Return how likely each source's best target is right, and the share of sources it is right for."""
        values = np.asarray(margin, np.float64)
        mutual = values > 0
        probability = np.zeros(len(values))
        if not mutual.any():
            return probability, Share(0.0, 0.0, 0.0)
        seen, at, times = _counted(values[mutual], self.scale)
        likelihood, wide = self._evidence(seen, times)
        believed, true_given_wide = self._beliefs(likelihood)
        probability[mutual] = (wide @ true_given_wide)[at]
        beside = self.one_sided * probability.sum()
        probability[~mutual] = min(beside / max((~mutual).sum(), 1), 0.5)
        of_all = mutual.mean() * (1 + self.one_sided)
        ends = np.interp((0.025, 0.975), believed.cumsum(), SHARES)
        mean, low, high = (min(1.0, float(of_all * part)) for part in (believed @ SHARES, *ends))
        return probability, Share(mean, min(low, mean), max(high, mean))

    def _evidence(self, seen: Floats, times: Floats) -> tuple[Floats, Floats]:
        """Return the log likelihood of each of WIDE_SHARES, and for each margin how likely it is a wide one under it.

        The scale of strangers' margins and the width of matches' are averaged over.
        """
        settings = [
            (scale, max(self.width * np.exp(WIDTH_DOUBT * step), LEAST_WIDTH), -0.5 * step**2)
            for scale in self._scales(seen, times)
            for step in WIDTH_STEPS
        ]
        each = np.array([self._mixture(seen, times, *some)[0] + unusual for *some, unusual in settings])
        weights = np.exp(each - each.max(axis=0))
        likelihood = each.max(axis=0) + np.log(weights.sum(axis=0))
        weights /= weights.sum(axis=0)
        wide = np.zeros((len(WIDE_SHARES), len(seen)))
        for weight, (scale, width, _) in zip(weights, settings, strict=True):
            if weight.max() > 1e-4:
                wide += weight[:, None] * self._mixture(seen, times, scale, width)[1]
        return likelihood, wide.T

    def _scales(self, seen: Floats, times: Floats) -> Floats:
        """Return scales around the likeliest one (by EM), as far apart as so many margins leave in doubt."""
        scale, share, known = self.scale, 0.1, 1 / SCALE_DOUBT**2
        for _ in range(100):
            ratio = _wide_to_narrow(seen, scale, self.width)
            wide = share * ratio / (1 + share * (ratio - 1))
            share = float(np.clip(times @ wide / times.sum(), 1e-6, 1 - 1e-6))
            strangers = times @ (seen * (1 - wide + wide / self.width))
            scale = (known * self.scale + strangers) / (known + times.sum())
        doubt = 1 / np.sqrt(known + times.sum() / 2)
        return np.asarray(scale * np.exp(doubt * NORMAL_STEPS))

    def _mixture(self, seen: Floats, times: Floats, scale: float, width: float) -> tuple[Floats, Floats]:
        """Return the log likelihood of each of WIDE_SHARES, and how likely each margin is wide under it."""
        ratio = _wide_to_narrow(seen, scale, width)
        mixed = 1 + WIDE_SHARES[:, None] * (ratio - 1)
        strangers = -(times @ (seen / scale)) - times.sum() * np.log(scale)
        unusual = 0.5 * (np.log(scale / self.scale) / SCALE_DOUBT) ** 2
        return np.log(mixed) @ times + strangers - unusual, WIDE_SHARES[:, None] * ratio / mixed

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


UNTAUGHT = OpenSet()
"""What is expected before practice."""


def _wide_to_narrow(seen: Floats, scale: float, width: float) -> Floats:
    """Return how many times as likely each margin is for somebody who stands out."""
    return np.asarray(np.exp(np.minimum(seen * (1 - 1 / width) / scale, 600)) / width)


def _counted(values: Floats, scale: float) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Return the margins to look at, which of them each value is, and how many are like it; many are put into steps."""
    if len(values) > MOST_MARGINS:
        step = scale / 50
        values = (np.floor(np.minimum(values, 100 * scale) / step) + 0.5) * step
    seen, at, times = np.unique(values, return_inverse=True, return_counts=True)
    return seen, at, times.astype(np.float64)


def learn(lessons: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> OpenSet:
    """Learn from the margins of other pairs of communities and whether each source's best target was right."""
    strangers, matches, scales, one_sided, counted = [], [], [], 0, 0
    for margin, right in lessons:
        wrong = margin[(margin > 0) & ~right]
        if len(wrong) < FEWEST_STRANGERS:
            continue
        scale = float(wrong.mean())
        scales.append(scale)
        strangers.append(wrong / scale)
        matches.append(margin[(margin > 0) & right] / scale)
        one_sided += int((right & (margin <= 0)).sum())
        counted += int((right & (margin > 0)).sum())
    if not counted:
        return UNTAUGHT
    width = max(float(np.median(np.concatenate(matches)) / np.log(2)), LEAST_WIDTH)
    alike, doubt = _lookalikes(np.concatenate(strangers), width)
    return OpenSet(
        scale=float(np.exp(np.mean(np.log(scales)))),
        width=width,
        lookalikes=alike,
        lookalikes_doubt=doubt,
        one_sided=(one_sided + 0.5) / (counted + 1),
    )


def _lookalikes(strangers: Floats, width: float) -> tuple[float, float]:
    """Return the share of strangers who stand out like a match, and how far off it may be, as a logarithm."""
    steps = np.linspace(-4, 4, 81)
    shares = np.minimum(LOOKALIKES[0] * np.exp(LOOKALIKES[1] * steps), 0.5)
    ratio = _wide_to_narrow(strangers, 1.0, width)
    evidence = np.array([np.log1p(share * (ratio - 1)).sum() for share in shares]) - 0.5 * steps**2
    belief = np.exp(evidence - evidence.max())
    belief /= belief.sum()
    logs = np.log(shares)
    mean = float(belief @ logs)
    return float(np.exp(mean)), float(np.sqrt(belief @ (logs - mean) ** 2))
