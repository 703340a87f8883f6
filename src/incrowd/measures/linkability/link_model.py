"""From resemblance to a calibrated probability: "30 % sure" should be right 30 % of the time.

Two small models, both learned on pairs of communities other than the one judged:

- *Which target?* A conditional logit: among the targets of source s, target t is the true one with
  probability ``exp(w.z_st) / sum_t' exp(w.z_st')``, given that s has a true one.
- *Is there one at all?* A logistic regression on the lead of the best target over the second. The best of
  many strangers resembles a source more than the best of few, so its height says little where communities
  differ in size; the lead of the best over the second best stranger does not grow with their number. The share
  of sources with a match differs between communities, so it is re-estimated on the judged pair by expectation
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
from incrowd.statistics import fit_logistic

# How alike two communities' members are, from several views at once.
#
# Each view (a family of habits) gives a cosine for every (source, target) pair. Raw cosines favour *hubs*:
# talkative members who resemble everybody. Cross-domain similarity local scaling (CSLS; Conneau et al. 2018)
# subtracts how alike each side is to its own k nearest on the other side. What is left is standardised, so that
# views can be weighed against each other. Pairs are handled in blocks of sources: memory grows with the
# targets, not with all pairs.

Scores = NDArray[np.floating[Any]]

NEIGHBOURS = 10
BLOCK_BYTES = 16 * 2**20
COMMON_FROM = 0.1
"""Share of identities who have a habit for it to be laid out densely: where both ways cost about the same."""
MOST_COMMON = 2_048
LIST_ENTRIES = 2**18
"""Entries of rare habits' lists that meet all rows before the next ones do: what stays in the cache."""
_DAMPED = np.append(0.0, 1 + np.log(np.arange(1, 256)))
"""What a habit seen so often is worth."""


@dataclass(frozen=True)
class _Sources:
    """Rows of unit length: the habits many people share as a dense block, the rare ones row by row.

    The few common habits make up most of a product's work, and a dense product does it many times faster.
    """

    common: Scores
    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: Scores


@dataclass(frozen=True)
class _Targets:
    """The same of the other side, the rare habits as lists of those who have them."""

    common: Scores
    edges: NDArray[np.int64]
    """The rare habits in ranges of about LIST_ENTRIES entries: where each ends."""
    starts: NDArray[np.int64]
    holders: NDArray[np.int32]
    values: Scores


@dataclass(frozen=True)
class View:
    """One family of habits, and what turns its cosines into standard scores."""

    sources: _Sources
    targets: _Targets
    source_hub: Scores
    target_hub: Scores
    mean: float
    deviation: float

    def scores(self, which: NDArray[np.int64]) -> Scores:
        """Return the standard scores of some sources: (sources, targets)."""
        scores = _cosines(self.sources, self.targets, which)
        scores *= 2
        scores -= self.source_hub[which, None]
        scores -= (self.target_hub + np.float32(self.mean))[None, :]
        scores /= np.float32(self.deviation)
        return scores


class Resemblance:
    """Standard scores of all (source, target) pairs under each view, in blocks of sources."""

    def __init__(self, sources: Habits, targets: Habits, views: tuple[str, ...]) -> None:
        self.shape = (len(sources), len(targets))
        self.views = views
        self._views = [view_of(sources, targets, name) for name in views]

    def scores(self, which: Any) -> Scores:
        """Return the scores of some sources: (sources, targets, views)."""
        rows = np.arange(self.shape[0])[which]
        found = np.empty((len(rows), self.shape[1], len(self.views)), np.float32)
        for place, view in enumerate(self._views):
            found[:, :, place] = view.scores(rows)
        return found

    def utilities(self, which: Any, weights: tuple[float, ...]) -> Scores:
        """Return the weighed sum of some sources' scores, without holding the views side by side."""
        rows = np.arange(self.shape[0])[which]
        total = np.zeros((len(rows), self.shape[1]), np.float32)
        for weight, view in zip(weights, self._views, strict=True):
            scores = view.scores(rows)
            scores *= np.float32(weight)
            total += scores
        return total

    def slices(self) -> Iterator[slice]:
        """Cut the sources into blocks whose scores fit the memory set aside for them."""
        return blocks(*self.shape, views=len(self.views))


def blocks(rows: int, targets: int, views: int = 1) -> Iterator[slice]:
    """Cut rows into blocks whose scores against all targets fit the memory set aside for them."""
    step = max(1, BLOCK_BYTES // (4 * max(targets, 1) * views))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def view_of(sources: Habits, targets: Habits, name: str) -> View:
    """Lay one family of habits out, and measure who of either side resembles everybody."""
    from incrowd.measures.linkability.kernels import add_to_hubs  # Numba takes long to load

    n, m = len(sources), len(targets)
    x, y = _laid_out(sources.rows[name], targets.rows[name], weighed=name not in TIME_FAMILIES)
    source_hub, source_sum, target_sum, squares = np.zeros(n), np.zeros(n), np.zeros(m), 0.0
    best = np.full((m, min(NEIGHBOURS, n, m)), -np.inf, np.float32)
    for rows in blocks(n, m):
        cosines = _cosines(x, y, np.arange(rows.start, rows.stop))
        squares += add_to_hubs(cosines, source_hub[rows], source_sum[rows], target_sum, best)
    target_hub = best.mean(axis=1, dtype=np.float64)
    mean, deviation = _corrected_moments(source_hub, source_sum, target_hub, target_sum, squares)
    return View(x, y, source_hub.astype(np.float32), target_hub.astype(np.float32), mean, deviation)


def _cosines(sources: _Sources, targets: _Targets, which: NDArray[np.int64]) -> Scores:
    """Return the cosines of some sources with all targets."""
    from incrowd.measures.linkability.kernels import add_rare  # Numba takes long to load

    out = np.asarray(sources.common[which] @ targets.common.T, np.float32)
    add_rare(
        which, sources.starts, sources.columns, sources.values,
        targets.edges, targets.starts, targets.holders, targets.values, out,
    )  # fmt: skip
    return out


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


def _laid_out(sources: sp.csr_matrix, targets: sp.csr_matrix, *, weighed: bool) -> tuple[_Sources, _Targets]:
    """Weigh habits by rarity over both communities, damp repetition, scale rows to length 1.

    A habit that one identity alone has cannot link anybody and is left out. Shares of time are not weighed.
    """
    from incrowd.measures.linkability.kernels import count_holders  # Numba takes long to load

    width = max(sources.shape[1], targets.shape[1])  # weeks end with a community's last post
    of_source, of_target = np.zeros((2, width), np.int32)
    count_holders(sources.indices, of_source)
    count_holders(targets.indices, of_target)
    holders, people = of_source + of_target, sources.shape[0] + targets.shape[0]
    rarity = np.zeros(0, np.float32)
    if weighed:
        rarity = np.where(holders > 1, np.log((1 + people) / (1 + holders)) + 1, 0).astype(np.float32)
    meet = (of_source > 0) & (of_target > 0)
    common = np.flatnonzero(meet & (holders >= COMMON_FROM * people))
    common = common[np.argsort(-holders[common], kind="stable")][:MOST_COMMON]
    meet[common] = False
    rare = np.flatnonzero(meet)
    slot = np.full(width, -1, np.int32)
    slot[common] = np.arange(len(common), dtype=np.int32)
    slot[rare] = np.arange(len(common), len(common) + len(rare), dtype=np.int32)
    return (
        _Sources(*_filled(sources, slot, rarity, len(common))),
        _as_targets(*_filled(targets, slot, rarity, len(common)), rare=len(rare)),
    )


def _filled(rows: sp.csr_matrix, slot: NDArray[np.int32], rarity: Scores, common: int) -> Any:
    """Return one side: the dense block of common habits, and starts, columns and values of the rare ones."""
    from incrowd.measures.linkability.kernels import fill_rows, rare_sizes  # Numba takes long to load

    indptr, indices = rows.indptr.astype(np.int64, copy=False), rows.indices
    counts = rows.data.astype(np.float32, copy=False)
    sizes = np.zeros(rows.shape[0], np.int64)
    rare_sizes(indptr, indices, slot, common, sizes)
    starts = np.append(0, np.cumsum(sizes))
    dense = np.zeros((rows.shape[0], common), np.float32)
    columns, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    fill_rows(indptr, indices, counts, _DAMPED, slot, rarity, dense, starts, columns, values)
    return dense, starts, columns, values


def _as_targets(common: Scores, starts: Any, columns: Any, values: Any, *, rare: int) -> _Targets:
    from incrowd.measures.linkability.kernels import count_holders, posting_lists  # Numba takes long to load

    sizes = np.zeros(rare, np.int32)
    count_holders(columns, sizes)
    list_starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
    holders, weights = np.empty(len(columns), np.int32), np.empty(len(columns), np.float32)
    posting_lists(starts, columns, values, list_starts[:-1].copy(), holders, weights)
    cuts = np.searchsorted(list_starts, np.arange(LIST_ENTRIES, len(columns), LIST_ENTRIES), side="left")
    return _Targets(common, np.append(np.unique(cuts), rare), list_starts, holders, weights)


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
    presence: tuple[float, float]
    """Log odds of a match: intercept, and weight of the best target's lead over the second."""
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
        intercept, weight = self.presence
        return np.asarray(intercept + weight * _lead(utilities))

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
    lead = np.concatenate([_lead(u) for u in utilities])
    return LinkModel(
        views=views,
        weights=tuple(float(w) for w in weights),
        presence=_fit_presence(lead, has),
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


def _lead(utilities: Scores) -> NDArray[np.float64]:
    """Return how far the best target of each source stands before the second; 0 where there is only one."""
    u = np.asarray(utilities, np.float64)
    if u.shape[1] == 1:
        return np.zeros(u.shape[0])
    two = np.partition(u, u.shape[1] - 2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def _fit_presence(lead: NDArray[np.float64], has: NDArray[np.bool_]) -> tuple[float, float]:
    """Return intercept and weight of the log odds that a source with such a lead has a match."""
    fitted = fit_logistic(lead[:, None], has, ridge=0.01)
    weight = float(fitted.weights[1] / fitted.spread[0])
    return float(fitted.weights[0] - weight * fitted.mean[0]), weight
