"""The crowd report tells totals that the measures gave, and never so few people that one is pointed at."""

from __future__ import annotations

import json
import math
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

from incrowd.advisor.assess import assess
from incrowd.advisor.crowd_report import CrowdReport, crowd_report
from incrowd.cli import main
from incrowd.crowd import Crowd
from incrowd.distances import within_both
from incrowd.errors import InputError
from incrowd.measures.anonymity.assess import community_anonymity
from incrowd.measures.anonymity.spec import AnonymityOptions
from incrowd.measures.crowd_rates import LINES, CrowdOptions, LevelRates, People, Spread, spread
from incrowd.measures.linkability.by_distance import prepare
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.protocol import AdvisorOptions, Level
from incrowd.report.crowd import (
    below_table,
    community_table,
    crowd_report_page,
    threat_table,
    topic_table,
)
from incrowd.result import Standing, Threat

OPTIONS = CrowdOptions(smallest=4, min_posts=2, radius=0.7, sampled=8)


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
    assert all(one["told"]["of"] for one in report.threats().values())
    assert 0 < report.risk <= 1


COUNTED = "people share of fewer_than"
VERSION_0_1 = {
    "": "sentence people risk wanted smallest_count_told threats spreads communities unnamed_communities topics "
    "exposed not_measured assumptions fingerprint",
    "threats singling out": f"{COUNTED} finding",
    "threats linkability": f"{COUNTED} finding",
    "threats inference": f"{COUNTED} finding",
    "spreads": "name threat meaning adversary standing who people below quantiles",
    "spreads below": "2 5 10 20 50 100",
    "spreads below 10": COUNTED,
    "communities": "community members alone small median",
    "communities alone": COUNTED,
    "communities small": COUNTED,
    "topics": "topic shown highest_tenth_from",
    "topics shown": COUNTED,
    "exposed": COUNTED,
    "assumptions": "radius min_posts wanted smallest most_pairs worst exposed text",
    "fingerprint": "data_hash data names incrowd python numpy system cores",
    "fingerprint data": "users posts communities identities items item_rows attribute_rows imports",
}
"""The keys that version 0.1 wrote of a crowd of everything, by where they stood."""


def keys_by_place(plain: object, place: str = "") -> dict[str, set[str]]:
    """Return every key of a JSON value; entries of a list stand where the list does."""
    found: dict[str, set[str]] = {}
    if isinstance(plain, dict):
        found[place] = set(plain)
    parts = plain.items() if isinstance(plain, dict) else (("", one) for one in plain)  # type: ignore[attr-defined]
    for name, part in parts:
        if isinstance(part, dict | list):
            for where, keys in keys_by_place(part, f"{place} {name}".strip()).items():
                found.setdefault(where, set()).update(keys)
    return found


def test_every_key_of_version_0_1_is_where_it_was(report: CrowdReport) -> None:
    found = keys_by_place(report.to_dict())
    lost = {place: set(keys.split()) - found.get(place, set()) for place, keys in VERSION_0_1.items()}
    assert not {place: keys for place, keys in lost.items() if keys}
    assert {"told", "at_risk", "at_risk_or_watch"} <= found["threats linkability"]


def test_what_version_0_1_counted_of_each_threat_is_by_the_papers(report: CrowdReport) -> None:
    threats = report.threats()
    (links,) = report.of_threat(Threat.LINKABILITY)
    assert threats["linkability"].items() >= links.under(10).to_dict().items()
    assert threats["linkability"]["finding"] == f"fewer than 10 people to hide among: {links.name}"
    alone = max(report.of_threat(Threat.SINGLING_OUT), key=lambda one: one.under(10).most)
    assert threats["singling out"].items() >= alone.under(10).to_dict().items()
    assert report.exposed is not None
    assert threats["inference"].items() >= report.exposed.to_dict().items()
    nothing = replace(report, spreads=(), exposed=None).threats()
    assert all(one["finding"] == "not measured" and one["of"] is None for one in nothing.values())


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


def with_levels(*levels: tuple[Level, int], of: int = 0, smallest: int = 10) -> CrowdReport:
    """A report in which so many people stand at each level, of a crowd of `of` or of nobody else."""
    everybody = [level for level, count in levels for _ in range(count)]
    sampled = of > len(everybody)
    least = math.ceil(smallest * len(everybody) / of) if sampled else smallest
    rates = LevelRates.of("any", "any of these", everybody, smallest=least, sampled=sampled)
    report = one_community(1, alike=True)
    told = replace(report.levels, people=len(everybody), sampled=sampled, overall=rates)
    return replace(report, people=of or len(everybody), levels=told)


def test_the_sentence_says_how_exact_it_is_and_of_whom() -> None:
    none = with_levels((Level.WELL_HIDDEN, 40))
    assert none.sentence().startswith("None of the 40 people are at risk: somebody who knows a little")
    assert none.risk == 0
    assert with_levels((Level.AT_RISK, 40)).sentence().startswith("All or nearly all of the 40 people")
    some = with_levels((Level.AT_RISK, 12), (Level.WATCH, 20), (Level.CANNOT_TELL, 15))
    assert some.sentence().startswith("At most 12 of the 32 people are at risk")
    assert some.risk == 12 / 32
    few = with_levels((Level.AT_RISK, 3), (Level.WATCH, 37))
    assert few.sentence().startswith("Fewer than 10 of the 40 people")
    unknown = with_levels((Level.CANNOT_TELL, 40))
    assert unknown.sentence().startswith("Cannot tell how well 40 people can hide")
    assert math.isnan(unknown.risk)
    assert People(count=12, of=40, smallest=10).sentence_start() == "At most 12 of the 40"
    assert People(count=3, of=40, smallest=10).sentence_start() == "Fewer than 10 of the 40"


def test_a_crowd_too_small_to_tell_anything_about_says_so() -> None:
    alone = one_community(1, alike=True)
    assert alone.sentence().startswith("Cannot tell how well 1 person can hide: ")
    assert "fewer than 10 people, too few" in alone.sentence()
    assert np.isnan(alone.risk)
    assert alone.why() == "the risk cannot be told; unknown is not safe"


def test_a_line_that_is_crossed_says_why() -> None:
    assert with_levels((Level.AT_RISK, 40)).why() == "the risk is 1: 40 of 40 people are at risk"
    hidden = with_levels((Level.AT_RISK, 3), (Level.WELL_HIDDEN, 37))
    assert hidden.risk == 9 / 40
    assert hidden.why() == "the risk is 0.225: fewer than 10, counted as 9, of 40 people are at risk"


# On the scale of one person's verdict


def test_levels_are_those_that_an_assessment_of_each_person_says(
    tiny_crowd: Crowd, report: CrowdReport
) -> None:
    everybody = tiny_crowd.user_ids()
    assert len(everybody) == tiny_crowd.people()
    chosen = [everybody[place] for place in np.random.default_rng(0).permutation(len(everybody))[:8]]
    options = AdvisorOptions(min_posts=2, radius=0.7, advice=False)
    answers = [assess(tiny_crowd, user, options=options) for user in chosen]
    smallest = math.ceil(4 * 8 / len(everybody))
    for rates, levels in (
        (report.levels.overall, [one.verdict.level for one in answers]),
        *(
            (rates, [one.themes[place].level for one in answers])
            for place, rates in enumerate(report.levels.questions)
        ),
    ):
        expected = LevelRates.of(rates.name, rates.question, levels, smallest=smallest, sampled=True)
        assert rates == expected
    assert report.levels.people == 8
    assert report.levels.sampled
    assert "8 people of 60, chosen at random" in report.whom()


@given(st.lists(st.sampled_from(list(Level)), min_size=1, max_size=60), st.integers(1, 20), st.booleans())
def test_levels_point_at_nobody_and_understate_nothing(
    levels: list[Level], least: int, sampled: bool
) -> None:
    rates = LevelRates.of("any", "", levels, smallest=least, sampled=sampled)
    counts = [rates.at_risk.count, rates.close.count, rates.told.count, len(levels)]
    assert counts == sorted(counts)
    steps = np.diff([count for count in counts if count])
    assert all(step == 0 or step >= least for step in steps), "nobody is found by subtraction"
    for people, worst in ((rates.at_risk, 3), (rates.close, 2)):
        exact = sum(level.severity >= worst for level in levels)
        assert people.count >= exact
        ends = rates.interval(people)
        assert (ends is None) == (not sampled or not rates.known)
        if ends is not None:
            judged = sum(level is not Level.CANNOT_TELL for level in levels)
            assert ends[0] <= exact / judged <= ends[1] + (judged < people.of)
        plain = rates.to_dict()
        assert (plain["at_risk"] is None) == (not rates.known)


def test_the_interval_covers_the_share_of_everybody() -> None:
    """Drawn without replacement from crowds whose share is known, hidden and rounded numbers included."""
    random, missed, tries = np.random.default_rng(3), 0, 400
    for _ in range(tries):
        at_risk = int(random.integers(0, 401))
        crowd = np.array([Level.AT_RISK] * at_risk + [Level.WELL_HIDDEN] * (400 - at_risk), dtype=object)
        rates = LevelRates.of("any", "", list(random.permutation(crowd)[:60]), smallest=3, sampled=True)
        ends = rates.interval(rates.at_risk)
        assert ends is not None
        missed += not ends[0] <= at_risk / 400 <= ends[1]
    assert missed / tries <= 0.05


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
    assert [one["at_risk"] for one in report.threats().values()] == [None, None, None]
    assert [one["told"]["people"] for one in report.threats().values()] == [0, 0, 0]
    assert len(report.not_measured) == 3
    assert "not measured" in crowd_report_page(report)


@pytest.mark.parametrize(
    "wrong",
    [{"radius": 2}, {"wanted": 7}, {"smallest": 1}, {"exposed": 0}, {"most_pairs": 0}, {"sampled": 0}],
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
        "--people",
        "6",
    ]
    monkeypatch.setattr(sys, "argv", [*base, "--json", "--fail-above", "0"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert "--fail-above 0: the risk is" in said.err
    plain = json.loads(said.out)
    assert {
        "levels",
        "threats",
        "spreads",
        "communities",
        "fingerprint",
        "assumptions",
        "not_measured",
    } <= set(plain)
    assert plain["fingerprint"]["data_hash"] == tiny_crowd.data_hash
    assert "<h1>How well this crowd hides</h1>" in (tmp_path / "c.html").read_text()
    monkeypatch.setattr(sys, "argv", base)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "singling out" in capsys.readouterr().out
