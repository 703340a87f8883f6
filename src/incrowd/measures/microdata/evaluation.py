"""How well do the scores a client can compute agree with the truth only the provider could know?

Truth is the exact E|AS| of everybody in the crowd; agreement is rank correlation (Spearman and Kendall, paper
002 table 2). 1 means the score puts people in the same order as the truth, 0 that it knows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from incrowd.arrays import Floats
from incrowd.engine.local import Engine
from incrowd.measures.microdata import anonymity_set
from incrowd.measures.microdata.client import class_model
from incrowd.measures.microdata.expected_crowd import expected_others_of_all, independent
from incrowd.measures.microdata.overlaps import Progress
from incrowd.measures.microdata.provider import ScoredPeople, Tally, publish, publish_taste, score_everybody
from incrowd.measures.microdata.spec import GroupSpec, Knowledge, ProfileFilter, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import ReleaseState, Statistics
from incrowd.measures.microdata.table import ItemTable, require_people
from incrowd.result import Result

STUDY_SECRET = b"an evaluation publishes nothing, so its releases may be repeated"
TASTE_GROUPS = 8


@dataclass(frozen=True)
class Agreement:
    """Rank correlations of a score with the truth."""

    spearman: float
    kendall: float
    people: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return {
            name: None if math.isnan(v) else v
            for name, v in (("spearman", self.spearman), ("kendall", self.kendall))
        }


@dataclass(frozen=True, repr=False)
class Evaluation(Result):
    """Everybody's exact crowd and every score of them."""

    table: ItemTable
    knowledge: Knowledge
    others: Floats
    """E|AS| - 1, exact."""
    scored: ScoredPeople
    estimates: dict[str, Floats]
    """Score name -> one value per person, higher is safer."""
    warnings: tuple[str, ...]

    @property
    def agreements(self) -> dict[str, Agreement]:
        """How well each score orders people."""
        return {name: agreement(values, self.others) for name, values in self.estimates.items()}

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        crowd = 1 + self.others
        return (
            f"Half of {len(crowd):,} people have a crowd of at most {np.median(crowd):.3g} among items, themselves "
            f"included; {share_below(crowd, 10):.0%} have fewer than 10."
        )

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per person, without names: the exact crowd and every score."""
        columns = {"crowd": 1 + self.others, **self.estimates}
        return [
            dict(zip(columns, map(float, row), strict=True)) for row in zip(*columns.values(), strict=True)
        ]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the share of people whose crowd is smaller than some sizes."""
        crowd = 1 + self.others
        return [(f"fewer than {size} people", share_below(crowd, size)) for size in (2, 5, 10, 50)]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON that other programs rely on."""
        crowd = 1 + self.others
        return {
            "users": self.table.matrix.shape[0],
            "items": self.table.matrix.shape[1],
            "entries": int(self.table.matrix.nnz),
            "exact": True,
            "scores": {name: one.to_dict() for name, one in self.agreements.items()},
            "median_crowd": float(np.median(crowd)),
            "crowd": {f"p{q}": float(np.percentile(crowd, q)) for q in (5, 25, 50, 75, 95)},
            "share_below": {str(size): share_below(crowd, size) for size in (2, 5, 10, 50)},
            "groups": [
                {"centre": float(centre), "people": int(people)}
                for centre, people in zip(self.scored.groups.centres, self.scored.groups.members, strict=True)
            ],
            "adversary": self.knowledge.words,
            "knowledge": self.knowledge.to_dict(),
            "data_hash": self.table.data_hash,
            "warnings": list(self.warnings),
        }


def share_below(crowd: Floats, size: int) -> float:
    """Return the share of people whose crowd is smaller; an average that misses the size by rounding alone is not."""
    return float(np.mean(crowd < size * (1 - 1e-9)))


def to_ten_digits(values: Floats) -> Floats:
    """Return values to about ten digits: those that differ by rounding alone tie."""
    part, power = np.frexp(values)
    return np.asarray(np.ldexp(np.round(np.ldexp(part, 33)), power - 33))


def agreement(score: Floats, truth: Floats) -> Agreement:
    """Return the rank correlations; NaN where one of the two does not vary."""
    people = len(truth)
    score, truth = to_ten_digits(score), to_ten_digits(truth)
    if people < 2 or np.ptp(score) == 0 or np.ptp(truth) == 0:
        return Agreement(math.nan, math.nan, people)
    from scipy.stats import kendalltau, spearmanr  # takes half a second; assessing a person does without

    return Agreement(float(spearmanr(score, truth)[0]), float(kendalltau(score, truth)[0]), people)


def evaluate(
    table: ItemTable,
    *,
    knowledge: Knowledge | None = None,
    score: ScoreSpec | None = None,
    groups: GroupSpec | None = None,
    release: ReleaseSpec | None = None,
    memory: int = 2**30,
    device: anonymity_set.Device = "cpu",
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compute everybody's exact crowd, and compare every score with it."""
    require_people(table)
    knowledge, score = knowledge or Knowledge(), score or ScoreSpec()
    matrix = table.matrix
    others = anonymity_set.expected_others(
        matrix, matrix, knowledge, memory=memory, device=device, engine=engine, progress=progress
    )
    scored = score_table(table, score, groups)
    estimates = {"paper": scored.scores, **crowd_estimates(table, knowledge, score, release)}
    return Evaluation(table, knowledge, others, scored, estimates, _warnings(table, score))


def score_table(table: ItemTable, spec: ScoreSpec, groups: GroupSpec | None = None) -> ScoredPeople:
    """Score everybody by the paper's formula with exact popularities."""
    users = Tally.of(table, spec).users
    return score_everybody(users["items"].to_numpy(), users["rare"].to_numpy(), spec, groups)


def crowd_estimates(
    table: ItemTable, knowledge: Knowledge, score: ScoreSpec, release: ReleaseSpec | None = None
) -> dict[str, Floats]:
    """Estimate everybody's crowd from what a provider would publish, as the clients would."""
    release = release or ReleaseSpec()
    statistics = published(table, score, release)
    people, _ = table.matrix.shape
    exact, one = independent(table.popularity / people)
    out = {
        "expected-crowd": estimate_from(table, statistics, knowledge),
        "independent": expected_others_of_all(table.matrix, exact, one * (people - 1), knowledge),
    }
    groups = release.taste_groups or TASTE_GROUPS
    if people >= 4 * release.crowd * groups and min(table.matrix.shape) > groups + 8:
        with_taste = published(
            table, score, ReleaseSpec(crowd=release.crowd, step=release.step, taste_groups=groups)
        )
        out["expected-crowd-taste"] = estimate_from(table, with_taste, knowledge)
    return out


def published(table: ItemTable, score: ScoreSpec, release: ReleaseSpec) -> Statistics:
    """Return the statistics a provider with this table would publish first; of too few people, what comes nearest."""
    fits = (len(table.users) - 1) // 2
    release = replace(release, crowd=min(release.crowd, fits)) if fits else ReleaseSpec(literal=True)
    tally, everybody = Tally.of(table, score), ProfileFilter(fewest=1, most=int(table.sizes.max()))
    publish_it = partial(
        publish, tally, state=ReleaseState.fresh(STUDY_SECRET), release=release, profiles=everybody
    )
    statistics, _ = publish_it()
    if not release.taste_groups:
        return statistics
    taste = publish_taste(table, statistics.activity, release, tally.threshold, STUDY_SECRET)
    return publish_it(taste=taste)[0]


def estimate_from(table: ItemTable, statistics: Statistics, knowledge: Knowledge) -> Floats:
    """Return the expected number of others of everybody, from statistics alone."""
    names = table.items.to_list()
    probabilities, people = class_model(names, statistics.people_with(names), statistics)
    return expected_others_of_all(table.matrix, probabilities, people, knowledge)


def _warnings(table: ItemTable, score: ScoreSpec) -> tuple[str, ...]:
    people = table.matrix.shape[0]
    if people < 2000 and score.rare_fraction is None:
        share = score.rare_below / people
        line = f"'rare' means fewer than {score.rare_below} people, {share:.0%} of this crowd of {people:,}"
        return (f"{line}; consider a share instead (rare_fraction=0.01)",)
    return ()
