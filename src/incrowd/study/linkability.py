"""Paper 003 on any crowd: figures 5 to 12."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.distances import ball_sizes, pair_distances, pairwise, within_both
from incrowd.measures.linkability.by_distance import Attack, prepare
from incrowd.measures.linkability.definition import consistent_ranking, precision_recall, spearman
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.study.anonymity import study_facts
from incrowd.study.figures import Chart, Section, Series, Study, Table
from incrowd.study.matched import PairStudyOptions, Progress, matched_pairs

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.distances import Compute

CURVE = np.arange(0, 101) / 100
FINE = np.arange(0, 1001) / 1000


def linkability_study(
    crowd: Crowd,
    options: PairStudyOptions | None = None,
    *,
    source: str | None = None,
    target: str | None = None,
    progress: Progress | None = None,
    compute: Compute | None = None,
) -> Study:
    """Reproduce the evaluation of paper 003; without a pair of communities, the one that shares most people."""
    options = options or PairStudyOptions()
    rows = matched_pairs(crowd, options, progress, compute).rows
    if source is None or target is None:
        pairs = rows.group_by("source", "target").len()
        source, target, _ = pairs.sort(["len", "source", "target"], descending=[True, False, False]).row(0)
    chosen = LinkabilityOptions(
        source=source, target=target, min_posts=options.min_posts, text=options.text, memory=options.memory
    )
    attack = prepare(crowd, chosen, compute)
    sizes = _Sizes.of(attack)
    return Study(
        name="linkability",
        title="Who can be linked despite a crowd (paper 003)",
        summary=(
            f"One pair of communities in detail ({source} to {target}: {len(attack.pairs):,} people in both), and "
            f"{rows.height:,} directed pairs of profiles over {rows.select('source', 'target').n_unique():,} "
            "directed pairs of communities."
        ),
        sections=(
            _summary(rows),
            _figure_5(sizes),
            _figures_6_and_7(sizes),
            _figure_8(sizes, options.radius),
            _figure_9(attack, sizes),
            _figures_10_and_11(rows),
            _figure_12(rows),
        ),
        facts=study_facts(crowd, options) | {"source": source, "target": target},
    )


class _Sizes:
    """Set sizes over the thresholds, for one pair of communities."""

    def __init__(
        self, matching: Any, anonymity: Any, match: Any, pairs: Any, ranks: Any, method: str
    ) -> None:
        self.matching, self.anonymity, self.match = matching, anonymity, match
        self.pairs, self.ranks, self.method = pairs, ranks, method

    @classmethod
    def of(cls, attack: Attack) -> _Sizes:
        known: dict[str, Any] = {"metric": attack.metric, "compute": attack.compute}
        matching = ball_sizes(attack.x, attack.y, radii=CURVE, **known)
        fine = ball_sizes(attack.y, radii=FINE, **known)
        users = attack.meeting.counts.identities["user"].to_numpy()[attack.meeting.targets]
        ranking = consistent_ranking(fine, users)
        match = _own_distances(attack)
        return cls(matching, fine[:, ::10], match, attack.pairs, ranking.ranks, ranking.method)


def _own_distances(attack: Attack) -> Any:
    return pair_distances(attack.x, attack.y, attack.pairs, metric=attack.metric, compute=attack.compute)


def _summary(rows: pl.DataFrame) -> Section:
    ratio = rows["anonymity"] / rows["matching"]
    conformity = rows["local"] / rows["matching"]
    table = Table(
        title="Paper 003's figures beside ours, over all pairs of communities",
        columns=("figure", "here", "paper 003"),
        rows=(
            ("Spearman of |A(d)| and |M(d)|", spearman(rows["anonymity"], rows["matching"]), "0.41"),
            ("|A|/|M| within 0.8 to 1.2", _share((ratio >= 0.8) & (ratio < 1.2)), "at least 0.71"),
            ("|A| > |M|: risk underestimated", _share(ratio > 1), "0.412"),
            ("conformity |mu|/|M| at least 0.8", _share(conformity >= 0.8), "at least 0.74"),
            ("conformity above 1", _share(conformity > 1), "0 (it cannot be)"),
        ),
        note="d is the distance between a person's own two profiles.",
    )
    text = (
        "A(d): people who resemble the person's second profile. M(d): people who resemble the first, and whom an "
        "adversary must consider. mu: both."
    )
    return Section(heading="In short", text=text, parts=(table,))


def _share(condition: pl.Series) -> float:
    return float(condition.mean() or 0.0)  # type: ignore[arg-type]


def _figure_5(sizes: _Sizes) -> Section:
    source = sizes.pairs[:, 0]
    closed = precision_recall(sizes.match, sizes.matching[source].sum(axis=0), CURVE)
    openly = precision_recall(sizes.match, sizes.matching.sum(axis=0), CURVE)
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


def _figures_6_and_7(sizes: _Sizes) -> Section:
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
            ("Figure 6: size of the matching set", sizes.matching),
            ("Figure 7: size of the anonymity set", sizes.anonymity),
        )
    )
    return Section(heading="Set sizes", text="", parts=charts)


def _figure_8(sizes: _Sizes, radius: float) -> Section:
    place = round(radius * 100)
    source, target = sizes.pairs.T
    chart = Chart(
        kind="scatter",
        title=f"Figure 8: rank in the target community against matching set at {radius:g}",
        sentence=(
            f"Spearman's correlation is {spearman(sizes.ranks[target], sizes.matching[source, place]):.2f} "
            "(paper 003: positive but weak). A high rank with a small set is a risk underestimated."
        ),
        x_label="rank (1 = smallest crowds)",
        y_label="people in the matching set",
        series=(
            Series.of("one person", sizes.ranks[target].tolist(), sizes.matching[source, place].tolist()),
        ),
    )
    thresholds = list(range(5, 101, 5))
    over = [spearman(sizes.ranks[target], sizes.matching[source, t]) for t in thresholds]
    curve = Chart(
        kind="lines",
        title="The same correlation over the threshold",
        sentence="Near 0: a crowd of lookalikes at home says little about the crowd elsewhere.",
        x_label="threshold on the distance",
        y_label="Spearman's correlation",
        series=(Series.of("correlation", [t / 100 for t in thresholds], over),),
    )
    text = f"Ranks by {'maximum-weight matching' if sizes.method == 'matching' else 'mean rank'} over 1,001 radii."
    return Section(heading="The relative measure", text=text, parts=(chart, curve))


def _figure_9(attack: Attack, sizes: _Sizes) -> Section:
    """Take three people: risk underestimated, well estimated, overestimated; show distances only."""
    if not len(sizes.pairs):
        return Section(heading="Figure 9", text="Nobody is in both communities.")
    sets = within_both(attack.x, attack.y, attack.pairs, metric=attack.metric, compute=attack.compute)
    order = np.argsort(np.log(sets.anonymity / sets.matching), kind="stable")
    chosen = {"overestimated": order[0], "well estimated": order[_closest(sets)], "underestimated": order[-1]}
    charts = tuple(_cdf(attack, sizes, name, int(place)) for name, place in chosen.items())
    text = "The two curves agree only where the anonymity set tells the matching set well."
    return Section(heading="Figure 9: three cases", text=text, parts=charts)


def _closest(sets: Any) -> int:
    gap = np.sort(np.log(sets.anonymity / sets.matching))
    return int(np.abs(gap).argmin())


def _cdf(attack: Attack, sizes: _Sizes, name: str, place: int) -> Chart:
    source, target = (int(x) for x in attack.pairs[place])
    known: dict[str, Any] = {"metric": attack.metric, "compute": attack.compute}
    from_target = np.sort(pairwise(attack.y[[target]], attack.y, **known)[0])
    from_source = np.sort(pairwise(attack.x[[source]], attack.y, **known)[0])
    shares = [
        (np.searchsorted(values, CURVE, side="right") / values.size) for values in (from_target, from_source)
    ]
    return Chart(
        kind="lines",
        title=f"Risk {name}",
        sentence=f"The person's own two profiles are {sizes.match[place]:.2f} apart.",
        x_label="distance",
        y_label="share of the target community within it",
        series=(
            Series.of("from the second profile", CURVE.tolist(), shares[0].tolist()),
            Series.of("from the first profile", CURVE.tolist(), shares[1].tolist()),
        ),
    )


def _figures_10_and_11(rows: pl.DataFrame) -> Section:
    scatter = Chart(
        kind="scatter",
        title="Figure 10: anonymity set against matching set",
        sentence="On the diagonal the anonymity set tells the matching set; below it, risk is underestimated.",
        x_label="people in the anonymity set",
        y_label="people in the matching set",
        series=(Series.of("one person", rows["anonymity"].to_list(), rows["matching"].to_list()),),
        x_log=True,
        y_log=True,
    )
    return Section(
        heading="Anonymity is not unlinkability",
        text="",
        parts=(scatter, _histogram(rows["anonymity"] / rows["matching"], "Figure 11: |A| divided by |M|")),
    )


def _figure_12(rows: pl.DataFrame) -> Section:
    scatter = Chart(
        kind="scatter",
        title="Figure 12: local matching set against matching set",
        sentence="The local set is part of the matching set, so no point lies above the diagonal.",
        x_label="people in the matching set",
        y_label="people in the local matching set",
        series=(Series.of("one person", rows["matching"].to_list(), rows["local"].to_list()),),
        x_log=True,
        y_log=True,
    )
    return Section(
        heading="Local matching sets",
        text="",
        parts=(scatter, _histogram(rows["local"] / rows["matching"], "Conformity: |mu| divided by |M|")),
    )


def _histogram(values: pl.Series, title: str) -> Chart:
    edges = np.arange(0, 2.2, 0.2)
    counts, _ = np.histogram(np.minimum(values.to_numpy(), 1.999), edges)
    names = (*tuple(f"{low:.1f}–{low + 0.2:.1f}" for low in edges[:-2]), "1.8+")
    shares = (counts / max(counts.sum(), 1)).tolist()
    return Chart(
        kind="bars",
        title=title,
        sentence="How often each range of the ratio occurs.",
        x_label="ratio",
        y_label="share of people",
        series=(Series.of("people", list(range(len(names))), shares),),
        categories=names,
    )
