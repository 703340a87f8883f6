"""What the microdata study prints, against paper 002's definitions by brute force."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import t as students_t
from tests.oracles.linking import spearman

from incrowd.crowd import Crowd
from incrowd.measures.microdata.evaluation import published
from incrowd.measures.microdata.spec import ProfileFilter, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.table import item_table
from incrowd.study.figures import Study
from incrowd.study.microdata import microdata_study
from incrowd.study.microdata_questions import StudyOptions

PERCENTS = range(5, 21)


@pytest.fixture(scope="module")
def people() -> dict[str, frozenset[str]]:
    """Thirty profiles of three to fifteen items; two of them alike, one that nobody else touches."""
    rng = np.random.default_rng(8)
    weights = 1 / np.arange(1, 31)
    made = {
        f"p{k:02}": frozenset(
            f"i{i}" for i in rng.choice(30, rng.integers(3, 16), replace=False, p=weights / weights.sum())
        )
        for k in range(28)
    }
    return {**made, "twin": made["p00"], "alone": frozenset({"x1", "x2", "x3", "x4"})}


@pytest.fixture(scope="module")
def study(people: dict[str, frozenset[str]], tmp_path_factory: pytest.TempPathFactory) -> Study:
    rows = [(person, item) for person, items in people.items() for item in sorted(items)]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    path = tmp_path_factory.mktemp("items") / "crowd"
    crowd = Crowd.from_frame(frame, kind="items", path=path, plain_names=True)
    return microdata_study(item_table(crowd, ProfileFilter(fewest=1)), StudyOptions(sample=30))


def crowd_size(person: str, people: dict[str, frozenset[str]]) -> float:
    """E|AS|: over 5 to 20 % of the items (half up, at least one), the profiles that hold every possible sample."""
    items = people[person]
    sizes = []
    for percent in PERCENTS:
        known = max(1, math.floor(percent * len(items) / 100 + 0.5))
        samples = list(combinations(sorted(items), known))
        sizes.append(mean(sum(set(some) <= other for other in people.values()) for some in samples))
    return mean(sizes)


def score(people: dict[str, frozenset[str]]) -> dict[str, float]:
    """1 - (raw - min) / (max - min), raw = rare / all + ln(all); here every item is rare."""
    holders = {
        item: sum(item in other for other in people.values()) for items in people.values() for item in items
    }
    raw = {
        person: sum(holders[item] < 100 for item in items) / len(items) + math.log(len(items))
        for person, items in people.items()
    }
    low, high = min(raw.values()), max(raw.values())
    return {person: 1 - (value - low) / (high - low) for person, value in raw.items()}


def part(study: Study, start: str) -> Any:
    found = [one for section in study.sections for one in section.parts if one.title.startswith(start)]
    assert len(found) == 1, start
    return found[0]


def kendall(x: list[float], y: list[float]) -> float:
    """Tau-b, pair by pair."""
    sign = [
        (np.sign(round(a - b, 9)), np.sign(round(c - d, 9)))
        for (a, c), (b, d) in combinations(zip(x, y, strict=True), 2)
    ]
    score = sum(a * b for a, b in sign)
    return float(score / math.sqrt(sum(a != 0 for a, _ in sign) * sum(b != 0 for _, b in sign)))


def test_table_2_and_the_summary(people: dict[str, frozenset[str]], study: Study) -> None:
    truth = [round(crowd_size(person, people), 9) for person in people]
    told = [round(value, 9) for value in score(people).values()]
    row = next(row for row in part(study, "Table 2").rows if row[0] == "paper")
    assert row[1] == pytest.approx(spearman(told, truth), abs=1e-6)
    assert row[2] == pytest.approx(kendall(told, truth), abs=1e-6)
    assert 0 <= row[3] < 0.01
    assert 0 <= row[4] < 0.01
    assert f"half of the people hide among {median(truth):.1f} people" in study.summary


def test_groups_hold_everybody_once_and_show_their_centroids(
    people: dict[str, frozenset[str]], study: Study
) -> None:
    rows, told = part(study, "The groups").rows, sorted(score(people).values())
    assert sum(row[1] for row in rows) == len(people)
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    place = 0
    for _, members, centre, low, high, _, _ in rows:
        inside = told[place : place + members]
        assert (low, high) == pytest.approx((inside[0], inside[-1]))
        assert centre == pytest.approx(mean(inside))  # groups below twenty people are not trimmed
        place += members
    stars = part(study, "Figures 4–6").series[-1]
    assert stars.name == "centroids"
    assert stars.y == pytest.approx([row[2] for row in rows])
    least = min(crowd_size(person, people) for person in people)
    assert stars.x == pytest.approx([least] * len(rows))
    lines = part(study, "Figures 4–6").lines
    assert lines == pytest.approx([(low[2] + high[2]) / 2 for low, high in pairwise(rows)])


def test_each_number_of_groups_is_tried(study: Study) -> None:
    rows = part(study, "Groups by their number").rows
    assert [row[0] for row in rows] == [2, 3, 4, 5, 6]
    assert all(row[2].count(",") + 1 == row[1] for row in rows)


def test_every_rarity_threshold_is_the_same_where_nothing_is_popular(study: Study) -> None:
    rows = {row[0]: row[1:3] for row in part(study, "Agreement of the paper's score").rows}
    assert rows["fewer than 100 people (paper)"] == rows["fewer than 500 people"]
    assert {"fewer than 25 people", "fewer than 50 people", "fewer than 200 people"} <= set(rows)


def test_headlines_are_the_tables_numbers(study: Study) -> None:
    here = {one.result: one.here for one in study.headlines}
    row = next(row for row in part(study, "Table 2").rows if row[0] == "paper")
    assert here["Spearman of score and crowd (table 2)"] == row[1]
    assert here["Kendall of score and crowd (table 2)"] == row[2]
    assert here["p value of the rank correlation"] == row[3]
    groups = part(study, "The groups").rows
    assert here["groups found by X-means (figures 4 to 6)"] == len(groups)
    assert here["score at which the safest group begins"] == groups[-1][3]
    assert here["crowd at which the safest group begins (5 %)"] == groups[-1][5]
    assert here["crowd at which the riskiest group ends (95 %)"] == groups[0][6]


def test_p_values_by_their_formulas(people: dict[str, frozenset[str]], study: Study) -> None:
    """Spearman by Student's t; Kendall's by the normal law of concordant minus discordant pairs, corrected for ties."""
    n = len(people)
    truth = [round(crowd_size(person, people), 9) for person in people]
    told = [round(value, 9) for value in score(people).values()]
    row = next(row for row in part(study, "Table 2").rows if row[0] == "paper")
    t = abs(row[1]) * math.sqrt((n - 2) / (1 - row[1] ** 2))
    assert row[3] == pytest.approx(2 * students_t.sf(t, n - 2), rel=1e-6)
    tied = [[many for many in Counter(values).values() if many > 1] for values in (told, truth)]
    ahead = sum(
        np.sign(a - b) * np.sign(c - d) for (a, c), (b, d) in combinations(zip(told, truth, strict=True), 2)
    )
    once, twice, thrice = (
        [sum(weigh(many) for many in some) for some in tied]
        for weigh in (
            lambda m: m * (m - 1) / 2,
            lambda m: m * (m - 1) * (m - 2),
            lambda m: m * (m - 1) * (2 * m + 5),
        )
    )
    spread = (n * (n - 1) * (2 * n + 5) - sum(thrice)) / 18
    spread += 2 * once[0] * once[1] / (n * (n - 1)) + twice[0] * twice[1] / (9 * n * (n - 1) * (n - 2))
    assert row[4] == pytest.approx(math.erfc(abs(ahead) / math.sqrt(2 * spread)), rel=1e-6)


def fitting(items: frozenset[str], known: int, people: dict[str, frozenset[str]]) -> float:
    """How many profiles hold a sample of so many items, on average over all samples."""
    return mean(
        sum(set(some) <= other for other in people.values()) for some in combinations(sorted(items), known)
    )


def test_table_1_and_both_curves(people: dict[str, frozenset[str]], study: Study) -> None:
    holders = [
        sum(item in items for items in people.values()) for item in frozenset().union(*people.values())
    ]
    entries = sum(map(len, people.values()))
    (row,) = part(study, "Table 1").rows
    assert row == pytest.approx((30, entries, len(holders), entries / 30, entries / 30 / len(holders)))
    for title, sizes in (
        ("Figure 2", [len(items) for items in people.values()]),
        ("Figure 3", holders),
    ):
        (series,) = part(study, title).series
        assert series.y == pytest.approx(sorted(sizes, reverse=True))
        assert series.x == pytest.approx(range(1, len(sizes) + 1))


def test_each_way_to_round_a_share(people: dict[str, frozenset[str]], study: Study) -> None:
    rows = {row[0]: row[1:] for row in part(study, "How a share becomes").rows}
    told = [score(people)[person] for person in people]
    ways = {
        "half-up, at least 1": lambda share: max(1, math.floor(share + 0.5)),
        "down, at least 1": lambda share: max(1, math.floor(share)),
        "up": math.ceil,
        "down, perhaps none (literal)": math.floor,
    }
    assert set(rows) == set(ways)
    for name, rounded in ways.items():
        crowds = [
            mean(fitting(items, rounded(percent * len(items) / 100), people) for percent in PERCENTS)
            for items in people.values()
        ]
        assert rows[name] == pytest.approx((median(crowds), spearman(told, crowds)))


def test_stronger_adversaries_leave_fewer(people: dict[str, frozenset[str]], study: Study) -> None:
    rows = {row[0]: row[1:] for row in part(study, "Who knows what").rows}
    three = [fitting(items, min(3, len(items)), people) for items in people.values()]
    half = [fitting(items, max(1, math.floor(len(items) / 2 + 0.5)), people) for items in people.values()]
    for name, crowds in (("three of your items", three), ("half of your items", half)):
        found = next(row for who, row in rows.items() if name in who)
        assert found == pytest.approx((median(crowds), mean(size < 2 for size in crowds)))


def test_rare_is_what_fewer_people_have(people: dict[str, frozenset[str]], study: Study) -> None:
    exact = [crowd_size(person, people) for person in people]
    holders = {
        item: sum(item in other for other in people.values()) for items in people.values() for item in items
    }
    rows = {row[0]: row[1:3] for row in part(study, "Agreement of the paper's score").rows}
    below = {f"fewer than {line} people": (line, math.e) for line in (10, 25, 50)}
    below |= {"less than 10 % of the crowd": (3, math.e), "less than 1 % of the crowd": (0.3, math.e)}
    below |= {f"fewer than 100 people, log base {base}": (100, base) for base in (2, 10)}
    for name, (line, base) in below.items():
        raw = [
            sum(holders[item] < line for item in items) / len(items) + math.log(len(items), base)
            for items in people.values()
        ]
        told = [-round(one, 9) for one in raw]
        found = rows[name]
        assert found == pytest.approx((spearman(told, exact), kendall(told, exact)))


def test_bars_samples_and_readings(people: dict[str, frozenset[str]], study: Study) -> None:
    told = list(score(people).values())
    bars = part(study, "Figure 8").rows
    assert sum(row[3] for row in bars) == pytest.approx(1)
    assert [row[0] for row in bars] == ["safe", "medium risk", "not safe"]
    assert [bars[0][2], *(row[2] for row in bars[1:])] == [1, *(row[1] for row in bars[:-1])]
    for _, low, high, share in bars:
        inside = [low < one <= high or (low == 0 and one == 0) for one in told]
        assert share == pytest.approx(mean(inside))
    exact = [crowd_size(person, people) for person in people]
    whole = part(study, "The same measures in samples").rows[-1]
    assert whole[1:5] == pytest.approx((30, 34, median(exact), mean(size < 2 for size in exact)))
    over, one_guess, alone = (row[1] for row in part(study, "Three readings").rows)
    assert over <= one_guess  # Jensen
    assert alone <= one_guess


def test_three_readings_of_one_crowd(people: dict[str, frozenset[str]], study: Study) -> None:
    readings: list[list[float]] = [[], [], []]
    for person, items in people.items():
        inverse, alone = [], []
        for percent in PERCENTS:
            known = max(1, math.floor(percent * len(items) / 100 + 0.5))
            fit = [
                sum(set(some) <= other for other in people.values())
                for some in combinations(sorted(items), known)
            ]
            inverse.append(mean(1 / one for one in fit))
            alone.append(mean(one == 1 for one in fit))
        for column, value in zip(
            readings, (1 / crowd_size(person, people), mean(inverse), mean(alone)), strict=True
        ):
            column.append(value)
    rows = part(study, "Three readings").rows
    assert [row[1] for row in rows] == pytest.approx([mean(column) for column in readings])
    assert [row[2] for row in rows] == pytest.approx([median(column) for column in readings])


def test_points_and_crowds_of_the_groups(people: dict[str, frozenset[str]], study: Study) -> None:
    told = score(people)
    points = sorted((crowd_size(person, people), told[person]) for person in people)
    clouds = part(study, "Figures 4–6").series[:-1]
    found = sorted((x, y) for one in clouds for x, y in zip(one.x, one.y, strict=True))
    assert [x for x, _ in found] == pytest.approx([x for x, _ in points])
    assert sorted(y for _, y in found) == pytest.approx(sorted(y for _, y in points))
    for cloud, row in zip(clouds, part(study, "The groups").rows, strict=True):
        inside = [crowd for crowd, value in points if row[3] - 1e-9 <= value <= row[4] + 1e-9]
        assert sorted(cloud.x) == pytest.approx(inside)
        assert row[5:] == pytest.approx(np.percentile(inside, [5, 95]))


def test_what_each_number_of_groups_would_tell(people: dict[str, frozenset[str]], study: Study) -> None:
    told = score(people)
    crowds = {person: crowd_size(person, people) for person in people}
    for wanted, made, centroids, share, least, safest, riskiest in part(study, "Groups by their number").rows:
        centres = [float(one) for one in centroids.split(", ")]
        assert wanted >= made == len(centres)
        best = [person for person in people if told[person] >= least - 1e-9]
        assert share == pytest.approx(len(best) / len(people))
        assert safest == pytest.approx(np.percentile([crowds[person] for person in best], 5))
        if made == 2:
            rest = [crowds[person] for person in people if person not in best]
            assert riskiest == pytest.approx(np.percentile(rest, 95))


def test_the_crowd_shrinks_with_what_is_known(people: dict[str, frozenset[str]], study: Study) -> None:
    (curve,) = part(study, "The crowd shrinks").series
    for percent, found in zip(curve.x, curve.y, strict=True):
        known = [max(1, math.floor(percent * len(items) / 100 + 0.5)) for items in people.values()]
        sizes = [fitting(items, few, people) for items, few in zip(people.values(), known, strict=True)]
        assert found == pytest.approx(median(sizes))


def test_table_2_without_classes_of_activity(people: dict[str, frozenset[str]], study: Study) -> None:
    """As if everybody's items were drawn apart: so many others times the product of the shares who have each."""
    others = len(people) - 1
    share = {
        item: sum(item in other for other in people.values()) / len(people)
        for items in people.values()
        for item in items
    }
    expected = []
    for items in people.values():
        each = []
        for percent in PERCENTS:
            known = max(1, math.floor(percent * len(items) / 100 + 0.5))
            each.append(
                mean(others * math.prod(share[i] for i in some) for some in combinations(items, known))
            )
        expected.append(mean(each))
    exact = [crowd_size(person, people) for person in people]
    row = next(row for row in part(study, "Table 2").rows if row[0] == "independent")
    assert row[1:3] == pytest.approx((spearman(expected, exact), kendall(expected, exact)))
    off = median(abs(math.log1p(e) - math.log(one)) for e, one in zip(expected, exact, strict=True))
    assert row[5] == pytest.approx(math.exp(off))


def test_what_is_listed_has_enough_people(people: dict[str, frozenset[str]], study: Study) -> None:
    holders = [
        sum(item in items for items in people.values()) for item in frozenset().union(*people.values())
    ]
    rows = {row[0]: row[1] for row in part(study, "Agreement of the expected crowd").rows}
    assert rows["exact counts (paper)"] == len(holders)
    for least in (5, 10, 20):
        few = min(least, (len(people) - 1) // 2)  # of too few people what comes nearest is published
        listed = rows[f"at least {least} people"]
        # Counts move in steps of so many people from a secret place: nothing below one step, everything from two.
        assert sum(many >= 2 * few for many in holders) <= listed <= sum(many >= few for many in holders)


def test_the_first_people_while_the_database_fills(people: dict[str, frozenset[str]], tmp_path: Path) -> None:
    """Everybody's items have one date; the first three are watched."""
    order = sorted(people, key=lambda person: (len(people[person]) * 7 % 11, person))
    rows = [
        (person, item, 86_400 * day) for day, person in enumerate(order, 1) for item in sorted(people[person])
    ]
    frame = pl.DataFrame(rows, schema=["user", "item", "time"], orient="row")
    crowd = Crowd.from_frame(frame, kind="items", path=tmp_path / "crowd")
    study = microdata_study(item_table(crowd, ProfileFilter(fewest=1)), StudyOptions(sample=5))
    drift, grown = (part(study, start).series[0] for start in ("How far the first", "How the first"))
    final = score(people)
    assert list(drift.x) == list(grown.x)
    assert (drift.x[0], drift.x[-1]) == (3, len(people))
    for place, size in enumerate(drift.x):
        there = {person: people[person] for person in order[: int(size)]}
        now = score(there)
        assert drift.y[place] == pytest.approx(mean(abs(now[one] - final[one]) for one in order[:3]))
        assert grown.y[place] == pytest.approx(median(crowd_size(one, there) for one in order[:3]))


def test_the_scoring_attack_by_its_definition(people: dict[str, frozenset[str]], study: Study) -> None:
    """Everybody attacked again 300 times: a clear winner is 1.5 standard deviations of all scores before the second."""
    rng, names = np.random.default_rng(3), list(people)
    items = sorted(frozenset().union(*people.values()))
    has = np.array([[item in people[name] for item in items] for name in names])
    popular = has.sum(axis=0)
    worth = has / np.log1p(popular)
    rows, rounds = part(study, "Scoring attack").rows, 300
    assert len(rows) == 3
    for wrong, (adversary, found, mistaken, undecided) in zip((0, 1, 3), rows, strict=True):
        assert f"with {wrong} wrong one" in adversary
        ends = np.zeros(3)
        for person, own in enumerate(has):
            others = np.where(own, 0, popular) / popular[~own].sum()
            for percent in rng.integers(5, 21, rounds):
                known = max(1, math.floor(percent * own.sum() / 100 + 0.5))
                believed = rng.choice(np.flatnonzero(own), known, replace=False)
                doubtful = rng.choice(len(items), wrong, p=others)
                points = worth[:, np.append(believed, doubtful)].sum(axis=1)
                second, first = np.sort(points)[-2:]
                clear = points.std() > 0 and first - second >= 1.5 * points.std()
                ends[2 if not clear else 0 if points.argmax() == person else 1] += 1
        shares = ends / ends.sum()
        for got, share in zip((found, mistaken, undecided), shares, strict=True):
            # The study attacks 200 times, so both are off by chance.
            off = math.sqrt(max(share * (1 - share), 1e-4) / len(people) * (1 / 200 + 1 / rounds))
            assert got == pytest.approx(share, abs=4 * off)


def test_smaller_samples_are_the_same_measures_on_fewer_people(
    people: dict[str, frozenset[str]], study: Study
) -> None:
    """Who is drawn is the seed's; the first so many of one order, so each sample holds the smaller ones."""
    order, names = np.random.default_rng(0).permutation(len(people)), sorted(people)
    for name, many, listed, crowd, alone, paper, expected in part(study, "The same measures in samples").rows:
        kept = order[: max(2, round(int(name.rstrip("%")) * len(people) / 100))]
        some = {names[place]: people[names[place]] for place in kept}
        assert many == len(some)
        assert listed == len(frozenset().union(*some.values()))
        exact = [crowd_size(person, some) for person in some]
        assert (crowd, alone) == pytest.approx((median(exact), mean(size < 2 for size in exact)))
        told = [round(value, 9) for value in score(some).values()] if len(some) > 2 else []
        if told and len(set(told)) > 1:
            assert paper == pytest.approx(spearman(told, [round(one, 9) for one in exact]), abs=1e-6)
        if name == "100%":
            row = next(row for row in part(study, "Table 2").rows if row[0] == "expected-crowd")
            assert expected == pytest.approx(row[1])


def centres_of(values: list[float], cuts: tuple[int, ...]) -> tuple[float, list[float]]:
    """The squares left by cutting sorted values there, and the means of the parts."""
    parts = [values[a:b] for a, b in pairwise((0, *cuts, len(values)))]
    return sum(sum((one - mean(some)) ** 2 for one in some) for some in parts), [mean(some) for some in parts]


def best_cut(values: list[float], groups: int) -> list[float]:
    return min(centres_of(values, cuts) for cuts in combinations(range(1, len(values)), groups - 1))[1]


def assigned(values: list[float], centres: list[float]) -> list[list[float]]:
    """Everybody to the nearest centre, of two as near to the lower one; Lloyd's steps until nothing moves."""
    while True:
        parts: list[list[float]] = [[] for _ in centres]
        for value in values:
            parts[min(range(len(centres)), key=lambda k: (round(abs(centres[k] - value), 12), k))].append(
                value
            )
        moved = [mean(part) for part in parts if part]
        if moved == pytest.approx(centres, abs=1e-12):
            return parts
        centres = moved


def information(parts: list[list[float]]) -> float:
    """The Bayesian information criterion of Pelleg and Moore for one to k heaps of one spread, on a line."""
    n, k = sum(map(len, parts)), len(parts)
    squares = sum((one - mean(part)) ** 2 for part in parts for one in part)
    spread = max(squares / (n - k), 1e-18)
    likelihood = sum(
        len(part) * math.log(len(part) / n) - len(part) / 2 * math.log(2 * math.pi * spread) for part in parts
    )
    return likelihood - (n - k) / 2 - k * math.log(n)


def x_means(values: list[float]) -> int:
    """From two on: split in its best two whatever heap the criterion would rather see as two, until there is none."""
    values = sorted(values)
    distinct = len(set(values))
    centres = best_cut(values, min(2, distinct))
    while len(centres) < min(10, distinct):
        parts, grown = assigned(values, centres), []
        for left, part in zip(range(len(parts) - 1, -1, -1), parts, strict=True):
            halves = min(
                ((centres_of(part, (cut,))[0], cut) for cut in range(1, len(part))), default=(0.0, 0)
            )[1]
            split = [part[:halves], part[halves:]]
            room = len(grown) + 2 + left <= min(10, distinct)
            wanted = len(part) >= 4 and part[0] < part[-1] and information(split) > information([part])
            grown += [mean(one) for one in split] if wanted and room else [mean(part)]
        if len(grown) == len(parts):
            return len(parts)
        centres = [mean(part) for part in assigned(values, grown)]
    return len(centres)


def test_the_number_of_groups_by_the_information_criterion(
    people: dict[str, frozenset[str]], study: Study
) -> None:
    holders = Counter(item for items in people.values() for item in items)
    found = {row[0]: row[3] for row in part(study, "Agreement of the paper's score").rows}
    lines = {
        name: (line, math.e) for name, line in (("fewer than 10 people", 10), ("fewer than 25 people", 25))
    }
    lines |= {"fewer than 100 people (paper)": (100, math.e), "less than 10 % of the crowd": (3, math.e)}
    lines |= {f"fewer than 100 people, log base {base}": (100, base) for base in (2, 10)}
    for name, (line, base) in lines.items():
        raw = [
            sum(holders[item] < line for item in items) / len(items) + math.log(len(items), base)
            for items in people.values()
        ]
        scores = [round(1 - (one - min(raw)) / (max(raw) - min(raw)), 12) for one in raw]
        assert found[name] == x_means(scores), name


def told_expected(items: frozenset[str], told: dict[str, Any]) -> float:
    """How many others fit, from what is published alone: classes of people who like more or less of everything.

    An item's odds in a class are its own times the class's, its own so large that all classes together have its count.
    """
    shares, levels = told["activity"]["shares"], told["activity"]["levels"]
    listed = {item: band["people"] for band in told["popularity"] for item in band["items"]}
    known = {max(1, math.floor(percent * len(items) / 100 + 0.5)) for percent in PERCENTS}
    in_class: list[dict[str, float]] = [{} for _ in shares]
    for item in items:
        share = min(listed.get(item, told["unlisted"]) / told["users"], 1 - 1e-9)
        own = brentq(
            lambda own, share=share: sum(s * expit(own + at) for s, at in zip(shares, levels, strict=True)) - share,
            -100, 100, xtol=1e-13,
        )  # fmt: skip
        for of, level in zip(in_class, levels, strict=True):
            of[item] = float(expit(own + level))
    fit = {
        few: sum(
            told["users"]
            * share
            * mean(math.prod(of[one] for one in some) for some in combinations(items, few))
            for share, of in zip(shares, in_class, strict=True)
        )
        for few in known
    }
    return mean(fit[max(1, math.floor(percent * len(items) / 100 + 0.5))] for percent in PERCENTS)


def test_what_publishing_costs_from_the_published_file_alone(
    people: dict[str, frozenset[str]], study: Study, tmp_path: Path
) -> None:
    rows = [(person, item) for person, items in people.items() for item in sorted(items)]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    table = item_table(
        Crowd.from_frame(frame, kind="items", path=tmp_path / "crowd"), ProfileFilter(fewest=1)
    )
    truth = [round(crowd_size(person, people), 9) for person in people]
    found = {row[0]: row[2:] for row in part(study, "Agreement of the expected crowd").rows}
    for name, release in (
        ("exact counts (paper)", ReleaseSpec(literal=True)),
        ("at least 5 people", ReleaseSpec(crowd=5)),
        ("at least 10 people", ReleaseSpec()),
    ):
        told = published(table, ScoreSpec(), release).to_dict()
        expected = [round(told_expected(items, told), 9) for items in people.values()]
        assert found[name] == pytest.approx((spearman(expected, truth), kendall(expected, truth))), name
