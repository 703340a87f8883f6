"""Paper 002 on any table of items: its two tables, its figures, and the questions it leaves open.

:func:`microdata_study` returns plain tables and charts; nothing here draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

from incrowd import __version__
from incrowd.drawing import Chart, Series
from incrowd.measures.microdata.client import bar_of, bar_words, split_upper
from incrowd.measures.microdata.evaluation import Evaluation, evaluate, share_below, to_ten_digits
from incrowd.measures.microdata.overlaps import Progress
from incrowd.measures.microdata.provider import ScoredPeople
from incrowd.measures.microdata.spec import ScoreSpec
from incrowd.measures.microdata.table import ItemTable
from incrowd.study.figures import Cell, Headline, Section, Study, Table
from incrowd.study.microdata_questions import (
    StudyOptions,
    adversary_section,
    early_section,
    found_section,
    group_counts_section,
    knowledge_section,
    release_section,
    sample_section,
    threshold_section,
)

if TYPE_CHECKING:
    from incrowd.engine.local import Engine


DRAWN = 120
"""Points of a curve; more would not be seen."""


def microdata_study(
    table: ItemTable,
    options: StudyOptions | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Study:
    """Run every experiment on one table."""
    options = options or StudyOptions()
    base = evaluate(table, memory=options.memory, engine=engine)
    parts: list[Callable[[], Section]] = [
        lambda: data_section(table),
        lambda: agreement_section(base),
        lambda: groups_section(base),
        lambda: group_counts_section(base),
        lambda: knowledge_section(base, options, engine),
        lambda: threshold_section(base),
        lambda: release_section(base),
        lambda: sample_section(table, options),
        lambda: early_section(table, options),
        lambda: adversary_section(table, options),
        lambda: found_section(base, options),
    ]
    sections = []
    for number, part in enumerate(parts, start=1):
        sections.append(part())
        if progress:
            progress(number, len(parts), sections[-1].heading)
    return Study(
        name="microdata",
        title="Hiding in a table of items",
        summary=_summary(base),
        sections=tuple(sections),
        facts=_facts(base, options),
        headlines=_headlines(base),
    )


def _headlines(base: Evaluation) -> tuple[Headline, ...]:
    people, items = base.table.matrix.shape
    crowd = (
        f"{people:,} people and {items:,} items here; 7,626 to 13,265 people and 1,763 to 13,630 items there"
    )
    paper, rows = base.agreements["paper"], group_rows(base)
    safest, riskiest = rows[-1], rows[0]
    return (
        Headline(
            result="Spearman of score and crowd (table 2)",
            paper="0.83, 0.91, 0.84",
            here=paper.spearman,
            why=f"{crowd}; the crowd is exact here and simulated in 10,000 rounds there",
        ),
        Headline(
            result="Kendall of score and crowd (table 2)",
            paper="0.65, 0.73, 0.64",
            here=paper.kendall,
            why="as above",
        ),
        Headline(
            result="p value of the rank correlation",
            paper="0",
            here=float(spearmanr(to_ten_digits(base.estimates["paper"]), to_ten_digits(base.others)).pvalue),
            why="too small for a double in the paper",
        ),
        Headline(
            result="groups found by X-means (figures 4 to 6)",
            paper="3 on each data set",
            here=len(rows),
            why="the paper does not say where X-means starts; here with 2",
        ),
        Headline(
            result="score at which the safest group begins",
            paper="0.83 (Netflix) to 0.9 (Yahoo Movies)",
            here=safest[3],
            why="depends on the number of groups and on the largest profile, which sets the scale",
        ),
        Headline(
            result="crowd at which the safest group begins (5 %)",
            paper="50 to 200",
            here=safest[5],
            why="grows with the crowd",
        ),
        Headline(
            result="crowd at which the riskiest group ends (95 %)",
            paper="50",
            here=riskiest[6],
            why="grows with the crowd",
        ),
    )


def _summary(base: Evaluation) -> str:
    crowd = 1 + base.others
    paper = base.agreements["paper"].spearman
    return (
        f"{base.table.matrix.shape[0]:,} people and {base.table.matrix.shape[1]:,} items. "
        f"For {base.knowledge.words}, half of the people hide among {np.median(crowd):.1f} people or fewer, "
        f"and {share_below(crowd, 2):.0%} among fewer than two. The score people can compute themselves orders "
        f"them like the truth with a rank correlation of {paper:.2f}."
    )


def _facts(base: Evaluation, options: StudyOptions) -> dict[str, Any]:
    return {
        "paper": "Boukoros and Katzenbeisser 2017, doi:10.1145/3098954.3098977",
        "adversary": base.knowledge.words,
        "knowledge": base.knowledge.to_dict(),
        "rare below": ScoreSpec().rare_below,
        "log base": "e",
        "sample": options.sample,
        "seed": options.seed,
        "data hash": base.table.data_hash or "not from a crowd",
        "incrowd": __version__,
    }


def data_section(table: ItemTable) -> Section:
    """Table 1 and figures 2 and 3: how large, and how long the tails."""
    people, items = table.matrix.shape
    entries = int(table.matrix.nnz)
    row = (people, entries, items, entries / people, entries / people / items)
    columns = ("people", "entries", "items", "items a person", "share of all items")
    size = Table(title="Table 1: the data", columns=columns, rows=(row,))
    return Section(
        heading="The data",
        text="A few people have very much, and a few items are had by very many: both curves fall steeply.",
        parts=(
            size,
            _ranked("Figure 2: items in each profile", table.sizes, "person, by rank", "items"),
            _ranked("Figure 3: people who have each item", table.popularity, "item, by rank", "people"),
        ),
    )


def _ranked(title: str, counts: NDArray[np.int64], x_label: str, y_label: str) -> Chart:
    ordered = np.sort(counts)[::-1]
    ranks = np.unique(np.geomspace(1, len(ordered), DRAWN).astype(np.int64))
    half = int(np.median(ordered))
    return Chart(
        kind="lines",
        title=title,
        sentence=f"Largest {int(ordered[0]):,}, half have {half:,} or fewer.",
        x_label=x_label,
        y_label=y_label,
        series=(Series.of(y_label, ranks, ordered[ranks - 1]),),
        x_log=True,
        y_log=True,
    )


def agreement_section(base: Evaluation) -> Section:
    """Table 2: does the score a client computes order people like the truth?"""
    crowd = np.log1p(base.others)
    rows = []
    for name, one in base.agreements.items():
        off = np.nan if name == "paper" else float(np.median(np.abs(np.log1p(base.estimates[name]) - crowd)))
        told, truth = to_ten_digits(base.estimates[name]), to_ten_digits(base.others)
        p_values = (float(test(told, truth).pvalue) for test in (spearmanr, kendalltau))
        rows.append((name, one.spearman, one.kendall, *p_values, np.exp(off)))
    return Section(
        heading="Does the score tell the truth?",
        text="Truth is the exact average number of people who fit (E|AS|), which only the holder of all data "
        "can compute. The paper's score and the expected crowd need published counts alone. 1 means the same "
        "order.",
        parts=(
            Table(
                title="Table 2: rank correlation with the exact crowd",
                columns=("score", "Spearman", "Kendall", "p, Spearman", "p, Kendall", "typical factor off"),
                rows=tuple(rows),
                note="'independent' is the expected crowd from exact counts without activity classes. The "
                "factor is between the estimated and the exact number of people; the paper's score has no such "
                "reading. p: how likely a correlation as strong would be without any (two-sided); 0: too small for a "
                "number of this precision.",
            ),
        ),
    )


def _label_table(scored: ScoredPeople) -> Table:
    """Figure 8: what a person is shown; the two safest groups are halved."""
    borders = split_upper([float(border) for border in scored.groups.borders])
    words = bar_words(len(borders) + 1)
    bar = np.array([bar_of(float(score), borders) for score in scored.scores])
    edges = [0.0, *borders, 1.0]
    rows = tuple(
        (word, edges[-2 - k], edges[-1 - k], float(np.mean(bar == k))) for k, word in enumerate(words)
    )
    return Table(
        title="Figure 8: the bars of the label, best first",
        columns=("bar", "score from", "to", "share of people"),
        rows=rows,
    )


GroupRow = tuple[int, int, float, float, float, float, float]


def group_rows(base: Evaluation) -> list[GroupRow]:
    """Return for each group, riskiest first: number, people, centroid, scores from and to, crowd from and to."""
    scored, crowd = base.scored, 1 + base.others
    label = scored.groups.of(scored.scores)
    rows: list[GroupRow] = []
    for group, centre in enumerate(scored.groups.centres):
        inside = label == group
        if not inside.any():
            rows.append((group + 1, 0, float(centre), np.nan, np.nan, np.nan, np.nan))
            continue
        scores, (low, high) = scored.scores[inside], np.percentile(crowd[inside], [5, 95])
        ends = (float(scores.min()), float(scores.max()), float(low), float(high))
        rows.append((group + 1, int(inside.sum()), float(centre), *ends))
    return rows


def groups_section(base: Evaluation) -> Section:
    """Figures 4 to 6 and 8: groups of like score, their centroids, and the crowds in them."""
    scored, crowd = base.scored, 1 + base.others
    label = scored.groups.of(scored.scores)
    centres = scored.groups.centres
    series = [
        Series.of(f"group {group + 1}", crowd[label == group], scored.scores[label == group])
        for group in range(len(centres))
    ]
    series.append(Series.of("centroids", [float(crowd.min())] * len(centres), centres))
    rows: list[tuple[Cell, ...]] = [*group_rows(base)]
    columns = (
        "group (1 = riskiest)",
        "people",
        "centroid",
        "score from",
        "to",
        "crowd from (5 %)",
        "to (95 %)",
    )
    return Section(
        heading="Groups of like risk",
        text="Each point is a person without a name: to the right more people fit, upwards the score is better.",
        parts=(
            Chart(
                kind="scatter",
                title="Figures 4–6: score and exact crowd",
                sentence="The score is worth its name if the cloud rises from left to right.",
                x_label="people who fit on average, exact",
                y_label="score",
                series=tuple(series),
                x_log=True,
                lines=tuple(float(border) for border in scored.groups.borders),
            ),
            Table(title="The groups", columns=columns, rows=tuple(rows)),
            _label_table(scored),
        ),
    )
