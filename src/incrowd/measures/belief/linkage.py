"""Linkability as an attribute: how sure somebody is that two profiles are one person's (definition 16).

Against an adversary who compares distances only, the a-posteriori belief is the choice rule's probability itself.
Both profiles must be hidden, so the surer of the two directions counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from incrowd.distances.choice import TEMPERATURE, Rule, choice_probabilities
from incrowd.errors import NotInCrowd

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from incrowd.crowd import Crowd
    from incrowd.measures.belief.policy import Unlinkable
    from incrowd.profiles import Profiles


@dataclass(frozen=True)
class Linkage:
    """How sure an adversary is of the attribute "same user", and of a blind guess."""

    posterior: float
    prior: float
    rule: Rule
    sigma: float
    communities: tuple[str, str] = ("", "")

    @property
    def name(self) -> str:
        """What it is called in a critical set."""
        return f"link between {self.communities[0]} and {self.communities[1]}"

    @property
    def unlinkable(self) -> bool:
        """True if both profiles are sigma-unlinkable."""
        return self.posterior <= self.sigma


def unlinkable(
    forth: ArrayLike,
    own_forth: int,
    back: ArrayLike,
    own_back: int,
    *,
    sigma: float,
    rule: Rule = "inverse",
    temperature: float = TEMPERATURE,
) -> Linkage:
    """Judge two profiles by their distances to each other's candidates; `own_*` is the true match's place.

    >>> unlinkable([0.1, 0.2, 0.2], 0, [0.1, 0.1], 0, sigma=0.4).posterior
    0.5
    """
    ways = [
        choice_probabilities(distances, rule, temperature=temperature)[own]
        for distances, own in ((forth, own_forth), (back, own_back))
    ]
    smallest = min(np.size(forth), np.size(back))
    return Linkage(float(max(ways)), 1 / smallest, rule, sigma)


def link_in_crowd(crowd: Crowd, user: str, wanted: Unlinkable) -> Linkage:
    """Measure how sure somebody who has read both communities is that a person's two profiles are one."""
    from incrowd.profiles import unigram
    from incrowd.text.counts import counts

    profiles = unigram(counts(crowd, communities=list(wanted.communities)))
    first, second = (_community(profiles, name, user) for name in wanted.communities)
    forth = _distances(profiles, first[1], second[0])
    back = _distances(profiles, second[1], first[0])
    places = [int(np.flatnonzero(rows == own)[0]) for rows, own in (second, first)]
    found = unlinkable(forth, places[0], back, places[1], sigma=wanted.sigma, rule=wanted.rule)
    return replace(found, communities=wanted.communities)


def _community(profiles: Profiles, community: str, user: str) -> tuple[np.ndarray, int]:
    inside = np.flatnonzero(profiles.ids["community"].to_numpy() == community)
    own = inside[profiles.ids["user"].to_numpy()[inside] == user]
    if not own.size:
        raise NotInCrowd(
            f"same_user: this person has no words in '{community}'; name a community they write in"
        )
    return inside, int(own[0])


def _distances(profiles: Profiles, row: int, others: np.ndarray) -> np.ndarray:
    from incrowd.distances import pairwise

    found: np.ndarray = pairwise(profiles.matrix[[row]], profiles.matrix[others])[0]
    return found
