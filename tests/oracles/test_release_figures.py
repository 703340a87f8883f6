"""Every table and chart of the release study by plain counting.

Two crowds: one in which nobody lists two films, so that q is the number of holders of the rarest value and all else is
counting; and one of nine people, small enough to try every group.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pytest
from tests.cli.running import incrowd
from tests.oracles.test_release_study import crowd_of, groups

FILMS = [
    *["amber"] * 14,
    *["Birch"] * 9,
    *["BIRCH"] * 6,
    *["cobalt"] * 7,
    *["dune"] * 4,
    "ember",
    "fjord",
    "embers",
]
"""Who lists what: person n the n-th; the other people list nothing. Ember and embers look alike."""
TOWNS = {
    "oslo": range(30),
    "lima": range(24, 48),
    "rome": range(10, 18),
    "bonn": range(38, 44),
    "kiel": range(57, 59),
}
"""Some live in two."""
PEOPLE, THRESHOLDS = 60, (2, 5)
Answer = dict[str, set[int]]


def rows() -> list[tuple[str, str, str]]:
    films = [(f"p{n:02}", "film", film) for n, film in enumerate(FILMS)]
    towns = [(f"p{n:02}", "town", town) for town, people in TOWNS.items() for n in people]
    return [*films, *towns, *((f"p{n:02}", "here", "yes") for n in range(PEOPLE))]


def answer(people: Any, *, tidied: bool, alike: bool = False) -> Answer:
    found: Answer = {}
    for n in people:
        if n < len(FILMS):
            film = FILMS[n].lower() if tidied else FILMS[n]
            found.setdefault(film.rstrip("s") if alike else film, set()).add(n)
    return found


def leave(found: Answer, q: int, people: int) -> Answer:
    """Holders do not overlap: a group is one holder of each value, and the rarest value decides."""
    return {film: of for film, of in found.items() if len(of) >= q} if people >= q else {}


CLASSES = {"town": [set(of) for of in TOWNS.values()], "here": [set(range(PEOPLE))]}
LOOKED_AT = [one for of in CLASSES.values() for one in of if len(one) >= min(THRESHOLDS)]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return of_crowd(crowd_of(tmp_path_factory.mktemp("release"), rows()).path, "2", "5")


def of_crowd(crowd: Path, *thresholds: str) -> dict[str, Any]:
    asked = [word for q in thresholds for word in ("--threshold", q)]
    out = crowd.parent / "out.json"
    with pytest.MonkeyPatch.context() as patch, out.open("w", encoding="utf-8") as written:
        patch.setattr("sys.stdout", written)
        incrowd(
            _Nothing(), "study", "release", crowd, "--attribute", "film", "--classes", "100", *asked, "--json"
        )  # type: ignore[arg-type]
    found: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return found


class _Nothing:
    """Stands where a fixture of single tests would: this output goes to a file."""

    out = err = ""

    def readouterr(self) -> _Nothing:
        return self


def part(study: dict[str, Any], start: str) -> dict[str, Any]:
    parts = [one for section in study["sections"] for one in section["parts"]]
    (found,) = [one for one in parts if one.get("table", one.get("chart")).startswith(start)]
    return dict(found)


def line(chart: dict[str, Any], name: str) -> list[tuple[float, float]]:
    (found,) = [one for one in chart["series"] if one["name"] == name]
    return list(zip(found["x"], found["y"], strict=True))


def percent(share: float) -> Any:
    return pytest.approx(100 * share, abs=6e-4)


def test_how_common_values_are(study: dict[str, Any]) -> None:
    for name, tidied in (("as written", False), ("tidied", True), ("look-alikes joined", True)):
        films = answer(range(PEOPLE), tidied=tidied, alike=name == "look-alikes joined")
        sizes = sorted((len(of) for of in films.values()), reverse=True)
        (row,) = [row for row in part(study, "Holders of a value")["rows"] if row[0] == name]
        assert row[1:3] == [len(sizes), sizes[0]]
        assert row[3:] == [percent(mean(s == 1 for s in sizes)), percent(mean(s < 10 for s in sizes))]
        assert line(part(study, "Figure 4"), name) == list(enumerate(sizes, 1))


def test_how_large_classes_are(study: dict[str, Any]) -> None:
    found = {row[0]: row[1:] for row in part(study, "Classes by attribute")["rows"]}
    for name, classes in CLASSES.items():
        sizes = sorted(map(len, classes), reverse=True)
        five = set().union(*sorted(classes, key=len, reverse=True)[:5])
        small = (mean(100 * s <= PEOPLE for s in sizes), mean(s < min(THRESHOLDS) for s in sizes))
        assert found[name] == [len(sizes), sizes[0], percent(len(five) / PEOPLE), *map(percent, small)]
        assert line(part(study, "Figure 5"), name) == list(enumerate(sizes, 1))


def test_what_may_leave_before_and_after_tidying(study: dict[str, Any]) -> None:
    table = part(study, "Values that may leave, before and after")
    whole = {name: answer(range(PEOPLE), tidied=name != "as written") for name in ("as written", "tidied")}
    for q in THRESHOLDS:
        written = leave(whole["as written"], q, PEOPLE)
        for name, films in whole.items():
            out = leave(films, q, PEOPLE)
            entries = sum(map(len, out.values()))
            (row,) = [row for row in table["rows"] if row[:2] == [q, name]]
            assert row[2:] == [
                len(films), len(out), len(out), pytest.approx(len(out) / len(written)), entries,
                percent(entries / len(FILMS)),
            ]  # fmt: skip
    whole["look-alikes joined"] = answer(range(PEOPLE), tidied=True, alike=True)
    for name, films in whole.items():
        charts = [one for section in study["sections"] for one in section["parts"] if "chart" in one]
        curve = dict(line(next(one for one in charts if one["chart"] == "Values that may leave"), name))
        assert {2, 3, 5, 7, 10, 14, 20} <= set(curve)
        for q, share in curve.items():
            assert share == percent(len(leave(films, int(q), PEOPLE)) / len(films))


def test_answers_class_by_class(study: dict[str, Any]) -> None:
    for q in THRESHOLDS:
        for name, tidied in (("as written", False), ("tidied", True)):
            asked = [answer(one, tidied=tidied) for one in LOOKED_AT]
            out = [len(leave(films, q, len(one))) for films, one in zip(asked, LOOKED_AT, strict=True)]
            (row,) = [row for row in part(study, "Answers of the classes")["rows"] if row[:2] == [q, name]]
            assert row[2:4] == [len(LOOKED_AT), 0]
            shares = (mean(n > 0 for n in out), sum(out) / sum(map(len, asked)))
            assert row[4:] == [*map(percent, shares), median(out)]
            if tidied:
                points = line(part(study, "Values that may leave, by size"), f"q = {q}")
                assert sorted(points) == sorted(zip(map(len, LOOKED_AT), out, strict=True))


def test_small_classes(study: dict[str, Any]) -> None:
    small = [one for of in CLASSES.values() for one in of if 5 <= len(one) <= 10]
    for q, classes, unknown, with_an_answer in part(study, "Small classes")["rows"]:
        assert (classes, unknown) == (len(small), 0)
        assert with_an_answer == percent(
            mean(bool(leave(answer(one, tidied=True), q, len(one))) for one in small)
        )
    assert [row[0] for row in part(study, "Small classes")["rows"]] == [2, 3, 4, 5]


def test_what_k_anonymity_leaves(study: dict[str, Any]) -> None:
    """A row is one film or blank: k people share it, or it goes."""
    films = answer(range(PEOPLE), tidied=True)
    blank = PEOPLE - len(FILMS)
    for k in THRESHOLDS:
        rows = {row[1]: row[2:] for row in part(study, "What is left")["rows"] if row[0] == k}
        out = {film: of for film, of in films.items() if len(of) >= k}
        entries = sum(map(len, out.values()))
        assert rows["answer with q = k"] == [len(out), entries, PEOPLE]
        assert rows["k-anonymity, people left out"] == [len(out), entries, entries + blank * (blank >= k)]
        assert rows["k-anonymity, values blanked"] == [len(out), entries, PEOPLE]


def test_the_rare_value_leaves_only_where_the_victim_is(study: dict[str, Any]) -> None:
    alone = {n for of in answer(range(PEOPLE), tidied=False).values() if len(of) == 1 for n in of}
    attacks = sum(min(3, len(alone & one)) for one in LOOKED_AT)
    assert part(study, "The rare value leaves at q = 6")["rows"] == [
        ["the victim is in the class", attacks, 100.0],
        ["the victim is elsewhere", attacks, 0.0],
    ]


def test_headlines(study: dict[str, Any]) -> None:
    here = {one["result"]: one["here"] for one in study["headlines"]}
    written, tidied = (answer(range(PEOPLE), tidied=which) for which in (False, True))
    at_10 = len(leave(written, 10, PEOPLE))
    assert here["values withheld at q = 10, as written, %"] == percent(1 - at_10 / len(written))
    assert (
        here["times as many values leave at q = 10 after tidying"] == len(leave(tidied, 10, PEOPLE)) / at_10
    )
    sweep = (2, 3, 5, 7, 10, 14, 20, 27, 35, 50)
    reached = max(q for q in sweep if len(leave(tidied, q, PEOPLE)) >= at_10)
    assert here["q up to which as many tidied values leave as raw ones at q = 10"] == reached
    for result, shares in (
        (
            "people in the five largest classes, %",
            [100 * len(set().union(*of)) / PEOPLE for of in CLASSES.values()],
        ),
        (
            "classes of 1 % of the people or less, %",
            [100 * mean(100 * len(one) <= PEOPLE for one in of) for of in CLASSES.values()],
        ),
    ):
        by_name = sorted(zip(CLASSES, shares, strict=True))
        assert here[result] == ", ".join(f"{share:.0f} ({name})" for name, share in by_name)
    small = next(row for row in part(study, "Small classes")["rows"] if row[0] == 4)
    assert here["classes of 5 to 10 people that get any answer at q = 4, %"] == small[3]


def test_groups_of_values_that_share_nobody_multiply(tmp_path: Path) -> None:
    """Ten films of two people each: v of them have 2^v groups, and q = 2."""
    films = [(f"p{n:02}", "film", f"film {chr(97 + n // 2)}") for n in range(20)]
    crowd = crowd_of(tmp_path, films + [(f"p{n:02}", "town", "oslo") for n in range(20)])
    table = part(of_crowd(crowd.path, "2"), "Minimal groups")
    assert [row[:3] for row in table["rows"]] == [[v, 5, 2 * v] for v in (1, 2, 4, 6, 8, 10)]
    for values, _, users, digits, bound in table["rows"]:
        assert digits == pytest.approx(values * math.log10(2))
        many = values >= math.sqrt(users)
        assert bound == pytest.approx(
            values / 4 * math.log10(users) if many else values * math.log10(users / values)
        )
    assert "nan" not in table["note"]


@pytest.mark.parametrize("seed", range(3))
def test_counting_holders_alone_by_all_groups(seed: int, tmp_path: Path) -> None:
    """Nine people, five films of a few each: which answers with enough holders are below q all the same?"""
    rng = np.random.default_rng(seed)
    films = [
        (f"p{n}", f"film {film}")
        for film in "abcde"
        for n in rng.choice(9, rng.integers(1, 6), replace=False)
    ]
    towns = {"oslo": range(5), "lima": range(5, 9)}
    listed = [(name, "film", film) for name, film in films]
    listed += [(f"p{n}", "town", town) for town, people in towns.items() for n in people]
    study = of_crowd(crowd_of(tmp_path, listed).path, "2", "3")
    for q in (2, 3):
        reached = []
        for people in (range(9), *(one for one in towns.values() if len(one) >= 2)):
            holders = {
                film: {name for name, other in films if other == film and int(name[1]) in people}
                for _, film in films
            }
            enough = {film: of for film, of in holders.items() if len(of) >= q}
            if enough:
                made = groups(enough)
                most = max(Counter(name for one in made for name in one).values())
                reached.append((len(made) / most / q, len(enough)))
        broken = [share < 1 for share, _ in reached]
        table = part(study, "Answers released by counting")["rows"]
        (whole,) = [row for row in table if row[:2] == [q, "whole answers"]]
        (few,) = [row for row in table if row[0] == q and row[1] != "whole answers"]
        assert whole[2] == len(reached)
        if reached:
            shares = (mean(broken), 1 - mean(broken), 0, median(share for share, _ in reached))
            assert whole[3:] == [*map(percent, shares)]
        several = [share for share, values in reached if values > 1]  # of one value there is nothing to draw
        assert few[2] == 5 * len(several)
        if several:
            shares = (mean(s < 1 for s in several), mean(s >= 1 for s in several), 0, median(several))
            assert few[3:] == [*map(percent, shares)]
