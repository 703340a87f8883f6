"""What the belief study prints, case by case: everybody left out once, one attribute hidden at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import mean
from typing import Any

import numpy as np
import pytest
from tests.study.test_belief import quiet, twins

from incrowd.profiles.attributes import HIDDEN, AttributeTable, SeenAttributes
from incrowd.study.belief import belief_study
from incrowd.study.belief_experiments import GUESSING, NETWORK, PEOPLE, BeliefStudyOptions, Fold, folds

OPTIONS = BeliefStudyOptions(people=200, repairs=5)
NAMES = (PEOPLE, NETWORK, GUESSING)


@dataclass(frozen=True)
class Case:
    """One attribute of one person who was left out, hidden and guessed."""

    hidden: str
    sure: float
    right: bool
    belief: float
    blind: float
    share: int
    """How many of the people known share the value."""


@pytest.fixture(scope="module")
def table() -> AttributeTable:
    return twins()


@pytest.fixture(scope="module")
def study(table: AttributeTable) -> dict[str, Any]:
    return belief_study(table, OPTIONS).to_dict()


@pytest.fixture(scope="module")
def cases(table: AttributeTable) -> dict[str, list[Case]]:
    left_out = list(folds(table, OPTIONS, quiet))
    return {name: [case for fold in left_out for case in guessed(fold, name)] for name in NAMES}


def guessed(fold: Fold, name: str) -> Iterator[Case]:
    space = fold.held.space
    for place, attribute in enumerate(space.attributes):
        known = Counter(int(code) for code in fold.train.codes[:, place] if code != HIDDEN)
        for person in fold.held.codes:
            truth = int(person[place])
            if truth == HIDDEN:
                continue
            seen = person.astype(np.int64)[None, :].copy()
            seen[0, place] = HIDDEN
            (sure,) = fold.beliefs[name].posteriors([place], SeenAttributes(space, seen))
            case = float(sure[0].max()), bool(sure[0].argmax() == truth), float(sure[0, truth])
            yield Case(attribute, *case, blind(fold, name, place, truth), known[truth])


def blind(fold: Fold, name: str, place: int, truth: int) -> float:
    """What this adversary believes of somebody of whom nothing was seen."""
    (sure,) = fold.beliefs[name].posteriors([place], SeenAttributes.nothing(fold.held.space))
    return float(sure[0, truth])


def part(study: dict[str, Any], start: str) -> dict[str, Any]:
    parts = [one for section in study["sections"] for one in section["parts"]]
    (found,) = [one for one in parts if one.get("table", one.get("chart")).startswith(start)]
    return dict(found)


def bins(some: list[Case]) -> list[tuple[int, float, float]]:
    """Ten of equal width: cases, how sure on average, how often right."""
    inside: dict[int, list[Case]] = {}
    for case in some:
        inside.setdefault(min(int(case.sure * 10), 9), []).append(case)
    return [
        (len(of), mean(case.sure for case in of), mean(case.right for case in of))
        for _, of in sorted(inside.items())
    ]


def error(some: list[Case]) -> float:
    return sum(many * abs(sure - right) for many, sure, right in bins(some)) / len(some)


def chosen(study: dict[str, Any], cases: dict[str, list[Case]]) -> list[Case]:
    """The adversary the study goes on with: who gives the truth the higher probability."""
    name = max((PEOPLE, NETWORK), key=lambda one: mean(np.log(max(case.belief, 1e-6)) for case in cases[one]))
    assert str(study["facts"]["belief"]).startswith(name)
    return cases[name]


def test_guessing_goes_by_what_is_common(table: AttributeTable) -> None:
    for fold in folds(table, OPTIONS, quiet):
        for place in range(3):
            known = [int(code) for code in fold.train.codes[:, place] if code != HIDDEN]
            for value, many in Counter(known).items():
                assert blind(fold, GUESSING, place, value) == pytest.approx(many / len(known))


def test_adversaries_compared(study: dict[str, Any], cases: dict[str, list[Case]]) -> None:
    for name, guesses, off, right, belief in part(study, "Adversaries compared")["rows"]:
        some = cases[name]
        assert guesses == len(some)
        wanted = (error(some), mean(case.right for case in some), mean(case.belief for case in some))
        assert (off, right, belief) == pytest.approx(wanted)
    curves = {one["name"]: one for one in part(study, "Reliability")["series"]}
    for name in NAMES:
        points = [(sure, right) for many, sure, right in bins(cases[name]) if many >= 10]
        found = list(zip(curves[name]["x"], curves[name]["y"], strict=True))
        assert found == [pytest.approx(point) for point in points]


def test_one_attribute_hidden(study: dict[str, Any], cases: dict[str, list[Case]]) -> None:
    rows = part(study, "One attribute hidden")["rows"]
    assert len(rows) == 3
    for hidden, people, *numbers in rows:
        some = [case for case in chosen(study, cases) if case.hidden == hidden]
        rise = [case.belief - case.blind for case in some]
        assert people == len(some)
        assert numbers[:3] == pytest.approx(
            [
                mean(case.right for case in some),
                mean(case.blind for case in some),
                mean(case.belief for case in some),
            ]
        )
        assert numbers[3:] == pytest.approx([mean(rise), np.quantile(rise, 0.95)], abs=6e-4)


def test_beside_counting(study: dict[str, Any], cases: dict[str, list[Case]]) -> None:
    rows = part(study, "People who share")["rows"]
    assert rows
    for label, many, belief, prior, above in rows:
        low, high = (int(label.split()[0]), np.inf) if "more" in label else map(int, label.split(" to "))
        some = [case for case in chosen(study, cases) if low <= case.share <= high]
        assert many == len(some) >= 10
        wanted = (mean(case.belief for case in some), mean(case.blind for case in some))
        assert (belief, prior) == pytest.approx(wanted)
        assert above == pytest.approx(mean(case.belief > 0.5 for case in some))


def test_one_attribute_published(table: AttributeTable, study: dict[str, Any]) -> None:
    name = str(study["facts"]["belief"]).split(",")[0]
    rises: dict[tuple[str, str], list[float]] = {}
    for fold in folds(table, OPTIONS, quiet):
        space = fold.held.space
        for person in fold.held.codes.astype(np.int64):
            for shown, hidden in ((a, b) for a in range(3) for b in range(3) if a != b):
                if HIDDEN in (person[shown], person[hidden]):
                    continue
                seen = np.full((1, 3), HIDDEN, np.int64)
                seen[0, shown] = person[shown]
                (sure,) = fold.beliefs[name].posteriors([hidden], SeenAttributes(space, seen))
                rise = sure[0, person[hidden]] - blind(fold, name, hidden, person[hidden])
                rises.setdefault((space.attributes[shown], space.attributes[hidden]), []).append(float(rise))
    for shown, hidden, many, *numbers in part(study, "The strongest pairs")["rows"]:
        some = rises[shown, hidden]
        assert many == len(some)
        assert numbers == pytest.approx([mean(some), np.quantile(some, 0.95)], abs=6e-4)
    for shown, many, *numbers in part(study, "One attribute published")["rows"]:
        some = [rise for pair, of in rises.items() if pair[0] == shown for rise in of]
        assert many == len(some)
        assert numbers == pytest.approx([mean(some), np.quantile(some, 0.95)], abs=6e-4)


def test_headlines(study: dict[str, Any], cases: dict[str, list[Case]]) -> None:
    some, blind = chosen(study, cases), cases[GUESSING]
    claimed, honest = (one["here"] for one in study["headlines"])
    right = (mean(case.right for case in some), mean(case.right for case in blind))
    assert claimed == f"right {right[0]:.0%} of the time; guessing {right[1]:.0%}"
    assert honest == f"calibration error {error(some):.3f}"


def test_who_violates_the_policy_and_what_repairs_it(table: AttributeTable, study: dict[str, Any]) -> None:
    """Of those who show two attributes beside the hidden one: whose value is believed above one half?

    Of the first five of each fold: the cheapest withholding after which it is not, by bits: -log2 of a value's share.
    """
    name = str(study["facts"]["belief"]).split(",")[0]
    tried_anybody = False
    for hidden, people, violated, guessed_so, *repaired in part(study, "Nobody should be surer")["rows"]:
        believed, before, tried, repairs = [], [], 0, []
        for fold in folds(table, OPTIONS, quiet):
            place = fold.held.space.attributes.index(hidden)
            here = 0
            for person in fold.held.codes.astype(np.int64):
                if person[place] == HIDDEN or (person != HIDDEN).sum() < 3:
                    continue
                shown = [at for at in range(3) if at != place and person[at] != HIDDEN]
                believed.append(sure_of(fold, name, place, person, shown) > 0.5)
                before.append(blind(fold, name, place, person[place]) > 0.5)
                if believed[-1] and here < OPTIONS.repairs:
                    here += 1
                    repairs.append(cheapest(fold, name, place, person, shown))
            tried += here
        tried_anybody |= tried > 0
        assert people == len(believed)
        assert (violated, guessed_so) == pytest.approx((mean(believed), mean(before)))
        some = [one for one in repairs if one is not None]
        assert repaired[0] == tried
        assert repaired[1] == (pytest.approx(len(some) / tried) if tried else None)
        for place, value in enumerate(repaired[2:]):
            assert value == (pytest.approx(mean(one[place] for one in some)) if some else None)
    assert tried_anybody


def sure_of(fold: Fold, name: str, place: int, person: Any, shown: Iterable[int]) -> float:
    """What this adversary believes of somebody's own value who shows these attributes."""
    seen = np.full((1, len(person)), HIDDEN, np.int64)
    for at in shown:
        seen[0, at] = person[at]
    (sure,) = fold.beliefs[name].posteriors([place], SeenAttributes(fold.held.space, seen))
    return float(sure[0, person[place]])


def cheapest(
    fold: Fold, name: str, place: int, person: Any, shown: list[int]
) -> tuple[float, float, float] | None:
    """How many attributes to withhold, the bits they tell, and which share that is of all bits told."""
    bits = {at: -math.log2(blind(fold, name, at, person[at])) for at in shown}
    ways = [
        some
        for size in range(1, len(shown) + 1)
        for some in combinations(shown, size)
        if sure_of(fold, name, place, person, set(shown) - set(some)) <= 0.5
    ]
    minimal = [one for one in ways if not any(set(other) < set(one) for other in ways)]
    if not minimal:
        return None
    lost, way = min((sum(bits[at] for at in one), one) for one in minimal)
    return len(way), lost, lost / sum(bits.values())


def test_the_line_of_honest_beliefs(study: dict[str, Any]) -> None:
    (line,) = [one for one in part(study, "Reliability")["series"] if one["name"] == "honest"]
    assert line["x"] == line["y"] == [0, 1]
