"""The mathematics of (k, d)-anonymity: how many people are as like you as d.

Paper 000, definitions 17 to 20, with the corrections of NOTES.md. Everything here works on arrays of
distances; `distances` holds the distances from one member e to the members of its community, e itself
(distance 0) included, because e counts towards its own crowd.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from incrowd.distances.choice import Rule, choice_probabilities


def is_convergent(distances: ArrayLike, d: float) -> bool:
    """Say whether everybody lies within d of e (definition 17: the set is *d-convergent for e*)."""
    return bool((np.asarray(distances) <= d).all())


def crowd_size(distances: ArrayLike, d: float) -> int:
    """Count the members within d of e: \\|A(d)\\|, at least 1, for e itself.

    >>> crowd_size([0.0, 0.2, 0.5, 0.9], 0.5)
    3
    """
    return int((np.asarray(distances) <= d).sum())


def is_anonymous(distances: ArrayLike, k: int, d: float) -> bool:
    """Say whether e is (k, d)-anonymous: some d-convergent subset with e has at least k members."""
    return crowd_size(distances, d) >= k


def smallest_radius(distances: ArrayLike, k: int) -> float:
    """Return the smallest d at which e hides among k people; NaN if the community has fewer.

    >>> smallest_radius([0.0, 0.2, 0.5, 0.9], 3)
    0.5
    """
    ordered = np.sort(np.asarray(distances, dtype=np.float64))
    return float(ordered[k - 1]) if 1 <= k <= ordered.size else float("nan")


def matches(distance: float, c: float) -> bool:
    """Say whether two entities c-match (definition 20): their distance is at most c."""
    return distance <= c


def unlinkable(
    distances: ArrayLike,
    match: int,
    sigma: float,
    rule: Rule = "inverse",
) -> bool:
    """Say whether a pair is sigma-unlinkable (definition 16) for an adversary who sees only distances.

    `distances` go from one profile to all candidates, `match` is the place of the true one. Under such an
    adversary the posterior that the two belong together is the rule's probability itself.

    >>> unlinkable([0.4, 0.4, 0.4, 0.4], 0, 0.25)
    True
    """
    return bool(choice_probabilities(distances, rule)[match] <= sigma)


def crowd_ranks(sizes: ArrayLike) -> NDArray[np.int64]:
    """Rank members by crowd size, 1 = smallest crowd = most exposed; equals share the best rank.

    >>> crowd_ranks([5, 1, 5, 9]).tolist()
    [2, 1, 2, 4]
    """
    array = np.asarray(sizes)
    return np.searchsorted(np.sort(array), array, side="left") + 1
