"""From resemblance to a calibrated probability: "30 % sure" should be right 30 % of the time.

Two small models, both learned on pairs of communities other than the one judged:

- *Which target?* A conditional logit: among the targets of source s, target t is the true one with
  probability ``exp(w.z_st) / sum_t' exp(w.z_st')``, given that s has a true one.
- *Is there one at all?* A logistic regression on how far the best target stands out. The share of sources
  with a match differs between communities, so it is re-estimated on the judged pair by expectation
  maximisation (Saerens, Latinne & Decaestecker 2002), which needs no labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from incrowd.profiles.habits import TIME_FAMILIES, Habits

# How alike two communities' members are, from several views at once.
#
# Each view (a family of habits) gives a cosine for every (source, target) pair. Raw cosines favour *hubs*:
# talkative members who resemble everybody. Cross-domain similarity local scaling (CSLS; Conneau et al. 2018)
# subtracts how alike each side is to its own k nearest on the other side. What is left is standardised, so that
# views can be weighed against each other. Pairs are handled in blocks of sources: memory grows with the
# targets, not with all pairs.

Scores = NDArray[np.floating[Any]]

NEIGHBOURS = 10
BLOCK_BYTES = 128 * 2**20
COMMON_HABITS = 2_048


@dataclass(frozen=True)
class _Rows:
    """Rows of unit length: the habits most people share as a dense block, the rest sparse.

    The few common habits make up most of a product's work, and a dense product does it many times faster.
    """

    common: Scores
    rest: sp.csr_matrix

    @classmethod
    def of(cls, rows: sp.csr_matrix, common: NDArray[np.bool_]) -> _Rows:
        return cls(rows[:, common].toarray(), rows[:, ~common])

    def only(self, which: Any) -> _Rows:
        return _Rows(self.common[which], self.rest[which])

    def cosines(self, targets: _Rows) -> Scores:
        return np.asarray(self.common @ targets.common.T + (self.rest @ targets.rest.T).toarray())


@dataclass(frozen=True)
class _View:
    """One family of habits, and what turns its cosines into standard scores."""

    sources: _Rows
    targets: _Rows
    source_hub: Scores
    target_hub: Scores
    mean: float
    deviation: float

    def scores(self, which: Any) -> Scores:
        cosines = self.sources.only(which).cosines(self.targets)
        corrected = 2 * cosines - self.source_hub[which, None] - self.target_hub[None, :]
        return np.asarray((corrected - self.mean) / self.deviation, np.float32)


class Resemblance:
    """Standard scores of all (source, target) pairs under each view, in blocks of sources."""

    def __init__(self, sources: Habits, targets: Habits, views: tuple[str, ...]) -> None:
        self.shape = (len(sources), len(targets))
        self.views = views
        self._rows = max(1, BLOCK_BYTES // (4 * max(self.shape[1], 1) * len(views)))
        self._views = [self._view(sources.rows[name], targets.rows[name], name) for name in views]

    def scores(self, which: Any) -> Scores:
        """Return the scores of some sources: (sources, targets, views)."""
        return np.stack([view.scores(which) for view in self._views], axis=2)

    def slices(self) -> Iterator[slice]:
        """Cut the sources into blocks whose scores fit the memory set aside for them."""
        for start in range(0, self.shape[0], self._rows):
            yield slice(start, min(start + self._rows, self.shape[0]))

    def _view(self, sources: sp.csr_matrix, targets: sp.csr_matrix, name: str) -> _View:
        if name not in TIME_FAMILIES:  # those are shares already
            sources, targets = _tf_idf(sources, targets)
        common = _common_columns(sources, targets)
        return self._measure_hubs(_Rows.of(sources, common), _Rows.of(targets, common))

    def _measure_hubs(self, sources: _Rows, targets: _Rows) -> _View:
        n, m = self.shape
        k = min(NEIGHBOURS, n, m)
        source_hub, source_sum = np.zeros(n), np.zeros(n)
        target_sum, squares = np.zeros(m), 0.0
        best = np.full((k, m), -np.inf, np.float32)
        for rows in self.slices():
            cosines = sources.only(rows).cosines(targets)
            source_hub[rows] = np.partition(cosines, m - k, axis=1)[:, m - k :].mean(axis=1)
            source_sum[rows] = cosines.sum(axis=1)
            target_sum += cosines.sum(axis=0)
            squares += float((cosines.astype(np.float64) ** 2).sum())
            stacked = np.concatenate([best, cosines])
            best = np.partition(stacked, stacked.shape[0] - k, axis=0)[-k:]
        target_hub = best.mean(axis=0)
        mean, deviation = _corrected_moments(source_hub, source_sum, target_hub, target_sum, squares)
        return _View(
            sources, targets, source_hub.astype(np.float32), target_hub.astype(np.float32), mean, deviation
        )


def _corrected_moments(
    source_hub: Any, source_sum: Any, target_hub: Any, target_sum: Any, squares: float
) -> tuple[float, float]:
    """Return mean and deviation of ``2 s_ij - a_i - b_j`` from sums alone, without a pass over all pairs."""
    n, m = source_hub.size, target_hub.size
    total = n * m
    a, b = source_hub.astype(np.float64), target_hub.astype(np.float64)
    first = (2 * source_sum.sum() - m * a.sum() - n * b.sum()) / total
    second = (
        4 * squares
        + m * (a**2).sum()
        + n * (b**2).sum()
        - 4 * (a @ source_sum)
        - 4 * (b @ target_sum)
        + 2 * a.sum() * b.sum()
    ) / total
    variance = max(second - first**2, 0.0)
    # A view that tells nobody apart (no times, say) has no spread: its scores are all 0.
    return float(first), float(np.sqrt(variance)) if variance > 1e-12 else 1.0


def _common_columns(sources: sp.csr_matrix, targets: sp.csr_matrix) -> NDArray[np.bool_]:
    width = sources.shape[1]
    holders = np.bincount(sources.indices, minlength=width) + np.bincount(targets.indices, minlength=width)
    common = np.zeros(width, bool)
    common[np.argsort(-holders, kind="stable")[:COMMON_HABITS]] = True
    return common


def _tf_idf(sources: sp.csr_matrix, targets: sp.csr_matrix) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Weigh habits by rarity over both communities, damp repetition, scale rows to length 1.

    A habit that one identity alone has cannot link anybody and is left out.
    """
    both = sp.vstack([sources, targets]).tocsr()
    holders = np.bincount(both.indices, minlength=both.shape[1])
    kept = np.flatnonzero(holders > 1)
    both = both[:, kept]
    rarity = np.log((1 + both.shape[0]) / (1 + holders[kept])) + 1
    both.data = ((1 + np.log(both.data)) * rarity[both.indices]).astype(np.float32)
    lengths = np.sqrt(np.asarray(both.multiply(both).sum(axis=1)).ravel())
    both = sp.csr_matrix(sp.diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ both, dtype=np.float32)
    n = sources.shape[0]
    return both[:n], both[n:]


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
    sign = np.where(has, 1.0, -1.0)

    def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (features @ w)
        slope = -(sign / (1 + np.exp(margin))) @ features
        return float(np.logaddexp(0, -margin).sum() + 0.005 * (w @ w)), slope + 0.01 * w

    return np.asarray(minimize(objective, np.zeros(3), jac=True, method="L-BFGS-B").x)
