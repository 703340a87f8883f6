"""No figure rests on a choice made with it in sight; what results are compared with is what it says."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from incrowd.crowd import Crowd
from incrowd.measures.exposure.comparison import (
    fit,
    periods_written,
    supervised_risks,
    tfidf,
    words_of_people,
)
from incrowd.measures.exposure.evaluation import (
    BREADTHS,
    WEEKS,
    average_precision,
    held_out,
    leave_people_out,
    tried,
)
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.space import BagOfWords, WeightedWords
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import starter_topics

WEEK = 7 * 86_400


def test_what_is_tried_is_what_the_measure_says(tiny_crowd: Crowd) -> None:
    scored = score(tiny_crowd, BagOfWords(starter_topics()))
    topics, place = scored.space.topics, scored.space.topics.place("debts")
    found = dict(tried("BOW", scored.peaks, topics, "debts"))
    assert len(found) == 1 + len(BREADTHS) + len(WEEKS) * (1 + len(BREADTHS))
    for setting, risks in found.items():
        options = ExposureOptions(weeks=setting.weeks or 3, breadth=setting.breadth or 0.3)
        expected = scored.peaks.risks(topics, setting.dimension, options)[:, place]
        assert risks == pytest.approx(expected)


def test_people_who_wrote_too_little_are_not_ranked_when_settings_are_tried() -> None:
    """Three known words are asked for; b wrote one."""
    rows = [("a", "debt loan creditor"), ("b", "debt"), ("c", "loan loan debt")]
    frame = pl.DataFrame(
        [(user, "c", WEEK * week, text) for user, text in rows for week in (1, 2)],
        schema=["user", "community", "time", "text"],
        orient="row",
    )
    scored = score(
        Crowd.from_frame(frame, plain_names=True), WeightedWords(starter_topics(), prior=2.0, enough=3)
    )
    for _, risks in tried("WORDS", scored.peaks, scored.space.topics, "debts"):
        assert dict(zip(scored.users, np.isnan(risks), strict=True)) == {"a": False, "b": True, "c": False}


def test_chance_findings_do_not_survive_on_other_people() -> None:
    """Of many meaningless settings the best looks good where it was chosen, and is at chance elsewhere."""
    rng = np.random.default_rng(0)
    votes = {"t": (np.arange(400) < 80).astype(float)}
    noise = {f"setting {i}": {"t": rng.random(400)} for i in range(60)}
    truth = {"the only one": {"t": votes["t"] + rng.random(400)}}
    in_sight = max(average_precision(one["t"], votes["t"]) for one in noise.values())
    found = held_out({"noise": noise, "truth": truth}, votes, splits=10)
    assert in_sight > 0.24
    assert found["noise"].maps.mean() < 0.225
    assert found["truth"].maps == pytest.approx(1.0)
    assert found["noise"].chosen.total() == 10


def test_intervals_leave_out_the_same_people_and_contain_the_figure() -> None:
    rng = np.random.default_rng(1)
    votes = {"a": (rng.random(200) < 0.3).astype(float), "b": (rng.random(150) < 0.2).astype(float)}
    risks = {topic: one + rng.normal(size=len(one)) for topic, one in votes.items()}
    people = {topic: np.arange(len(one)) for topic, one in votes.items()}
    found = leave_people_out({"x": risks, "same": risks}, votes, people)
    assert (found["x"].without == found["same"].without).all()
    low, high = found["x"].interval()
    mean = np.mean([average_precision(risks[topic], votes[topic]) for topic in votes])
    assert found["x"].value == pytest.approx(mean)
    assert low < mean < high
    assert high - low < 0.3
    assert found["x"].difference(found["same"]) == pytest.approx((0, 0))
    assert found["x"].ratio(found["same"]) == pytest.approx((1, 1))


def test_one_sensitive_person_cannot_be_split() -> None:
    """A choice made on nobody is no choice: the figure is undefined, and says why."""
    votes = {"t": np.array([1.0, 0, 0, 0, 0])}
    risks = {"a": {"first": {"t": np.arange(5.0)}, "second": {"t": -np.arange(5.0)}}}
    found = held_out(risks, votes, splits=4)["a"]
    assert np.isnan(found.maps).all()
    assert not found.chosen
    assert "t" in found.reason
    both = held_out(
        {"a": {"x": {"t": np.arange(5.0), "u": np.arange(6.0)}}},
        votes | {"u": np.array([1, 1, 0, 0, 0, 0.0])},
    )
    assert not np.isnan(both["a"].maps).any()
    assert "t" in both["a"].reason


def test_a_setting_without_scores_is_never_chosen() -> None:
    votes = {"t": (np.arange(40) < 10).astype(float)}
    nothing, something = {"t": np.full(40, np.nan)}, {"t": np.arange(40.0)}
    found = held_out(
        {"a": {"undated": nothing, "strength": something}, "b": {"undated": nothing}}, votes, splits=3
    )
    assert set(found["a"].chosen) == {"strength"}
    assert np.isnan(found["b"].maps).all()
    assert "score" in found["b"].reason


def test_periods_written_count_dated_posts_only() -> None:
    frame = pl.DataFrame({
        "user": ["a", "a", "a", "b", "b"],
        "community": "c",
        "time": [0, 10, 5 * WEEK, None, WEEK],
        "text": "word",
    })  # fmt: skip
    scored = score(Crowd.from_frame(frame), BagOfWords(starter_topics()))
    assert periods_written(scored.peaks).tolist() == [2, 1]


def test_words_of_people_by_hand() -> None:
    frame = pl.DataFrame({
        "user": ["b", "a", "b"],
        "community": "c",
        "time": [0, 1, 2],
        "text": ["pancakes pancakes", "the moon", "the pancakes"],
    })  # fmt: skip
    crowd = Crowd.from_frame(frame)
    counts = words_of_people(crowd, pl.Series(["a", "b"]), ExposureOptions())
    assert words_of_people(crowd, pl.Series(["b"]), ExposureOptions()).sum() == 4
    assert sorted(counts.toarray()[0].tolist()) == [0, 1, 1]
    assert sorted(counts.toarray()[1].tolist()) == [0, 1, 3]
    weighed = tfidf(counts).toarray()
    assert np.linalg.norm(weighed, axis=1) == pytest.approx([1, 1])
    assert weighed[1].max() / np.sort(weighed[1])[1] == pytest.approx((1 + np.log(3)) * (1 + np.log(1.5)))


def test_the_bound_learns_from_others_only() -> None:
    """A word that one labelled person alone uses tells nothing about them; a word they share does."""
    rng = np.random.default_rng(2)
    truth = np.arange(60) < 20
    own = np.eye(60)
    shared = (truth & (rng.random(60) < 0.9)).astype(float)[:, None]
    assert average_precision(supervised_risks(sp.csr_matrix(own), truth.astype(float)), truth) < 0.5
    found = supervised_risks(sp.csr_matrix(np.hstack([own, shared])), truth.astype(float))
    assert average_precision(found, truth) > 0.9
    assert np.isnan(supervised_risks(sp.csr_matrix(own), (np.arange(60) < 1).astype(float))).all()


def test_the_regression_equals_the_peers() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    features = sp.random(80, 12, density=0.4, random_state=4, format="csr")
    truth = rng.random(80) < 0.4
    peer = LogisticRegression(C=1.0, max_iter=2_000, tol=1e-10).fit(features, truth)
    expected = np.append(peer.coef_.ravel(), peer.intercept_)
    assert fit(features, truth) == pytest.approx(expected, abs=2e-3)


@given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=2, max_size=80))
def test_groups_of_equal_weeks_have_both_kinds_of_people(people: list[tuple[int, bool]]) -> None:
    from benchmarks.exposure_reddit import groups_of_weeks

    weeks, truth = (np.array(column) for column in zip(*people, strict=True))
    assume(0 < truth.sum() < len(truth))
    if max(weeks[truth].min(), weeks[~truth].min()) > min(weeks[truth].max(), weeks[~truth].max()):
        return  # nobody to compare with
    parts = groups_of_weeks(weeks, truth)
    assert len(parts) <= 5
    members = np.concatenate(parts) if parts else np.zeros(0, int)
    assert len(set(members.tolist())) == len(members)
    for part in parts:
        assert set(truth[part].tolist()) == {True, False}
    for first, second in itertools.pairwise(parts):
        assert weeks[first].max() < weeks[second].min()


def test_five_groups_of_equal_weeks_are_about_equally_large() -> None:
    from benchmarks.exposure_reddit import groups_of_weeks

    weeks = np.repeat(np.arange(1, 11), 20)
    parts = groups_of_weeks(weeks, np.arange(len(weeks)) % 2 == 0)
    assert [len(part) for part in parts] == [40] * 5
