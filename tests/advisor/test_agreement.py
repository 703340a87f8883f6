"""The advisor's numbers are the measures' own."""

from __future__ import annotations

import math

import pytest

from incrowd.advisor.answer import PersonReport
from incrowd.advisor.assess import what_if
from incrowd.advisor.assessor import prepare
from incrowd.crowd import Crowd
from incrowd.measures.anonymity.assess import community_anonymity, member_anonymity
from incrowd.measures.anonymity.spec import AnonymityOptions
from incrowd.measures.exposure.assess import assess_topics
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.space import default_space
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.linkability.assess import assess_person as assess_link
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.microdata.assess import assess_person as assess_items
from incrowd.measures.protocol import AdvisorOptions, Changes, Level, ThemeName
from incrowd.result import Assessment


def found(report: PersonReport, like: Assessment) -> Assessment:
    (one,) = (
        one
        for one in report.assessments
        if (one.measure, one.subject, one.unit, one.assumptions.adversary)
        == (like.measure, like.subject, like.unit, like.assumptions.adversary)
    )
    return one


def agree(report: PersonReport, expected: Assessment, *, within: float = 1e-12) -> None:
    one = found(report, expected)
    assert math.isclose(one.value, expected.value, rel_tol=within)
    assert one.crowd_rank == expected.crowd_rank
    assert one.crowd_size == expected.crowd_size
    assert one.meaning == expected.meaning
    if expected.explained is not None and one.explained is not None:
        assert math.isclose(one.explained, expected.explained, rel_tol=max(within, 1e-9))


@pytest.mark.parametrize("community", ["cycling", "gardening"])
def test_anonymity_agrees(tiny_crowd: Crowd, alex: PersonReport, community: str) -> None:
    everybody = community_anonymity(tiny_crowd, AnonymityOptions(community=community))
    agree(alex, member_anonymity(everybody, "alex"))


@pytest.mark.parametrize("pair", [("cycling", "gardening"), ("gardening", "cycling")])
def test_linkability_agrees(tiny_crowd: Crowd, alex: PersonReport, pair: tuple[str, str]) -> None:
    options = LinkabilityOptions(source=pair[0], target=pair[1])
    agree(alex, assess_link(tiny_crowd, options, "alex"))


def test_the_determined_adversary_agrees(tiny_crowd: Crowd, alex: PersonReport) -> None:
    (one,) = (one for one in alex.assessments if one.measure == "linkability" and one.unit == "probability")
    chosen = one.assumptions.parameters
    options = LinkabilityOptions(
        source=str(chosen["source"]), target=str(chosen["target"]), adversary="determined"
    )
    agree(
        alex, assess_link(tiny_crowd, options, "alex"), within=1e-5
    )  # one row at a time, or all: single precision


def test_microdata_agrees(tiny_crowd: Crowd, alex: PersonReport) -> None:
    expected = [one for one in assess_items(tiny_crowd, "alex") if "score" not in one.unit]
    assert len(expected) == sum(one.measure == "microdata" for one in alex.assessments)
    for one in expected:
        agree(alex, one)


def test_exposure_agrees(tiny_crowd: Crowd, alex: PersonReport) -> None:
    space = default_space()
    scored = score(tiny_crowd, space, ExposureOptions(community="cycling"))
    for one in assess_topics(tiny_crowd, scored, "alex", space.topics.sensitive):
        agree(alex, one)


def test_alex_is_what_alex_was_made_to_be(alex: PersonReport) -> None:
    levels = {theme.name: theme.level for theme in alex.themes}
    assert levels[ThemeName.LINKABLE] is Level.AT_RISK
    assert levels[ThemeName.EXPOSED] is Level.AT_RISK
    worst = next(theme for theme in alex.themes if theme.name is ThemeName.EXPOSED).findings[0]
    assert "depression" in worst.assessment.subject


def test_every_evidence_adds_up_to_what_it_explains(alex: PersonReport) -> None:
    explained = [one for one in alex.assessments if one.evidence and one.explained is not None]
    assert len(explained) > 10
    for one in explained:
        total = math.fsum(part.contribution for part in one.evidence)
        assert math.isclose(total, one.explained or 0.0, rel_tol=1e-6, abs_tol=1e-9)


def test_the_json_has_what_other_programs_rely_on(alex: PersonReport) -> None:
    import json

    plain = json.loads(json.dumps(alex.to_dict(), allow_nan=False))
    assert {"verdict", "assessments", "advice", "not_assessed"} <= set(plain)
    assert plain["verdict"]["level"] == "at risk"
    assert len(plain["assessments"]) == len(alex.assessments)
    assert set(plain["label"]) == {"linkable", "singled out", "inferable", "exposed", "told"}
    assert plain["posts"]
    assert plain["posts"][0]["text"]


def test_what_the_determined_adversary_learned_is_kept(tiny_crowd: Crowd, alex: PersonReport) -> None:
    changes = Changes(delete_posts=frozenset(range(20)))
    options = AdvisorOptions(adversaries=("determined",), advice=False)
    first = what_if(tiny_crowd, "alex", changes, options=options)
    (one,) = (one for one in first.assessments if one.unit == "probability")
    assessor = prepare(tiny_crowd, "alex", options)
    ((_, ready),) = assessor.ready
    about = one.assumptions.parameters
    pair = LinkabilityOptions(source=about["source"], target=about["target"])
    again = ready._determined_of(assessor.person, pair)  # type: ignore[attr-defined]
    fresh = dict(again._measured([assessor.person.after(changes)])[0])
    assert math.isclose(float(fresh["sure"][0]), one.value, rel_tol=1e-6)
