"""Small statistics that several measures need: how well a score ranks, how honest a probability is, and one
logistic regression.

Pure functions on arrays; NumPy and SciPy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm, rankdata

Floats = NDArray[np.float64]


def auc(positive: Any, score: Any) -> float:
    """Return how often a positive case scores higher than a negative one, ties counting half.

    1 = every positive above every negative, 0.5 = no better than chance; NaN without cases of both kinds.

    >>> auc([True, False, False], [0.9, 0.1, 0.9])
    0.75
    """
    yes = np.asarray(positive, bool)
    ranks = rankdata(np.asarray(score, float))
    ones, zeros = int(yes.sum()), int((~yes).sum())
    if not ones or not zeros:
        return float("nan")
    return float((ranks[yes].sum() - ones * (ones + 1) / 2) / (ones * zeros))


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
        reach = norm.ppf((1 + coverage) / 2) * spread
        odds = x @ self.weights
        return np.asarray(expit(odds - reach)), np.asarray(expit(odds + reach))

    def _standardised(self, columns: Any) -> Floats:
        scaled = (np.asarray(columns, float) - self.mean) / self.spread
        return np.where(np.isnan(scaled), 0.0, scaled)


def fit_logistic(columns: Any, share: Any, ridge: float = 1.0) -> Logistic:
    """Fit the probability of success by columns; `share` is each row's rate of success, 0 to 1.

    Minimises the binomial deviance plus ``ridge / 2`` times the squared weights, the intercept's left out.
    """
    given, y = np.asarray(columns, float), np.asarray(share, float)
    known = ~np.isnan(given)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, given, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, given - mean, 0.0) ** 2).sum(axis=0) / count)
    spread = np.where(spread > 1e-9, spread, 1.0)
    x = _with_intercept(np.where(known, (given - mean) / spread, 0.0))

    def objective(weights: Floats) -> tuple[float, Floats]:
        z = x @ weights
        slopes = np.concatenate([[0.0], weights[1:]])
        loss = float((np.logaddexp(0, z) - y * z).sum() + ridge / 2 * (slopes @ slopes))
        return loss, x.T @ (expit(z) - y) + ridge * slopes

    weights = np.asarray(minimize(objective, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x, float)
    return Logistic(mean, spread, weights, _covariance(x, y, weights, ridge))


def _covariance(x: Floats, share: Floats, weights: Floats, ridge: float) -> Floats:
    """Return the sandwich estimate (Huber 1967): it holds whether a row's rate is one trial or the mean of many."""
    expected = expit(x @ weights)
    penalty = np.diag([0.0, *[ridge] * (x.shape[1] - 1)])
    bread = np.linalg.inv(x.T @ (x * (expected * (1 - expected))[:, None]) + penalty)
    scores = x * (share - expected)[:, None]
    small_sample = len(x) / max(len(x) - x.shape[1], 1)
    return np.asarray(bread @ (scores.T @ scores) @ bread * small_sample)


def _with_intercept(columns: Floats) -> Floats:
    return np.column_stack([np.ones(len(columns)), columns])
