"""People who are in both communities of a pair: who they are, and how many hide each of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.protocol import PreparedCrowd
from incrowd.measures.sampling import sampled_rows


@dataclass(frozen=True, eq=False)
class PeopleInBoth:
    """People who are in both communities of a pair."""

    names: NDArray[Any]
    rows: NDArray[np.int64]
    """Their rows in the source community."""
    distances: NDArray[np.float64]
    """How far their two profiles are apart."""
    sets: NDArray[np.int64]
    """Their matching sets."""
    people: int
    """How many there are in all; more than rows where these are a sample."""

    def without(self, row: int | None) -> PeopleInBoth:
        """Return all but one of them."""
        some = self.rows != row
        return PeopleInBoth(
            self.names[some], self.rows[some], self.distances[some], self.sets[some], self.people - 1
        )


def matching_sets(crowd: PreparedCrowd, pair: LinkabilityOptions, *, sample: bool = False) -> PeopleInBoth:
    """Return the matching set of everybody who is in both communities, measured once for the same data.

    `sample`: of a fixed random sample of them, where all pairs of people are too many.
    """
    here, there = crowd.words(pair.source), crowd.words(pair.target)
    x, y = (index.posts[index.rows] >= pair.min_posts for index in (here, there))
    names, a, b = np.intersect1d(here.names[x], there.names[y], return_indices=True)
    people = len(names)
    some = sampled_rows(people, int(y.sum())) if sample else None
    if some is not None:
        names, a, b = names[some], a[some], b[some]

    def measure() -> dict[str, NDArray[Any]]:
        from incrowd.distances import Compute, ranks

        keys, compute = np.union1d(here.keys, there.keys), Compute(memory=pair.memory // 2)
        pairs = np.column_stack([np.arange(len(a)), b]).astype(np.int64).reshape(-1, 2)
        sources, targets = here.shares(here.rows[x][a], keys), there.shares(there.rows[y], keys)
        # Whoever is nearer than the true one, or as near, or the true one: nobody else is needed.
        found = ranks(sources, targets, pairs, compute=compute)
        return {"matching": found.worst, "distances": found.distances}

    question = {"what": "matching sets of people in both", **pair.parameters()}
    question |= {} if some is None else {"sampled": len(some)}
    known = crowd.answer(question, measure)
    distances = known["distances"].astype(np.float64)
    return PeopleInBoth(names, here.rows[x][a], distances, known["matching"], people)


def most_people_in_both(crowd: PreparedCrowd, least: int) -> list[tuple[str, str]]:
    """Return the pairs of communities with somebody in both, those with the most people first."""
    there = {}
    for name in crowd.population.communities:
        index = crowd.words(name)
        there[name] = index.names[index.posts[index.rows] >= least]
    larger_first = sorted(there, key=lambda name: (-len(crowd.words(name)), name))
    found = [
        (len(np.intersect1d(there[one], there[two])), one, two) for one, two in combinations(larger_first, 2)
    ]
    found = [one for one in found if one[0]]
    return [(one, two) for _, one, two in sorted(found, key=lambda pair: (-pair[0], pair[1], pair[2]))]
