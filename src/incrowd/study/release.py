"""Paper 001, section VIII, on any crowd: how much of its answers may leave, and what other rules would have done.

:func:`release_study` returns plain tables and charts; nothing here draws. No value is shown by name.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from incrowd import __version__
from incrowd.drawing import Chart, Series
from incrowd.measures.protocol import Progress
from incrowd.measures.release.spec import ADVERSARY
from incrowd.study.figures import Cell, Headline, Section, Study, Table
from incrowd.study.release_data import (
    AT_RANDOM,
    Released,
    ReleaseStudyOptions,
    Work,
    asked_of,
    at_threshold,
    count,
    percent,
    ratio,
    spellings,
)
from incrowd.study.release_questions import (
    by_class,
    growth,
    holders_alone,
    k_anonymity,
    rare_value_attack,
    small_classes,
    speed,
)

if TYPE_CHECKING:
    from incrowd.crowd import Crowd


DRAWN = 120
NO_CLASSES = "nothing to select by"
FEW_ATTRIBUTES = 3
"""So many are named one by one beside the paper."""


def release_study(
    crowd: Crowd, options: ReleaseStudyOptions | None = None, progress: Progress | None = None
) -> Study:
    """Reproduce the evaluation of paper 001 on this crowd."""
    options = options or ReleaseStudyOptions()
    asked = asked_of(crowd, options)
    work = Work(asked, options, spellings(asked, options.aliases))
    parts = (
        _value_sizes,
        _class_sizes,
        _against_q,
        _tidying,
        by_class,
        holders_alone,
        k_anonymity,
        small_classes,
        growth,
        rare_value_attack,
        *([speed] if options.timed else []),
    )
    sections = []
    for number, part in enumerate(parts, start=1):
        sections.append(part(work))
        if progress:
            progress(number, len(parts), sections[-1].heading)
    return Study(
        name="release",
        title="What answers may leave the database (paper 001)",
        summary=_summary(work),
        sections=tuple(sections),
        facts=_facts(work),
        headlines=_headlines(work, sections),
    )


def _headlines(work: Work, sections: list[Section]) -> tuple[Headline, ...]:
    asked = work.asked
    crowd = f"{asked.people:,} people and '{asked.interest}' here; some 700 friends of one person and their films there"
    raw, tidied = (at_threshold(work.curves[name], 10) for name in ("as written", "tidied"))
    small = next(one for one in sections if one.heading == "Small classes")
    answered = {row[0]: row[3] for part in small.parts if isinstance(part, Table) for row in part.rows}
    classes = [_class_row(work, name) for name in asked.classes]
    return (
        Headline(
            result="values withheld at q = 10, as written, %",
            paper="above 95",
            here=percent(1 - ratio(raw.released, raw.values)),
            why=crowd,
        ),
        Headline(
            result="times as many values leave at q = 10 after tidying",
            paper="above 4",
            here=ratio(tidied.released, raw.released),
            why="the paper had a search engine name films; folding and aliases join less"
            if work.tidying_helps
            else "every value here is spelt one way only",
        ),
        Headline(
            result="q up to which as many tidied values leave as raw ones at q = 10",
            paper="27",
            here=_reached(work),
            why=f"thresholds tried: {', '.join(str(one.threshold) for one in work.curves['tidied'])}",
        ),
        Headline(
            result="people in the five largest classes, %",
            paper="nearly 50",
            here=_over_attributes(classes, 3),
            why="the paper has two attributes, place and network; " + crowd,
        ),
        Headline(
            result="classes of 1 % of the people or less, %",
            paper="20 to 40",
            here=_over_attributes(classes, 4),
            why="as above",
        ),
        Headline(
            result="classes of 5 to 10 people that get any answer at q = 4, %",
            paper="few",
            here=NO_CLASSES if AT_RANDOM in asked.classes else answered.get(4, math.nan),
            why="the paper gives no number",
        ),
    )


def _summary(work: Work) -> str:
    asked, threshold = work.asked, work.options.thresholds[0]
    at = at_threshold(work.curves["as written"], threshold)
    tidied = at_threshold(work.curves["tidied"], threshold)
    return (
        f"{asked.people:,} people list {len(asked.names):,} values of '{asked.interest}'. Asked for everybody, "
        f"{_share(at)} of the values as written may leave at q = {threshold}, "
        f"{_share(tidied)} after tidying spellings."
    )


def _share(one: Released) -> str:
    return f"{one.released:,.0f}" if one.released >= 0 else "an unknown number"


def _facts(work: Work) -> dict[str, Any]:
    options = work.options
    return {
        "paper": "Beach, Gartrell and Han 2010, Rethinking Anonymity for Social Networks",
        "adversary": ADVERSARY,
        "attribute asked for": work.asked.interest,
        "attributes that select classes": ", ".join(work.asked.classes),
        "thresholds": ", ".join(map(str, options.thresholds)),
        "aliases": len(options.aliases),
        "classes in detail": len(work.chosen),
        "seconds a question": options.seconds,
        "seed": options.seed,
        "data hash": work.asked.data_hash,
        "incrowd": __version__,
    }


def _class_sizes(work: Work) -> Section:
    """Figure 5: how many people a class holds."""
    rows = [_class_row(work, name) for name in work.asked.classes]
    series = [
        _ranked(name, np.array([len(one) for one in classes])) for name, classes in work.asked.classes.items()
    ]
    least = min(work.options.thresholds)
    columns = (
        "attribute",
        "classes",
        "largest",
        "in the largest 5, %",
        "of 1 % or less, %",
        f"below {least} people, %",
    )
    drawn = AT_RANDOM in work.asked.classes
    return Section(
        heading="How large classes are",
        text="A query selects the people who share a value. A class below the threshold gets no answer at all."
        + (
            " This crowd has nothing to select by, so classes are drawn at random, some large, some small."
            * drawn
        ),
        parts=(
            Table(
                title="Classes by attribute",
                columns=columns,
                rows=tuple(rows),
                note="'In the largest 5' is percent of people, the last two are percent of classes. The paper: a "
                "few classes cover about half of the people, and 20 to 40 % of classes hold about 1 %.",
            ),
            _ranks("Figure 5: people in each class", "class, by rank", "people", series),
        ),
    )


def _over_attributes(classes: list[ClassRow], column: Literal[3, 4]) -> str:
    shares = {row[0]: row[column] for row in classes}
    if AT_RANDOM in shares:
        return NO_CLASSES
    if len(shares) <= FEW_ATTRIBUTES:
        return ", ".join(f"{share:.0f} ({name})" for name, share in shares.items())
    values = list(shares.values())
    return f"{np.median(values):.0f} (median of {len(values)} attributes; {min(values):.0f} to {max(values):.0f})"


def _reached(work: Work) -> Cell:
    if not work.tidying_helps:
        return "nothing to tidy"
    raw = at_threshold(work.curves["as written"], 10).released
    reached = [one.threshold for one in work.curves["tidied"] if one.released >= raw > 0]
    return max(reached) if reached else "no threshold tried"


ClassRow = tuple[str, int, int, float, float, float]


def _class_row(work: Work, name: str) -> ClassRow:
    """Describe the classes of one attribute. A person may be in several: people are counted, not memberships."""
    classes, people = work.asked.classes[name], work.asked.people
    sizes = np.array([len(one) for one in classes])
    return (
        name,
        len(sizes),
        int(sizes[0]),
        percent(len(np.unique(np.concatenate(classes[:5]))) / people),
        percent(np.mean(100 * sizes <= people)),
        percent(np.mean(sizes < min(work.options.thresholds))),
    )


def _value_sizes(work: Work) -> Section:
    """Figure 4: how many people list a value."""
    holders = {name: np.sort(index.supports)[::-1] for name, index in work.everybody.items()}
    rows = tuple(
        (name, len(sizes), int(sizes[0]), percent(np.mean(sizes == 1)), percent(np.mean(sizes < 10)))
        for name, sizes in holders.items()
    )
    return Section(
        heading="How common values are",
        text="A value that few people list can never be released: q is at most the number of its holders.",
        parts=(
            Table(
                title="Holders of a value, by spelling",
                columns=("spelling", "values", "most holders", "with one holder, %", "below 10 holders, %"),
                rows=rows,
                note="The last two are percent of values. 'Tidied' joins case, punctuation, articles and aliases; "
                "'look-alikes joined' accepts every proposal unseen, which a real release must not.",
            ),
            _ranks(
                "Figure 4: people who list each value",
                "value, by rank",
                "people",
                [_ranked(name, sizes) for name, sizes in holders.items()],
            ),
        ),
    )


def _ranked(name: str, sizes: NDArray[Any]) -> Series:
    ranks = np.unique(np.geomspace(1, len(sizes), DRAWN).astype(np.int64))
    return Series.of(name, ranks, sizes[ranks - 1])


def _ranks(title: str, x_label: str, y_label: str, series: list[Series]) -> Chart:
    return Chart(
        kind="lines",
        title=title,
        sentence="Both axes grow by factors of ten: a straight line down is a long tail of small ones.",
        x_label=x_label,
        y_label=y_label,
        series=tuple(series),
        x_log=True,
        y_log=True,
    )


def _against_q(work: Work) -> Section:
    """What share may leave, whatever threshold is asked for."""
    known = {name: [one for one in curve if one.share >= 0] for name, curve in work.curves.items()}
    q = {name: [one.threshold for one in curve] for name, curve in known.items()}
    series = tuple(
        Series.of(name, q[name], [percent(one.released / one.values) for one in curve])
        for name, curve in known.items()
    )
    return Section(
        heading="How much may leave",
        text="The answer for everybody, thinned out until nobody is tied to it with a probability above 1/q. "
        "A threshold whose proof did not fit the time budget is left out.",
        parts=(
            Chart(
                kind="lines",
                title="Values that may leave",
                sentence="Further to the right is safer; higher up is more useful.",
                x_label="q asked for",
                y_label="% of values",
                series=series,
                x_log=True,
            ),
        ),
    )


def _tidying(work: Work) -> Section:
    """Section VIII-B: what one name for one thing does."""
    rows: list[tuple[Cell, ...]] = []
    for threshold in work.options.thresholds:
        written = at_threshold(work.curves["as written"], threshold)
        for name, curve in work.curves.items():
            one = at_threshold(curve, threshold)
            times = ratio(one.released, written.released)
            rows.append(
                (
                    threshold,
                    name,
                    one.values,
                    one.enough,
                    count(one.released),
                    times,
                    count(one.entries),
                    percent(one.share),
                )
            )
    return Section(
        heading="What tidying spellings does",
        text=_what_tidying_did(work),
        parts=(
            Table(
                title="Values that may leave, before and after",
                columns=(
                    "q",
                    "spelling",
                    "values",
                    "with q holders",
                    "leave",
                    "times as many",
                    "entries that leave",
                    "% of entries",
                ),
                rows=tuple(rows),
                note="A dash: no proof fitted the time budget. The paper: above 95 % of the raw values withheld at "
                "q = 10, four times as many after tidying, and the raw volume reached at q = 27.",
            ),
        ),
    )


def volume_reached(work: Work, first: int) -> int | None:
    """Return the highest threshold at which the tidied answer still releases as much as the raw one at the first."""
    volume = at_threshold(work.curves["as written"], first).entries
    reached = [one.threshold for one in work.curves["tidied"] if one.entries >= volume > 0]
    return max(reached, default=None)


def _what_tidying_did(work: Work) -> str:
    first = work.options.thresholds[0]
    volume = at_threshold(work.curves["as written"], first).entries
    if not work.tidying_helps:
        return "Every value is spelt one way only: tidying changes nothing in this crowd."
    if np.isnan(volume):
        return f"Spellings as written: no proof fitted the time budget at q = {first}."
    if volume == 0:
        return f"With spellings as written, nothing leaves at q = {first}."
    reached = volume_reached(work, first)
    return f"With spellings as written, {volume:,.0f} entries leave at q = {first}. " + (
        "Tidied, fewer leave at every threshold tried."
        if reached is None
        else f"Tidied, at least as many still leave at q = {reached}."
    )
