"""Intervals hold: exact coverage by enumeration, clustered ones by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta, binom

from incrowd.measures.linkability.definition import clustered_mean


@pytest.mark.parametrize("n", [20, 33, 100, 242])
def test_precision_at_k_covers_every_rate(n: int) -> None:
    """All outcomes of n people, one pair each, at every rate and beside every end of an interval."""
    hits = np.arange(n + 1)
    found = [clustered_mean(np.arange(n) < x, np.arange(n)) for x in hits]
    low, high = np.array([i.low for i in found]), np.array([i.high for i in found])
    rates = np.concatenate([np.linspace(0.001, 0.999, 500), [0.03, 0.0125], low[1:] - 1e-9, high[:-1] + 1e-9])
    covered = [(binom.pmf(hits, n, p) * ((low <= p) & (p <= high))).sum() for p in rates]
    assert min(covered) >= 0.93


def test_one_pair_a_person_is_the_interval_of_clopper_and_pearson() -> None:
    found = clustered_mean([1.0] * 7 + [0.0] * 43, np.arange(50))
    assert (found.low, found.high) == pytest.approx((beta.ppf(0.025, 7, 44), beta.ppf(0.975, 8, 43)))


@pytest.mark.parametrize(("people", "most"), [(20, 6), (60, 2), (200, 6)])
@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.4])
def test_several_pairs_a_person(people: int, most: int, alike: float, rate: float) -> None:
    """`alike` 1: a person's pairs share one fate; 0: they have nothing to do with each other."""
    generator, runs, covered = np.random.default_rng(3), 300, 0
    for _ in range(runs):
        who = np.repeat(np.arange(people), generator.integers(1, most + 1, people))
        chance = np.full(people, rate)
        if alike == 1:
            chance = (generator.random(people) < rate).astype(float)
        elif alike:
            chance = generator.beta(rate * (1 - alike) / alike, (1 - rate) * (1 - alike) / alike, people)
        found = clustered_mean(generator.random(len(who)) < chance[who], who)
        covered += found.low <= rate <= found.high
    assert covered / runs >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / runs)  # the simulation's own error
