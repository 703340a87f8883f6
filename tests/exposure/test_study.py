"""The study of paper 004: rows first, page after."""

from __future__ import annotations

import polars as pl
import pytest

from incrowd.crowd import Crowd
from incrowd.drawing import Chart
from incrowd.errors import InputError
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.space import BagOfWords
from incrowd.measures.exposure.topics import starter_topics
from incrowd.report.page import study_page
from incrowd.study.exposure import exposure_study
from incrowd.study.figures import Study, Table


@pytest.fixture(scope="module")
def study(tiny_crowd: Crowd) -> Study:
    users = sorted(tiny_crowd.posts().collect()["user"].unique())[:20]
    votes = [[1.0, 0.6, 0.8] + [0.2] * 17, [0.0] * 15 + [1.0] * 5]
    labels = pl.concat(
        pl.DataFrame({"user": users, "topic": topic, "vote": vote})
        for topic, vote in zip(("depression", "debts"), votes, strict=True)
    )
    return exposure_study(tiny_crowd, [BagOfWords(starter_topics())], labels, judges=5)


def tables(study: Study) -> dict[str, Table]:
    return {
        part.title.split(":")[0]: part for s in study.sections for part in s.parts if isinstance(part, Table)
    }


def test_the_tables_of_the_paper_are_there(study: Study) -> None:
    found = tables(study)
    assert found["Table 3"].rows == (("debts", 20, 5), ("depression", 20, 3))
    assert [row[0] for row in found["Table 4"].rows] == ["ENTROPY", "DIFF-PRIV", "BOW"]
    assert [row[0] for row in found["Table 5"].rows] == ["BOW", "BOW-D", "BOW-T", "BOW-DT"]
    assert found["Table 6"].columns == ("method", "debts", "depression")
    values = [cell for row in found["Table 5"].rows for cell in row[1:]]
    assert all(isinstance(cell, float) and 0 <= cell <= 1 for cell in values)


def test_micro_is_the_weighted_mean_of_the_topics(study: Study) -> None:
    found = tables(study)
    per_topic = {row[0]: row[1:] for row in found["Table 6"].rows}
    for row in found["Table 5"].rows:
        debts, depression = per_topic[row[0]]
        assert row[1] == pytest.approx((5 * debts + 3 * depression) / 8)


def test_the_sweeps_pass_through_the_default(study: Study) -> None:
    charts = [
        part for s in study.sections for part in s.parts if isinstance(part, Chart) and " over " in part.title
    ]
    by_method = {row[0]: row[1] for row in tables(study)["Table 5"].rows}
    for chart, at, method in zip(charts, (0.3, 3.0), ("BOW-D", "BOW-T"), strict=True):
        (series,) = chart.series
        assert dict(zip(series.x, series.y, strict=True))[at] == by_method[method]


def test_the_page_names_nobody(study: Study, tiny_crowd: Crowd) -> None:
    page = study_page(study)
    assert "<h1>Who looks exposed" in page
    assert not [user for user in tiny_crowd.posts().collect()["user"].unique() if user in page]


def test_figures_stand_beside_chance_a_control_without_words_and_the_bound(study: Study) -> None:
    found = tables(study)
    figures = {row[0]: row[1:] for row in found["MAP with 95 % intervals"].rows}
    by_method = {row[0]: row[4] for row in found["Table 5"].rows}
    assert {name: figures[name][0] for name in by_method} == by_method
    for value, low, high, share, *_ in figures.values():
        assert low <= value <= high
        assert share == pytest.approx(value / figures["supervised bound"][0])
    held = {row[0]: row[1:] for row in found["Settings chosen on other people"].rows}
    assert set(held) == {"BOW", "periods written in (no words)", "supervised bound"}
    assert str(held["BOW"][-1]).startswith("BOW")
    (section,) = (s for s in study.sections if s.heading.startswith("How sure"))
    by_lot = sum((1 + (place - 1) * 3 / 19) / place for place in range(1, 21)) / 20  # 4 of 20 in either topic
    assert f"random order has a MAP of {by_lot:.3f}" in section.text


def test_figure_1_shows_the_scores_of_the_judged_beside_everybody_s(study: Study, tiny_crowd: Crowd) -> None:
    charts = [part for s in study.sections for part in s.parts if part.title.startswith("Figure 1")]
    assert len(charts) == 2
    users = sorted(tiny_crowd.posts().collect()["user"].unique())
    scored = score(tiny_crowd, BagOfWords(starter_topics()))
    place = scored.space.topics.place("debts")
    risks = dict(zip(scored.users.to_list(), scored.risks("")[:, place].tolist(), strict=True))
    everybody, judged = next(one for one in charts if "debts" in one.title).series
    assert (everybody.y[0], everybody.y[-1]) == (max(risks.values()), min(risks.values()))
    own = [risks[user] for user in users[:20]]
    assert (judged.y[0], judged.y[-1]) == pytest.approx((max(own), min(own)))


def test_the_judges_agreement_is_fleiss_kappa(study: Study) -> None:
    """By the formula: mean agreement of pairs of judges against what the shares of yes and no would give."""
    votes = [5, 3, 4] + [1] * 17 + [0] * 15 + [5] * 5
    agree = sum(yes * (yes - 1) + (5 - yes) * (4 - yes) for yes in votes) / (20 * len(votes))
    share = sum(votes) / (5 * len(votes))
    chance = share**2 + (1 - share) ** 2
    kappa = (agree - chance) / (1 - chance)
    assert next(one.here for one in study.headlines if "kappa" in one.result) == pytest.approx(kappa)
    assert f"{kappa:.3f}" in study.sections[0].text


def test_votes_of_another_number_of_judges_are_refused(tiny_crowd: Crowd) -> None:
    users = sorted(tiny_crowd.posts().collect()["user"].unique())[:6]
    labels = pl.DataFrame({"user": users, "topic": "debts", "vote": [0.2, 0.4, 0.6, 0.8, 1.0, 0.0]})
    with pytest.raises(InputError, match="judges 3"):
        exposure_study(tiny_crowd, [BagOfWords(starter_topics())], labels, judges=3)
