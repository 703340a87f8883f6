"""Missing data gives "cannot tell", never "safe"."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.advisor.making import MEASURE_ONLY

from incrowd.advisor.answer import PersonReport
from incrowd.advisor.assess import assess
from incrowd.crowd import Crowd
from incrowd.errors import NotInCrowd
from incrowd.measures.protocol import AdvisorOptions, Level, Role, ThemeName


def crowd_of(posts: list[tuple[str, str, str]], path: Path) -> Crowd:
    frame = pl.DataFrame(posts, schema=["user", "community", "text"], orient="row")
    return Crowd.from_frame(frame.with_columns(time=pl.int_range(pl.len())), path=path)


def levels(report: PersonReport) -> dict[ThemeName, Level]:
    return {theme.name: theme.level for theme in report.themes}


def test_an_export_alone_says_nothing(tmp_path: Path) -> None:
    alone = crowd_of([("me", "books", f"I read volume {k} today") for k in range(20)], tmp_path / "c")
    report = assess(alone, "me", options=MEASURE_ONLY)
    told = levels(report).pop(ThemeName.TOLD)
    assert told is Level.WELL_HIDDEN  # what somebody tells needs no crowd
    assert {level for name, level in levels(report).items() if name is not ThemeName.TOLD} == {
        Level.CANNOT_TELL
    }
    assert report.verdict.level is Level.CANNOT_TELL
    assert {one.measure for one in report.assessments} == {"disclosures"}
    assert any("incrowd ingest" in one.remedy for one in report.not_assessed)
    assert len({(why, remedy) for _, why, remedy in report.not_told}) == len(report.not_told)
    assert any(about.startswith("linking your profiles, how you write") for about, _, _ in report.not_told)


def test_a_post_without_words_says_nothing(tmp_path: Path) -> None:
    people = [(f"p{k}", "books", f"novel chapter {k}") for k in range(10)]
    report = assess(crowd_of([*people, ("me", "books", "!!!")], tmp_path / "c"), "me", options=MEASURE_ONLY)
    assert report.verdict.level is Level.CANNOT_TELL
    assert not report.assessments


def test_one_community_cannot_be_linked(tmp_path: Path) -> None:
    people = [(f"p{k}", "books", "novel chapter verse page") for k in range(12)]
    report = assess(
        crowd_of([*people, ("me", "books", "novel chapter verse page")], tmp_path / "c"),
        "me",
        options=MEASURE_ONLY,
    )
    assert levels(report)[ThemeName.LINKABLE] is Level.CANNOT_TELL
    (anonymity,) = (one for one in report.findings if one.assessment.measure == "anonymity")
    assert anonymity.level is Level.WELL_HIDDEN
    # The paper's set decides nothing, and one post is too little to be recognised by.
    assert levels(report)[ThemeName.SINGLED_OUT] is Level.CANNOT_TELL
    assert report.verdict.level is Level.CANNOT_TELL


def test_a_single_post_unlike_all_others_is_too_little_to_tell_and_not_alone(tmp_path: Path) -> None:
    people = [(f"p{k}", "books", "novel chapter verse page") for k in range(12)]
    odd = ("me", "books", "zebra quartz jinx")
    report = assess(crowd_of([*people, odd], tmp_path / "c"), "me", options=MEASURE_ONLY)
    (anonymity,) = (one for one in report.findings if one.assessment.measure == "anonymity")
    assert (anonymity.assessment.value, anonymity.role) == (1, Role.PAPER)
    assert levels(report)[ThemeName.SINGLED_OUT] is Level.CANNOT_TELL
    assert any("it takes 4" in one.why for one in report.not_assessed)
    assert "safe" not in report.verdict.sentence


def test_too_few_posts_are_named(tmp_path: Path) -> None:
    people = [
        (f"p{k}", place, f"novel chapter {post}")
        for k in range(8)
        for place in ("books", "films")
        for post in range(12)
    ]
    mine = [("me", "books", f"novel verse {k}") for k in range(12)] + [("me", "films", "novel")]
    report = assess(crowd_of([*people, *mine], tmp_path / "c"), "me", options=MEASURE_ONLY)
    assert levels(report)[ThemeName.LINKABLE] is Level.CANNOT_TELL
    linkable = report.themes[0]
    assert linkable.sentence.startswith("Cannot tell: you have fewer than 10 posts with words in films")
    (silence,) = (one for one in report.not_assessed if one.theme is ThemeName.LINKABLE)
    assert "--min-posts 5" in silence.remedy
    assert "post more" not in silence.remedy


def test_leaving_adversaries_out_leaves_questions_open(tiny_crowd: Crowd) -> None:
    options = AdvisorOptions(adversaries=("three-items", "three-rarest", "paper"), advice=False)
    report = assess(tiny_crowd, "alex", options=options)
    assert {one.measure for one in report.assessments} == {"microdata"}
    open_questions = {ThemeName.LINKABLE, ThemeName.INFERABLE, ThemeName.EXPOSED}
    assert all(levels(report)[name] is Level.CANNOT_TELL for name in open_questions)
    decides = next(one for one in report.findings if one.role is Role.DECIDES)
    assert decides.assessment.assumptions.adversary == "someone who knows three of your items"
    assert report.verdict.level is decides.level is not Level.CANNOT_TELL
    assert "Not measured: " in report.verdict.sentence


def test_somebody_who_is_not_there_is_an_error(tiny_crowd: Crowd) -> None:
    with pytest.raises(NotInCrowd):
        assess(tiny_crowd, "nobody at all")


def test_every_silence_names_a_remedy(alex: PersonReport) -> None:
    assert alex.not_assessed
    for one in alex.not_assessed:
        assert one.measure
        assert one.why
        assert one.remedy


def test_words_of_a_community_too_many_are_no_error(tmp_path: Path) -> None:
    """Only the largest communities are assessed; the person's other words are in nobody's vocabulary there."""
    people = [
        (f"p{k}", place, "novel chapter verse page")
        for k in range(12)
        for place in ("a", "b")
        for _ in range(3)
    ]
    mine = [("me", place, "novel chapter verse page") for place in ("a", "b") for _ in range(3)]
    apart = [("me", "small", "zyzzyva quokka")]
    options = AdvisorOptions(most_communities=2, min_posts=2, thorough=False)
    report = assess(crowd_of([*people, *mine, *apart], tmp_path / "c"), "me", options=options)
    sizes = [one.assessment.value for one in report.findings if one.assessment.measure == "anonymity"]
    assert sizes == [13, 13]
