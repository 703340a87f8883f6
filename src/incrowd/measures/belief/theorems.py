"""Section 4's theorem and corollaries as executable checks, corrected where the paper errs (see NOTES.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from incrowd.measures.belief.adversary import Adversary
from incrowd.measures.belief.critical import critical_sets
from incrowd.measures.belief.definition import posterior, total_variation
from incrowd.measures.belief.engine import Belief
from incrowd.measures.belief.explicit import ExplicitBelief
from incrowd.measures.belief.policy import Policy
from incrowd.measures.belief.space import HIDDEN, Evidence, Floats


def theorem_1(
    belief: ExplicitBelief,
    model: Mapping[str, str | None],
    shown: Collection[str],
    attribute: str,
    default: str | None,
) -> float:
    """Return SD between the beliefs after seeing a person and the same person with one attribute reset.

    The paper claims 1 for every attribute. It is 1 for an attribute that is shown as it is and differs from its
    default, and 0 for one that is not shown.
    """
    as_is = {name: model[name] for name in shown}
    reset = {name: default if name == attribute else value for name, value in as_is.items()}
    beliefs = [posterior(belief.weights, _fits(belief, seen)) for seen in (as_is, reset)]
    return total_variation(*beliefs)


def _fits(belief: ExplicitBelief, seen: Mapping[str, str | None]) -> Floats:
    codes = belief.space.encode(seen)
    return np.asarray(((codes == HIDDEN) | (belief.models == codes)).all(axis=1), dtype=np.float64)


def corollary_1(belief: Belief, evidence: Evidence, attribute: str) -> tuple[float, float]:
    """Return the posterior of a shown value, and the posterior after withholding it.

    The paper claims that a sensitive attribute is 0-critical. It is sigma-critical if and only if the second
    number is at most sigma and the first is above it.
    """
    place = belief.space.place(attribute)
    code = int(evidence.seen[0, place])
    if code == HIDDEN:
        raise ValueError(f"'{attribute}' is not shown")
    hidden = np.zeros((1, len(belief.space.attributes)), dtype=bool)
    hidden[0, place] = True
    shown = belief.posteriors([place], evidence)[0][0, code]
    withheld = belief.posteriors([place], evidence.hiding(hidden))[0][0, code]
    return float(shown), float(withheld)


def corollary_2(belief: Belief, evidence: Evidence, policy: Policy) -> bool:
    """Say whether a profile without critical sets satisfies the policy, given that the prior does.

    The paper omits the precondition and looks at single attributes; here sets of any size are tried, and the
    statement is vacuously true if the prior alone violates the policy.
    """
    adversary = Adversary(belief)
    nothing = Evidence.nothing(belief.space, own_rows=evidence.own_rows)
    if float(policy.excess(adversary, nothing)[0]) > 0:
        return True
    found = critical_sets(adversary, evidence, policy, largest=len(belief.space.attributes))
    satisfied = float(policy.excess(adversary, evidence)[0]) <= 0
    # A single shown attribute has no critical set, because one attribute stays published.
    one_left = int((evidence.seen[0] != HIDDEN).sum() + len(evidence.soft)) <= 1
    return satisfied or bool(found.sets) or one_left


def measured_epsilon(
    belief: Belief, evidence: Evidence, *, default: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Return, for each attribute a person shows, how far one adversary's belief moves if it is reset.

    This is definition 11's SD for this adversary and this publication; the measured epsilon is the largest value.
    An attribute is reset to its entry in `default`, or withheld. The two observations differ in one attribute
    only, so the ratio of the two beliefs depends on that attribute alone, and the distance over whole models is
    the distance over its values. 0 = it makes no difference, 1 = the beliefs have nothing in common.
    """
    space, chosen = belief.space, dict(default or {})
    moved: dict[str, float] = {}
    for place in sorted({*np.flatnonzero(evidence.seen[0] != HIDDEN).tolist(), *evidence.soft}):
        name = space.attributes[place]
        hidden = np.zeros((1, len(space.attributes)), dtype=bool)
        hidden[0, place] = True
        reset = evidence.hiding(hidden)
        if name in chosen:
            reset.seen[0, place] = space.code(name, chosen[name])
        now, then = (belief.posteriors([place], one)[0][0] for one in (evidence, reset))
        moved[name] = total_variation(now, then)
    return moved
