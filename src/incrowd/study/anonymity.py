"""Paper 000, section 6, on any crowd: top words, distances, figures 2 and 3.

Each quantity of the paper is computed as the paper computes it; ours stand beside it under names of their own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from incrowd.distances import Compute, mean_distance, pair_distances
from incrowd.drawing import Chart, Series
from incrowd.measures.linkability.definition import Interval, clustered_mean, hits_at
from incrowd.measures.protocol import Progress
from incrowd.study.figures import Headline, Section, Study, Table
from incrowd.study.matched import Matched, PairStudyOptions, matched_pairs, rows_by_community

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

TOP_WORDS = 20
KS = (1, 5, 10, 20)
BIN = 10
FEWEST = 5
"""No word and no point of a curve stands for fewer people."""
NAN = float("nan")


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
    known = matched.with_strangers
    below = clustered_mean(known["distance"] < known["stranger"], known["person"].to_list())
    apart = distances_apart(matched, compute)
    alone = matched.rows.height - known.height
    return Study(
        name="anonymity",
        title="How well people hide in their communities (paper 000)",
        summary=(
            f"{len(matched.profiles):,} identities in {matched.communities:,} communities; "
            f"{matched.rows.height:,} directed pairs of one person's profiles. The match is nearer than the average "
            f"stranger for {_percent(below.mean)} of them (95 % interval {_percent(below.low)} to "
            f"{_percent(below.high)})."
            + f" {alone:,} pairs have no stranger to compare with and are not counted."
            * bool(alone)
        ),
        sections=(
            _words(matched),
            _distances(apart),
            _figure_2(known, below.mean),
            _figure_3(matched.rows, options),
        ),
        facts=study_facts(crowd, options),
        headlines=_headlines(matched, options, apart, below),
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share == share else "an unknown share"


def study_facts(crowd: Crowd, options: PairStudyOptions) -> dict[str, Any]:
    """Return what it takes to run a study again."""
    chosen = asdict(options) | {"text": options.text.hash}
    return {
        "adversary": "someone who has read all communities and compares which words people use",
        "model": "unigram frequencies, Jensen-Shannon distance, base 2",
        "data_hash": crowd.data_hash,
        **{name: value for name, value in chosen.items() if name != "memory"},
    }


def their_crowd(matched: Matched, options: PairStudyOptions) -> str:
    """Say how the crowd differs from the papers', the first reason for every difference."""
    return (
        f"{len(matched.profiles):,} identities of {options.min_posts} posts or more in {matched.communities:,} "
        "communities here; 58,091 of 100 or more in 1,930 there"
    )


def _headlines(
    matched: Matched, options: PairStudyOptions, apart: Apart, below: Interval
) -> tuple[Headline, ...]:
    crowd = their_crowd(matched, options)
    curve = precision_by_size(matched.rows, "anonymity")
    ends = [curve.row(place, named=True) for place in (0, -1)] if curve.height > 1 else []
    falls = "; ".join(f"{one['at_5']:.2f} in crowds around {one['size']}" for one in ends)
    return (
        Headline(
            result="mean distance within communities",
            paper="0.79",
            here=apart.within[2],
            why=f"{crowd}; the fewer posts, the fewer words two profiles share",
        ),
        Headline(
            result="mean distance across communities",
            paper="0.85",
            here=apart.across[2],
            why="the less communities have in common, the further across; otherwise as above",
        ),
        Headline(
            result="smallest distance within communities",
            paper="0.12",
            here=apart.within[0],
            why="an extreme: the more identities, the smaller",
        ),
        Headline(
            result="matches nearer than the average stranger (figure 2)",
            paper="the vast majority",
            here=below.mean,
            why="the paper gives no number",
        ),
        Headline(
            result="precision at 5 falls as the crowd grows (figure 3)",
            paper="yes (figure 3)",
            here=falls or "too few people to tell",
            why="the paper prints a figure and no numbers; ties are broken by lot here",
        ),
    )


def _words(matched: Matched) -> Section:
    """Table 1: the most frequently used words overall and in the two largest communities; then ours."""
    identities = matched.counts.identities
    largest = identities.group_by("community").len().sort(["len", "community"], descending=[True, False])
    names = largest["community"].head(2).to_list()
    masks = [np.ones(identities.height, bool), *((identities["community"] == n).to_numpy() for n in names)]
    tables = tuple(
        Table(
            title=title,
            columns=("place", "everywhere", *names),
            rows=tuple(zip(range(1, TOP_WORDS + 1), *columns, strict=True)),
            note=f"{note} A word shown is used by at least {FEWEST} people.",
        )
        for title, note, columns in (
            (
                "Table 1: most frequently used words",
                "Paper 000, table 1: topical words lead in a community. By how often they were written.",
                [top_words(matched, matched.counts.matrix, mask) for mask in masks],
            ),
            (
                "Ours: commonest words by the mean share of a member's words",
                "Everybody counts alike here, however much they write.",
                [top_words(matched, matched.profiles.matrix, mask) for mask in masks],
            ),
        )
    )
    return Section(heading="Table 1: words", text="What people write about.", parts=tables)


def top_words(matched: Matched, weights: sp.csr_matrix, rows: Any) -> list[str]:
    """Return the heaviest words that at least five people use: a rarer one might point at somebody."""
    chosen = np.flatnonzero(rows)
    some = weights[chosen]
    people = matched.counts.identities["user"].to_numpy()[chosen]
    _, person = np.unique(people, return_inverse=True)
    uses = sp.csr_matrix((np.ones(len(person)), (person, np.arange(len(person))))) @ (some > 0)
    holders = np.bincount(uses.indices, minlength=some.shape[1])
    weight = np.asarray(some.sum(axis=0), dtype=np.float64).ravel() * (holders >= FEWEST)
    order = np.argsort(-weight, kind="stable")[:TOP_WORDS]
    words = [str(matched.profiles.vocabulary[int(w)]) if weight[w] > 0 else "–" for w in order]
    return words + ["–"] * (TOP_WORDS - len(words))


Summary = tuple[float, float, float]
"""Smallest, largest and mean distance; NaN where there is no pair."""


@dataclass(frozen=True, kw_only=True)
class Apart:
    """How far profiles are apart, by who they belong to."""

    within: Summary
    """Two people in one community."""
    across: Summary
    """Two profiles in different communities, one person's included, as paper 000 says it."""
    strangers: float
    """Mean over two people in different communities."""
    one_person: Summary
    everywhere: Summary


def distances_apart(matched: Matched, compute: Compute) -> Apart:
    """Compare all pairs of profiles, each unordered pair once."""
    matrix, places = matched.profiles.matrix, list(rows_by_community(matched.profiles).values())
    within, across = _Total(), _Total()
    for number, rows in enumerate(places):
        if len(rows) > 1:
            found = mean_distance(matrix[rows], include_self=False, compute=compute)
            within.add(found.mean, found.pairs // 2, found.minimum, found.maximum)
        if places[number + 1 :]:
            later = np.concatenate(places[number + 1 :])
            found = mean_distance(matrix[rows], matrix[later], compute=compute)
            across.add(found.mean, found.pairs, found.minimum, found.maximum)
    own = pair_distances(matrix, None, _one_person(matched), compute=compute)
    same, all_pairs = _Total(), _Total()
    if own.size:
        same.add(float(own.mean()), own.size, float(own.min()), float(own.max()))
    for one in (within, across):
        if one.pairs:
            all_pairs.add(one.total / one.pairs, one.pairs, one.low, one.high)
    others = across.pairs - same.pairs
    return Apart(
        within=within.summary,
        across=across.summary,
        strangers=(across.total - same.total) / others if others else NAN,
        one_person=same.summary,
        everywhere=all_pairs.summary,
    )


class _Total:
    """Adds up means over blocks of pairs."""

    def __init__(self) -> None:
        self.total, self.pairs, self.low, self.high = 0.0, 0, np.inf, -np.inf

    def add(self, mean: float, pairs: int, low: float, high: float) -> None:
        self.total, self.pairs = self.total + mean * pairs, self.pairs + pairs
        self.low, self.high = min(self.low, low), max(self.high, high)

    @property
    def summary(self) -> Summary:
        return (self.low, self.high, self.total / self.pairs) if self.pairs else (NAN, NAN, NAN)


def _one_person(matched: Matched) -> Any:
    """Return the rows of every two profiles of one person, each two once."""
    rows = matched.profiles.ids.select("user").with_row_index("row")
    both = rows.join(rows, on="user", suffix="_other").filter(pl.col("row") < pl.col("row_other"))
    return both.select("row", "row_other").sort("row", "row_other").to_numpy().astype(np.int64)


def _distances(apart: Apart) -> Section:
    table = Table(
        title="Distances between two profiles",
        columns=("pairs", "smallest", "largest", "mean", "paper 000: smallest, largest, mean"),
        rows=(
            ("within communities", *apart.within, "0.12, 1, 0.79"),
            ("across communities", *apart.across, "0.10, 1, 0.85"),
            ("across communities, two people", NAN, NAN, apart.strangers, "–"),
            ("one person's profiles", *apart.one_person, "–"),
            ("all identities", *apart.everywhere, "–"),
        ),
        note="0: the same words equally often. 1: no word in common. A profile is not compared with itself. "
        "'Across', as in the paper, also holds one person's two profiles; the line below leaves them out.",
    )
    return Section(heading="Distances", text="How far apart people write.", parts=(table,))


def _figure_2(rows: pl.DataFrame, share: float) -> Section:
    chart = Chart(
        kind="scatter",
        title="Figure 2: the match against the average stranger",
        sentence=(
            f"Each point is one person in two communities. {_percent(share)} lie below the diagonal: the match is "
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
    own = precision_by_size(rows, "anonymity")
    fixed = precision_by_size(rows, "fixed")
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


def precision_by_size(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Group pairs by crowd size in tens; a group of fewer than five people is left out.

    The precision at k is the chance that the match is among the k nearest, ties broken by lot.
    """
    hits = {f"hit_{k}": hits_at(rows["nearer"].to_numpy(), k, rows["ties"].to_numpy()) for k in KS}
    return (
        rows.with_columns(
            size=(pl.col(column) // BIN) * BIN + BIN // 2, **{n: pl.Series(v) for n, v in hits.items()}
        )
        .group_by("size")
        .agg(
            pl.col("person").n_unique().alias("people"),
            *(pl.col(f"hit_{k}").mean().alias(f"at_{k}") for k in KS),
        )
        .filter(pl.col("people") >= FEWEST)
        .sort("size")
    )
