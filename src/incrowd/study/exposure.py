"""Paper 004 on any crowd with labels: tables 3 to 6 and the robustness sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import incrowd
from incrowd.measures.exposure.comparison import Comparison, compare
from incrowd.measures.exposure.scoring import Progress
from incrowd.measures.exposure.space import Space
from incrowd.measures.exposure.spec import BASELINES, DIMENSIONS, ExposureOptions, method_name
from incrowd.study.figures import Cell, Chart, Section, Series, Study, Table

if TYPE_CHECKING:
    import polars as pl

    from incrowd.crowd import Crowd

FIGURES = ("r_precision_micro", "r_precision_macro", "p_at_5", "map", "ndcg")
HEADINGS = ("r-precision, micro", "r-precision, macro", "precision at 5", "MAP", "NDCG")
MEANING = (
    "Every figure goes from 0 to 1 and is higher the better the adversary finds the people judged sensitive. "
    "r-precision: the share of them among the first r, where r is how many there are; micro counts people, macro "
    "averages topics. MAP: mean average precision. NDCG compares with the order of the judges' votes. Equal scores "
    "have no order: figures are expected values."
)


def exposure_study(
    crowd: Crowd,
    spaces: Sequence[Space],
    labels: pl.DataFrame,
    options: ExposureOptions | None = None,
    progress: Progress | None = None,
) -> Study:
    """Reproduce the evaluation of paper 004 for the given spaces; `labels` as for `compare`."""
    options = options or ExposureOptions()
    result = compare(crowd, spaces, labels, options, progress)
    best = max(result.methods, key=lambda name: result.methods[name].map)
    return Study(
        name="exposure",
        title="Who looks exposed, and how well an adversary can tell (paper 004)",
        summary=(
            f"{len(result.judged)} topics, {sum(n for n, _ in result.judged.values()):,} judged profiles. The best "
            f"adversary is {best} with a MAP of {result.methods[best].map:.3f}; a random order reaches an "
            f"r-precision of {result.chance:.3f}."
        ),
        sections=(
            _judged(result),
            _baselines(result, spaces),
            _methods(result, spaces),
            _per_topic(result),
            *_sweeps(result),
        ),
        facts={
            "incrowd": incrowd.__version__,
            "data": crowd.data_hash,
            "spaces": {space.name: space.hash for space in spaces},
            **options.parameters(),
        },
    )


def _judged(result: Comparison) -> Section:
    rows = tuple((topic, people, found) for topic, (people, found) in result.judged.items())
    table = Table(title="Table 3: judged profiles", columns=("topic", "judged", "found sensitive"), rows=rows)
    text = "A person counts as sensitive for a topic if more than half of the votes say so."
    return Section(heading="Who was judged", text=text, parts=(table,))


def _baselines(result: Comparison, spaces: Sequence[Space]) -> Section:
    table = _figures(result, [*BASELINES, *(space.name for space in spaces)], "Table 4: strength of interest")
    text = (
        f"ENTROPY and DIFF-PRIV were made for tables of attributes; here every salient word is one. {MEANING}"
    )
    return Section(heading="Measures made for tables against strength of interest", text=text, parts=(table,))


def _methods(result: Comparison, spaces: Sequence[Space]) -> Section:
    names = [method_name(space.name, dimension) for space in spaces for dimension in DIMENSIONS]
    table = _figures(result, names, "Table 5: spaces and dimensions")
    tests: tuple[tuple[Cell, ...], ...] = tuple(
        (name, space.name, *result.significance(name, space.name).values())
        for space in spaces
        for name in (method_name(space.name, dimension) for dimension in DIMENSIONS[1:])
    )
    significance = Table(
        title="Is the difference in hits due to chance?",
        columns=("method", "against", "paired t-test, p", "exact McNemar test, p"),
        rows=tests,
        note="Two-sided, over the (person, topic) pairs judged sensitive; x = 1 if ranked among the first r.",
    )
    text = "-D takes off what people write about the rest of the domain, -T asks for several weeks, -DT does both."
    return Section(heading="Breadth and time", text=text, parts=(table, significance))


def _per_topic(result: Comparison) -> Section:
    topics = [topic for topic, (_, found) in result.judged.items() if found]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(one.per_topic[topic] for topic in topics)) for name, one in result.methods.items()
    )
    table = Table(title="Table 6: r-precision of every topic", columns=("method", *topics), rows=rows)
    return Section(heading="Topic by topic", text="", parts=(table,))


def _sweeps(result: Comparison) -> list[Section]:
    swept = {name: result.sweep(name) for name in result.scored}
    charts = tuple(
        Chart(
            kind="lines",
            title=title,
            sentence=sentence,
            x_label=label,
            y_label="r-precision, micro",
            series=tuple(Series.of(name, one[key], one[key].values()) for name, one in swept.items()),
        )
        for key, label, title, sentence in (
            ("breadth", "k", "-D over k", "A small share of the domain is enough to look professional."),
            ("weeks", "m", "-T over m", "Asking for more weeks misses people who write less often."),
        )
    )
    text = "How much the results depend on the two parameters of paper 004 (k = 0.3 and m = 3 elsewhere)."
    return [Section(heading="Robustness", text=text, parts=charts)]


def _figures(result: Comparison, names: Sequence[str], title: str) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(float(getattr(result.methods[name], figure)) for figure in FIGURES)) for name in names
    )
    return Table(title=title, columns=("method", *HEADINGS), rows=rows)
