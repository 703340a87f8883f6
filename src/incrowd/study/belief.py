"""Paper 000, section 4, on any crowd with attributes: what gives what away, how honestly, and what repairs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd import __version__
from incrowd.arrays import Floats, Ints
from incrowd.drawing import Chart, Series
from incrowd.measures.belief.adversary import Topics, read_words
from incrowd.measures.belief.engine import Guesses
from incrowd.measures.protocol import Progress
from incrowd.profiles.attributes import HIDDEN, AttributeTable, SeenAttributes
from incrowd.study.belief_experiments import (
    FEWEST,
    GUESSING,
    NETWORK,
    PEOPLE,
    WORST,
    BeliefStudyOptions,
    Fold,
    counts_section,
    folds,
    pooled,
    repair_section,
    stronger,
    text_section,
)
from incrowd.study.figures import Headline, Section, Study, Table

if TYPE_CHECKING:
    from incrowd.crowd import Crowd


ADVERSARY = "someone who knows four fifths of the crowd, and of the others all attributes but one"
PAIRS_SHOWN = 25


def belief_study(
    table: AttributeTable,
    options: BeliefStudyOptions | None = None,
    crowd: Crowd | None = None,
    topics: Topics | None = None,
    progress: Progress = lambda *_: None,
) -> Study:
    """Run every experiment on one table of attributes; with a crowd, also on what its members wrote."""
    options = options or BeliefStudyOptions()
    parts = list(folds(table, options, progress))
    made = _guesses(parts, progress)
    guesses = {name: pooled(of_folds) for name, of_folds in made.items()}
    name = stronger(guesses)
    sharing = np.concatenate([one.sharing(own) for one, own in zip(parts, made[name], strict=True)])
    parts = [replace(one, name=name) for one in parts]
    progress(0, None, "publishing one attribute at a time")
    sections = [
        _raise_section(parts, guesses[name], table),
        _calibration_section(guesses),
        repair_section(parts, options, progress),
        counts_section(guesses[name], sharing),
        _text(parts, table, crowd, topics, progress),
    ]
    return Study(
        name="belief",
        title="What published attributes give away",
        summary=_summary(guesses[name], guesses[GUESSING], sum(len(one.held.codes) for one in parts)),
        sections=tuple(one for one in sections if one is not None),
        facts={**_facts(table, options, topics), "belief": f"{name}, the stronger of the two compared"},
        headlines=_headlines(guesses[name], guesses[GUESSING]),
    )


def _headlines(guesses: Guesses, blind: Guesses) -> tuple[Headline, ...]:
    """Paper 000 proves and measures nothing in section 4; its claims are the results."""
    return (
        Headline(
            result="hidden attributes can be inferred from published ones (section 4)",
            paper="claimed, not measured",
            here=f"right {guesses.right.mean():.0%} of the time; guessing {blind.right.mean():.0%}",
            why="the paper has no experiment; people the adversary never saw, here",
        ),
        Headline(
            result="beliefs are probabilities that come true",
            paper="assumed",
            here=f"calibration error {guesses.reliability().error:.3f}",
            why="the framework takes a belief as given; here it is learnt and checked",
        ),
    )


def _guesses(parts: Sequence[Fold], progress: Progress) -> dict[str, list[Guesses]]:
    """Let each belief guess what the people of each fold hide."""
    made: dict[str, list[Guesses]] = {name: [] for name in (PEOPLE, NETWORK, GUESSING)}
    for k, (name, fold) in enumerate(product(made, parts)):
        progress(k, len(made) * len(parts), "hiding and guessing")
        made[name].append(fold.guesses(name))
    return made


def _text(
    parts: Sequence[Fold],
    table: AttributeTable,
    crowd: Crowd | None,
    topics: Topics | None,
    progress: Progress,
) -> Section | None:
    if crowd is None or crowd.posts().head(1).collect().is_empty():
        return None
    progress(0, None, "reading words")
    kinds = {"words": read_words(crowd, table)}
    if topics is not None:
        kinds["topics"] = read_words(crowd, table, topics)
    return text_section(parts, table, kinds, progress)


def _summary(guesses: Guesses, blind: Guesses, people: int) -> str:
    rise = guesses.true - guesses.prior
    return (
        f"Of {people:,} people the adversary never saw, a hidden attribute is guessed right "
        f"{guesses.right.mean():.0%} of the time, against {blind.right.mean():.0%} by guessing alone. Belief in the "
        f"true value rises by {rise.mean():.2f} on average over a blind guess, and by "
        f"{np.quantile(rise, 1 - WORST):.2f} or more for the worst {WORST:.0%}. The calibration error is "
        f"{guesses.reliability().error:.3f}."
    )


def _facts(table: AttributeTable, options: BeliefStudyOptions, topics: Topics | None) -> dict[str, Any]:
    return {
        "paper": "000, section 4 (open-world framework)",
        "adversary": ADVERSARY,
        **asdict(options),
        "people in the crowd": len(table.codes),
        "attributes": len(table.space.attributes),
        "values set aside (a person gave several)": table.several,
        "fewest cases in a row of a table": FEWEST,
        "topics": "none" if topics is None else len(topics),
        "data hash": table.data_hash,
        "incrowd": __version__,
    }


def rises(parts: Iterable[Fold]) -> dict[tuple[int, int], Floats]:
    """Return for each pair (published, hidden) how much publishing one attribute alone raises belief in the other.

    The rise is of the true value's probability over the prior, one number per held-out person who gave both.
    """
    found: dict[tuple[int, int], list[Floats]] = {}
    for fold in parts:
        space, codes = fold.held.space, fold.held.codes.astype(np.int64)
        everything = list(range(len(space.attributes)))
        prior = fold.belief.posteriors(everything, SeenAttributes.nothing(space))
        for shown in everything:
            known = np.flatnonzero(codes[:, shown] != HIDDEN)
            seen = np.full((len(known), len(everything)), HIDDEN, dtype=np.int64)
            seen[:, shown] = codes[known, shown]
            targets = [place for place in everything if place != shown]
            after = fold.belief.posteriors(targets, SeenAttributes(space, seen)) if known.size else []
            for place, sure in zip(targets, after, strict=False):
                rise = _rise(sure, prior[place][0], codes[known, place])
                found.setdefault((shown, place), []).append(rise)
    return {pair: np.concatenate(parts) for pair, parts in found.items() if sum(map(len, parts))}


def _rise(sure: Floats, prior: Floats, truth: Ints) -> Floats:
    rows = np.flatnonzero((truth != HIDDEN) & ~np.isnan(sure[:, 0]))
    return np.asarray(sure[rows, truth[rows]] - prior[truth[rows]])


def _mean_and_worst(rise: Floats) -> tuple[float, float]:
    return round(float(rise.mean()), 3), round(float(np.quantile(rise, 1 - WORST)), 3)


def _raise_section(parts: Sequence[Fold], guesses: Guesses, table: AttributeTable) -> Section:
    names, found = table.space.attributes, rises(parts)
    alone: list[tuple[str, int, float, float]] = [
        (names[shown], int(pair.size), *_mean_and_worst(pair))
        for shown in range(len(names))
        if (of_one := [rise for (one, _), rise in found.items() if one == shown])
        and (pair := np.concatenate(of_one)).size >= FEWEST
    ]
    pairs: list[tuple[str, str, int, float, float]] = [
        (names[a], names[b], int(rise.size), *_mean_and_worst(rise))
        for (a, b), rise in found.items()
        if rise.size >= FEWEST
    ]
    alone.sort(key=lambda row: -row[2])
    pairs.sort(key=lambda row: -row[3])
    note = (
        "Rise of the probability of the true value over a blind guess: 0 = says nothing, 1 = gives it away. "
        + ("Worst 5 %: one case in twenty rises by so much or more.")
    )
    by_one = Table(
        title="One attribute published alone: how much surer of all the others",
        columns=("published", "cases", "mean rise", "worst 5 %"),
        rows=tuple(alone),
        note=note,
    )
    by_pair = Table(
        title="The strongest pairs: one attribute published, another one hidden",
        columns=("published", "hidden", "cases", "mean rise", "worst 5 %"),
        rows=tuple(pairs[:PAIRS_SHOWN]),
    )
    text = "How much surer does somebody become of a hidden attribute when others are published?"
    return Section(
        heading="What gives what away", text=text, parts=(by_one, by_pair, _all_others(guesses, names))
    )


def _all_others(guesses: Guesses, names: Sequence[str]) -> Table:
    rows: list[tuple[str, int, float, float, float, float, float]] = []
    for place in np.unique(guesses.place).tolist():
        inside = guesses.place == place
        if inside.sum() < FEWEST:
            continue
        true, prior = guesses.true[inside], guesses.prior[inside]
        rows.append(
            (
                names[place],
                int(inside.sum()),
                float(guesses.right[inside].mean()),
                float(prior.mean()),
                float(true.mean()),
                *_mean_and_worst(true - prior),
            )
        )
    rows.sort(key=lambda row: -row[5])
    return Table(
        note="Right: how often the most believed value is the true one. Blind guess and belief: in the true value.",
        title="One attribute hidden, all others published",
        columns=("hidden", "people", "right", "blind guess", "belief", "mean rise", "worst 5 %"),
        rows=tuple(rows),
    )


def _calibration_section(guesses: dict[str, Guesses]) -> Section:
    curves = {name: one.reliability() for name, one in guesses.items()}
    rows = tuple(
        (name, len(one.right), curves[name].error, float(one.right.mean()), float(one.true.mean()))
        for name, one in guesses.items()
    )
    series = [Series.of("honest", (0.0, 1.0), (0.0, 1.0))]
    for name, curve in curves.items():
        there = curve.count >= FEWEST
        series.append(Series.of(name, curve.sure[there], curve.right[there]))
    chart = Chart(
        kind="lines",
        title="Reliability on held-out people",
        sentence="On the diagonal, “70 % sure” is right seven times in ten; below it, the adversary is too sure.",
        x_label="how sure",
        y_label="how often right",
        series=tuple(series),
    )
    table = Table(
        title="Adversaries compared",
        columns=("adversary", "guesses", "calibration error", "right", "mean belief in the truth"),
        rows=rows,
        note="Calibration error: mean gap between how sure and how often right; 0 = honest, 1 = worst.",
    )
    text = "Each attribute of each held-out person is hidden in turn and guessed from all the others."
    return Section(heading="Are beliefs honest?", text=text, parts=(chart, table))
