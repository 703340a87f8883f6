"""Questions paper 002 leaves open, asked of any table: knowledge, thresholds, publishing, growth, adversaries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.arrays import Floats
from incrowd.drawing import Chart, Series
from incrowd.measures.microdata.anonymity_set import (
    ScoringAttack,
    expected_others,
    others_against,
    scoring_attack,
)
from incrowd.measures.microdata.evaluation import (
    Evaluation,
    agreement,
    estimate_from,
    evaluate,
    published,
    score_table,
    share_below,
)
from incrowd.measures.microdata.provider import find_groups
from incrowd.measures.microdata.set_sizes import Effort, risks
from incrowd.measures.microdata.spec import ADVERSARIES, GroupSpec, Knowledge, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.table import ItemTable, restrict
from incrowd.study.figures import Section, Table

if TYPE_CHECKING:
    from incrowd.engine.local import Engine

PERCENTS = (1, 2, 5, 10, 20, 50)
SHARES = (0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """How much to compute."""

    sample: int = 200
    """People in the parts that are simulated or searched."""
    seed: int = 0
    memory: int = 2**30


GROUP_COUNTS = (2, 3, 4, 5, 6)


def knowledge_section(base: Evaluation, options: StudyOptions, engine: Engine | None = None) -> Section:
    """How much depends on what the adversary knows, and on how shares are rounded."""
    matrix = base.table.matrix
    asked = [Knowledge(percents=(percent,)) for percent in PERCENTS]
    rules = {
        "half-up, at least 1": Knowledge(),
        "down, at least 1": Knowledge(rounding="floor"),
        "up": Knowledge(rounding="ceil"),
        "down, perhaps none (literal)": Knowledge(rounding="floor", minimum=0),
    }
    others = expected_others(matrix, matrix, [*asked, *rules.values()], memory=options.memory, engine=engine)
    median = np.median(1 + others, axis=1)
    scores = base.scored.scores
    rounding = tuple(
        (name, float(median[len(asked) + k]), agreement(scores, others[len(asked) + k]).spearman)
        for k, name in enumerate(rules)
    )
    return Section(
        heading="What the adversary knows",
        text="The more they know, the fewer fit. Rounding matters for small profiles only.",
        parts=(
            Chart(
                kind="lines",
                title="The crowd shrinks with what is known",
                sentence=f"Knowing {PERCENTS[0]} % leaves half of the people among {median[0]:.0f} or fewer; "
                f"knowing {PERCENTS[-1]} % among {median[len(asked) - 1]:.1f}.",
                x_label="percent of the items known",
                y_label="median number of people who fit",
                series=(Series.of("median crowd", PERCENTS, median[: len(asked)]),),
                x_log=True,
                y_log=True,
            ),
            Table(
                title="How a share becomes a number of items",
                columns=("rounding", "median crowd", "Spearman of the paper's score"),
                rows=rounding,
            ),
        ),
    )


def threshold_section(base: Evaluation) -> Section:
    """When is an item rare?"""
    specs = {
        "fewer than 10 people": ScoreSpec(rare_below=10),
        "fewer than 25 people": ScoreSpec(rare_below=25),
        "fewer than 50 people": ScoreSpec(rare_below=50),
        "fewer than 100 people (paper)": ScoreSpec(),
        "fewer than 200 people": ScoreSpec(rare_below=200),
        "fewer than 500 people": ScoreSpec(rare_below=500),
        "fewer than 1,000 people": ScoreSpec(rare_below=1000),
        "less than 1 % of the crowd": ScoreSpec(rare_fraction=0.01),
        "less than 10 % of the crowd": ScoreSpec(rare_fraction=0.1),
        "fewer than 100 people, log base 2": ScoreSpec(log_base=2),
        "fewer than 100 people, log base 10": ScoreSpec(log_base=10),
    }
    rows = []
    for name, spec in specs.items():
        scored = score_table(base.table, spec)
        one = agreement(scored.scores, base.others)
        rows.append((name, one.spearman, one.kendall, len(scored.groups.centres)))
    return Section(
        heading="When is an item rare?",
        text="The paper draws the line at 100 people whatever the size of the crowd, and names no logarithm.",
        parts=(
            Table(
                title="Agreement of the paper's score, by threshold and logarithm",
                columns=("rare means", "Spearman", "Kendall", "groups"),
                rows=tuple(rows),
            ),
        ),
    )


def group_counts_section(base: Evaluation) -> Section:
    """The paper lets the provider choose the number of groups: what each choice would tell people."""
    scores, crowd = base.scored.scores, 1 + base.others
    rows = []
    for wanted in () if np.isnan(scores).any() else GROUP_COUNTS:  # all alike: no scale, and nothing to group
        groups = find_groups(scores, GroupSpec(exactly=wanted))
        label = groups.of(scores)
        safest, riskiest = label == label.max(), label == label.min()
        rows.append(
            (
                wanted,
                len(groups.centres),
                ", ".join(f"{centre:.2f}" for centre in groups.centres),
                float(np.mean(safest)),
                float(scores[safest].min()),
                float(np.percentile(crowd[safest], 5)),
                float(np.percentile(crowd[riskiest], 95)),
            )
        )
    return Section(
        heading="How many groups?",
        text=f"X-means finds {len(base.scored.groups.centres)} groups here. With another number the borders move, and "
        "so does what people are told.",
        parts=(
            Table(
                title="Groups by their number",
                columns=(
                    "groups asked for",
                    "made",
                    "centroids",
                    "share in the safest",
                    "safest: score from",
                    "safest: crowd from (5 %)",
                    "riskiest: crowd to (95 %)",
                ),
                rows=tuple(rows),
            ),
        ),
    )


def release_section(base: Evaluation) -> Section:
    """What publishing safely costs."""
    specs = {
        "exact counts (paper)": ReleaseSpec(literal=True),
        "at least 5 people": ReleaseSpec(crowd=5),
        "at least 10 people": ReleaseSpec(),
        "at least 20 people": ReleaseSpec(crowd=20),
    }
    if base.table.matrix.shape[0] >= 320 and min(base.table.matrix.shape) > 16:
        specs["at least 10 people, 8 taste groups"] = ReleaseSpec(taste_groups=8)
    rows = []
    for name, spec in specs.items():
        statistics = published(base.table, ScoreSpec(), spec)
        one = agreement(estimate_from(base.table, statistics, base.knowledge), base.others)
        rows.append((name, len(statistics.popularity), one.spearman, one.kendall))
    return Section(
        heading="What publishing safely costs",
        text="Counts of few people are left out, the others told as bands. The expected crowd hardly suffers.",
        parts=(
            Table(
                title="Agreement of the expected crowd, by what is published",
                columns=("no number about fewer than", "items listed", "Spearman", "Kendall"),
                rows=tuple(rows),
            ),
        ),
    )


def sample_section(table: ItemTable, options: StudyOptions) -> Section:
    """Smaller databases of the same kind."""
    rng = np.random.default_rng(options.seed)
    order = rng.permutation(table.matrix.shape[0])
    rows = []
    for share in SHARES:
        part = restrict(table, np.sort(order[: max(2, round(share * len(order)))]))
        one = evaluate(part, memory=options.memory)
        crowd = 1 + one.others
        scores = (one.agreements["paper"].spearman, one.agreements["expected-crowd"].spearman)
        rows.append(
            (f"{share:.0%}", *part.matrix.shape, float(np.median(crowd)), share_below(crowd, 2), *scores)
        )
    columns = ("sample", "people", "items", "median crowd", "share below 2", "paper", "expected-crowd")
    return Section(
        heading="Sampled databases",
        text="A sample of the people is as sparse as the whole, but each person hides among fewer.",
        parts=(
            Table(
                title="The same measures in samples (Spearman in the last columns)",
                columns=columns,
                rows=tuple(rows),
            ),
        ),
    )


def early_section(table: ItemTable, options: StudyOptions) -> Section:
    """Early adopters: how the score of the first people drifts while the database fills."""
    people = table.matrix.shape[0]
    order = arrival(table, options.seed)
    first = order[: max(2, min(people // 10, 500))]
    final = score_table(table, ScoreSpec()).scores[first]
    xs, scores, crowds = [], [], []
    for size in np.unique(np.geomspace(len(first), people, 8).astype(np.int64)):
        rows = np.sort(order[:size])
        part = restrict(table, rows)
        place = np.searchsorted(rows, first)
        xs.append(float(size))
        scores.append(float(np.mean(np.abs(score_table(part, ScoreSpec()).scores[place] - final))))
        others = expected_others(part.matrix[place], part.matrix, Knowledge(), memory=options.memory)
        crowds.append(float(np.median(1 + others)))
    return Section(
        heading="Early adopters",
        text="The first people in an almost empty database are scored on a scale that means little yet.",
        parts=(
            Chart(
                kind="lines",
                title="How far the first people's scores are from where they end",
                sentence=f"With {xs[0]:,.0f} people the scores are {scores[0]:.2f} off on average.",
                x_label="people in the database",
                y_label="average distance from the final score",
                series=(Series.of("drift", xs, scores),),
                x_log=True,
            ),
            Chart(
                kind="lines",
                title="How the first people's crowd grows",
                sentence=f"From {crowds[0]:.1f} to {crowds[-1]:.1f} people who fit (median).",
                x_label="people in the database",
                y_label="median number of people who fit",
                series=(Series.of("median crowd", xs, crowds),),
                x_log=True,
                y_log=True,
            ),
        ),
    )


def arrival(table: ItemTable, seed: int) -> NDArray[np.int64]:
    """Return people in the order they came: by their first dated item, at random where there is none."""
    people = table.matrix.shape[0]
    shuffled = np.random.default_rng(seed).permutation(people)
    days = np.where(np.isnan(table.days), np.inf, table.days)
    first = np.minimum.reduceat(days, table.matrix.indptr[:-1]) if len(days) else np.full(people, np.inf)
    return shuffled[np.argsort(first[shuffled], kind="stable")]


def adversary_section(table: ItemTable, options: StudyOptions) -> Section:
    """Adversaries who know more, or err."""
    rows = []
    for one in ADVERSARIES.values():
        if table.has(one.matching):
            crowd = 1 + others_against(table, one, memory=options.memory)
            rows.append((one.words, float(np.median(crowd)), share_below(crowd, 2)))
    return Section(
        heading="Stronger adversaries",
        text="The first table is exact and for everybody. The second simulates somebody who scores all "
        "profiles against what they believe, some of it wrong, and accepts only a clear winner.",
        parts=(
            Table(
                title="Who knows what, and how many still fit",
                columns=("adversary", "median crowd", "share of people below 2"),
                rows=tuple(rows),
            ),
            _scoring_table(table, options),
        ),
    )


def _scoring_table(table: ItemTable, options: StudyOptions) -> Table:
    sampled = _sample(table.matrix.shape[0], options)
    base = ScoringAttack(seed=options.seed, wrong_items=0)
    attacks = [base, replace(base, wrong_items=1), replace(base, wrong_items=3)]
    if not np.isnan(table.ratings).all() and not np.isnan(table.days).all():
        attacks.append(replace(base, wrong_items=1, use_ratings=True, use_dates=True))
    rows = []
    for attack in attacks:
        rates = scoring_attack(table, attack, sampled)
        found, mistaken = float(rates.found.mean()), float(rates.mistaken.mean())
        rows.append((attack.words, found, mistaken, 1 - found - mistaken))
    return Table(
        title=f"Scoring attack on {len(sampled)} people, {base.rounds} times each",
        columns=("adversary", "found", "mistaken for another", "undecided"),
        rows=tuple(rows),
    )


def found_section(base: Evaluation, options: StudyOptions) -> Section:
    """1/E|AS| understates how often people are found."""
    sampled = _sample(base.table.matrix.shape[0], options)
    effort = Effort(seed=options.seed)
    matrix = base.table.matrix
    found = risks(matrix[sampled], matrix, base.knowledge, rows=sampled, effort=effort)
    naive = 1 / (1 + base.others[sampled])
    rows = (
        ("one over the average crowd, 1/E|AS|", float(naive.mean()), float(np.median(naive))),
        ("picked out with one guess, E[1/|AS|]", *_mean_median(found.found[:, 0])),
        ("nobody else fits, Pr(|AS| = 1)", *_mean_median(found.alone[:, 0])),
    )
    return Section(
        heading="How often would they be found?",
        text="An average crowd of ten is not one chance in ten: crowds vary, and small ones count more.",
        parts=(
            Table(
                title=f"Three readings, for {len(sampled)} people",
                columns=("reading", "mean", "median"),
                rows=rows,
                note=f"Exact for {found.exact.mean():.0%} of them, simulated ({effort.rounds:,} rounds, seed "
                f"{effort.seed}) for the others.",
            ),
        ),
    )


def _sample(people: int, options: StudyOptions) -> NDArray[np.int64]:
    rng = np.random.default_rng(options.seed)
    return np.sort(rng.choice(people, size=min(people, options.sample), replace=False)).astype(np.int64)


def _mean_median(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(np.median(values))
