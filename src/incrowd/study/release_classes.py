"""The release study class by class, and against two rules that are in use: counting holders, and k-anonymity."""

from __future__ import annotations

import numpy as np

from incrowd.study.figures import Cell, Chart, Section, Series, Table
from incrowd.study.release_rivals import (
    ASKED_VALUES,
    HoldersAlone,
    by_columns,
    by_holders_alone,
    by_rows,
    small_answers,
)
from incrowd.study.release_work import Released, Work, at_threshold, count, percent, ratio, release

SMALL_DRAWS = 5
"""Small answers drawn a class."""


def by_class(work: Work) -> Section:
    """What each class's answer may release."""
    rows: list[tuple[Cell, ...]] = []
    points: list[Series] = []
    for threshold in work.options.thresholds:
        for one in work.spellings[:2]:
            found = [
                release(
                    work.asked.index(one.number, members),
                    threshold,
                    work.suppression(class_size=len(members)),
                )
                for members in work.chosen
            ]
            rows.append((threshold, one.name, *_class_row(found)))
            if one is work.tidied:
                known = [
                    (len(members), one.released)
                    for members, one in zip(work.chosen, found, strict=True)
                    if one.released >= 0
                ]
                points.append(Series.of(f"q = {threshold}", *np.reshape(known, (-1, 2)).T))
    return Section(
        heading="Answers class by class",
        text="Small classes rarely support a release: their values have too few holders.",
        parts=(
            Table(
                title="Answers of the classes looked at",
                columns=(
                    "q",
                    "spelling",
                    "classes",
                    "not known",
                    "with an answer, %",
                    "values that leave, %",
                    "median values",
                ),
                rows=tuple(rows),
                note="Not known: classes for which no proof fitted the time budget; they are left out of what follows.",
            ),
            Chart(
                kind="scatter",
                title="Values that may leave, by size of the class",
                sentence="Each point is a class, spellings tidied; at the bottom nothing may leave.",
                x_label="people in the class",
                y_label="values that may leave",
                series=tuple(points),
                x_log=True,
            ),
        ),
    )


def _class_row(found: list[Released]) -> tuple[Cell, ...]:
    known = [one for one in found if one.released >= 0]
    if not known:
        return len(found), len(found), np.nan, np.nan, np.nan
    out = np.array([one.released for one in known])
    share = ratio(float(out.sum()), sum(one.values for one in known))
    return (
        len(found),
        len(found) - len(known),
        percent(float(np.mean(out > 0))),
        percent(share),
        float(np.median(out)),
    )


def holders_alone(work: Work) -> Section:
    """Releasing by the least common value (LCV) alone."""
    whole: list[tuple[Cell, ...]] = []
    for threshold in work.options.thresholds:
        answers, few = [], []
        for place, members in enumerate([np.arange(work.asked.people), *work.chosen]):
            index = work.asked.index(work.tidied.number, members)
            one = by_holders_alone(index, threshold, work.options.seconds)
            answers += [one] if one else []
            few += small_answers(
                index, threshold, SMALL_DRAWS, work.options.seed + place, work.options.seconds
            )
        whole.append((threshold, "whole answers", *_tally(answers)))
        whole.append((threshold, f"up to {ASKED_VALUES} values", *_tally(few)))
    return Section(
        heading="Counting holders is not enough",
        text="Many systems release every value that enough people list. These answers, measured: how often "
        "somebody is tied to them with a higher probability than the threshold allows.",
        parts=(
            Table(
                title="Answers released by counting holders alone (LCV)",
                columns=(
                    "q asked for",
                    "answers",
                    "number",
                    "broken, %",
                    "kept, %",
                    "not known, %",
                    "q reached, %",
                ),
                rows=tuple(whole),
                note="Broken: q proved below the threshold. Kept: proved to reach it. Not known: the time budget "
                "ended between. Q reached is at most this much of q asked for, in the median of those known.",
            ),
        ),
    )


def _tally(answers: list[HoldersAlone]) -> tuple[int, float, float, float, float]:
    if not answers:
        return 0, np.nan, np.nan, np.nan, np.nan
    known = [one.q for one in answers if one.broken or one.kept]
    return (
        len(answers),
        percent(float(np.mean([one.broken for one in answers]))),
        percent(float(np.mean([one.kept for one in answers]))),
        percent(1 - len(known) / len(answers)),
        percent(float(np.median(known))) if known else np.nan,
    )


def k_anonymity(work: Work) -> Section:
    """The same table made k-anonymous by suppression."""
    index = work.asked.index(work.tidied.number)
    rows: list[tuple[Cell, ...]] = []
    for k in work.options.thresholds:
        ours = at_threshold(work.curves["tidied"], k)
        rows.append((k, "answer with q = k", count(ours.released), count(ours.entries), work.asked.people))
        columns, some = by_columns(index, k, work.asked.people), by_rows(index, k)
        rows.append((k, "k-anonymity, values blanked", columns.values, columns.mentions, columns.people))
        rows.append((k, "k-anonymity, people left out", some.values, some.mentions, some.people))
    return Section(
        heading="Against k-anonymity",
        text="k-anonymity publishes rows, and every value in a row can identify: each row must be shared by k "
        "people. An answer publishes values without rows, and keeps more different ones.",
        parts=(
            Table(
                title="What is left of the table for everybody, spellings tidied",
                columns=("k", "rule", "values", "entries", "people"),
                rows=tuple(rows),
                note="k-anonymity tells which values go together, an answer does not: less is told of each person. "
                "Blanking keeps common values first; it is a greedy heuristic, not the optimum.",
            ),
        ),
    )
