"""A whole crowd held against a policy: how many people it fails, never who."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.errors import InputError
from incrowd.measures.belief.adversary import Adversary
from incrowd.measures.belief.assess import belief_for
from incrowd.measures.belief.policy import ANY, Policy, Requirement
from incrowd.measures.belief.publication import Withhold
from incrowd.measures.belief.space import HIDDEN, Evidence, Floats
from incrowd.measures.belief.spec import BeliefOptions
from incrowd.measures.belief.table import AttributeTable


@dataclass(frozen=True, eq=False)
class EveryoneChecked:
    """How sure the adversary is of each requirement, person by person."""

    posterior: Floats
    """(people, requirements); NaN where the person gave no value to protect."""
    prior: Floats
    sigma: Floats
    requirements: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return rates only."""
        with np.errstate(invalid="ignore"):
            violated = self.posterior > self.sigma
        return {
            "people": len(self.posterior),
            "violated": float(violated.any(axis=1).mean()),
            "requirements": [
                {
                    "attribute": name,
                    "sigma": float(self.sigma[k]),
                    "judged": int((~np.isnan(self.posterior[:, k])).sum()),
                    "violated": _share(violated[:, k], self.posterior[:, k]),
                    "mean_posterior": _mean(self.posterior[:, k]),
                    "mean_prior": _mean(self.prior[:, k]),
                }
                for k, name in enumerate(self.requirements)
            ],
        }


def check_everyone(
    table: AttributeTable, policy: Policy, options: BeliefOptions | None = None
) -> EveryoneChecked:
    """Hold everybody's profile against one policy; each person's own row is unknown to a stranger."""
    options = options or BeliefOptions()
    _check(policy)
    places = [table.space.place(next(iter(one.values))) for one in policy.requirements]
    belief = belief_for(table, options, places)
    own = np.arange(len(table.codes)) if options.adversary == "stranger" else None
    seen = table.codes.astype(np.int64)
    seen[:, [table.space.place(name) for name in policy.publication.ways]] = HIDDEN
    adversary = Adversary(belief)
    after = adversary.posteriors(places, Evidence(table.space, seen, {}, own))
    before = belief.posteriors(places, Evidence.nothing(table.space))
    columns = [
        (_of_each(table, one, place, now), _of_each(table, one, place, np.repeat(then, len(now), axis=0)))
        for one, place, now, then in zip(policy.requirements, places, after, before, strict=True)
    ]
    return EveryoneChecked(
        np.stack([now for now, _ in columns], axis=1),
        np.stack([then for _, then in columns], axis=1),
        np.array([one.sigma for one in policy.requirements]),
        tuple(next(iter(one.values)) for one in policy.requirements),
    )


def _of_each(table: AttributeTable, one: Requirement, place: int, sure: Floats) -> Floats:
    ((name, value),) = one.values.items()
    if one.own:
        codes = table.codes[:, place]
        return np.where(codes == HIDDEN, np.nan, sure[np.arange(len(sure)), np.maximum(codes, 0)])
    return np.asarray(sure.max(axis=1) if value == ANY else sure[:, table.space.code(name, value)])


def _check(policy: Policy) -> None:
    if any(len(one.values) > 1 for one in policy.requirements) or policy.links or not policy.requirements:
        raise InputError("a whole crowd is checked against requirements of one attribute each")
    if not all(isinstance(way, Withhold) for way in policy.publication.ways.values()):
        raise InputError("a whole crowd is checked with attributes published or withheld, not changed")


def _share(violated: Any, posterior: Floats) -> float:
    defined = ~np.isnan(posterior)
    return float(violated[defined].mean()) if defined.any() else float("nan")


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
