"""Which published attribute moved the adversary's belief, step by step."""

from __future__ import annotations

import numpy as np

from incrowd.measures.belief.adversary import Adversary
from incrowd.measures.belief.critical import published
from incrowd.measures.belief.policy import Requirement
from incrowd.measures.belief.space import Evidence
from incrowd.result import Evidence as Part


def steps(adversary: Adversary, evidence: Evidence, one: Requirement) -> tuple[Part, ...]:
    """Return how the belief moves as attributes come in, those that say most alone first; it ends at the posterior.

    The parts add up to posterior minus prior exactly. The order matters for how the sum is shared out, as in any
    explanation of a joint effect; the total does not depend on it.
    """
    places = published(evidence)
    if not places:
        return ()
    alone = _believed(adversary, evidence, one, [[place] for place in places])
    nothing = _believed(Adversary(adversary.belief), evidence, one, [[]])[0]
    order = [places[i] for i in np.argsort(-np.abs(alone - nothing), kind="stable")]
    reached = _believed(adversary, evidence, one, [order[:k] for k in range(len(order) + 1)])
    names = [f"your {evidence.space.attributes[place]}" for place in order]
    moves = np.diff(reached, prepend=nothing)
    parts = [Part(what=name, contribution=float(move)) for name, move in zip(names, moves[1:], strict=True)]
    if abs(moves[0]) > 1e-12:
        parts.append(Part(what="your words and communities", contribution=float(moves[0])))
    return tuple(parts)


def _believed(
    adversary: Adversary, evidence: Evidence, one: Requirement, shown: list[list[int]]
) -> np.ndarray:
    hidden = np.ones((len(shown), len(evidence.space.attributes)), dtype=bool)
    for row, places in enumerate(shown):
        hidden[row, places] = False
    return np.asarray(one.belief(adversary, evidence.hiding(hidden)).max(axis=1))
