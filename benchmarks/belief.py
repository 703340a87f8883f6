"""Belief at scale: one person against a million rows, critical sets of 20 attributes, a whole crowd and a policy.

    python -m benchmarks belief

Made-up people with 20 attributes. Times are the best of three; the crowd is checked with both engines. `cpu_seconds`
is what the work takes of one core: on a machine that does other things, twice the wall time on two cores.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks._timing import best
from incrowd.measures.belief.adversary import BeliefAdversary
from incrowd.measures.belief.critical import critical_sets
from incrowd.measures.belief.crowd_belief import CrowdBelief, fitted_belief
from incrowd.measures.belief.policy import Policy, Publication, Requirement, Withhold
from incrowd.measures.belief.ready import check_everyone
from incrowd.measures.belief.spec import BeliefOptions
from incrowd.profiles.attributes import HIDDEN, AttributeSpace, AttributeTable, SeenAttributes
from incrowd.synthetic import SyntheticAttributes


def made_up(people: int, missing: float = 0.1) -> AttributeTable:
    made = SyntheticAttributes(users=people, missing=missing)
    codes = made.codes(np.arange(people))
    names = tuple(sorted(codes))
    table = np.stack([codes[name] for name in names], axis=1).astype(np.int32)
    table[np.random.default_rng(0).random(table.shape) < missing] = HIDDEN
    space = AttributeSpace(names, tuple(made.truth.by_name[name].values for name in names))
    return AttributeTable(space, table, np.arange(people).astype(object), "made up")


def one_person(people: int) -> dict:
    table = made_up(people)
    belief = CrowdBelief.learn(table, 0.1)
    place = table.space.place("religion")
    seen = table.codes[:1].astype(np.int64).copy()
    seen[0, place] = HIDDEN
    evidence = SeenAttributes(table.space, seen, {}, np.array([0]))
    belief.posteriors([place], evidence)
    return {
        "rows": people,
        "one_attribute_ms": 1e3 * best(lambda: belief.posteriors([place], evidence)),
        "all_attributes_ms": 1e3 * best(lambda: belief.posteriors(range(20), evidence)),
        "fit_seconds": best(lambda: fitted_belief(table, [place]), 1),
    }


def critical(people: int) -> dict:
    table = made_up(people, missing=0.0)
    belief = CrowdBelief.learn(table, 0.1)
    evidence = SeenAttributes(table.space, table.codes[:1].astype(np.int64), {}, np.array([0]))
    policy = Policy(requirements=(Requirement(values={"religion": "*"}, sigma=0.0),))
    found = []
    begin = time.process_time()
    took = best(lambda: found.append(critical_sets(BeliefAdversary(belief), evidence, policy)), 3)
    spent = (time.process_time() - begin) / 3
    return {
        "rows": people,
        "attributes": 20,
        "sets_tried": found[0].tried,
        "seconds": took,
        "cpu_seconds": spent,
    }


def everyone(people: int, engine: str) -> dict:
    table = made_up(people)
    policy = Policy(
        requirements=(
            Requirement(values={"religion": "*"}, sigma=0.5, own=True),
            Requirement(values={"income": "*"}, sigma=0.6, own=True),
        ),
        publication=Publication(ways={"religion": Withhold(), "income": Withhold()}),
    )
    report = []
    begin = time.process_time()
    took = best(
        lambda: report.append(check_everyone(table, policy, BeliefOptions(engine=engine)).to_dict()), 1
    )
    spent = time.process_time() - begin
    return {"people": people, "seconds": took, "cpu_seconds": spent, "violated": report[0]["violated"]}


def main() -> dict:
    return {
        "posterior": one_person(1_000_000),
        "critical_sets": critical(100_000),
        "everyone_network": everyone(100_000, "network"),
        "everyone_crowd": everyone(100_000, "crowd"),
    }
