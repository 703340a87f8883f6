"""What paper 001 says in words, measured: small classes, how fast groups multiply, speed, and the rare-value attack."""

from __future__ import annotations

import math
import time

import numpy as np

from incrowd.errors import BudgetExceeded
from incrowd.measures.linkability.definition import spearman
from incrowd.measures.release import Budget, HolderIndex, QMeasurement, measure_q, suppress
from incrowd.study.figures import Cell, Section, Table
from incrowd.study.release_data import Ints, Work, percent, ratio

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
