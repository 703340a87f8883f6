"""Cuts scores into groups of like risk: X-means on a line, each cluster trimmed before its centre is taken.

X-means (Pelleg and Moore 2000) starts with few clusters and splits one in two where the Bayesian
information criterion says that two explain it better. On a line every step has an exact answer: the best
split of a sorted run is a scan over prefix sums, so nothing is random and no seed is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError
from incrowd.measures.microdata.definition import Floats
from incrowd.measures.microdata.spec import GroupSpec

COARSE = 1024
"""The exact start is found on at most so many averaged points, then refined on all."""


@dataclass(frozen=True)
class Groups:
    """Groups of people with like scores, riskiest first."""

    centres: Floats
    """Average score of each group without its outliers."""
    members: NDArray[np.int64]
    """How many people are in each."""

    @property
    def borders(self) -> Floats:
        """Scores half-way between neighbouring centres: where one group ends and the next begins."""
        return np.asarray((self.centres[1:] + self.centres[:-1]) / 2)

    def of(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of the nearest group, 0 = riskiest; a tie goes to the riskier one."""
        return np.searchsorted(self.borders, scores, side="left").astype(np.int64)


def find_groups(scores: NDArray[np.float64], spec: GroupSpec | None = None) -> Groups:
    """Cut scores into groups; the number of groups is found unless the spec fixes it."""
    spec = spec or GroupSpec()
    values = np.sort(np.asarray(scores, dtype=np.float64))
    if not len(values) or np.isnan(values[-1]):
        raise InputError(
            "scores: expected at least one and no undefined ones, got none or NaN; check the profiles"
        )
    distinct = len(np.unique(values))
    if spec.exactly is not None:
        centres = k_means(values, min(spec.exactly, distinct))
    else:
        centres = x_means(values, min(spec.fewest, distinct), min(spec.most, distinct))
    return _trimmed(values, centres, spec)


def x_means(values: Floats, fewest: int, most: int) -> Floats:
    """Return the centres of as many clusters as the information criterion wants."""
    centres = k_means(values, fewest)
    while len(centres) < most:
        runs = np.split(values, _cuts(values, centres))
        pieces = [_split_if_better(run) for run in runs]
        room = most - len(centres)
        grown: list[float] = []
        for run, halves in zip(runs, pieces, strict=True):
            take = halves is not None and room > 0
            grown += halves if take and halves else [float(run.mean())]
            room -= int(take)
        if len(grown) == len(centres):
            break
        centres = _refine(values, np.array(grown))
    return centres


def k_means(values: Floats, k: int) -> Floats:
    """Return the centres of the best k clusters of sorted values (exact up to 1,024 values, then refined)."""
    if k <= 1:
        return np.array([values.mean()])
    points = np.array_split(values, min(COARSE, len(values)))
    weight = np.array([len(part) for part in points], dtype=np.float64)
    mean = np.array([part.mean() for part in points])
    return _refine(values, _best_runs(mean, weight, k))


def _best_runs(mean: Floats, weight: Floats, k: int) -> Floats:
    """Cut weighted sorted points into k runs of least squares, by dynamic programming over all cuts."""
    w, s, q = (np.concatenate([[0.0], np.cumsum(part)]) for part in (weight, weight * mean, weight * mean**2))
    size = w[None, :] - w[:, None]  # [i, j]: points i..j-1
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = (q[None, :] - q[:, None]) - (s[None, :] - s[:, None]) ** 2 / size
    cost = np.where(size > 0, np.maximum(cost, 0.0), np.inf)
    best, cut_before = cost[0].copy(), []
    for _ in range(k - 1):
        total = best[:, None] + cost
        cut_before.append(np.argmin(total, axis=0))
        best = np.min(total, axis=0)
    cuts = [len(mean)]
    for row in reversed(cut_before):
        cuts.append(int(row[cuts[-1]]))
    edges = np.array([0, *reversed(cuts)])
    return np.asarray((s[edges[1:]] - s[edges[:-1]]) / (w[edges[1:]] - w[edges[:-1]]))


def _cuts(values: Floats, centres: Floats) -> NDArray[np.int64]:
    """Where each cluster ends in the sorted values."""
    return np.searchsorted(values, (centres[1:] + centres[:-1]) / 2, side="right")


def _refine(values: Floats, centres: Floats) -> Floats:
    """Lloyd's steps until nothing moves; on a line a step is a search and a difference of prefix sums."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    for _ in range(1000):
        edges = np.concatenate([[0], _cuts(values, centres), [len(values)]])
        filled = np.diff(edges) > 0
        moved = np.diff(sums[edges])[filled] / np.diff(edges)[filled]
        if len(moved) == len(centres) and np.allclose(moved, centres, rtol=0, atol=1e-12):
            break
        centres = moved
    return centres


def _split_if_better(run: Floats) -> list[float] | None:
    """Return the centres of the two halves of a sorted run if they explain it better than one."""
    if len(run) < 4 or run[0] == run[-1]:
        return None
    centred = run - run.mean()  # the sums below cancel less
    sums = np.cumsum(centred)[:-1]
    left = np.arange(1, len(run))
    between = sums**2 / left + sums**2 / (len(run) - left)
    cut = int(np.argmax(between)) + 1
    whole, halves = [len(run)], [cut, len(run) - cut]
    squares = float(centred @ centred)
    if _bic(halves, squares - float(between[cut - 1])) <= _bic(whole, squares):
        return None
    return [float(run[:cut].mean()), float(run[cut:].mean())]


def _bic(members: list[int], squares: float) -> float:
    """Bayesian information criterion of clusters with one common variance (Pelleg and Moore, section 3.2)."""
    n, k = sum(members), len(members)
    if n <= k:
        return -math.inf
    variance = max(squares / (n - k), 1e-18)
    likelihood = sum(m * math.log(m / n) for m in members)
    likelihood -= n / 2 * math.log(2 * math.pi * variance) + (n - k) / 2
    return likelihood - k * math.log(n)  # k - 1 shares, k centres, one variance: 2k parameters, half each


def _trimmed(values: Floats, centres: Floats, spec: GroupSpec) -> Groups:
    """Take the outliers out of each group and its centre anew; they stay members."""
    runs = [run for run in np.split(values, _cuts(values, centres)) if len(run)]
    cut = [math.floor(spec.trim * len(run)) if len(run) >= spec.trim_from else 0 for run in runs]
    kept = [run[c : len(run) - c] for run, c in zip(runs, cut, strict=True)]
    return Groups(np.array([run.mean() for run in kept]), np.array([len(run) for run in runs]))
