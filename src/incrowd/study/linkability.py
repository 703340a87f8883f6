"""Paper 003 on any crowd: figures 5 to 12, and the identity models of its section 5.1.

Figures 5 to 10, 12a and 12c are about one pair of communities, 8b about a second one, 8c about several, 11 and 12b
about all. Where we also pool what the paper shows for one pair, it stands under a name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.distances import ball_sizes, pair_distances, pairwise
from incrowd.drawing import Chart, Series
from incrowd.measures.linkability.by_distance import (
    DistanceAttack,
    measure,
    prepare,
    ranking_by_convergence,
    relative_ranking,
)
from incrowd.measures.linkability.definition import Ranking, precision_recall
from incrowd.measures.linkability.spec import Distance, LinkabilityOptions, Model
from incrowd.measures.protocol import Progress
from incrowd.statistics import spearman
from incrowd.study.anonymity import study_facts, their_crowd
from incrowd.study.figures import Cell, Headline, Section, Study, Table
from incrowd.study.matched import Matched, PairStudyOptions, matched_pairs

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.distances import Compute

CURVE = np.arange(0, 101) / 100
SECOND_RADIUS = 0.85
"""The threshold of figure 8b."""
SEVERAL = 5
"""Pairs of communities in figure 8c."""
MODELS: tuple[Model, ...] = ("unigram", "indicator", "tfidf")
DISTANCES: tuple[Distance, ...] = ("jensen-shannon", "angular-cosine")
PAPER_PAIRS = (("news", "worldnews"), ("pics", "wtf"))


def linkability_study(
    crowd: Crowd,
    options: PairStudyOptions | None = None,
    *,
    source: str | None = None,
    target: str | None = None,
    topics: bool = False,
    progress: Progress | None = None,
    compute: Compute | None = None,
) -> Study:
    """Reproduce the evaluation of paper 003; without a pair of communities, the one that shares most people.

    Parameters
    ----------
    topics
        Also try the fourth identity model of section 5.1, author topics, which takes long to learn.
    """
    options = options or PairStudyOptions()
    matched = matched_pairs(crowd, options, progress, compute)
    rows = matched.rows
    shown = _pairs_shown(rows, source, target)
    several = [OnePair(crowd, options, *names, compute) for names in shown]
    one, second = several[0], several[1] if len(several) > 1 else None
    own = rows.filter((pl.col("source") == one.source) & (pl.col("target") == one.target))
    if progress:
        progress(0, None, "comparing identity models")
    return Study(
        name="linkability",
        title="Who can be linked despite a crowd (paper 003)",
        summary=(
            f"One pair of communities in detail ({one.source} to {one.target}: {len(one.attack.pairs):,} people in "
            f"both), and {rows.height:,} directed pairs of profiles over "
            f"{rows.select('source', 'target').n_unique():,} directed pairs of communities."
        ),
        sections=(
            _in_short(own, rows),
            _figure_5(one),
            _figures_6_and_7(one),
            _figure_8(one, second, several, options.radius),
            _figure_9(one, options.radius),
            _figures_10_and_11(own, rows),
            _figure_12(own, rows),
            _models(crowd, one, (*MODELS, "topics") if topics else MODELS, compute),
        ),
        facts=study_facts(crowd, options) | {"source": one.source, "target": one.target},
        headlines=_headlines(matched, options, one, own),
    )


def _pairs_shown(rows: pl.DataFrame, source: str | None, target: str | None) -> list[tuple[str, str]]:
    """Return the pair shown in detail, then others: those of the paper if they are there, else by people shared."""
    pairs = rows.group_by("source", "target").len()
    ordered = pairs.sort(["len", "source", "target"], descending=[True, False, False]).rows()
    there = [(a, b) for a, b, _ in ordered]
    first = [(source, target)] if source is not None and target is not None else []
    wanted = [*first, *(pair for pair in PAPER_PAIRS if pair in there), *there]
    found: dict[frozenset[str], tuple[str, str]] = {}
    for pair in wanted:
        found.setdefault(frozenset(pair), pair)
    return list(found.values())[:SEVERAL]


class OnePair:
    """One pair of communities: its set sizes over the thresholds and its rankings, each computed when asked for."""

    def __init__(
        self, crowd: Crowd, options: PairStudyOptions, source: str, target: str, compute: Compute | None
    ) -> None:
        self.source, self.target = source, target
        self.options = LinkabilityOptions(
            source=source,
            target=target,
            min_posts=options.min_posts,
            text=options.text,
            memory=options.memory,
        )
        self.attack: DistanceAttack = prepare(crowd, self.options, compute)
        self._known: dict[str, Any] = {"metric": self.attack.metric, "compute": self.attack.compute}

    @cached_property
    def matching(self) -> Any:
        """|M(th)| of every source over the thresholds."""
        return ball_sizes(self.attack.x, self.attack.y, radii=CURVE, **self._known)

    @cached_property
    def anonymity(self) -> Any:
        """|A(d)| of every target over the thresholds."""
        return ball_sizes(self.attack.y, radii=CURVE, **self._known)

    @cached_property
    def match(self) -> Any:
        """The distance of each person's own two profiles."""
        return pair_distances(self.attack.x, self.attack.y, self.attack.pairs, **self._known)

    @cached_property
    def ranking(self) -> Ranking:
        """The consistent ranking by set size over 1,001 radii."""
        return relative_ranking(self.attack)

    @cached_property
    def by_convergence(self) -> Ranking:
        """The paper's variant: by the radius it takes to reach a set size."""
        return ranking_by_convergence(self.attack)

    def matching_of_people(self, radius: float) -> Any:
        """|M| at one threshold, for everybody who is in both."""
        return self.matching[self.attack.pairs[:, 0], round(radius * 100)]

    def correlations(self, ranking: Ranking, places: Sequence[int]) -> list[float]:
        """Return Spearman's correlation of a ranking and |M|, at each of the thresholds (in hundredths)."""
        source, target = self.attack.pairs.T
        return [spearman(ranking.ranks[target], self.matching[source, place]) for place in places]

    def distances_from(self, pair: int) -> tuple[Any, Any]:
        """Return the sorted distances from a person's second profile and from the first to the target community."""
        source, target = (int(place) for place in self.attack.pairs[pair])
        y = self.attack.y
        second = np.sort(pairwise(y[[target]], y, **self._known)[0])
        return second, np.sort(pairwise(self.attack.x[[source]], y, **self._known)[0])


@dataclass(frozen=True)
class SetShares:
    """What the paper says of the three sets, over some people; exact, on whole numbers."""

    spearman: float
    near_one: float
    """|A|/|M| in [0.8, 1.2)."""
    larger: float
    """|A| > |M|."""
    conforming: float
    """|mu|/|M| of 0.8 or more."""
    beyond: float
    """|mu| > |M|."""

    @classmethod
    def of(cls, rows: pl.DataFrame) -> SetShares:
        """Compute them from rows with the three set sizes."""
        a, m, mu = (rows[name].to_numpy() for name in ("anonymity", "matching", "local"))
        return cls(
            spearman(a, m),
            _share((5 * a >= 4 * m) & (5 * a < 6 * m)),
            _share(a > m),
            _share(5 * mu >= 4 * m),
            _share(mu > m),
        )


def _share(condition: Any) -> float:
    return float(np.mean(condition)) if len(condition) else float("nan")


def _in_short(own: pl.DataFrame, rows: pl.DataFrame) -> Section:
    one, pooled = SetShares.of(own), SetShares.of(rows)
    table = Table(
        title="Paper 003's figures beside ours",
        columns=("figure", "this pair", "all pairs of communities", "paper 003"),
        rows=(
            ("Spearman of |A(d)| and |M(d)|", one.spearman, pooled.spearman, "0.41 (its one pair)"),
            ("|A|/|M| within 0.8 to 1.2", one.near_one, pooled.near_one, "at least 0.71 (all pairs)"),
            ("|A| > |M|: risk underestimated", one.larger, pooled.larger, "0.412 (all pairs)"),
            (
                "conformity |mu|/|M| at least 0.8",
                one.conforming,
                pooled.conforming,
                "at least 0.74 (all pairs)",
            ),
            ("conformity above 1", one.beyond, pooled.beyond, "0 (it cannot be)"),
        ),
        note="d is the distance between a person's own two profiles.",
    )
    text = (
        "A(d): people who resemble the person's second profile. M(d): people who resemble the first, and whom an "
        "adversary must consider. mu: both."
    )
    return Section(heading="In short", text=text, parts=(table,))


def _headlines(
    matched: Matched, options: PairStudyOptions, one: OnePair, own: pl.DataFrame
) -> tuple[Headline, ...]:
    crowd, pooled = their_crowd(matched, options), SetShares.of(matched.rows)
    place = round(options.radius * 100)
    over = [value for value in one.correlations(one.ranking, range(5, 101, 5)) if value == value]
    pair = f"{len(one.attack.pairs):,} people in both communities of the pair shown"
    return (
        Headline(
            result=f"median matching set at {options.radius:g} (figure 6)",
            paper="37",
            here=float(np.median(one.matching[:, place])),
            why=f"{one.attack.y.shape[0]:,} targets here, the paper does not say how many worldnews had; shorter "
            "profiles lie further apart",
        ),
        Headline(
            result=f"median anonymity set at {options.radius:g} (figure 7)",
            paper="37",
            here=float(np.median(one.anonymity[:, place])),
            why="as above",
        ),
        Headline(
            result="rank and matching set correlate, weakly (figure 8c)",
            paper="positive at every threshold",
            here=f"Spearman {min(over):.2f} to {max(over):.2f}" if over else "undefined",
            why=pair,
        ),
        Headline(
            result="Spearman of |A(d)| and |M(d)|, one pair (figure 10)",
            paper="0.41",
            here=SetShares.of(own).spearman,
            why=pair,
        ),
        Headline(
            result="|A|/|M| in [0.8, 1.2), all pairs (figure 11)",
            paper="at least 0.71",
            here=pooled.near_one,
            why=crowd,
        ),
        Headline(
            result="|A| > |M|, risk underestimated, all pairs (figure 11)",
            paper="0.412",
            here=pooled.larger,
            why="depends on how many wholly different identities (distance 1) take part; otherwise as above",
        ),
        Headline(
            result="conformity of 0.8 or more, all pairs (figure 12b)",
            paper="at least 0.74",
            here=pooled.conforming,
            why="at distance 1 every set is the whole community and conforms; otherwise as above",
        ),
    )


def _figure_5(one: OnePair) -> Section:
    source = one.attack.pairs[:, 0]
    closed = precision_recall(one.match, one.matching[source].sum(axis=0), CURVE)
    openly = precision_recall(one.match, one.matching.sum(axis=0), CURVE)
    chart = Chart(
        kind="lines",
        title="Figure 5: what linking everything within a threshold gives",
        sentence="A higher threshold finds more true matches (recall) among more wrong ones (precision).",
        x_label="threshold on the distance",
        y_label="share",
        series=(
            Series.of("precision, sources with a match", CURVE.tolist(), closed.precision.tolist()),
            Series.of("precision, all sources", CURVE.tolist(), openly.precision.tolist()),
            Series.of("recall", CURVE.tolist(), closed.recall.tolist()),
        ),
    )
    return Section(heading="Precision and recall", text="", parts=(chart,))


def _figures_6_and_7(one: OnePair) -> Section:
    charts = tuple(
        Chart(
            kind="lines",
            title=title,
            sentence=f"At 0.8 the median is {np.median(table[:, 80]):g} people (paper 003: 37).",
            x_label="distance",
            y_label="people",
            series=(
                Series.of("median", CURVE.tolist(), np.median(table, axis=0).tolist()),
                Series.of("mean", CURVE.tolist(), table.mean(axis=0).tolist()),
            ),
        )
        for title, table in (
            ("Figure 6: size of the matching set", one.matching),
            ("Figure 7: size of the anonymity set", one.anonymity),
        )
    )
    return Section(heading="Set sizes", text="", parts=charts)


def _figure_8(one: OnePair, second: OnePair | None, several: Sequence[OnePair], radius: float) -> Section:
    places = range(5, 101, 5)
    thresholds = [place / 100 for place in places]
    over_pairs = Chart(
        kind="lines",
        title="Figure 8c: the same correlation over the threshold, several pairs of communities",
        sentence="Near 0: a crowd of lookalikes at home says little about the crowd elsewhere.",
        x_label="threshold on the distance",
        y_label="Spearman's correlation",
        series=tuple(
            Series.of(f"{pair.source} to {pair.target}", thresholds, pair.correlations(pair.ranking, places))
            for pair in several
        ),
    )
    by_convergence = Chart(
        kind="lines",
        title="Two ways to rank: by set size, and by convergence",
        sentence="By convergence: fix how many people the set must hold; rank by the radius it takes (section 3.1).",
        x_label="threshold on the distance",
        y_label="Spearman's correlation",
        series=(
            Series.of("by set size", thresholds, one.correlations(one.ranking, places)),
            Series.of("by convergence", thresholds, one.correlations(one.by_convergence, places)),
        ),
    )
    first = _rank_chart("Figure 8a", one, radius)
    also = () if second is None else (_rank_chart("Figure 8b, a second pair", second, SECOND_RADIUS),)
    method = "maximum-weight matching" if one.ranking.method == "matching" else "mean rank"
    return Section(
        heading="The relative measure",
        text=f"Ranks by {method} over 1,001 radii.",
        parts=(first, *also, over_pairs, by_convergence),
    )


def _rank_chart(name: str, one: OnePair, radius: float) -> Chart:
    ranks, sizes = one.ranking.ranks[one.attack.pairs[:, 1]], one.matching_of_people(radius)
    return Chart(
        kind="scatter",
        title=f"{name}: rank in the target community against matching set at {radius:g}",
        sentence=(
            f"{one.source} to {one.target}: Spearman's correlation is {spearman(ranks, sizes):.2f} (paper 003: "
            "positive but weak). A high rank with a small set is a risk underestimated."
        ),
        x_label="rank (1 = smallest crowds)",
        y_label="people in the matching set",
        series=(Series.of("one person", ranks.tolist(), sizes.tolist()),),
    )


def _figure_9(one: OnePair, radius: float) -> Section:
    """Take three people of figure 8a: risk underestimated, well estimated, overestimated; show distances only."""
    if not len(one.attack.pairs):
        return Section(heading="Figure 9", text="Nobody is in both communities.")
    chosen = three_cases(one.ranking.ranks[one.attack.pairs[:, 1]], one.matching_of_people(radius))
    charts = tuple(_cdf(one, name, place) for name, place in chosen.items())
    text = (
        "Three people of figure 8a, by their rank: one who looks safe and has a small matching set, one whose rank "
        "tells the set, one who looks exposed and has a large one. The two curves agree only for the second."
    )
    return Section(heading="Figure 9: three cases", text=text, parts=charts)


def three_cases(ranks: Any, sizes: Any) -> dict[str, int]:
    """Choose by where people stand among others: by rank (high looks safe) minus by matching set (large is safe)."""
    gap = _standing(ranks) - _standing(sizes)
    return {
        "underestimated": int(gap.argmax()),
        "well estimated": int(np.abs(gap).argmin()),
        "overestimated": int(gap.argmin()),
    }


def _standing(values: Any) -> Any:
    """Return the share of the others below, half of those equal counted."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / (
        2 * len(values)
    )


def _cdf(one: OnePair, name: str, place: int) -> Chart:
    shares = [
        np.searchsorted(values, CURVE, side="right") / values.size for values in one.distances_from(place)
    ]
    return Chart(
        kind="lines",
        title=f"Risk {name}",
        sentence=f"The person's own two profiles are {one.match[place]:.2f} apart.",
        x_label="distance",
        y_label="share of the target community within it",
        series=(
            Series.of("from the second profile", CURVE.tolist(), shares[0].tolist()),
            Series.of("from the first profile", CURVE.tolist(), shares[1].tolist()),
        ),
    )


def _sets_chart(rows: pl.DataFrame, title: str, sentence: str, x: str, y: str) -> Chart:
    label = {"anonymity": "anonymity set", "matching": "matching set", "local": "local matching set"}
    return Chart(
        kind="scatter",
        title=title,
        sentence=sentence,
        x_label=f"people in the {label[x]}",
        y_label=f"people in the {label[y]}",
        series=(Series.of("one person", rows[x].to_list(), rows[y].to_list()),),
        x_log=True,
        y_log=True,
    )


def _figures_10_and_11(own: pl.DataFrame, rows: pl.DataFrame) -> Section:
    told = "On the diagonal the anonymity set tells the matching set; below it, risk is underestimated."
    return Section(
        heading="Anonymity is not unlinkability",
        text="",
        parts=(
            _sets_chart(own, "Figure 10: anonymity set against matching set", told, "anonymity", "matching"),
            _sets_chart(rows, "Ours: the same over all pairs of communities", told, "anonymity", "matching"),
            ratio_chart(rows["anonymity"], rows["matching"], "Figure 11: |A| divided by |M|"),
        ),
    )


def _figure_12(own: pl.DataFrame, rows: pl.DataFrame) -> Section:
    told = "The local set is part of the matching set, so no point lies above the diagonal."
    return Section(
        heading="Local matching sets",
        text="",
        parts=(
            _sets_chart(
                own, "Figure 12a: local matching set against matching set", told, "matching", "local"
            ),
            _sets_chart(rows, "Ours: 12a over all pairs of communities", told, "matching", "local"),
            ratio_chart(rows["local"], rows["matching"], "Figure 12b: conformity, |mu| divided by |M|"),
            _sets_chart(
                own,
                "Figure 12c: local matching set against anonymity set",
                "Only part of those who resemble the second profile also resemble the first.",
                "anonymity",
                "local",
            ),
        ),
    )


def ratio_chart(parts: pl.Series, wholes: pl.Series, title: str) -> Chart:
    """Count ratios of two whole numbers in steps of a fifth, on whole numbers: 3 of 5 belongs to 0.6–0.8."""
    fifths = np.minimum(5 * parts.to_numpy() // wholes.to_numpy(), 9)
    names = (*(f"{low / 5:.1f}–{(low + 1) / 5:.1f}" for low in range(9)), "1.8+")
    counts = np.bincount(fifths, minlength=10)
    return Chart(
        kind="bars",
        title=title,
        sentence="How often each range of the ratio occurs; the lower end belongs to the range.",
        x_label="ratio",
        y_label="share of people",
        series=(Series.of("people", range(10), counts / max(counts.sum(), 1)),),
        categories=names,
    )


def _models(crowd: Crowd, one: OnePair, models: Sequence[Model], compute: Compute | None) -> Section:
    """Section 5.1: the same pair under every identity model and distance."""
    rows: list[tuple[Cell, ...]] = []
    for model in models:
        for distance in DISTANCES:
            options = replace(one.options, model=model, distance=distance)
            found = measure(prepare(crowd, options, compute), options, crowd.data_hash).to_dict()
            at, relative = found["precision_at"], found["relative"]
            rows.append(
                (
                    model,
                    distance,
                    at["1"],
                    at["10"],
                    relative["spearman"],
                    found["anonymity_matching_spearman"],
                    found["anonymity_larger"],
                    found["conformity_080"],
                )
            )
    table = Table(
        title="Identity models and distances for this pair",
        columns=(
            "model",
            "distance",
            "precision at 1",
            "precision at 10",
            "rank and |M|, Spearman",
            "|A| and |M|, Spearman",
            "|A| > |M|",
            "conformity of 0.8",
        ),
        rows=tuple(rows),
        note="Rank and |M|: at the median distance of a person's own two profiles. Paper 003, section 5.1: the "
        "conclusions are the same for all; word frequencies and TF-IDF work best, and alike.",
    )
    return Section(heading="Other identity models (section 5.1)", text="", parts=(table,))
