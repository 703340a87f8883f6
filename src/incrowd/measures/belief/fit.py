"""How much do people differ from those like them? Chosen so that hidden values are guessed best.

Each attribute has its own smoothing. One that says nothing about the others (a birthday) is smoothed away, as
cross-validation does for irrelevant variables (Hall, Racine and Li 2004, doi:10.1198/016214504000000548); without
that, a chance agreement on many attributes would make the adversary, and so the report, far too sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from incrowd.measures.belief.crowd_belief import CrowdBelief
from incrowd.measures.belief.space import HIDDEN, Evidence, Floats, Ints
from incrowd.measures.belief.table import AttributeTable

GRID = (0.01, 0.1, 0.4, 0.8, 0.97, 1.0)
ROWS = 2000
PEOPLE = 150
SWEEPS = 2
START = 0.9
WORTH = 2.0
"""Trusting an attribute more must explain the sample better by so many nats in all, or it is chance."""
FLOOR = 1e-6
"""A value that was ruled out and is true costs this much, not everything."""


def fitted_belief(table: AttributeTable, targets: Sequence[int] | None = None, seed: int = 0) -> CrowdBelief:
    """Return the crowd's belief with the smoothing that guesses the targets of left-out people best.

    At most ROWS people are compared with PEOPLE of them, so the cost does not grow with the crowd.
    """
    whole = CrowdBelief.learn(table, START)
    asked = range(len(table.space.attributes)) if targets is None else targets
    if len(table.codes) < 3 or not asked:
        return whole
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(table.codes))[:ROWS])
    some = table.only(rows)
    belief = replace(
        CrowdBelief.learn(some, START), shares=whole.shares
    )  # every value of the whole crowd has a share
    own = np.sort(rng.permutation(len(rows))[:PEOPLE])
    evidence = Evidence(table.space, some.codes[own].astype(np.int64), {}, own)
    return replace(whole, smoothing=_best(belief, evidence, list(asked)))


def _best(belief: CrowdBelief, evidence: Evidence, targets: list[int]) -> Floats:
    """Improve one attribute's smoothing at a time."""
    chosen, score = belief.smoothing.copy(), _score(belief, evidence, targets)
    needed = WORTH / max(1, int((evidence.seen[:, targets] != HIDDEN).sum()))
    for _ in range(SWEEPS):
        before = score
        for place in range(len(chosen)):
            for value in GRID:
                if value == chosen[place]:
                    continue
                tried = chosen.copy()
                tried[place] = value
                reached = _score(replace(belief, smoothing=tried), evidence, targets)
                if reached > score + (needed if value < chosen[place] else 0.0):
                    chosen, score = tried, reached
        if score - before < 1e-4:
            break
    return chosen


def _score(belief: CrowdBelief, evidence: Evidence, targets: list[int]) -> float:
    """Return the mean log-probability given to people's true values when they are hidden."""
    guesses = belief.predictions(targets, evidence)
    logs = [
        _log_of_truth(guess, evidence.seen[:, place]) for guess, place in zip(guesses, targets, strict=True)
    ]
    return float(np.concatenate(logs).mean()) if any(map(len, logs)) else 0.0


def _log_of_truth(guess: Floats, codes: Ints) -> Floats:
    known = np.flatnonzero(codes != HIDDEN)
    return np.asarray(np.log(np.maximum(guess[known, codes[known]], FLOOR)))
