"""What the release study prints, against counts by hand and brute-force groups."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from incrowd.crowd import Crowd
from incrowd.measures.release import HolderIndex, measure_q
from incrowd.study.figures import Study
from incrowd.study.release import release_study
from incrowd.study.release_data import ReleaseStudyOptions
from incrowd.study.release_questions import by_columns, by_rows

OPTIONS = ReleaseStudyOptions(thresholds=(2, 10), classes=6)


def crowd_of(folder: Path, rows: list[tuple[str, str, str]]) -> Crowd:
    frame = pl.DataFrame(rows, schema=["user", "attribute", "value"], orient="row")
    return Crowd.from_frame(frame, kind="attributes", path=folder / "crowd", plain_names=True)


def people(spelt: str = "Film {k}") -> list[tuple[str, str, str]]:
    """Sixty people, three films each of thirty; everybody in one town, most in two clubs."""
    rng = np.random.default_rng(4)
    rows = []
    for person in range(60):
        name = f"p{person:02}"
        rows += [(name, "film", spelt.format(k=k)) for k in rng.choice(30, 3, replace=False)]
        rows.append((name, "town", f"town {min(person % 11, person % 7)}"))
        rows += [(name, "club", f"club {c}") for c in rng.choice(12, 2, replace=False)]
    return rows


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return release_study(crowd_of(tmp_path_factory.mktemp("films"), people()), OPTIONS)


def part(study: Study, start: str) -> Any:
    found = [one for section in study.sections for one in section.parts if one.title.startswith(start)]
    assert len(found) == 1, start
    return found[0]


def test_figure_4_is_about_values_and_figure_5_about_classes(study: Study) -> None:
    films: dict[str, set[str]] = {}
    for person, attribute, value in people():
        if attribute == "film":
            films.setdefault(value, set()).add(person)
    assert part(study, "Figure 4").x_label == "value, by rank"
    assert part(study, "Figure 4").series[0].y[0] == max(map(len, films.values()))
    assert part(study, "Figure 5").x_label == "class, by rank"


def test_the_largest_classes_are_counted_in_people_not_memberships(study: Study) -> None:
    clubs: dict[str, set[str]] = {}
    for person, attribute, value in people():
        if attribute == "club":
            clubs.setdefault(value, set()).add(person)
    largest = sorted(clubs.values(), key=len, reverse=True)
    tie = len(largest[4]) == len(largest[5])
    row = next(row for row in part(study, "Classes by attribute").rows if row[0] == "club")
    assert row[1:3] == (len(clubs), len(largest[0]))
    if not tie:
        assert row[3] == pytest.approx(100 * len(set.union(*largest[:5])) / 60, abs=1e-3)
    assert row[3] <= 100
    assert row[4] == pytest.approx(100 * np.mean([100 * len(one) <= 60 for one in clubs.values()]), abs=1e-3)


def test_tidying_that_joins_nothing_is_said_to_change_nothing(study: Study) -> None:
    text = next(one.text for one in study.sections if one.heading == "What tidying spellings does")
    assert "changes nothing" in text
    assert "still leave" not in text


def test_tidying_that_joins_something_says_how_far_it_reaches(tmp_path: Path) -> None:
    rows = [
        (person, attribute, value.upper() if attribute == "film" and int(person[1:]) % 2 else value)
        for person, attribute, value in people()
    ]
    made = release_study(crowd_of(tmp_path, rows), OPTIONS)
    text = next(one.text for one in made.sections if one.heading == "What tidying spellings does")
    table = part(made, "Values that may leave, before and after")
    written = next(row[6] for row in table.rows if row[:2] == (2, "as written"))
    assert f"{written:,} entries leave at q = 2" in text
    assert "at q = " in text


def test_people_who_list_nothing_share_the_blank_row() -> None:
    index = HolderIndex.from_holders({"a": range(12), "b": [0, 1]})  # ten list a alone, two both
    assert by_rows(index, 10, people=12).people == 10
    assert by_rows(index, 10, people=21).people == 10  # nine blank rows: too few
    assert by_rows(index, 10, people=25).people == 10 + 13
    assert by_columns(index, 10, 25).people == 25


def test_groups_grow_with_values_and_small_classes_support_less_as_q_grows(study: Study) -> None:
    rows = part(study, "Minimal groups by the number of values").rows
    assert rows[0][3] == pytest.approx(np.log10(rows[0][2]), abs=0.35)  # one value: every holder is a group
    assert all(later[3] >= earlier[3] for earlier, later in pairwise(rows))
    small = part(study, "Small classes").rows
    assert [row[0] for row in small] == [2, 3, 4, 5]
    assert all(earlier[3] >= later[3] for earlier, later in pairwise(small))


def groups(holders: dict[str, set[str]]) -> list[set[str]]:
    """Every minimal group that accounts for all values, by trying all groups."""
    everybody = sorted(set.union(*holders.values()))
    hit = [
        set(some)
        for size in range(1, len(everybody) + 1)
        for some in combinations(everybody, size)
        if all(set(some) & of for of in holders.values())
    ]
    return [one for one in hit if not any(other < one for other in hit)]


@pytest.mark.parametrize("seed", range(6))
def test_q_is_groups_over_the_groups_of_the_most_frequent_person(seed: int) -> None:
    rng = np.random.default_rng(seed)
    holders = {f"v{k}": set(rng.choice([*"ABCDEFG"], rng.integers(1, 5), replace=False)) for k in range(4)}
    listed = groups(holders)
    most = max(sum(person in one for one in listed) for person in "ABCDEFG")
    measured = measure_q({value: sorted(of) for value, of in holders.items()})
    assert (measured.n, measured.m) == (len(listed), most)


def test_the_rare_value_attack_tells_where_the_victim_is(tmp_path: Path) -> None:
    rows = people() + [(f"p{k:02}", "film", f"only {k} says so") for k in range(60)]
    table = part(release_study(crowd_of(tmp_path, rows), OPTIONS), "The rare value leaves")
    (_, tried, there), (_, _, elsewhere) = table.rows
    assert tried > 0
    assert there > elsewhere == 0
