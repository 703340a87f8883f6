"""The crowd report tells totals that the measures gave, and never so few people that one is pointed at."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.advisor.crowd_answer import CrowdReport
from incrowd.advisor.crowd_report import crowd_report
from incrowd.cli import main
from incrowd.crowd import Crowd
from incrowd.distances import within_both
from incrowd.errors import InputError
from incrowd.measures.anonymity.assess import community_anonymity
from incrowd.measures.anonymity.spec import AnonymityOptions
from incrowd.measures.crowd_rates import LINES, CrowdOptions, People, Spread, spread
from incrowd.measures.linkability.by_distance import prepare
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.report.crowd import (
    below_table,
    community_table,
    crowd_report_page,
    threat_table,
    topic_table,
)
from incrowd.result import Standing, Threat

OPTIONS = CrowdOptions(smallest=4, min_posts=2, radius=0.7)


@pytest.fixture(scope="module")
def report(tiny_crowd: Crowd) -> CrowdReport:
    return crowd_report(tiny_crowd, options=OPTIONS)


def told_counts(told: Spread, sizes: Iterable[int]) -> list[int]:
    """Count by hand; a number that lacks a few to the next larger one is rounded up to it."""
    values, counts, above = list(sizes), [], told.people
    for size, people in reversed(told.below):
        exact = sum(one < size for one in values)
        above = above if exact and above - exact < people.smallest else exact
        counts.append(above)
    return counts[::-1]


def test_everybody_counts_once_with_their_smallest_crowd(tiny_crowd: Crowd, report: CrowdReport) -> None:
    smallest: dict[str, int] = {}
    for name in tiny_crowd.communities()["community"]:
        found = community_anonymity(tiny_crowd, AnonymityOptions(community=name, radius=0.7))
        for user, size in zip(found.profiles.ids["user"], found.sizes.tolist(), strict=True):
            smallest[user] = min(size, smallest.get(user, size))
    told = report.of_threat(Threat.SINGLING_OUT)[0]
    assert told.people == len(smallest)
    assert [people.count for _, people in told.below] == told_counts(told, smallest.values())


def test_matching_sets_are_those_of_linkability(tiny_crowd: Crowd, report: CrowdReport) -> None:
    smallest: dict[str, int] = {}
    for source, target in permutations(tiny_crowd.communities()["community"], 2):
        attack = prepare(tiny_crowd, LinkabilityOptions(source=source, target=target, min_posts=2))
        sets = within_both(attack.x, attack.y, attack.pairs)
        for user, size in zip(attack.meeting.people, sets.matching.tolist(), strict=True):
            smallest[user] = min(size, smallest.get(user, size))
    (told,) = report.of_threat(Threat.LINKABILITY)
    assert told.people == len(smallest) > 0
    assert [people.count for _, people in told.below] == told_counts(told, smallest.values())


def test_the_three_risks_are_named(report: CrowdReport) -> None:
    assert set(report.threats()) == {"singling out", "linkability", "inference"}
    assert all(one["of"] for one in report.threats().values())
    assert 0 < report.risk <= 1


@given(st.lists(st.integers(1, 200), min_size=1, max_size=60), st.integers(2, 20))
def test_few_people_are_never_told_apart(sizes: list[int], smallest: int) -> None:
    found = spread(
        np.array(sizes, float), smallest, name="x", threat=Threat.SINGLING_OUT, meaning="", adversary="",
        standing=Standing.PROVED,
    )  # fmt: skip
    counts = [people.count for _, people in found.below]
    assert counts == sorted(counts)
    at_risk = [count for count in counts if count] + [len(sizes)]
    assert all(step == 0 or step >= smallest for step in np.diff(at_risk)), "nobody is found by subtraction"
    exact = [sum(one < size for one in sizes) for size, _ in found.below]
    assert all(told >= real for told, real in zip(counts, exact, strict=True)), "no risk is told too small"
    assert all(bool(told) == bool(real) for told, real in zip(counts, exact, strict=True)), "nobody is nobody"
    for _, people in found.below:
        plain = people.to_dict()
        assert plain["people"] is None or plain["people"] == 0 or plain["people"] >= smallest
        assert (plain["people"] is None) == (plain["share"] is None) == people.hidden
    for share, size in found.quantiles:
        assert sum(one <= size for one in sizes) >= max(smallest, share * len(sizes))


def test_a_hidden_count_says_only_that_it_is_small() -> None:
    hidden = People(count=3, of=50, smallest=10)
    assert hidden.words() == "fewer than 10"
    assert "3" not in json.dumps(hidden.to_dict()["people"])
    assert People(count=0, of=50, smallest=10).words() == "0"


def one_community(people: int, *, alike: bool) -> CrowdReport:
    texts = ["kettle sugar" if alike else f"kettle{k}" for k in range(people)]
    frame = pl.DataFrame({"user": [f"u{k}" for k in range(people)], "community": "tea", "text": texts})
    return crowd_report(Crowd.from_frame(frame))


def test_the_sentence_says_how_exact_it_is_and_of_whom() -> None:
    none = one_community(40, alike=True)
    assert none.sentence().startswith("None of the 40 people with posts have fewer than 10 people to hide")
    assert none.risk == 0
    assert one_community(40, alike=False).sentence().startswith("All or nearly all of the 40 people")
    assert People(count=12, of=40, smallest=10).sentence_start() == "At most 12 of the 40"
    assert People(count=3, of=40, smallest=10).sentence_start() == "Fewer than 10 of the 40"


def test_a_crowd_too_small_to_tell_anything_about_says_so() -> None:
    alone = one_community(1, alike=True)
    assert alone.sentence().startswith("Cannot tell how well 1 person can hide: ")
    assert "fewer than 10 people, too few" in alone.sentence()
    assert np.isnan(alone.risk)
    assert alone.why() == "the risk cannot be told; unknown is not safe"


def test_a_line_that_is_crossed_says_why() -> None:
    assert one_community(40, alike=False).why() == (
        "the risk is 1: 40 of 40 people (anonymity in communities)"
    )
    hidden = replace(one_community(40, alike=True), exposed=People(count=3, of=40, smallest=10))
    assert hidden.risk == 9 / 40
    assert hidden.why() == (
        "the risk is 0.225: fewer than 10, counted as 9, of 40 people (first for a sensitive topic)"
    )


def test_small_communities_are_counted_and_not_named() -> None:
    posts = [(f"u{k}", "large", f"kettle sugar{k % 3}") for k in range(12)] + [("u1", "tinyclub", "zebra")]
    frame = pl.DataFrame(posts, schema=["user", "community", "text"], orient="row")
    report = crowd_report(Crowd.from_frame(frame), options=CrowdOptions(min_posts=1))
    assert [one.community for one in report.communities] == ["large"]
    assert report.unnamed_communities == 1
    assert "tinyclub" not in crowd_report_page(report)


def test_a_crowd_without_posts_or_items_says_what_is_missing() -> None:
    frame = pl.DataFrame({"user": ["a", "b"], "attribute": ["age", "age"], "value": ["1", "2"]})
    report = crowd_report(Crowd.from_frame(frame, kind="attributes"))
    assert report.sentence().startswith("Cannot tell")
    assert [one["of"] for one in report.threats().values()] == [None, None, None]
    assert len(report.not_measured) == 3
    assert "not measured" in crowd_report_page(report)


@pytest.mark.parametrize(
    "wrong", [{"radius": 2}, {"wanted": 7}, {"smallest": 1}, {"exposed": 0}, {"most_pairs": 0}]
)
def test_options_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        CrowdOptions(**wrong)  # type: ignore[arg-type]


def test_rows_are_the_numbers_of_the_report(report: CrowdReport) -> None:
    assert [row[0] for row in threat_table(report).rows] == ["singling out", "linkability", "inference"]
    assert len(report.figure.series) == len(report.spreads)
    assert report.figure.title in report.chart()
    assert report.figure.title in crowd_report_page(report)
    assert len(below_table(report.spreads[0]).rows) == len(LINES)
    assert {row[0] for row in community_table(report).rows} <= {one.community for one in report.communities}
    shown = {one.topic for one in report.topics if one.shown.count}
    assert {row[0] for row in topic_table(report).rows} == shown


def test_the_page_is_whole_asks_nobody_and_names_nobody(tiny_crowd: Crowd, report: CrowdReport) -> None:
    html = crowd_report_page(report)
    assert not re.findall(r'(?:src|href|action)="(?!#)', html)
    assert "default-src 'none'" in html
    embedded = re.search(r'id="data">(.*?)</script>', html, re.S)
    assert embedded is not None
    assert json.loads(embedded[1]) == json.loads(json.dumps(report.to_dict()))
    for user in tiny_crowd.posts().select("user").unique().collect()["user"]:
        assert not re.search(rf"\b{re.escape(user)}\b", html), "a person is named"


def test_the_command_writes_the_page_and_the_json(
    tiny_crowd: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = [
        "incrowd",
        "crowd-report",
        str(tiny_crowd.path),
        "--radius",
        "0.7",
        "--html",
        str(tmp_path / "c.html"),
    ]
    monkeypatch.setattr(sys, "argv", [*base, "--json", "--fail-above", "0"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert "--fail-above 0: the risk is" in said.err
    plain = json.loads(said.out)
    assert {"threats", "spreads", "communities", "fingerprint", "assumptions", "not_measured"} <= set(plain)
    assert plain["fingerprint"]["data_hash"] == tiny_crowd.data_hash
    assert "<h1>How well this crowd hides</h1>" in (tmp_path / "c.html").read_text()
    monkeypatch.setattr(sys, "argv", base)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "singling out" in capsys.readouterr().out
