"""Every result can be looked at: one line, a table, a picture, a piece of a page."""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import incrowd
from incrowd.crowd import Crowd

QUICK = incrowd.AdvisorOptions(thorough=False, advice=False)
POLICY = {
    "publish": {"withhold": ["region"]},
    "require": [{"attribute": "region", "own": True, "sigma": 0.5}],
}


def _scored(crowd: Crowd) -> incrowd.microdata.Score:
    tally = incrowd.microdata.Tally.count(crowd.items(), incrowd.microdata.ScoreSpec(rare_below=3))
    published, _ = incrowd.microdata.publish(
        tally,
        state=incrowd.microdata.ReleaseState.fresh(b"for this test"),
        release=incrowd.microdata.ReleaseSpec(crowd=2),
        profiles=incrowd.microdata.ProfileFilter(fewest=1),
    )
    return incrowd.microdata.score(crowd.items().collect()["item"].unique().sort().to_list()[:9], published)


RESULTS: dict[str, Callable[[Crowd], Any]] = {
    "person": lambda crowd: incrowd.assess(crowd, "alex", options=QUICK),
    "assessment": lambda crowd: incrowd.assess(crowd, "alex", options=QUICK).assessments[0],
    "draft": lambda crowd: incrowd.draft(crowd, "alex", "cycling", "Xylophones in debt"),
    "crowd": lambda crowd: incrowd.crowd_report(crowd, options=incrowd.CrowdOptions(sampled=5)),
    "anonymity": lambda crowd: incrowd.anonymity.measure(
        crowd, incrowd.anonymity.Options(community="cycling")
    ),
    "linkability": lambda crowd: incrowd.linkability.measure(
        crowd, incrowd.linkability.Options(source="cycling", target="gardening", min_posts=2)
    ),
    "microdata": lambda crowd: incrowd.microdata.measure(crowd),
    "belief": lambda crowd: incrowd.belief.measure(
        crowd, policy=incrowd.belief.read_policy(POLICY, truth=None)
    ),
    "recognition": lambda crowd: incrowd.recognition.measure(
        crowd, incrowd.recognition.Options(community="cycling")
    ),
    "exposure": lambda crowd: incrowd.exposure.measure(crowd, incrowd.exposure.Options(community="cycling")),
    "release, a measurement": lambda crowd: incrowd.release.measure_q({"tea": ["a", "b"], "rum": ["b", "c"]}),
    "release, a suppression": lambda crowd: incrowd.release.suppress(
        {"tea": [*"abcdef"], "rum": ["b"]}, threshold=2
    ),
    "a score": _scored,
    "what is in a crowd": lambda crowd: crowd.info(),
    "study": lambda crowd: incrowd.study.anonymity_study(
        crowd, incrowd.study.PairStudyOptions(min_posts=5, min_profiles=5, min_pairs=3)
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_can_be_looked_at(name: str, tiny_crowd: Crowd) -> None:
    result = RESULTS[name](tiny_crowd)
    assert "\n" not in repr(result)
    assert len(repr(result)) < 250
    assert isinstance(result.to_dict(), dict)
    frame = result.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.height
    Xml.fromstring(result.chart())
    assert result.chart().startswith("<svg")
    assert result._repr_html_() == result.to_html()
    assert "<table>" in result.to_html()
    assert "<script" not in result.to_html()


def test_a_table_may_be_pandas(tiny_crowd: Crowd) -> None:
    pandas = pytest.importorskip("pandas")
    report = incrowd.assess(tiny_crowd, "alex", options=QUICK)
    frame = report.to_frame(pandas=True)
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(report.assessments)
    assert {"theme", "level", "risk", "measure", "value"} <= set(frame.columns)


def test_members_of_a_community_have_their_posts(tiny_crowd: Crowd) -> None:
    found = incrowd.anonymity.measure(tiny_crowd, incrowd.anonymity.Options(community="cycling")).to_frame()
    assert found["posts"].min() >= 1


def test_ones_own_posts_go_by_name(tiny_crowd: Crowd) -> None:
    assert incrowd.own_posts(tiny_crowd, "alex").height
    with pytest.raises(incrowd.IncrowdError):
        incrowd.own_posts(tiny_crowd, "nobody at all")
