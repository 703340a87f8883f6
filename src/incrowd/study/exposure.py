"""Paper 004 on any crowd with labels: tables 3 to 6 and the robustness sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import incrowd
from incrowd.drawing import Chart, Series
from incrowd.errors import InputError
from incrowd.measures.exposure.comparison import (
    MethodComparison,
    compare,
    periods_written,
    supervised_risks,
    tfidf,
    words_of_people,
)
from incrowd.measures.exposure.definition import Floats
from incrowd.measures.exposure.evaluation import SPLITS, HeldOut, held_out, leave_people_out, middle, tried
from incrowd.measures.exposure.scoring import Progress
from incrowd.measures.exposure.space import Space
from incrowd.measures.exposure.spec import BASELINES, DIMENSIONS, ExposureOptions, method_name
from incrowd.measures.exposure.training import fleiss_kappa
from incrowd.result import say_count
from incrowd.study.figures import Cell, Headline, Section, Study, Table

if TYPE_CHECKING:
    import polars as pl

    from incrowd.crowd import Crowd

NOT_TRIED = "not tried (--model)"
QUANTILES = 41
"""Points of a curve of scores."""
FIGURES = ("r_precision_micro", "r_precision_macro", "p_at_5", "map", "ndcg")
HEADINGS = ("r-precision, micro", "r-precision, macro", "precision at 5", "MAP", "NDCG")
PAPER_SPACES = {
    "BOW": ((0.434, 0.364, 0.556, 0.374), (0.642, 0.612, 0.582, 0.612), (0.284, 0.418, 0.284, 0.463)),
    "W2V": ((0.556, 0.414, 0.586, 0.545), (0.664, 0.642, 0.619, 0.687), (0.343, 0.493, 0.313, 0.463)),
    "LDA": ((0.525, 0.566, 0.576, 0.616), (0.649, 0.716, 0.709, 0.716), (0.358, 0.493, 0.299, 0.418)),
}
"""Table 5 of the paper, micro r-precision: AOL, health forums, Quora; in each strength, -D, -T, -DT."""
PAPER_TOPICS = {
    "depression": ".542, .542, .625, .667; .762, .762, .833, .762; .650, .550, .650, .600",
    "drugs": ".545, .636, .591, .636; .710, .806, .677, .774; .364, .545, .273, .364",
    "pregnancy": ".533, .667, .533, .733; .571, .667, .619, .667; .095, .429, .095, .381",
    "hiv": ".429, .429, .500, .500; .526, .579, .684, .632; .400, .400, .200, .400",
    "debts": ".542, .542, .583, .542; n/a; .300, .500, .100, .200",
}
"""Table 6: LDA, likewise."""
CONTROL, BOUND = "periods written in (no words)", "supervised bound"
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
    seed: int = 0,
    judges: int | None = None,
) -> Study:
    """Reproduce the evaluation of paper 004 for the given spaces; `labels` as for `compare`.

    Parameters
    ----------
    judges
        How many judges voted on each person, where known: votes are shares of them, and their agreement can be told.
    """
    options = options or ExposureOptions()
    result = compare(crowd, spaces, labels, options, progress)
    kappa = vote_agreement(result, judges)
    maps = {name: one.map for name, one in result.methods.items() if not np.isnan(one.map)}
    best = max(maps, key=maps.__getitem__)
    return Study(
        name="exposure",
        title="Who looks exposed, and how well an adversary can tell (paper 004)",
        summary=(
            f"{say_count(len(result.judged), 'topic')}, "
            f"{say_count(sum(n for n, _ in result.judged.values()), 'judged profile')}. "
            f"The best adversary is {best} with a MAP of {result.methods[best].map:.3f}; a random order reaches an "
            f"r-precision of {result.chance:.3f}."
        ),
        sections=(
            _judged(result, kappa),
            _sampled(result),
            _baselines(result, spaces),
            _methods(result, spaces),
            _per_topic(result),
            _certainty(crowd, result, options, seed),
            *_sweeps(result),
        ),
        facts={
            "incrowd": incrowd.__version__,
            "data": crowd.data_hash,
            "spaces": {space.name: space.hash for space in spaces},
            "seed": seed,
            **options.parameters(),
        },
        headlines=_headlines(result, spaces, kappa),
    )


def _headlines(result: MethodComparison, spaces: Sequence[Space], kappa: float) -> tuple[Headline, ...]:
    """Tables 4 to 6 of the paper, row by row; weighted words are ours and stand in the sections only."""
    micro = {name: float(one.r_precision_micro) for name, one in result.methods.items()}
    lda = {topic: [result.methods[name].per_topic[topic] for name in _variants("LDA")]
           for topic in result.judged if "LDA" in micro}  # fmt: skip
    judged = ", ".join(f"{topic} {found:,} of {people:,}" for topic, (people, found) in result.judged.items())
    data = (
        f"found sensitive here: {judged}; in AOL, health forums and Quora 99, 134 and 68 of the 100 or 40 judged for a "
        f"topic. A random order reaches {_said(result.chance)} here"
    )
    tables = [
        Headline(
            result="LDA, strength of interest (table 4)",
            paper=_said(*(rows[0] for rows in PAPER_SPACES["LDA"])),
            here=_said(micro["LDA"]) if "LDA" in micro else NOT_TRIED,
            why=data,
        ),
        Headline(
            result="ENTROPY; DIFF-PRIV (table 4)",
            paper=".455, .560, .244; .445, .560, .256",
            here="; ".join(_said(micro[name]) for name in BASELINES),
            why="the paper's numbers fit six topics, its others five: not like for like there",
        ),
    ]
    tables += [
        Headline(
            result=f"{space}: strength, -D, -T, -DT (table 5)",
            paper="; ".join(_said(*one) for one in data_sets),
            here=_said(*(micro[name] for name in _variants(space)))
            if space in micro
            else "not tried (--model)",
            why="AOL; health forums; Quora there",
        )
        for space, data_sets in PAPER_SPACES.items()
    ]
    tables += [
        Headline(
            result=f"{topic}, LDA: strength, -D, -T, -DT (table 6)",
            paper=PAPER_TOPICS[topic],
            here=_said(*values),
            why=f"{result.judged[topic][1]:,} people found sensitive here; otherwise as above",
        )
        for topic, values in lda.items()
        if topic in PAPER_TOPICS
    ]
    agreed = Headline(
        result="agreement of those who judged people (Fleiss' kappa)",
        paper="0.442, 0.444, 0.468",
        here=kappa,
        why="needs the number of judges (--judges)" if np.isnan(kappa) else "other judges, other people",
    )
    return (*tables, agreed)


def _variants(space: str) -> list[str]:
    return [method_name(space, dimension) for dimension in DIMENSIONS]


def _said(*values: float) -> str:
    return ", ".join(f"{value:.3f}".removeprefix("0") if value == value else "undefined" for value in values)


def vote_agreement(result: MethodComparison, judges: int | None) -> float:
    """Return Fleiss' kappa of the votes on people, over all topics; NaN without the number of judges."""
    if judges is None:
        return float("nan")
    votes = np.concatenate([*result.labels.votes.values()])
    yes = np.rint(votes * judges)
    if np.abs(yes / judges - votes).max() > 0.005:
        raise InputError(
            f"--judges {judges}: expected votes that are shares of so many judges, got others; was it another number?"
        )
    return fleiss_kappa(np.column_stack([yes, judges - yes]))


def _sampled(result: MethodComparison) -> Section:
    """Figure 1: are the people who were judged spread over the scores of everybody?"""
    name, one = next(iter(result.scored.items()))
    shares = np.linspace(0, 1, QUANTILES)
    charts = []
    for topic, rows in result.labels.rows.items():
        risks = one.risks(DIMENSIONS[0])[:, one.space.topics.place(topic)]
        known = {"everybody": risks, "those who were judged": risks[rows]}
        series = tuple(
            Series.of(who, shares, np.quantile(values[~np.isnan(values)], 1 - shares))
            for who, values in known.items()
            if (~np.isnan(values)).any()
        )
        charts.append(
            Chart(
                kind="lines",
                title=f"Figure 1: {topic}, scores of those judged and of everybody",
                sentence=f"Strength of interest ({name}). The nearer the curves, the more alike; above: the judged "
                "people are more exposed than people in general.",
                x_label="share of the people, most exposed first",
                y_label="score",
                series=series,
            )
        )
    text = "A sample says something about a ranking only if it reaches into all of its regions."
    return Section(heading="Who was chosen to be judged", text=text, parts=tuple(charts))


def _judged(result: MethodComparison, kappa: float) -> Section:
    rows = tuple((topic, people, found) for topic, (people, found) in result.judged.items())
    table = Table(title="Table 3: judged profiles", columns=("topic", "judged", "found sensitive"), rows=rows)
    text = "A person counts as sensitive for a topic if more than half of the votes say so."
    if kappa == kappa:
        text += f" The judges agree with a Fleiss' kappa of {kappa:.3f} (1: fully, 0: as by chance)."
    return Section(heading="Who was judged", text=text, parts=(table,))


def _baselines(result: MethodComparison, spaces: Sequence[Space]) -> Section:
    table = _figures(result, [*BASELINES, *(space.name for space in spaces)], "Table 4: strength of interest")
    text = (
        f"ENTROPY and DIFF-PRIV were made for tables of attributes; here every salient word is one. {MEANING}"
    )
    return Section(heading="Measures made for tables against strength of interest", text=text, parts=(table,))


def _methods(result: MethodComparison, spaces: Sequence[Space]) -> Section:
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
    undefined = {name: result.methods[name].reason for name in names if result.methods[name].reason}
    if undefined:
        text += f" Undefined: {', '.join(undefined)} ({next(iter(undefined.values()))})."
    return Section(heading="Breadth and time", text=text, parts=(table, significance))


def _per_topic(result: MethodComparison) -> Section:
    topics = [topic for topic, (_, found) in result.judged.items() if found]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(one.per_topic[topic] for topic in topics)) for name, one in result.methods.items()
    )
    table = Table(title="Table 6: r-precision of every topic", columns=("method", *topics), rows=rows)
    return Section(heading="Topic by topic", text="", parts=(table,))


def _certainty(crowd: Crowd, result: MethodComparison, options: ExposureOptions, seed: int) -> Section:
    """Figures with intervals beside chance, a control without words and the bound; then choices held out."""
    votes = result.labels.votes
    compared = dict(result.risks) | _references(crowd, result, options, seed)
    found = leave_people_out(compared, votes, result.labels.rows, seed=seed)
    bound = found[BOUND]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, one.value, *one.interval(), one.value / bound.value, *one.ratio(bound))
        for name, one in found.items()
    )
    table = Table(
        title="MAP with 95 % intervals",
        columns=("method", "MAP", "from", "to", "share of the bound", "share, from", "share, to"),
        rows=rows,
        note="Jackknife over people: each is left out of all topics at once. What has no scores is undefined.",
    )
    text = (
        f"A random order has a MAP of {result.chance_map:.3f}. “{CONTROL}” orders people by the number of "
        "periods in which they wrote anything, without a look at a word: what it reaches is evidence for no method. "
        f"“{BOUND}” is a logistic regression on TF-IDF that has seen the labels of other people (cross-validated). "
        "With few labelled people it has little to learn from, and is no bound."
    )
    held = _held_out(result, compared, seed)
    return Section(heading="How sure, and compared with what", text=text, parts=(table, held))


def _references(
    crowd: Crowd, result: MethodComparison, options: ExposureOptions, seed: int
) -> dict[str, dict[str, Floats]]:
    scored, labels = next(iter(result.scored.values())), result.labels
    judged = np.unique(np.concatenate(list(labels.rows.values())))
    features = tfidf(words_of_people(crowd, scored.users[judged.tolist()], options))
    written = periods_written(scored.peaks)
    return {
        CONTROL: {topic: written[rows] for topic, rows in labels.rows.items()},
        BOUND: {
            topic: supervised_risks(features[np.searchsorted(judged, rows)], labels.votes[topic], seed=seed)
            for topic, rows in labels.rows.items()
        },
    }


def _held_out(result: MethodComparison, compared: Mapping[str, Mapping[str, Floats]], seed: int) -> Table:
    """The settings of every space chosen on half of the people, judged on the other half."""
    tried_risks: dict[str, dict[Any, dict[str, Floats]]] = {}
    for name, one in result.scored.items():
        settings: dict[Any, dict[str, Floats]] = {}
        for topic, rows in result.labels.rows.items():
            for setting, risks in tried(name, one.peaks, one.space.topics, topic):
                settings.setdefault(setting, {})[topic] = risks[rows]
        tried_risks[name] = settings
    fixed = {name: {name: dict(compared[name])} for name in (CONTROL, BOUND)}
    found = held_out(tried_risks | fixed, result.labels.votes, seed=seed)
    lines: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            _mean(one.maps),
            *middle(one.maps),
            _mean(one.maps / found[BOUND].maps),
            one.chosen.most_common(1)[0][0] if name in tried_risks and one.chosen else None,
        )
        for name, one in found.items()
    )
    return Table(
        title="Settings chosen on other people",
        columns=("space", "mean MAP", "from", "to", "share of the bound", "chosen most often"),
        rows=lines,
        note=(
            f"{SPLITS} times, dimension, k and m of every space are those with the highest MAP on a random half of the "
            "judged people, and the figure is about the other half. From and to: the middle 95 % of the splits."
            + _left_out(found.values())
        ),
    )


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _left_out(found: Iterable[HeldOut]) -> str:
    reasons = dict.fromkeys(one.reason for one in found if one.reason)
    return "".join(f" Undefined or left out: {reason}." for reason in reasons)


def _sweeps(result: MethodComparison) -> list[Section]:
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


def _figures(result: MethodComparison, names: Sequence[str], title: str) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(float(getattr(result.methods[name], figure)) for figure in FIGURES)) for name in names
    )
    return Table(title=title, columns=("method", *HEADINGS), rows=rows)
