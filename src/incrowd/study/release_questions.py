"""What else paper 001 asks of answers: class by class, its claims in words, and other ways to decide what may leave.

Its claims: small classes, how fast groups multiply, speed, the rare-value attack. The other ways, counting holders
alone and k-anonymity, are plain reimplementations of what people do today; neither is offered for use.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.arrays import Ints
from incrowd.drawing import Chart, Series
from incrowd.errors import BudgetExceeded
from incrowd.measures.release import Budget, HolderIndex, QMeasurement, measure_q, suppress
from incrowd.statistics import spearman
from incrowd.study.figures import Cell, Section, Table
from incrowd.study.release_data import Released, Work, at_threshold, count, percent, ratio, release

ASKED_VALUES = 8
"""Values of a small answer: few enough that q is always counted."""


@dataclass(frozen=True, kw_only=True)
class HoldersAlone:
    """What became of an answer that was released because every value has enough holders (LCV)."""

    values: int
    broken: bool
    """q was proved to be below the threshold."""
    kept: bool
    """q was proved to reach it. Neither: the budget ended first."""
    q: float
    """The proved upper end of q, as a share of the threshold."""


def by_holders_alone(index: HolderIndex, threshold: int, seconds: float) -> HoldersAlone | None:
    """Release every value with `threshold` holders, and measure what that did; None if there is none."""
    enough = [value for value, users in zip(index.values, index.supports, strict=True) if users >= threshold]
    if not enough:
        return None
    try:
        measured = measure_q(index.patterns(enough), budget=Budget(seconds=seconds), threshold=threshold)
    except BudgetExceeded:
        return HoldersAlone(values=len(enough), broken=False, kept=False, q=math.nan)
    low, high = measured.interval or (measured.q or 0, measured.q or 0)
    return HoldersAlone(
        values=len(enough), broken=high < threshold, kept=low >= threshold, q=float(high) / threshold
    )


def small_answers(
    index: HolderIndex, threshold: int, draws: int, seed: int, seconds: float
) -> list[HoldersAlone]:
    """Draw answers of a few values that all have enough holders; a recipient may look at any few."""
    enough = np.flatnonzero(index.supports >= threshold)
    if len(enough) < 2:
        return []
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        some = rng.choice(enough, size=min(ASKED_VALUES, len(enough)), replace=False)
        starts = np.concatenate([[0], np.cumsum(index.supports[some])])
        members = np.concatenate([index.holders(place) for place in some.tolist()])
        smaller = HolderIndex(tuple(index.values[place] for place in some), starts, members, index.users)
        one = by_holders_alone(smaller, threshold, seconds)
        if one is not None:
            found.append(one)
    return found


@dataclass(frozen=True, kw_only=True)
class Anonymised:
    """What k-anonymity leaves of a table in which every value may identify and every value is sensitive."""

    values: int
    mentions: int
    people: int


def by_columns(index: HolderIndex, k: int, people: int) -> Anonymised:
    """Blank whole values until every remaining row is shared by `k` people; common values are kept first.

    A value is kept if it splits no set of equal rows into a piece of fewer than `k` people.
    """
    group = np.zeros(people, dtype=np.int64)
    size = np.array([people], dtype=np.int64)
    kept = mentions = 0
    for place in np.argsort(-index.supports, kind="stable").tolist():
        holders = index.holders(place)
        if len(holders) < k:
            break
        split = np.bincount(group[holders], minlength=len(size))
        rest = size - split
        if ((split > 0) & (split < k)).any() or ((split > 0) & (rest > 0) & (rest < k)).any():
            continue
        group[holders] += len(size)
        group = _renumbered(group)
        size = np.bincount(group)
        kept, mentions = kept + 1, mentions + len(holders)
    return Anonymised(values=kept, mentions=mentions, people=people if kept else 0)


def _renumbered(group: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(group, return_inverse=True)[1].astype(np.int64).ravel()


def by_rows(index: HolderIndex, k: int, people: int, seed: int = 0) -> Anonymised:
    """Leave out every row that fewer than `k` people share; values and mentions of the other rows remain.

    People who list nothing share the blank row.
    """
    value = np.repeat(np.arange(len(index.values)), index.supports)
    words = np.random.default_rng(seed).integers(2**63, size=len(index.values), dtype=np.uint64)
    row = np.zeros(index.users, dtype=np.uint64)  # the sum of its values' words: equal rows, equal sums
    np.add.at(row, index.members, words[value])
    _, alike, sharing = np.unique(row, return_inverse=True, return_counts=True)
    safe = (sharing >= k)[alike]
    left = safe[index.members]
    blank = people - index.users
    kept = int(safe.sum()) + (blank if blank >= k else 0)
    return Anonymised(values=len(np.unique(value[left])), mentions=int(left.sum()), people=kept)


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
        columns, some = by_columns(index, k, work.asked.people), by_rows(index, k, work.asked.people)
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


SMALL = (5, 10)
"""People in the classes the paper calls small."""
SUPPORTED = (2, 3, 4, 5)
GROWTH = (1, 2, 4, 6, 8, 10)
"""Values in the answers whose groups are counted."""
DRAWS = 5
PEOPLE = (100, 200, 400, 800, 1600)
ATTACKED_Q, FAKES = 6, 5
"""The paper's example: q = 6 is asked for, the attacker makes up five users."""
VICTIMS = 3
"""Attacked in each class looked at."""


def small_classes(work: Work) -> Section:
    """Section VIII-A: do classes of five to ten people support q above 3 or 4?"""
    low, high = SMALL
    some = [one for group in work.asked.classes.values() for one in group if low <= len(one) <= high]
    rng = np.random.default_rng(work.options.seed)
    if len(some) > work.options.classes:
        some = [some[place] for place in np.sort(rng.choice(len(some), work.options.classes, replace=False))]
    rows = tuple((q, len(some), *_support(work, some, q)) for q in SUPPORTED)
    return Section(
        heading="Small classes",
        text=f"Classes of {low} to {high} people: how many of them get any answer at all, spellings tidied."
        if some
        else f"No class of this crowd has {low} to {high} people.",
        parts=(
            Table(
                title="Small classes that support an answer",
                columns=("q", "classes", "not known", "with an answer, %"),
                rows=rows,
                note="The paper: classes of 5 to 10 users may not support q above 3 or 4.",
            ),
        )
        if some
        else (),
    )


def _support(work: Work, classes: list[Ints], q: int) -> tuple[int, float]:
    found = [
        suppress(
            work.asked.index(work.tidied.number, members),
            q,
            options=work.suppression(class_size=len(members)),
        )
        for members in classes
    ]
    known = [one for one in found if not one.reason.startswith("over_budget")]
    return len(found) - len(known), percent(ratio(sum(bool(one.released) for one in known), len(known)))


def growth(work: Work) -> Section:
    """Section VIII-D: how the number of minimal groups (terms) grows with the values of an answer."""
    index = work.asked.index(work.tidied.number)
    common = np.flatnonzero(index.supports >= 2)
    rng = np.random.default_rng(work.options.seed)
    rows: list[tuple[Cell, ...]] = []
    spread: list[tuple[float, float]] = []
    for values in GROWTH:
        if values > len(common):
            break
        drawn = [rng.choice(common, values, replace=False) for _ in range(DRAWS)]
        found = [one for some in drawn if (one := _counted(index, some, work.options.seconds)) is not None]
        digits = [math.log10(one.n or 1) for one in found]
        users = [one.users for one in found]
        spread += [
            (float(one.q or 0), log - math.log10(one.users)) for one, log in zip(found, digits, strict=True)
        ]
        bounds = [_bound(one.users, values) for one in found]
        rows.append(
            (
                values,
                len(found),
                float(np.median(users)) if found else math.nan,
                float(np.median(digits)) if found else math.nan,
                float(np.median(bounds)) if found else math.nan,
            )
        )
    related = spearman([q for q, _ in spread], [more for _, more in spread])
    return Section(
        heading="How groups multiply",
        text="Every further value multiplies the groups that could account for an answer; they are counted, not listed",
        parts=(
            Table(
                title="Minimal groups by the number of values asked for",
                columns=(
                    "values",
                    "answers counted",
                    "users, median",
                    "groups, digits (log 10)",
                    "the paper's bound, digits",
                ),
                rows=tuple(rows),
                note="The paper: the number of terms was never near its bound, (n/m)^m or n^(m/4), and terms a user "
                "grow as q does. Rank correlation of q and groups a user here: "
                f"{'undefined: one never changes' if math.isnan(related) else f'{related:.2f}'}. The bound is "
                "asymptotic: small answers may exceed it.",
            ),
        ),
    )


def _counted(index: HolderIndex, places: Ints, seconds: float) -> QMeasurement | None:
    try:
        found = measure_q(
            index.patterns([index.values[place] for place in places]), budget=Budget(seconds=seconds)
        )
    except BudgetExceeded:
        return None
    return found if found.n is not None else None


def _bound(users: int, values: int) -> float:
    """Return the decimal logarithm of the paper's bound on the number of terms."""
    if values >= math.sqrt(users):
        return values / 4 * math.log10(users)
    return values * math.log10(users / values)


def speed(work: Work) -> Section:
    """Section VIII-C: milliseconds for hundreds of users; measured only on request, as no two machines agree."""
    rng = np.random.default_rng(work.options.seed)
    rows: list[tuple[Cell, ...]] = []
    for people in (size for size in PEOPLE if size <= work.asked.people):
        taken = []
        for _ in range(DRAWS):
            members = np.sort(rng.choice(work.asked.people, people, replace=False))
            index = work.asked.index(work.tidied.number, members)
            common = np.argsort(-index.supports, kind="stable")[: GROWTH[-1]]
            start = time.process_time()
            if _counted(index, common, work.options.seconds) is not None:
                taken.append(1000 * (time.process_time() - start))
        rows.append((people, len(taken), float(np.median(taken)) if taken else math.nan))
    return Section(
        heading="Speed",
        text="Measuring q exactly for the ten commonest values of a random class, on this machine.",
        parts=(
            Table(
                title="Processor time of one measurement",
                columns=("people", "measured", "milliseconds, median"),
                rows=tuple(rows),
                note="The paper: milliseconds for hundreds of users, growing linearly, q up to 50.",
            ),
        ),
    )


def rare_value_attack(work: Work) -> Section:
    """Section VI: five made-up users list a value that only the victim lists; does it leave, and because of whom?"""
    tried = with_victim = without = unknown = 0
    for members in work.chosen[: work.options.classes]:
        for user, value in _victims(work, members):
            there = _leaves(work, members, value)
            gone = _leaves(work, members[members != user], value)
            if there is None or gone is None:
                unknown += 1
                continue
            tried, with_victim, without = tried + 1, with_victim + there, without + gone
    rows = (
        ("the victim is in the class", tried, percent(ratio(with_victim, tried))),
        ("the victim is elsewhere", tried, percent(ratio(without, tried))),
    )
    return Section(
        heading="The rare-value attack",
        text=f"q = {ATTACKED_Q} is asked for. The attacker knows a value that only the victim lists, makes up {FAKES} "
        "users who list it, and asks for the class: if the value comes back, the victim is there. Neither counting "
        "holders nor q notices.",
        parts=(
            Table(
                title=f"The rare value leaves at q = {ATTACKED_Q}",
                columns=("who is asked for", "attacks", "the value leaves, %"),
                rows=rows,
                note=f"A difference between the two lines is what the attacker learns. Not known in time: {unknown}. "
                "The gateway answers with the age of accounts and secret amounts: see its threats.",
            ),
        ),
    )


def _victims(work: Work, members: Ints) -> list[tuple[int, int]]:
    """Return some people of a class with a value that nobody else in the whole crowd lists."""
    asked = work.asked
    alone = (asked.holders[asked.value] == 1) & np.isin(asked.user, members)
    return [(int(asked.user[row]), int(asked.value[row])) for row in np.flatnonzero(alone)[:VICTIMS]]


def _leaves(work: Work, members: Ints, value: int) -> bool | None:
    """Say whether a value leaves once five made-up members list it too; None: not known in time."""
    asked = work.asked
    inside = np.isin(asked.user, members)
    user = np.concatenate([asked.user[inside], asked.people + np.arange(FAKES)])
    listed = np.concatenate([asked.value[inside], np.full(FAKES, value)])
    index = HolderIndex.from_pairs(user, listed)
    found = suppress(index, ATTACKED_Q, options=work.suppression(class_size=len(members) + FAKES))
    return None if found.reason.startswith("over_budget") else value in found.released
