"""From resemblance to a calibrated probability: "30 % sure" should be right 30 % of the time.

Two small models, both learned on pairs of communities other than the one judged:

- *Which target?* A conditional logit: among the targets of source s, target t is the true one with
  probability ``exp(w.z_st) / sum_t' exp(w.z_st')``, given that s has a true one.
- *Is the best one right, where nobody says that there is one?* See :mod:`incrowd.measures.linkability.open_set`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from incrowd.measures.linkability.open_set import UNTAUGHT, OpenSet
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
class _Layout:
    """Where each habit lies, and what it weighs: what it takes to lay out another row like the others."""

    slot: NDArray[np.int32]
    rarity: Scores
    common: int
    rare: int


@dataclass(frozen=True)
class ViewHubs:
    """Who of either side resembles everybody under a view, and the spread of what is left."""

    source: Scores
    target: Scores
    mean: float
    deviation: float


@dataclass(frozen=True)
class View:
    """One family of habits, and what turns its cosines into standard scores."""

    sources: _Sources
    targets: _Targets
    layout: _Layout
    hubs: ViewHubs

    def scores(self, which: NDArray[np.int64]) -> Scores:
        """Return the standard scores of some sources: (sources, targets)."""
        scores = _cosines(self.sources, self.targets, which)
        return self._standard(scores, self.hubs.source[which], self.hubs.target)

    def scores_of_changed(self, source: sp.csr_matrix, target: sp.csr_matrix | None, place: int) -> Scores:
        """Return the standard scores of one source, read again, when its own target, at `place`, is read again too.

        Without a `target` that one stays as it is, like everybody else; so do the weights of habits.
        """
        mine, only = _Sources(*_filled(self._as_wide(source), self.layout)), np.zeros(1, np.int64)
        cosines, hubs = _cosines(mine, self.targets, only), self.hubs.target
        k = min(NEIGHBOURS, len(self.hubs.source), cosines.shape[1])
        if target is not None:
            own = _as_targets(*_filled(self._as_wide(target), self.layout), rare=self.layout.rare)
            cosines[0, place] = _cosines(mine, own, only)[0, 0]
            to_own = _cosines(self.sources, own, np.arange(len(self.hubs.source)))[:, 0]
            hubs = hubs.copy()
            hubs[place] = np.partition(to_own, -k)[-k:].mean()
        hub = np.partition(cosines[0], -k)[-k:].mean(keepdims=True)
        return np.asarray(self._standard(cosines, hub, hubs)[0])

    def turned(self, sources: sp.csr_matrix, targets: sp.csr_matrix, which: NDArray[np.int64]) -> View:
        """Return the same view from the other side: of `which` targets with all sources."""
        rows = _Sources(*_filled(self._as_wide(targets[which]), self.layout))
        lists = _as_targets(*_filled(self._as_wide(sources), self.layout), rare=self.layout.rare)
        hubs = ViewHubs(self.hubs.target[which], self.hubs.source, self.hubs.mean, self.hubs.deviation)
        return View(rows, lists, self.layout, hubs)

    def nearer(self, which: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many of the other side are nearer to each of `which` than its `other` one."""
        found = np.empty(len(which), np.int64)
        for part in blocks(len(which), len(self.hubs.target)):
            scores = self.scores(which[part])
            own = scores[np.arange(len(scores)), other[part]]
            found[part] = (scores > own[:, None]).sum(axis=1)
        return found

    def _as_wide(self, row: sp.csr_matrix) -> sp.csr_matrix:
        """Return a row with the others' columns: a week after everybody's last one meets nobody."""
        width = len(self.layout.slot)
        if row.shape[1] > width:
            return row[:, :width]
        return sp.csr_matrix((row.data, row.indices, row.indptr), shape=(row.shape[0], width))

    def _standard(self, cosines: Scores, of_sources: Scores, of_targets: Scores) -> Scores:
        cosines *= 2
        cosines -= of_sources[:, None]
        cosines -= (of_targets + np.float32(self.hubs.mean))[None, :]
        cosines /= np.float32(self.hubs.deviation)
        return cosines


class Resemblance:
    """Standard scores of all (source, target) pairs under each view, in blocks of sources."""

    def __init__(
        self,
        sources: Habits,
        targets: Habits,
        views: tuple[str, ...],
        hubs: Mapping[str, ViewHubs] = MappingProxyType({}),
    ) -> None:
        self.shape = (len(sources), len(targets))
        self.views = views
        self.laid_out = [view_of(sources, targets, name, hubs.get(name)) for name in views]

    def places(
        self, sides: tuple[Habits, Habits], source: NDArray[np.int64], target: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return how many are nearer to either of each pair under each view, the logarithms of one more added up.

        `sides`: the habits of sources and targets, not kept here, as workers that only score need none of them.
        """
        total, all_of_them = np.zeros(len(source)), np.arange(len(source))
        for name, view in zip(self.views, self.laid_out, strict=True):
            sources, targets = (side.rows[name] for side in sides)
            turned = view.turned(sources, targets, target)
            total += np.log1p(view.nearer(source, target)) + np.log1p(turned.nearer(all_of_them, source))
        return total

    def scores(self, which: Any) -> Scores:
        """Return the scores of some sources: (sources, targets, views)."""
        rows = np.arange(self.shape[0])[which]
        found = np.empty((len(rows), self.shape[1], len(self.views)), np.float32)
        for place, view in enumerate(self.laid_out):
            found[:, :, place] = view.scores(rows)
        return found

    def utilities(self, which: Any, weights: tuple[float, ...]) -> Scores:
        """Return the weighed sum of some sources' scores, without holding the views side by side."""
        rows = np.arange(self.shape[0])[which]
        total = np.zeros((len(rows), self.shape[1]), np.float32)
        for weight, view in zip(weights, self.laid_out, strict=True):
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


def view_of(sources: Habits, targets: Habits, name: str, hubs: ViewHubs | None = None) -> View:
    """Lay one family of habits out, and measure who of either side resembles everybody, unless that is known."""
    x, y, layout = _laid_out(sources.rows[name], targets.rows[name], weighed=name not in TIME_FAMILIES)
    return View(x, y, layout, hubs or _hubs(x, y, len(sources), len(targets)))


def _hubs(x: _Sources, y: _Targets, n: int, m: int) -> ViewHubs:
    """Compare everybody with everybody."""
    from incrowd.measures.linkability.kernels import add_to_hubs  # Numba takes long to load

    source_hub, source_sum, target_sum, squares = np.zeros(n), np.zeros(n), np.zeros(m), 0.0
    best = np.full((m, min(NEIGHBOURS, n, m)), -np.inf, np.float32)
    for rows in blocks(n, m):
        cosines = _cosines(x, y, np.arange(rows.start, rows.stop))
        squares += add_to_hubs(cosines, source_hub[rows], source_sum[rows], target_sum, best)
    target_hub = best.mean(axis=1, dtype=np.float64)
    mean, deviation = _corrected_moments(source_hub, source_sum, target_hub, target_sum, squares)
    return ViewHubs(source_hub.astype(np.float32), target_hub.astype(np.float32), mean, deviation)


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


def _laid_out(
    sources: sp.csr_matrix, targets: sp.csr_matrix, *, weighed: bool
) -> tuple[_Sources, _Targets, _Layout]:
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
    layout = _Layout(slot, rarity, len(common), len(rare))
    laid_out = _as_targets(*_filled(targets, layout), rare=len(rare))
    return _Sources(*_filled(sources, layout)), laid_out, layout


def _filled(rows: sp.csr_matrix, layout: _Layout) -> Any:
    """Return one side: the dense block of common habits, and starts, columns and values of the rare ones."""
    from incrowd.measures.linkability.kernels import fill_rows  # Numba takes long to load

    indptr, indices = rows.indptr.astype(np.int64, copy=False), rows.indices
    counts = rows.data.astype(np.float32, copy=False)
    starts = np.zeros(rows.shape[0] + 1, np.int64)
    dense = np.zeros((rows.shape[0], layout.common), np.float32)
    # What is not written of these takes no memory.
    columns, values = np.empty(len(indices), np.int32), np.empty(len(indices), np.float32)
    fill_rows(
        indptr, indices, counts, _DAMPED, layout.slot, layout.rarity, dense, starts, columns, values
    )  # fmt: skip
    return dense, starts, columns[: starts[-1]], values[: starts[-1]]


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
    """Weights of the views, and what tells whether there is a match at all."""

    views: tuple[str, ...]
    weights: tuple[float, ...]
    open_set: OpenSet = UNTAUGHT

    def utilities(self, scores: Scores) -> Scores:
        """Weigh the views: one number a (source, target) pair, higher = more likely the same person."""
        return np.asarray(scores @ np.asarray(self.weights, scores.dtype))

    def given_match(self, utilities: Scores) -> Scores:
        """Return the probability of each target, given that the source has a true one."""
        shifted = np.exp(utilities - utilities.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


DEFAULT_VIEWS = ("words", "vocabulary", "phrases", "style", "hours", "weeks")


def fit(
    pairs: Sequence[TrainingPair], views: tuple[str, ...] = DEFAULT_VIEWS, *, ridge: float = 1.0
) -> LinkModel:
    """Learn the weights of a link model from labelled pairs of communities."""
    matched = [_Matched.of(pair) for pair in pairs]
    weights = _fit_weights(matched, len(views), ridge)
    return LinkModel(views=views, weights=tuple(float(w) for w in weights))


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
