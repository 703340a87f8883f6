"""Is the best target right, where nobody says that there is one?

Two profiles are each other's best if the target is the source's best and the source the target's best. Two signs tell
a match from strangers who happen to be:

- the *margin*: how far the two stand before the next candidates of both sides. Its unit is how fast the resemblances of
  the candidates behind them fall off, from the second to the tenth: these are strangers' in any case, and the best of
  many strangers leads by about an exponential amount of that unit, whatever the two communities and however large they
  are (Rényi's representation of order statistics);
- the *places*: how many others are nearer under each view on its own. Each other's best by all views together,
  strangers are seldom among the first by each of them. The unit is the places of those who lead least.

How many times as likely such signs are for a match as for strangers, a logistic regression on practice tells. It is
drawn towards the weights of another crowd, which hardly differ. It tells nothing about how many have a match at all:
that is found from all signs of the two communities together (a two-groups model, after Efron 2008), and what they leave
open is averaged over, beforehand as likely to be none at all as some, and then of any order of magnitude. Where hardly
anybody has a match, no sign makes sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]

SHARES = np.append(0.0, np.geomspace(1e-4, 1 - 1e-5, 300))
"""Shares of matches among the pairs that are each other's best: none, and every order of magnitude."""
SMALLER = SHARES[1:] ** -0.3
SHARES_BEFOREHAND = np.append(0.5, 0.5 * SMALLER / SMALLER.sum())
"""As likely none as some, and a tenth of a share twice as likely as it, which was settled on `reddit_users`."""
CENTRE, SPREAD = np.array([1.76, 0.88]), np.array([1.33, 0.22])
"""Mean and deviation of margins and places in `reddit_college`, so that weights can be set beside each other."""
BEFOREHAND = 20.0
"""How sure the weights are before practice, one over their variance: those of two crowds differ by .2 to .3."""
ONE_SIDED_MATCHES = 20
"""So many matches of practice weigh as much as what is expected of those who are not each other's best."""
BEHIND = 10
"""So many of the highest resemblances tell how fast they fall off."""
GAPS_OF_ALL = 50
"""The fall-off behind all pairs together counts as much as so many gaps behind a pair itself."""
SHARE_DOUBT = 0.3
"""By how much, as a logarithm, the ends of the share are further out: signs weigh more or less in other communities."""
MOST_LIKELY = 40.0
"""No signs are surer than this, as a logarithm, so that nothing overflows."""


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
    """Return ``log((1 + lead) (1 + lead'))`` of each source and its best target; 0: they are not each other's best.

    `second` is the source's second best target, `rival` the best other source of its best target, `behind` how fast
    resemblances fall off behind both of them, by so many `gaps`.
    """
    leads = [np.subtract(best, other, dtype=np.float64) for other in (second, rival)]
    mutual = (np.minimum(*leads) > 0) & np.isfinite(np.maximum(*leads))
    if not mutual.any() or not gaps:
        return np.zeros(len(mutual))
    unit = (GAPS_OF_ALL * np.mean(behind[mutual]) + gaps * behind) / (GAPS_OF_ALL + gaps)
    usable = mutual & (unit > 0)
    here, there = (np.divide(lead, unit, out=np.zeros(len(mutual)), where=usable) for lead in leads)
    return np.asarray(np.log1p(here) + np.log1p(there))


def relative_places(margin: Floats, places: Any) -> Floats:
    """Return the places of pairs that are each other's best, in units of those who lead least: mostly strangers."""
    unit = float(np.mean(np.asarray(places)[margin <= np.median(margin)])) if len(margin) else 0.0
    return np.asarray(places, np.float64) / unit if unit > 0 else np.ones(len(margin))


@dataclass(frozen=True)
class OpenSet:
    """What the signs weigh, per deviation of each, and how many right targets do not show them."""

    level: float = -0.73
    """What usual signs weigh: the logarithm of how many times as likely they are for a match."""
    margin: float = 1.56
    places: float = -1.06
    one_sided: float = 0.11
    """Right targets that are not each other's best with their source, for each that is."""

    def likelier(self, margin: Floats, places: Any) -> Floats:
        """Return how many times as likely the signs of each pair are for a match as for strangers, as a logarithm."""
        return np.asarray(_signs(margin, places) @ self.weights)

    @property
    def weights(self) -> Floats:
        """The three weights side by side."""
        return np.array([self.level, self.margin, self.places])

    def found(self, margin: Any, places: Any) -> tuple[Floats, Share]:
        """Return how likely each source's best target is right, and the share of sources it is right for.

        `places`: of each source and its best target, how many are nearer under each view, the logarithms added up;
        nothing is asked of those without a margin.
        """
        values = np.asarray(margin, np.float64)
        mutual = values > 0
        probability = np.zeros(len(values))
        if not mutual.any():
            return probability, Share(0.0, 0.0, 0.0)
        times = np.exp(np.minimum(self.likelier(values[mutual], np.asarray(places)[mutual]), MOST_LIKELY))
        evidence = np.array([np.log1p(share * (times - 1)).sum() for share in SHARES])
        believed = SHARES_BEFOREHAND * np.exp(evidence - evidence.max())
        believed /= believed.sum()
        for share, belief in zip(SHARES, believed, strict=True):
            if belief > 1e-9:
                probability[mutual] += belief * share * times / (1 + share * (times - 1))
        beside = self.one_sided * probability.sum()
        probability[~mutual] = min(beside / max((~mutual).sum(), 1), 0.5)
        of_all = mutual.mean() * (1 + self.one_sided)
        low, high = np.exp([-SHARE_DOUBT, SHARE_DOUBT]) * _ends(believed)
        mean, low, high = (min(1.0, float(of_all * part)) for part in (believed @ SHARES, low, high))
        return probability, Share(mean, min(low, mean), max(high, mean))


UNTAUGHT = OpenSet()
"""What is expected before practice: the weights of the eight communities of `reddit_college`."""

Lesson = tuple[Floats, Any, NDArray[np.bool_]]
"""Margin, places and whether the best target is right, of every source of a pair of communities."""


def learn(lessons: Sequence[Lesson], expected: OpenSet = UNTAUGHT, *, sure: float = BEFOREHAND) -> OpenSet:
    """Learn from other pairs of communities what the signs weigh, drawn towards what is `expected`, so `sure`.

    Each pair of communities has a share of matches of its own, which is known in practice: without it, what is larger
    or smaller in communities with more matches would count as a sign.
    """
    signs, right, odds, one_sided = [np.empty((0, 3))], [np.empty(0, bool)], [np.empty(0)], 0
    for margin, places, found in lessons:
        mutual = margin > 0
        one_sided += int((found & ~mutual).sum())
        if not mutual.any():
            continue
        signs.append(_signs(margin[mutual], np.asarray(places)[mutual]))
        right.append(found[mutual])
        share = (found[mutual].sum() + 0.3) / (mutual.sum() + 1)
        odds.append(np.full(mutual.sum(), np.log(share / (1 - share))))
    x, y, known = np.concatenate(signs), np.concatenate(right), np.concatenate(odds)

    def unlikely(weights: Floats) -> tuple[float, Floats]:
        off, logit = weights - expected.weights, x @ weights + known
        loss = np.logaddexp(0.0, logit).sum() - logit[y].sum() + 0.5 * sure * (off @ off)
        return float(loss), x.T @ (_probability(logit) - y) + sure * off

    level, margin_weight, places_weight = minimize(unlikely, expected.weights, jac=True, method="L-BFGS-B").x
    beside = (one_sided + ONE_SIDED_MATCHES * expected.one_sided) / (int(y.sum()) + ONE_SIDED_MATCHES)
    return OpenSet(float(level), float(margin_weight), float(places_weight), beside)


def _ends(believed: Floats) -> Floats:
    """Return the ends of what is believed of the share; the upper one as if some had a match."""
    some = np.append(0.0, believed[1:])
    each = [(believed, 0.025), (some / some.sum() if some.sum() else believed, 0.975)]
    return np.array([np.interp(level, belief.cumsum(), SHARES) for belief, level in each])


def _signs(margin: Floats, places: Any) -> Floats:
    """Return a one and both signs of each pair, as deviations from what is usual."""
    both = (np.column_stack([margin, relative_places(margin, places)]) - CENTRE) / SPREAD
    return np.column_stack([np.ones(len(both)), both])


def _probability(logit: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logit, -500, 500))))
