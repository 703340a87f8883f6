"""From resemblance to a calibrated probability: "30 % sure" should be right 30 % of the time.

Two small models, both learned on pairs of communities other than the one judged:

- *Which target?* A conditional logit: among the targets of source s, target t is the true one with
  probability ``exp(w.z_st) / sum_t' exp(w.z_st')``, given that s has a true one.
- *Is there one at all?* A logistic regression on how far the best target stands out. The share of sources
  with a match differs between communities, so it is re-estimated on the judged pair by expectation
  maximisation (Saerens, Latinne & Decaestecker 2002), which needs no labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class TrainingPair:
    """Labelled sources of one pair of communities."""

    scores: Scores
    """(sources, targets, views)."""
    truth: NDArray[np.integer[Any]]
    """The true target of each source, or -1."""


@dataclass(frozen=True)
class LinkModel:
    """Weights of the views and of the decision that there is a match at all."""

    views: tuple[str, ...]
    weights: tuple[float, ...]
    presence: tuple[float, float, float]
    """Intercept, weight of the best utility's margin, weight of its height."""
    prior: float
    """Share of training sources that had a match."""

    def utilities(self, scores: Scores) -> Scores:
        """Weigh the views: one number a (source, target) pair, higher = more likely the same person."""
        return np.asarray(scores @ np.asarray(self.weights, scores.dtype))

    def given_match(self, utilities: Scores) -> Scores:
        """Return the probability of each target, given that the source has a true one."""
        shifted = np.exp(utilities - utilities.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    def presence_odds(self, utilities: Scores) -> Scores:
        """Return the log odds, under the training prior, that each source has a match at all."""
        features = _presence_features(utilities)
        return np.asarray(features @ np.asarray(self.presence))

    def presence_given(self, odds: Scores) -> tuple[Scores, float]:
        """Turn log odds of all sources into probabilities under the judged pair's own share of matches."""
        start = np.log(self.prior / (1 - self.prior))
        share = self.prior
        for _ in range(200):
            moved = odds + np.log(share / (1 - share)) - start
            probability = 1 / (1 + np.exp(-moved))
            new = float(np.clip(probability.mean(), 1e-4, 1 - 1e-4))
            if abs(new - share) < 1e-9:
                break
            share = new
        return np.asarray(probability), share


DEFAULT_VIEWS = ("words", "vocabulary", "phrases", "style", "hours", "weeks")


def fit(
    pairs: Sequence[TrainingPair], views: tuple[str, ...] = DEFAULT_VIEWS, *, ridge: float = 1.0
) -> LinkModel:
    """Learn a link model from labelled pairs of communities."""
    matched = [_Matched.of(pair) for pair in pairs]
    weights = _fit_weights(matched, len(views), ridge)
    utilities = [pair.scores @ weights.astype(pair.scores.dtype) for pair in pairs]
    has = np.concatenate([pair.truth >= 0 for pair in pairs])
    features = np.concatenate([_presence_features(u) for u in utilities])
    presence = _fit_presence(features, has)
    return LinkModel(
        views=views,
        weights=tuple(float(w) for w in weights),
        presence=(float(presence[0]), float(presence[1]), float(presence[2])),
        prior=float(np.clip(has.mean(), 1e-4, 1 - 1e-4)),
    )


@dataclass(frozen=True)
class _Matched:
    scores: Scores
    truth: NDArray[np.integer[Any]]

    @classmethod
    def of(cls, pair: TrainingPair) -> _Matched:
        rows = np.flatnonzero(pair.truth >= 0)
        return cls(pair.scores[rows], pair.truth[rows])

    def loss(self, weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        utilities = self.scores @ weights.astype(self.scores.dtype)
        top = utilities.max(axis=1, keepdims=True)
        shares = np.exp(utilities - top)
        total = shares.sum(axis=1, keepdims=True)
        shares /= total
        rows = np.arange(self.truth.size)
        loss = float((top + np.log(total)).sum() - utilities[rows, self.truth].sum())
        expected = np.einsum("st,stv->v", shares, self.scores)
        return loss, np.asarray(expected - self.scores[rows, self.truth].sum(axis=0), np.float64)


def _fit_weights(pairs: Sequence[_Matched], views: int, ridge: float) -> NDArray[np.float64]:
    from scipy.optimize import minimize

    def objective(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        losses, slopes = zip(*(pair.loss(weights) for pair in pairs), strict=True)
        return sum(losses) + 0.5 * ridge * float(weights @ weights), sum(slopes) + ridge * weights

    result = minimize(objective, np.full(views, 0.5), jac=True, method="L-BFGS-B", options={"maxiter": 100})
    return np.asarray(result.x)


def _presence_features(utilities: Scores) -> NDArray[np.float64]:
    """Return 1, the lead of the best target over the second, and its height, for each source."""
    u = np.asarray(utilities, np.float64)
    if u.shape[1] == 1:
        return np.column_stack([np.ones(u.shape[0]), np.zeros(u.shape[0]), u[:, 0]])
    two = np.partition(u, u.shape[1] - 2, axis=1)[:, -2:]
    return np.column_stack([np.ones(u.shape[0]), two[:, 1] - two[:, 0], two[:, 1]])


def _fit_presence(features: NDArray[np.float64], has: NDArray[np.bool_]) -> NDArray[np.float64]:
    from scipy.optimize import minimize

    sign = np.where(has, 1.0, -1.0)

    def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (features @ w)
        slope = -(sign / (1 + np.exp(margin))) @ features
        return float(np.logaddexp(0, -margin).sum() + 0.005 * (w @ w)), slope + 0.01 * w

    return np.asarray(minimize(objective, np.zeros(3), jac=True, method="L-BFGS-B").x)
