"""Small statistics that several measures need: how well a score ranks, how honest a probability is, and one
logistic regression.

Pure functions on arrays; NumPy and SciPy only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from incrowd.arrays import Floats

MOST_STEPS = 50
"""Of Newton's method; a dozen are usual."""
FEWEST_IN_A_BIN = 8
"""People: fewer do not tell how far off a bin's gap is."""
DEVIATIONS = 2.1
"""Of a squared gap to either end of its interval, rather than 1.96, for they are estimated, too."""


def auc(positive: Any, score: Any) -> float:
    """Return how often a positive case scores higher than a negative one, ties counting half.

    1 = every positive above every negative, 0.5 = no better than chance; NaN without cases of both kinds.

    >>> auc([True, False, False], [0.9, 0.1, 0.9])
    0.75
    """
    yes = np.asarray(positive, bool)
    ranks = _ranks(np.asarray(score, float))
    ones, zeros = int(yes.sum()), int((~yes).sum())
    if not ones or not zeros:
        return float("nan")
    return float((ranks[yes].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def auc_of_rates(rates: Any, score: Any) -> float:
    """Return how often a success had a higher score than a failure, ties half, where each row is a rate of successes.

    With rates of 0 and 1 it is :func:`auc`. NaN if there are no successes or no failures.

    >>> auc_of_rates([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), auc_of_rates([0.25, 0.75], [1, 2])
    (0.75, 0.75)
    """
    won, order = np.asarray(rates, float), np.argsort(np.asarray(score, float), kind="stable")
    values, starts = np.unique(np.asarray(score, float)[order], return_index=True)
    wins = np.add.reduceat(won[order], starts) if len(values) else np.zeros(0)
    losses = np.add.reduceat(1 - won[order], starts) if len(values) else np.zeros(0)
    below = np.cumsum(losses) - losses / 2
    pairs = wins.sum() * losses.sum()
    return float((wins * below).sum() / pairs) if pairs else float("nan")


def spearman(x: Any, y: Any) -> float:
    """Return Spearman's rank correlation; NaN for fewer than three pairs or a constant side.

    >>> spearman([1, 2, 3, 4], [1, 4, 9, 16])
    1.0
    """
    a, b = _ranks(x), _ranks(y)
    if a.size < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def calibration_error(predicted: Any, happened: Any, bins: int = 5) -> float:
    """Return the mean gap between what was predicted and what happened, over bins of equally many cases.

    >>> calibration_error([0.2, 0.2, 0.8, 0.8], [0.0, 0.4, 1.0, 0.6], bins=2)
    0.0
    """
    expected, seen = np.asarray(predicted, float), np.asarray(happened, float)
    if len(expected) < bins:
        return float("nan")
    order = np.argsort(expected, kind="stable")
    gaps = [abs(float(expected[part].mean() - seen[part].mean())) for part in np.array_split(order, bins)]
    return float(np.mean(gaps))


@dataclass(frozen=True)
class CalibrationGap:
    """How far what was predicted is from what happened, root mean square over bins, without what few cases explain."""

    squared: float
    """Estimate of the squared gap without bias: on average 0 for a perfect forecaster, so below 0 as often as above."""
    deviation: float
    """How far off the estimate of the squared gap usually is."""

    @property
    def gap(self) -> float:
        """The gap; 0 where chance explains all there is."""
        return self._root(0.0)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the gap lies with 95 %."""
        return self._root(-DEVIATIONS), self._root(DEVIATIONS)

    def _root(self, deviations: float) -> float:
        return float(np.sqrt(np.maximum(self.squared + deviations * self.deviation, 0.0)))


def calibration_gap(predicted: Any, happened: Any, people: Any = None, bins: int = 10) -> CalibrationGap:
    """Return the root mean square gap between what was predicted and what happened, over bins of equally many cases.

    A mean gap is above 0 for a perfect forecaster, too, the more the fewer the cases. Here the variance of each bin's
    gap is taken from its square (Kumar, Liang, Ma: Verified Uncertainty Calibration, 2019). Cases of one of `people`
    share their fate: their sums are what varies. Where people are few, bins are; NaN below two people.
    """
    expected, seen = np.asarray(predicted, float), np.asarray(happened, float)
    who = (
        np.arange(len(expected)) if people is None else np.unique(np.asarray(people), return_inverse=True)[1]
    )
    squared = variance = cases = 0.0
    bins = max(1, min(bins, len(np.unique(who)) // FEWEST_IN_A_BIN))
    for part in np.array_split(np.argsort(expected, kind="stable"), bins):
        of_person, counts = _sums(who[part], expected[part] - seen[part])
        if len(of_person) < 2:
            continue
        mean = of_person.sum() / counts.sum()
        off = ((of_person - mean * counts) ** 2).sum() / counts.sum() ** 2
        off *= len(of_person) / (len(of_person) - 1)
        squared += counts.sum() * (mean**2 - off)
        variance += counts.sum() ** 2 * (4 * max(mean**2 - off, 0.0) * off + 2 * off**2)
        cases += counts.sum()
    if not cases:
        return CalibrationGap(float("nan"), float("nan"))
    return CalibrationGap(float(squared / cases), float(np.sqrt(variance) / cases))


def _sums(of: Any, values: Any) -> tuple[Floats, Floats]:
    """Return the sum of each person's values, and how many they are."""
    _, place, counts = np.unique(of, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(place, weights=values), np.float64), np.asarray(counts, np.float64)


def first_place(above: Any, ties: Any, unseen: Any = 0.0) -> Floats:
    """Return the probability that an adversary names the right person, who is the most alike of all.

    `above` people are more alike than the right one, `ties` just as much, and a tie is broken by chance. `unseen` is
    the expected number of people outside the sample of candidates who are more alike; they are Poisson, so that there
    is none with probability ``exp(-unseen)``.

    >>> first_place([0, 0, 2], [0, 1, 0]).tolist()
    [1.0, 0.5, 0.0]
    """
    above, ties = np.asarray(above), np.asarray(ties)
    return np.where(above == 0, np.exp(-np.asarray(unseen, float)) / (1 + ties), 0.0)


def expected_rank(above: Any, ties: Any, unseen: Any = 0.0) -> Floats:
    """Return the right person's expected rank among all candidates, 1 = first."""
    return np.asarray(1 + np.asarray(above) + np.asarray(ties) / 2 + np.asarray(unseen), np.float64)


def unseen_above(own: Floats, best: Floats, sampled: int, outside: int) -> Floats:
    """Expect how many of `outside` people who were not compared would be more alike than the right one.

    `best` holds, for each row, the highest scores of `sampled` rivals, ascending. Above the lowest of them scores are
    taken to fall off exponentially, as the tails of most distributions do; below it the sample itself tells.
    """
    if outside <= 0:
        return np.zeros(len(own))
    count = best.shape[1]
    floor = best[:, 0]
    excess = np.maximum((best - floor[:, None]).mean(axis=1), 1e-12)
    tail = count / sampled * np.exp(-np.maximum(own - floor, 0.0) / excess)
    share = np.where(own > floor, tail, count / sampled)
    return np.asarray(outside * share, np.float64)


@dataclass(frozen=True)
class Logistic:
    """A fitted logistic regression on standardised columns; a missing value counts as the column's mean."""

    mean: Floats
    spread: Floats
    weights: Floats
    """The intercept first."""
    covariance: Floats
    """Of the weights: how far another sample of the same size might have led elsewhere."""

    def predict(self, columns: Any) -> Floats:
        """Return a probability for each row."""
        return np.asarray(expit(_with_intercept(self._standardised(columns)) @ self.weights))

    def interval(self, columns: Any, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """Return where the true rate of rows like these lies, by the spread of the fitted log odds."""
        x = _with_intercept(self._standardised(columns))
        spread = np.sqrt(np.einsum("ij,jk,ik->i", x, self.covariance, x))
        reach = ndtri((1 + coverage) / 2) * spread
        odds = x @ self.weights
        return np.asarray(expit(odds - reach)), np.asarray(expit(odds + reach))

    def _standardised(self, columns: Any) -> Floats:
        scaled = (np.asarray(columns, float) - self.mean) / self.spread
        return np.where(np.isnan(scaled), 0.0, scaled)


def fit_logistic(columns: Any, share: Any, ridge: float = 1.0) -> Logistic:
    """Fit the probability of success by columns; `share` is each row's rate of success, 0 to 1.

    Minimises the binomial deviance plus ``ridge / 2`` times the squared weights, the intercept's left out.
    """
    rows = len(np.asarray(share))
    (model,) = fit_along(columns, share, np.ones(rows), np.arange(rows), ridge).values()
    return model


@dataclass(frozen=True)
class Expected:
    """What the weights of standardised columns should be about, by what was learnt elsewhere."""

    weights: Floats
    """With `amount`."""
    moves: Floats
    """What a step of 1 in the logarithm of the amount adds."""
    amount: float = 1.0


def fit_along(
    columns: Any,
    share: Any,
    amount: Any,
    group: Any,
    ridge: float = 1.0,
    expected: Expected | None = None,
) -> dict[int, Logistic]:
    """Fit the probability of success with each of several amounts (positive: posts read) by one regression.

    Each amount has an intercept of its own; the weights of the columns move in a straight line with the logarithm of
    the amount. So amounts with which few succeed learn from those with which many do. Rows of one `group` (a person
    who was tried with several amounts) are not taken to be independent. The ridge draws weights to what is `expected`,
    without it to zero.
    """
    given, y, number = np.asarray(columns, float), np.asarray(share, float), np.asarray(amount)
    mean, spread = _means_and_spreads(given)
    scaled = (given - mean) / spread
    scaled = np.where(np.isnan(scaled), 0.0, scaled)
    amounts = np.unique(number)
    middle = float(np.log(number).mean() if expected is None else np.log(expected.amount))
    # With one amount nothing can move along.
    along = [np.log(number)[:, None] - middle] if len(amounts) > 1 else []
    x = np.column_stack([number[:, None] == amounts, scaled, *(scaled * step for step in along)]).astype(
        float
    )
    penalty = np.diag(np.repeat([0.0, ridge], [len(amounts), x.shape[1] - len(amounts)]))
    centre = _expected_weights(amounts, expected, scaled, middle, moving=bool(along))
    weights = _newton(x, y, penalty, centre)
    covariance = _covariance(x, y, weights, penalty, np.asarray(group))
    models, size = {}, scaled.shape[1]
    for place, one in enumerate(amounts.tolist()):
        # The weights with this amount: its intercept, and the columns' where the line stands.
        chosen = np.zeros((1 + size, len(weights)))
        chosen[0, place] = 1
        chosen[1:, len(amounts) : len(amounts) + size] = np.eye(size)
        if along:
            chosen[1:, len(amounts) + size :] = np.eye(size) * (np.log(one) - middle)
        models[int(one)] = Logistic(mean, spread, chosen @ weights, chosen @ covariance @ chosen.T)
    return models


def _expected_weights(
    amounts: Any, expected: Expected | None, scaled: Floats, middle: float, *, moving: bool
) -> Floats:
    """Return where the ridge draws each weight, intercepts first; a column that tells nothing here has no weight."""
    size = scaled.shape[1]
    if expected is None:
        return np.zeros(len(amounts) + size * (1 + moving))
    varies = (scaled != 0).any(axis=0)
    weights, moves = np.where(varies, expected.weights, 0.0), np.where(varies, expected.moves, 0.0)
    parts = [weights, moves] if moving else [weights + moves * (np.log(float(amounts[0])) - middle)]
    return np.concatenate([np.zeros(len(amounts)), *parts])


def _means_and_spreads(columns: Floats) -> tuple[Floats, Floats]:
    """Return the mean and standard deviation of what is known of each column; 1 where nothing varies."""
    known = ~np.isnan(columns)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, columns, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, columns - mean, 0.0) ** 2).sum(axis=0) / count)
    return mean, np.where(spread > 1e-9, spread, 1.0)


def _newton(x: Floats, share: Floats, penalty: Floats, centre: Floats) -> Floats:
    """Return the weights of least deviance, drawn to a centre, by Newton's method.

    A step is halved as long as it does not help.
    """

    def loss(weights: Floats) -> float:
        z, away = x @ weights, weights - centre
        return float((np.logaddexp(0, z) - share * z).sum() + away @ penalty @ away / 2)

    weights = centre
    least = loss(weights)
    for _ in range(MOST_STEPS):
        expected = expit(x @ weights)
        slope = x.T @ (expected - share) + penalty @ (weights - centre)
        curve = x.T @ (x * (expected * (1 - expected))[:, None]) + penalty + 1e-9 * np.eye(len(weights))
        step = np.linalg.solve(curve, slope)
        while (now := loss(weights - step)) > least and np.abs(step).max() > 1e-12:
            step /= 2
        weights, gained, least = weights - step, least - now, now
        if gained <= 1e-12 * max(abs(least), 1.0):
            break
    return weights


def _covariance(x: Floats, share: Floats, weights: Floats, penalty: Floats, group: Any) -> Floats:
    """Return the sandwich estimate (Huber 1967): it holds whether a row's rate is one trial or the mean of many.

    What one group adds is added up first, so that its rows may depend on each other. That the ridge draws weights to
    where they may not belong counts, too: it is right if they lie about there as widely as the ridge says.
    """
    expected = expit(x @ weights)
    bread = np.linalg.inv(x.T @ (x * (expected * (1 - expected))[:, None]) + penalty)
    _, place = np.unique(group, return_inverse=True)
    scores = np.zeros((int(place.max(initial=-1)) + 1, x.shape[1]))
    np.add.at(scores, place, x * (share - expected)[:, None])
    small_sample = len(x) / max(len(x) - x.shape[1], 1)
    return np.asarray(bread @ (scores.T @ scores * small_sample + penalty) @ bread)


def _with_intercept(columns: Floats) -> Floats:
    return np.column_stack([np.ones(len(columns)), columns])


def _ranks(values: Any) -> Floats:
    """Rank from 1, equal values sharing the mean of their ranks, as SciPy does, which takes half a second to load."""
    values = np.asarray(values)
    order = np.sort(values)
    below, upto = np.searchsorted(order, values, "left"), np.searchsorted(order, values, "right")
    return np.asarray((below + upto + 1) / 2, np.float64)
