"""The whole distribution of |AS|: how often exactly k people fit, and so how often it is you alone.

E|AS| needs overlaps of pairs only. Pr(|AS| = 1) and E[1/|AS|] need to know *who* fits together. Two ways:

*Exactly*, by searching the adversary's possible samples item by item, rarest first. A branch on which nobody
else, one other or two others still fit is not walked: the remaining samples are counted by binomials.
Profiles whose search would be too long are left to

*Monte Carlo*: seeded random samples, with an interval that holds with 95 % confidence whatever the
distribution (empirical Bernstein bound, Maurer and Pontil 2009). The result says which of the two it is.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from incrowd.arrays import Floats
from incrowd.measures.microdata.definition import known_sizes, log_factorials
from incrowd.measures.microdata.overlaps import Progress, clean
from incrowd.measures.microdata.spec import Knowledge

DOUBT = 0.05
LONGEST_SEARCH = 512
"""Items: beyond this the search never ends in time, and its tables alone would be large."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How hard to try for an exact distribution, and how many samples to draw otherwise."""

    steps: int = 500_000
    """Longest search a profile, in comparisons of 64 people."""
    rounds: int = 2000
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with the interval it lies in; both ends are the number itself if it is exact."""

    value: float
    low: float
    high: float

    @property
    def triple(self) -> tuple[float, float, float]:
        """Value, low, high."""
        return self.value, self.low, self.high


@dataclass(frozen=True)
class SetSizes:
    """How many people fit one profile, and how often: `probabilities[k]` is Pr(|AS| = sizes[k])."""

    sizes: NDArray[np.int64]
    probabilities: Floats
    exact: bool
    rounds: int | None
    """Of the Monte Carlo; None if exact."""

    @property
    def mean(self) -> float:
        """E|AS|, the average number of people who fit."""
        return float(self.sizes @ self.probabilities)

    @property
    def alone(self) -> Estimate:
        """Pr(|AS| = 1): how often the adversary is left with one person, you. Lower is safer."""
        return self._estimate((self.sizes == 1).astype(np.float64))

    @property
    def found(self) -> Estimate:
        """E[1/|AS|]: how often a guess among those who fit is right. Lower is safer; never below 1/E|AS|."""
        return self._estimate(1.0 / self.sizes)

    def _estimate(self, per_size: Floats) -> Estimate:
        value = float(per_size @ self.probabilities)
        if self.rounds is None:
            return Estimate(value=value, low=value, high=value)
        variance = (
            float(((per_size - value) ** 2) @ self.probabilities) * self.rounds / max(self.rounds - 1, 1)
        )
        reach = bernstein_reach(variance, self.rounds)
        return Estimate(value=value, low=max(0.0, value - reach), high=min(1.0, value + reach))


def estimate_of(values: Floats, *, exact: bool) -> Estimate:
    """Return the mean of numbers in [0, 1] that are all there are, or a random sample of them."""
    value = float(values.mean())
    reach = 0.0 if exact else bernstein_reach(float(values.var(ddof=1)), len(values))
    return Estimate(value=value, low=max(0.0, value - reach), high=min(1.0, value + reach))


def bernstein_reach(variance: float, rounds: int) -> float:
    """Half width of an interval for a mean of numbers in [0, 1], wrong at most :data:`DOUBT` of the time."""
    if rounds < 2:
        return 1.0
    log_term = math.log(4.0 / DOUBT)
    return math.sqrt(2.0 * variance * log_term / rounds) + 7.0 * log_term / (3.0 * (rounds - 1))


def tail_table(items: int, knowledge: Knowledge) -> tuple[Floats, Floats, int]:
    """Return leaf[d] and tail[d, r] for the search, and the largest number of known items.

    leaf[d] is the probability of one given sample of d items; tail[d, r] that of all larger samples which
    consist of d given items and any of r others: sum over s > d of weight(s) C(r, s - d) / C(n, s).
    """
    sizes, weights = known_sizes(items, knowledge)
    log_f = log_factorials(items)
    most = int(sizes.max())
    leaf, tail = np.zeros(most + 1), np.zeros((most + 1, items + 1))
    r = np.arange(items + 1)
    for s, weight in zip(sizes.tolist(), weights.tolist(), strict=True):
        log_all = log_f[items] - log_f[s] - log_f[items - s]
        leaf[s] = weight * math.exp(-log_all)
        for d in range(s):
            enough = r >= s - d
            rest = r[enough]
            log_ways = log_f[rest] - log_f[s - d] - log_f[rest - (s - d)]
            tail[d, enough] += weight * np.exp(log_ways - log_all)
    return leaf, tail, most


class SetSizeFinder:
    """Finds the distribution of |AS| for profiles against one crowd."""

    def __init__(self, crowd: sparse.csr_matrix, knowledge: Knowledge, effort: Effort | None = None) -> None:
        columns = sparse.csc_matrix(clean(crowd))
        self.starts = columns.indptr.astype(np.int64)
        self.holders = columns.indices.astype(np.int32)
        self.people = crowd.shape[0]
        self.knowledge, self.effort = knowledge, effort or Effort()

    def find(self, items: NDArray[np.int32], *, member: int | None = None, number: int = 0) -> SetSizes:
        """Return the distribution for one profile.

        `member` is its row if it is part of the crowd, so that it does not count as its own company.
        `number` keeps the random numbers of different profiles apart.
        """
        sizes, weights = known_sizes(len(items), self.knowledge)
        shares = self._shares(items, member, int(sizes.min()))
        searchable = self.knowledge.wrong == 0 and len(items) <= LONGEST_SEARCH
        found = self._search(shares, len(items)) if searchable else None
        if found is not None:
            return _distribution(found, None)
        return _distribution(self._draw(shares, len(items), sizes, weights, number), self.effort.rounds)

    def _shares(self, items: NDArray[np.int32], member: int | None, least: int) -> NDArray[np.uint64]:
        """Return who shares enough to ever fit, as bits over the profile's items, rarest item first."""
        from incrowd.measures.microdata import kernels as cpu  # Numba takes a third of a second to load

        popularity = self.starts[items + 1] - self.starts[items]
        ordered = np.asarray(items)[np.argsort(popularity, kind="stable")].astype(np.int32)
        need = max(0, least - self.knowledge.wrong)
        outsider = -1 if member is None else member
        return np.asarray(cpu.shared_bits(self.starts, self.holders, self.people, ordered, outsider, need))

    def _search(self, shares: NDArray[np.uint64], items: int) -> Floats | None:
        from incrowd.measures.microdata import kernels as cpu  # Numba takes a third of a second to load

        sizes, _ = known_sizes(items, self.knowledge)
        leaf, tail, most = tail_table(items, self.knowledge)
        found = np.zeros(len(shares) + 1)
        enough = cpu.search(shares, items, int(sizes.min()), most, leaf, tail, self.effort.steps, found)
        return found if enough else None

    def _draw(self, shares: Any, items: int, sizes: Any, weights: Floats, number: int) -> Floats:
        from incrowd.measures.microdata import kernels as cpu  # Numba takes a third of a second to load

        found = np.zeros(len(shares) + 1)
        cumulative = np.cumsum(weights)
        effort = self.effort
        cpu.draw(
            shares, items, sizes, cumulative, self.knowledge.wrong, effort.rounds, effort.seed, number, found
        )
        return found / effort.rounds


def _distribution(others: Floats, rounds: int | None) -> SetSizes:
    """Turn "so many others fit" into set sizes; the person always fits, too."""
    seen = np.flatnonzero(others)
    return SetSizes(seen + 1, np.asarray(others[seen] / others.sum()), rounds is None, rounds)


@dataclass(frozen=True)
class Risks:
    """For every profile: how often found, how often alone, with intervals, and whether exactly so."""

    found: NDArray[np.float64]
    """Columns value, low, high of E[1/|AS|]."""
    alone: NDArray[np.float64]
    """Columns value, low, high of Pr(|AS| = 1)."""
    exact: NDArray[np.bool_]


def risks(
    profiles: sparse.csr_matrix,
    crowd: sparse.csr_matrix,
    knowledge: Knowledge,
    *,
    rows: NDArray[np.int64] | None = None,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> Risks:
    """Return E[1/|AS|] and Pr(|AS| = 1) of every profile; `rows` are their rows if they are in the crowd."""
    profiles = clean(profiles)
    finder = SetSizeFinder(crowd, knowledge, effort)
    people = profiles.shape[0]
    out = Risks(np.empty((people, 3)), np.empty((people, 3)), np.empty(people, dtype=bool))

    def one(person: int) -> None:
        items = profiles.indices[profiles.indptr[person] : profiles.indptr[person + 1]].astype(np.int32)
        sizes = finder.find(items, member=None if rows is None else int(rows[person]), number=person)
        out.found[person], out.alone[person] = sizes.found.triple, sizes.alone.triple
        out.exact[person] = sizes.exact

    # The compiled search lets go of the interpreter, so plain threads use every core.
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for done, _ in enumerate(threads.map(one, range(people)), start=1):
            if progress:
                progress(done, people, "looking for who fits together")
    return out
