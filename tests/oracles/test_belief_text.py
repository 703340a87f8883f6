"""Text as evidence in the belief study: naive Bayes worked out person by person, and every column of the table.

What a belief makes of likelihoods has its own oracle (test_belief.py); here it is what words say, and of whom.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import numpy as np
import pytest
from tests.oracles.test_belief_study import OPTIONS, part
from tests.study.test_belief import quiet, writers

from incrowd.crowd import Crowd
from incrowd.profiles.attributes import HIDDEN, AttributeTable, SeenAttributes, from_long
from incrowd.study.belief import belief_study
from incrowd.study.belief_experiments import Fold, folds

TOPICS = {"metal": ["iron", "anvil", "hammer"], "health": ["ward", "patient", "nurse"]}
Uses = Mapping[str, int]
"""How many words of each feature somebody used; each word counts once."""


@dataclass
class Told:
    """What came out for one attribute and one kind of evidence."""

    top: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    true: list[float] = field(default_factory=list)
    rise: list[float] = field(default_factory=list)


def rates(known: Sequence[tuple[Uses, int]], value: int, features: Sequence[str]) -> dict[str, float]:
    """Uses a person of each feature among those with a value, ten made-up people like everybody added."""
    inside = [uses for uses, own in known if own == value]
    found = {}
    for one in features:
        everywhere = sum(uses.get(one, 0) for uses, _ in known)
        usual = 10 * (everywhere + 0.5) / (len(known) + 1)
        found[one] = (sum(uses.get(one, 0) for uses in inside) + usual) / (len(inside) + 10)
    return found


def log_likelihood(uses: Uses, rate: Mapping[str, float], whole: Mapping[str, float]) -> float:
    return sum(many * (math.log(rate[one]) - math.log(sum(whole.values()))) for one, many in uses.items())


def scores(
    uses: Uses, own: int | None, known: Sequence[tuple[Uses, int]], size: int, features: Sequence[str]
) -> list[float]:
    """Each value's log-likelihood of the words; `own`: this person is among the known and left out of their value.

    Made-up people and the length of what a value's people write are everybody's, the person included.
    """
    found, judged = [], []
    for value in range(size):
        whole = rates(known, value, features)
        rate = dict(whole)
        if value == own:
            people = sum(one == value for _, one in known)
            for one in uses:
                usual = 10 * (sum(some.get(one, 0) for some, _ in known) + 0.5) / (len(known) + 1)
                others = sum(some.get(one, 0) for some, at in known if at == value) - uses[one]
                rate[one] = (others + usual) / (people - 1 + 10)
        found.append(log_likelihood(uses, rate, whole))
        judged.append(sum(one == value for _, one in known) >= 3)
    usual_score = mean(score for score, enough in zip(found, judged, strict=True) if enough)
    return [score if enough else usual_score for score, enough in zip(found, judged, strict=True)]


def temperature(known: Sequence[tuple[Uses, int]], size: int, features: Sequence[str]) -> float:
    """The one under which the known people's own values are the likeliest, given how common values are."""
    people = Counter(own for _, own in known)
    usual = [math.log((people[value] + 0.5) / (len(known) + 0.5 * size)) for value in range(size)]
    each = [(scores(uses, own, known, size, features), own) for uses, own in known]

    def fit(cooled: float) -> float:
        total = 0.0
        for values, own in each:
            logs = [value / cooled + prior for value, prior in zip(values, usual, strict=True)]
            total += logs[own] - math.log(sum(map(math.exp, logs)))
        return total

    return max((10 ** (step / 8) for step in range(33)), key=fit)


def hints(
    fold: Fold, table: AttributeTable, uses: Mapping[str, Uses], asked: Sequence[int]
) -> dict[int, np.ndarray[Any, Any]]:
    """What held-out people's words suggest for each attribute that words can tell anything about."""
    found = {}
    for place, size in enumerate(table.space.sizes):
        known = [
            (uses[str(table.users[row])], int(table.codes[row, place]))
            for row in fold.train_rows
            if table.codes[row, place] != HIDDEN
        ]
        if sum(many >= 3 for many in Counter(own for _, own in known).values()) < 2:
            continue
        features = sorted({one for some in uses.values() for one in some})
        cooled = temperature(known, size, features)
        rows = []
        for row in asked:
            logs = np.array(scores(uses[str(table.users[row])], None, known, size, features)) / cooled
            rows.append(np.exp(logs - logs.max()))
        found[place] = np.array(rows)
    return found


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Any], dict[tuple[str, str], Told]]:
    crowd, frame = writers()
    table = from_long(frame)
    study = belief_study(table, OPTIONS, crowd, TOPICS).to_dict()
    return study, told(crowd, table, str(study["facts"]["belief"]).split(",")[0])


def told(crowd: Crowd, table: AttributeTable, name: str) -> dict[tuple[str, str], Told]:
    posts = crowd.posts().select("user", "text").collect().rows()
    words = {user: {word: 1 for word in text.split() if word not in ("today", "and")} for user, text in posts}
    topics = {
        user: Counter(topic for topic, of in TOPICS.items() for word in some if word in of)
        for user, some in words.items()
    }
    cases: dict[tuple[str, str], Told] = {}
    for fold in folds(table, OPTIONS, quiet):
        asked = [int(row) for row in fold.held_rows]
        soft = {
            kind: hints(fold, table, uses, asked) for kind, uses in (("words", words), ("topics", topics))
        }
        belief, space = fold.beliefs[name], table.space
        for place, attribute in enumerate(space.attributes):
            if not any(place in some for some in soft.values()):
                continue
            (prior,) = belief.posteriors([place], SeenAttributes.nothing(space))[0]
            for n, row in enumerate(asked):
                truth = int(table.codes[row, place])
                if truth == HIDDEN:
                    continue
                silent = np.full((1, len(space.attributes)), HIDDEN)
                others = table.codes[[row]].astype(np.int64)
                others[0, place] = HIDDEN
                seen = {
                    "nothing (guessing)": SeenAttributes(space, silent),
                    "attributes": SeenAttributes(space, others),
                }
                for kind, some in soft.items():
                    own = {at: values[[n]] for at, values in some.items()}
                    seen[kind] = SeenAttributes(space, silent, own)
                    seen[f"attributes and {kind}"] = SeenAttributes(space, others, own)
                for kind, evidence in seen.items():
                    sure = belief.posteriors([place], evidence)[0][0]
                    one = cases.setdefault((attribute, kind), Told())
                    one.top.append(float(sure.max()))
                    one.right.append(int(sure.argmax()) == truth)
                    one.true.append(float(sure[truth]))
                    one.rise.append(float(sure[truth] - prior[truth]))
    return cases


def calibration(one: Told) -> float:
    bins: dict[int, list[tuple[float, bool]]] = {}
    for sure, right in zip(one.top, one.right, strict=True):
        bins.setdefault(min(int(sure * 10), 9), []).append((sure, right))
    gaps = [abs(sum(sure - right for sure, right in some)) for some in bins.values()]
    return sum(gaps) / len(one.top)


def test_text_as_evidence(both: tuple[dict[str, Any], dict[tuple[str, str], Told]]) -> None:
    study, cases = both
    rows = part(study, "Text as evidence")["rows"]
    assert {(row[0], row[1]) for row in rows} == {key for key, one in cases.items() if len(one.top) >= 10}
    for hidden, seen, people, right, belief, rise, worst, off in rows:
        one = cases[hidden, seen]
        assert people == len(one.top)
        assert (right, belief) == pytest.approx((mean(one.right), mean(one.true)), abs=1e-6)
        assert rise == pytest.approx(mean(one.rise), abs=6e-4)
        assert worst == pytest.approx(float(np.quantile(one.rise, 0.95)), abs=6e-4)
        assert off == pytest.approx(calibration(one), abs=1e-6)


def test_the_bars_are_the_tables_shares(both: tuple[dict[str, Any], dict[tuple[str, str], Told]]) -> None:
    study, cases = both
    chart = part(study, "How often a hidden attribute")
    for series in chart["series"]:
        for place, right in zip(series["x"], series["y"], strict=True):
            one = cases[chart["categories"][int(place)], series["name"]]
            assert right == pytest.approx(mean(one.right))
