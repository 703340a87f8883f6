"""A whole crowd held against a policy: how many people it fails, never who."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.errors import InputError
from incrowd.measures.belief.assess import belief_for
from incrowd.measures.belief.engine import BeliefModel, joint_probability
from incrowd.measures.belief.policy import ANY, Perturb, Policy, Publish, Requirement, Way, Withhold
from incrowd.measures.belief.spec import BeliefOptions
from incrowd.profiles.attributes import HIDDEN, AttributeTable, Floats, Ints, SeenAttributes
from incrowd.result import Result


@dataclass(frozen=True, eq=False, repr=False)
class EveryoneChecked(Result):
    """How sure the adversary is of each requirement, person by person."""

    posterior: Floats
    """(people, requirements); NaN where the person gave no value to protect."""
    prior: Floats
    sigma: Floats
    requirements: tuple[str, ...]

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        told = self.to_dict()
        return f"The policy fails {told['violated']:.0%} of {told['people']:,} people."

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each requirement."""
        rows: list[dict[str, Any]] = self.to_dict()["requirements"]
        return rows

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the share of people each requirement fails."""
        return [(row["attribute"], float(row["violated"])) for row in self.rows()]

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
    if policy.links or policy.profiles or not policy.requirements:
        raise InputError(
            "a whole crowd is checked against requirements of attributes, not of linked profiles or of single ones"
        )
    policy.publication.check(table.space.attributes)
    belief = belief_for(table, options, policy.targets(table.space))
    own = np.arange(len(table.codes)) if options.adversary == "stranger" else None
    seen, nothing = published_by_all(table, policy, options.seed, own), SeenAttributes.nothing(table.space)
    columns = [
        column for one in policy.requirements for column in _columns(table, belief, one, seen, nothing)
    ]
    return EveryoneChecked(
        np.stack([after for _, after, _ in columns], axis=1),
        np.stack([before for _, _, before in columns], axis=1),
        np.array(
            [one.sigma for one in policy.requirements for _ in range(1 if one.joint else len(one.values))]
        ),
        tuple(name for name, _, _ in columns),
    )


def published_by_all(table: AttributeTable, policy: Policy, seed: int, own: Ints | None) -> SeenAttributes:
    """Return what everybody shows under one publication; the seed decides perturbed values."""
    seen, rng = table.codes.astype(np.int64), np.random.default_rng(seed)
    evidence = SeenAttributes(table.space, seen, {}, own)
    for name in sorted(policy.publication.ways):
        way, place = policy.publication.ways[name], table.space.place(name)
        if isinstance(way, Publish):
            continue
        codes, values = seen[:, place].copy(), table.space.values[place]
        seen[:, place] = HIDDEN
        if not isinstance(way, Withhold):
            evidence = evidence.hinting(place, _hints(way, values, codes, rng))
    return evidence


def _hints(way: Way, values: Sequence[str | None], codes: Ints, rng: np.random.Generator) -> Floats:
    """Return how probable what each person shows is under every value; people without a value show nothing."""
    hints = np.ones((len(codes), len(values)))
    given = np.flatnonzero(codes != HIDDEN)
    if isinstance(way, Perturb):
        shown = _perturbed(way, codes[given], len(values), rng)
        each = np.stack([way.likelihood(values, str(value)) for value in values])
    else:
        shown = codes[given]
        names = [way.show(str(value), values, rng) for value in values]
        each = np.stack([way.likelihood(values, str(name)) for name in names])
    hints[given] = each[shown]
    return hints


def _perturbed(way: Perturb, codes: Ints, size: int, rng: np.random.Generator) -> Ints:
    """Draw what readers see of each code: itself, or one of the others, each as probably."""
    if size == 1:
        return codes
    other = (codes + rng.integers(1, size, len(codes))) % size
    return np.where(rng.random(len(codes)) < way.keep, codes, other)


Column = tuple[str, Floats, Floats]


def _columns(
    table: AttributeTable,
    belief: BeliefModel,
    one: Requirement,
    seen: SeenAttributes,
    nothing: SeenAttributes,
) -> list[Column]:
    """Return (name, posterior, prior) of each value a requirement names, or of all at once if it is joint."""
    space, people = table.space, len(seen)
    if one.joint:
        event = {space.place(name): space.code(name, value) for name, value in one.values.items()}
        after, before = (joint_probability(belief, event, evidence) for evidence in (seen, nothing))
        return [(" and ".join(one.values), after, np.repeat(before, people))]
    places = [space.place(name) for name in one.values]
    after_each, before_each = belief.posteriors(places, seen), belief.posteriors(places, nothing)
    return [
        (
            space.attributes[place],
            _of_each(table, one, place, after),
            _of_each(table, one, place, np.repeat(before, people, axis=0)),
        )
        for place, after, before in zip(places, after_each, before_each, strict=True)
    ]


def _of_each(table: AttributeTable, one: Requirement, place: int, sure: Floats) -> Floats:
    name = table.space.attributes[place]
    if one.own:
        codes = table.codes[:, place]
        return np.where(codes == HIDDEN, np.nan, sure[np.arange(len(sure)), np.maximum(codes, 0)])
    value = one.values[name]
    return np.asarray(sure.max(axis=1) if value == ANY else sure[:, table.space.code(name, value)])


def _share(violated: Any, posterior: Floats) -> float:
    defined = ~np.isnan(posterior)
    return float(violated[defined].mean()) if defined.any() else float("nan")


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
