"""Paper 000, section 6, on any crowd: top words, distances, figures 2 and 3."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.distances import Compute, mean_distance
from incrowd.measures.linkability.definition import clustered_mean
from incrowd.study.figures import Chart, Section, Series, Study, Table
from incrowd.study.matched import Matched, PairStudyOptions, Progress, matched_pairs

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

TOP_WORDS = 20
KS = (1, 5, 10, 20)
BIN = 10


def anonymity_study(
    crowd: Crowd,
    options: PairStudyOptions | None = None,
    progress: Progress | None = None,
    compute: Compute | None = None,
) -> Study:
    """Reproduce the evaluation of paper 000 on this crowd."""
    options = options or PairStudyOptions()
    compute = compute or Compute(memory=options.memory)
    matched = matched_pairs(crowd, options, progress, compute)
    rows = matched.rows
    below = clustered_mean(rows["distance"] < rows["stranger"], rows["person"].to_list())
    return Study(
        name="anonymity",
        title="How well people hide in their communities (paper 000)",
        summary=(
            f"{len(matched.profiles):,} identities in {matched.communities:,} communities; {rows.height:,} "
            f"directed pairs of one person's profiles. The match is nearer than the average stranger for "
            f"{below.mean:.0%} of them (95 % interval {below.low:.0%} to {below.high:.0%})."
        ),
        sections=(
            _words(matched),
            _distances(matched, compute),
            _figure_2(rows, below.mean),
            _figure_3(rows, options),
        ),
        facts=study_facts(crowd, options),
    )


def study_facts(crowd: Crowd, options: PairStudyOptions) -> dict[str, Any]:
    """Return what it takes to run a study again."""
    chosen = asdict(options) | {"text": options.text.hash}
    return {
        "adversary": "someone who has read all communities and compares which words people use",
        "model": "unigram frequencies, Jensen-Shannon distance, base 2",
        "data_hash": crowd.data_hash,
        **{name: value for name, value in chosen.items() if name != "memory"},
    }


def _words(matched: Matched) -> Section:
    """Table 1: the commonest words overall and in the two largest communities."""
    ids, matrix = matched.profiles.ids, matched.profiles.matrix
    largest = ids.group_by("community").len().sort(["len", "community"], descending=[True, False])
    names = largest["community"].head(2).to_list()
    columns = [_top(matched, np.ones(matrix.shape[0], bool))]
    columns += [_top(matched, (ids["community"] == name).to_numpy()) for name in names]
    table = Table(
        title="Commonest words (mean share of a member's words)",
        columns=("place", "everywhere", *names),
        rows=tuple((place + 1, *(column[place] for column in columns)) for place in range(len(columns[0]))),
        note="Paper 000, table 1: topical words lead in a community. A word shown is used by at least 5 people.",
    )
    return Section(heading="Table 1: words", text="What people write about.", parts=(table,))


def _top(matched: Matched, rows: Any) -> list[str]:
    """Return the commonest words that at least five people use: a rarer one might point at somebody."""
    some = matched.profiles.matrix[np.flatnonzero(rows)]
    holders = np.bincount(some.indices, minlength=some.shape[1])
    weight = np.asarray(some.sum(axis=0)).ravel() * (holders >= 5)
    order = np.argsort(-weight, kind="stable")[:TOP_WORDS]
    words = [str(matched.profiles.vocabulary[int(w)]) if weight[w] > 0 else "–" for w in order]
    return words + ["–"] * (TOP_WORDS - len(words))


def _distances(matched: Matched, compute: Compute) -> Section:
    everywhere = mean_distance(matched.profiles.matrix, compute=compute)
    inside = _within(matched, compute)
    table = Table(
        title="Distances between different people's profiles and between one person's",
        columns=("pairs", "smallest", "largest", "mean", "paper 000: smallest, largest, mean"),
        rows=(
            ("within communities", *inside, "0.12, 1, 0.79"),
            (
                "all identities",
                everywhere.minimum,
                everywhere.maximum,
                everywhere.mean,
                "0.10, 1, 0.85 (across)",
            ),
            (
                "one person's profiles",
                float(matched.rows["distance"].min()),  # type: ignore[arg-type]
                float(matched.rows["distance"].max()),  # type: ignore[arg-type]
                float(matched.rows["distance"].mean()),  # type: ignore[arg-type]
                "–",
            ),
        ),
        note="0: the same words equally often. 1: no word in common. Self-pairs are left out.",
    )
    return Section(heading="Distances", text="How far apart people write.", parts=(table,))


def _within(matched: Matched, compute: Compute) -> tuple[float, float, float]:
    low, high, total, pairs = 1.0, 0.0, 0.0, 0
    for _, rows in matched.profiles.ids.with_row_index("row").group_by("community", maintain_order=True):
        if rows.height > 1:
            found = mean_distance(matched.profiles.matrix[rows["row"].to_numpy()], compute=compute)
            low, high = min(low, found.minimum), max(high, found.maximum)
            total, pairs = total + found.mean * found.pairs, pairs + found.pairs
    return (low, high, total / pairs) if pairs else (float("nan"),) * 3


def _figure_2(rows: pl.DataFrame, share: float) -> Section:
    chart = Chart(
        kind="scatter",
        title="Figure 2: the match against the average stranger",
        sentence=(
            f"Each point is one person in two communities. {share:.0%} lie below the diagonal: the match is "
            "nearer than the average stranger (paper 000: the great majority)."
        ),
        x_label="mean distance to non-matching targets",
        y_label="distance to the match",
        series=(
            Series.of("one person", rows["stranger"].to_list(), rows["distance"].to_list()),
            Series.of("equal", [0.0, 1.0], [0.0, 1.0]),
        ),
    )
    return Section(heading="Matches and strangers", text="", parts=(chart,))


def _figure_3(rows: pl.DataFrame, options: PairStudyOptions) -> Section:
    own = _precision_by_size(rows, "anonymity")
    fixed = _precision_by_size(rows, "fixed")
    charts = tuple(
        Chart(
            kind="lines",
            title=title,
            sentence=sentence,
            x_label="people in the crowd (groups of ten)",
            y_label="share of matches found",
            series=tuple(
                Series.of(f"among the first {k}", table["size"].to_list(), table[f"at_{k}"].to_list())
                for k in KS
            ),
            x_log=True,
        )
        for title, sentence, table in (
            (
                "Figure 3: the larger the crowd, the harder the match",
                "The crowd is counted at the distance of the match itself, so both share a cause.",
                own,
            ),
            (
                f"The same with the crowd counted at distance {options.radius:g} for everybody",
                "Without that shared cause: this is the crowd a person could know in advance.",
                fixed,
            ),
        )
    )
    return Section(heading="Crowd and precision", text="", parts=charts)


def _precision_by_size(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Group people by crowd size in tens; a group of fewer than five people is left out."""
    return (
        rows.with_columns(size=(pl.col(column) // BIN) * BIN + BIN // 2)
        .group_by("size")
        .agg(pl.len().alias("people"), *((pl.col("matching") <= k).mean().alias(f"at_{k}") for k in KS))
        .filter(pl.col("people") >= 5)
        .sort("size")
    )
