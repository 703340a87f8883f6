"""The paper's Monte-Carlo ground truth, sampled as it says: what the exact numbers are checked against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from incrowd.measures.microdata.definition import known_sizes
from incrowd.measures.microdata.overlaps import clean
from incrowd.measures.microdata.spec import Knowledge


@dataclass(frozen=True)
class Simulation:
    """What a number of simulated attacks on one profile gave."""

    mean: float
    """Average number of people who fit, the attacked one included if in the crowd."""
    standard_error: float
    found: float
    """Average of 1/|AS|."""
    alone: float
    """Share of the attacks that left one person."""
    rounds: int


def simulate(
    profile: sparse.csr_matrix,
    crowd: sparse.csr_matrix,
    knowledge: Knowledge,
    *,
    rounds: int = 10_000,
    seed: int = 0,
) -> Simulation:
    """Attack one row `rounds` times: sample its items, count the profiles of the crowd that have them all.

    All rounds of a batch are one matrix product: samples times (item, person), equal to the sample's size.
    """
    items = clean(profile).indices
    has = crowd[:, items].toarray().astype(np.float32).T
    rng = np.random.default_rng(seed)
    sizes, weights = known_sizes(len(items), knowledge)
    amounts = rng.choice(sizes, size=rounds, p=weights)
    fitting = np.empty(rounds)
    for start in range(0, rounds, 512):
        batch = amounts[start : start + 512]
        order = np.argsort(rng.random((len(batch), len(items))), axis=1)
        samples = np.zeros((len(batch), len(items)), dtype=np.float32)
        np.put_along_axis(samples, order, (np.arange(len(items)) < batch[:, None]).astype(np.float32), axis=1)
        fitting[start : start + 512] = ((samples @ has) >= batch[:, None] - knowledge.wrong).sum(axis=1)
    error = float(fitting.std(ddof=1) / np.sqrt(rounds))
    with np.errstate(divide="ignore"):  # an outsider may fit nobody
        return Simulation(
            float(fitting.mean()), error, float((1 / fitting).mean()), float((fitting == 1).mean()), rounds
        )
