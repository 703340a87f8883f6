"""A person's report as a page: in the order in which to read it, adding up, escaping what people are called."""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.drawing import crowd_picture
from incrowd.measures.exposure.assess import NOTHING
from incrowd.measures.protocol import Changes, Finding, Level, Role, ThemeName, shortened
from incrowd.report.person import (
    evidence_bars,
    helps,
    person_label,
    person_report_page,
    sweep,
)
from incrowd.result import Assumptions, Evidence, say_amount

from .people import actions, alex, linked


def embedded(document: str) -> object:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', document, re.S)
    assert found
    return json.loads(found[1])


def test_the_page_answers_in_the_order_in_which_people_ask() -> None:
    text = unescape(person_report_page(alex()))
    order = [
        alex().verdict.sentence,
        "By whom?",
        "What gives you away?",
        "What can you do now?",
        "Your label",
        'id="why-heading"',
        'id="advice-heading"',
        "What was not assessed",
        "The crowd has no attributes of yours.",
        "Fine print",
        "0123456789abcdef",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_the_page_holds_the_same_numbers_as_the_json_twice() -> None:
    document = person_report_page(alex())
    link = re.search(r'href="data:application/json;base64,([^"]+)"', document)
    assert link
    assert json.loads(base64.b64decode(link[1])) == alex().to_dict() == embedded(document)


def test_every_question_shows_its_level_in_words() -> None:
    document = person_report_page(alex())
    for theme in alex().themes:
        assert f"{theme.level}, on a scale from well hidden over watch to at risk" in document


def test_a_name_cannot_become_markup() -> None:
    document = person_report_page(alex("<img src=x onerror=alert(1)>"))
    assert "<img" not in document
    assert "&lt;img src=x" in document


def test_the_page_asks_for_nothing_from_anywhere() -> None:
    document = person_report_page(alex())
    assert "default-src 'none'" in document
    assert not re.search(r'(src|href)="(?!data:|#)', document)
    assert "http://" not in document.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r'\sstyle="', document), "the page's policy would drop it"


def test_the_label_marks_the_level_and_cannot_tell_is_on_no_bar() -> None:
    assert person_label(alex()).verdict == "at risk"
    for level, you in ((Level.WELL_HIDDEN, 0), (Level.CANNOT_TELL, None)):
        assert person_label(replace(alex(), verdict=replace(alex().verdict, level=level))).you == you


@given(st.integers(2, 5000), st.floats(0, 1))
def test_a_crowd_is_drawn_to_scale_and_you_are_in_it_once(total: int, share: float) -> None:
    fits = 1 + share * (total - 1)
    picture = crowd_picture(fits, total, "anybody")
    kinds = [dot.kind for dot in picture.dots]
    assert kinds.count("you") == 1
    assert len(kinds) == min(total, 200)
    drawn = 1 + kinds.count("fits") * total / len(kinds)
    assert abs(drawn - fits) <= total / len(kinds)
    assert ("fits" in kinds) == (round(fits, 1) > 1) == ("nobody else" not in picture.sentence)
    assert all(0 < dot.x < picture.width and 0 < dot.y < picture.height for dot in picture.dots)


def test_the_picture_shows_the_worst_finding_that_decides() -> None:
    picture = alex().crowd_picture
    assert picture is not None
    assert (picture.fits, picture.total) == (pytest.approx(1 / 0.97), pytest.approx(147))
    assert "as if nobody else fitted" in picture.sentence
    drawn, page = alex().chart(), person_report_page(alex())
    assert drawn.count("<circle") == len(picture.dots) + 1  # a ring is around you
    assert page.count('<circle class="other"') == sum(dot.kind == "other" for dot in picture.dots)


def test_the_picture_shows_nothing_of_a_paper() -> None:
    report = alex()
    papers = tuple(
        replace(one, findings=tuple(replace(each, role=Role.PAPER) for each in one.findings))
        for one in report.themes
    )
    assert replace(report, themes=papers).crowd_picture is None
    page = person_report_page(replace(report, themes=papers))
    assert "For researchers: the papers' own numbers" in page


@pytest.mark.parametrize(
    ("role", "shares", "sum_told"),
    [(Role.DECIDES, 2, False), (Role.STRONGER, 1, False), (Role.PAPER, 1, True)],
)
def test_only_a_papers_number_is_a_sum_of_numbers(role: Role, shares: int, sum_told: bool) -> None:
    """Everything else rests on shares, the same in the reasons and in the details of a question."""
    report = alex()
    linkable = report.themes[0]
    findings = tuple(replace(one, role=role) for one in linkable.findings)
    page = person_report_page(replace(report, themes=(replace(linkable, findings=findings),)))
    assert page.count('<span class="amount">96%</span>') == shares  # 13.1 of 13.7, once in the reasons
    assert ('<span class="what">Together</span>' in page) == sum_told
    assert ("+13.1" in page) == sum_told


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_bars_lie_within_the_row_and_keep_their_proportions(values: list[float]) -> None:
    bars = evidence_bars([Evidence(what="a", contribution=value) for value in values])
    for bar, value in zip(bars, values, strict=True):
        assert bar.start >= -0.01
        assert bar.start + bar.width <= 100.7
        assert bar.sign == ("minus" if value < 0 else "plus")
    largest = max(range(len(values)), key=lambda k: abs(values[k]))
    assert bars[largest].width == max(bar.width for bar in bars)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40))
def test_shortened_evidence_still_adds_up(values: list[float]) -> None:
    shown = shortened([Evidence(what="a", contribution=value) for value in values], 10)
    assert math.isclose(
        math.fsum(part.contribution for part in shown), math.fsum(values), rel_tol=1e-9, abs_tol=1e-9
    )


def test_there_is_one_rest_however_many_a_measure_made() -> None:
    parts = [Evidence(what=f"word {k}", contribution=1.0) for k in range(12)]
    shown = shortened([*parts, Evidence(what="1,175 more", contribution=40.0)], 10)
    assert [part.what for part in shown][-1] == "1,177 more"
    assert shown[-1].contribution == 42.0
    assert len(shown) == 11


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (12.0, "people", "12 people"),
        (1.0, "people", "1 person"),
        (0.97, "probability", "97%"),
        (0.99999, "probability", "more than 99.9%"),
        (1.0, "probability", "more than 99.9%"),
        (1.0, "probability of being picked out with one guess", "100%"),
        (0.0068, "probability", "0.68%"),
        (3.0, "rank", "rank 3"),
        (math.nan, "people", "cannot tell"),
        (0.5, "score", "0.5 score"),
    ],
)
def test_amounts_read_as_people_say_them(value: float, unit: str, said: str) -> None:
    assert say_amount(value, unit) == said


def test_changes_are_told_better_worse_and_gone() -> None:
    first, second, third = (action.effect for action in actions())
    assert [helps(first), helps(second), helps(third)] == ["better", "better", "gone"]
    assert helps(actions()[0].also[0]) == "same"


def test_topics_without_a_post_are_counted_and_not_ranked() -> None:
    report = alex()
    about = report.findings[0].assessment
    parameters = {**about.assumptions.parameters, "looks_like": NOTHING}
    unsaid = replace(
        about,
        measure="exposure",
        assumptions=replace(about.assumptions, parameters=parameters),
        subject="you, drugs",
    )
    first = report.themes[0]
    judged = (*first.findings, replace(first.findings[0], assessment=unsaid))
    page = person_report_page(replace(report, themes=(replace(first, findings=judged), *report.themes[1:])))
    assert "1 more topic: no post of yours points there." in page
    assert "you, drugs" not in re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.S)


def test_adversaries_are_swept_most_successful_first() -> None:
    rows = sweep(alex().findings)
    assert [(row.width, row.amount) for row in rows] == [(97.0, "97%"), (33.0, "33%")]
    assert rows[0].level == Level.AT_RISK


def test_a_rank_is_shown_as_how_often_somebody_would_be_right() -> None:
    calibrated = Assumptions(adversary="someone", parameters={"probability": 0.4})
    about = replace(linked(1.0), measure="exposure", unit="rank", assumptions=calibrated)
    rank = Finding(assessment=about, theme=ThemeName.EXPOSED, level=Level.WATCH, risk=0.3)
    assert [(row.width, row.amount) for row in sweep([rank])] == [(40.0, "40%")]


def test_what_helps_against_the_worst_is_said_where_the_plan_leaves_it() -> None:
    person = alex()
    told = [question for question, _ in person.in_short].index("What can you do now?")
    assert not any(line.startswith("Or, instead") for line in person.in_short[told][1]), (
        "the plan helps against it"
    )
    left = replace(person.plan, effects=(), verdict=person.verdict)
    lines = replace(person, plan=left).in_short[told][1]
    assert (
        "Or, instead, against what weighs most: delete post 12 in gardening (you in cycling and gardening: 97% → 31%; "
        "at risk → watch)."
    ) in lines


def test_one_cheap_thing_that_ends_the_risk_stands_before_a_plan_for_everything() -> None:
    person = alex()
    told = [question for question, _ in person.in_short].index("What can you do now?")
    assert not any(line.startswith("First:") for line in person.in_short[told][1]), "the plan is as cheap"
    much = replace(person.plan, changes=Changes(delete_posts=frozenset(range(90))))
    lines = replace(person, plan=much).in_short[told][1]
    assert lines[0] == (
        "First: delete post 12 in gardening (you in cycling and gardening: 97% → 31%; at risk → watch)."
    )
    worse = {"level_before": Level.WATCH, "level_after": Level.AT_RISK, "risk_before": 0.2, "risk_after": 0.9}
    harmful = replace(person.actions[0], also=(replace(person.actions[0].effect, **worse),))
    left = replace(person, plan=much, actions=(harmful,)).in_short[told][1]
    assert not any(line.startswith("First:") for line in left)
