"""Which published attribute moved the adversary's belief, step by step."""

from __future__ import annotations

import numpy as np

from incrowd.measures.belief.adversary import Adversary
from incrowd.measures.belief.critical import candidates
from incrowd.measures.belief.policy import Requirement
from incrowd.measures.belief.space import Evidence
from incrowd.result import Evidence as Part


def steps(adversary: Adversary, evidence: Evidence, one: Requirement) -> tuple[Part, ...]:
    """Return how the belief moves as attributes come in, those that say most alone first; it ends at the posterior.

    The parts add up to posterior minus prior exactly. The order matters for how the sum is shared out, as in any
    explanation of a joint effect; the total does not depend on it.
    """
    names = candidates(adversary, evidence)
    places = list(names)
    if not places:
        return ()
    alone = _believed(adversary, evidence, one, [[place] for place in places])
    nothing = _believed(Adversary(adversary.belief), evidence, one, [[]])[0]
    order = [places[i] for i in np.argsort(-np.abs(alone - nothing), kind="stable")]
    reached = _believed(adversary, evidence, one, [order[:k] for k in range(len(order) + 1)])
    moves = np.diff(reached, prepend=nothing)
    parts = [
        Part(what=worded(names[place]), contribution=float(move))
        for place, move in zip(order, moves[1:], strict=True)
    ]
    if abs(moves[0]) > 1e-12:
        parts.append(Part(what="what else is known of you", contribution=float(moves[0])))
    return tuple(parts)


def worded(name: str) -> str:
    """Say what may be withheld as a person would."""
    return f"the {name}" if name.startswith("link between ") else f"your {name}"


def _believed(
    adversary: Adversary, evidence: Evidence, one: Requirement, shown: list[list[int]]
) -> np.ndarray:
    many = len(evidence.space.attributes) + len(adversary.traces.names)
    hidden = np.ones((len(shown), many), dtype=bool)
    for row, places in enumerate(shown):
        hidden[row, places] = False
    return np.asarray(one.belief(adversary, evidence.hiding(hidden)).max(axis=1))
