"""R-Susceptibility by hand, by paper and by property; the fast way over a crowd equals the definitions."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.measures.exposure.comparison import diff_priv_order, diff_priv_risks, entropy_risks
from incrowd.measures.exposure.definition import (
    UNDATED,
    alert_ranks,
    average_ranks,
    breadth,
    means_of_best,
    periods,
    person_risk,
    place_in_order,
)
from incrowd.measures.exposure.scoring import PeakCollector, PersonRisks
from incrowd.measures.exposure.spec import DIMENSIONS, ExposureOptions
from incrowd.measures.exposure.topics import Topic, TopicSet

TOPICS = TopicSet(tuple(Topic(f"t{i}", "ab"[i // 3], ("word",)) for i in range(5)))


def cosines(posts: list[list[float]]) -> np.ndarray:
    vectors = np.array(posts, float)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_topic_counts_by_its_own_best_post_not_by_the_best_post_of_another_topic() -> None:
    similar = cosines([[0.9, 0.1, 0], [0, 1, 0]])
    x = similar[:, 0].max()
    assert person_risk(similar, [0, 0], 0, [1], dimension="D") == pytest.approx(x - 1.0)
    literal = person_risk(similar, [0, 0], 0, [1], dimension="DT", m=1, literal=True)
    assert x - literal == pytest.approx(0.11, abs=0.005)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_as_printed_breadth_over_a_small_domain_leaves_nobody_any_risk(row: list[float]) -> None:
    assert person_risk([row], [0], 0, [1, 2], dimension="D", literal=True) <= 0


def test_the_place_in_the_domain_is_an_exact_ceiling() -> None:
    assert [place_in_order(k / 10, 10) for k in range(1, 11)] == list(range(1, 11))
    assert place_in_order(0.7, 10) == 7  # 0.7 * 10 is above 7 in binary
    assert place_in_order(0.3, 3) == 1
    assert place_in_order(0.3, 7) == 3


def test_a_topic_without_siblings_loses_nothing_to_breadth() -> None:
    assert breadth([[0.4], [0.2]], [], 0.3).tolist() == [0.0, 0.0]


def test_one_burst_counts_a_third_and_a_lasting_interest_fully() -> None:
    burst, lasting = [[0.9]] * 3, [[0.9]] * 3
    assert person_risk(burst, [5, 5, 5], 0, [], dimension="T") == pytest.approx(0.3)
    assert person_risk(lasting, [5, 6, 9], 0, [], dimension="T") == pytest.approx(0.9)
    assert person_risk(burst, [5, 5, 5], 0, [], dimension="T", literal=True) == pytest.approx(0.9)


def test_a_stray_post_on_another_topic_takes_off_a_whole_interest_only_as_printed() -> None:
    """Three weeks of the topic at 0.6, one post on its sibling at 0.6."""
    posts = [[0.6, 0.0], [0.6, 0.0], [0.6, 0.6]]
    over_posts = person_risk(posts, [1, 2, 3], 0, [1], dimension="DT", breadth_over="posts")
    assert over_posts == pytest.approx(0.0)
    assert person_risk(posts, [1, 2, 3], 0, [1], dimension="DT") == pytest.approx(0.6 - 0.6 / 3)
    professional = [[0.6, 0.6]] * 3
    assert person_risk(professional, [1, 2, 3], 0, [1], dimension="DT") == pytest.approx(0.0)


def test_the_best_periods_are_those_of_a_person_looked_at_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    people = [rng.random((size, 4)).round(1) for size in rng.integers(0, 9, 60)]
    starts = np.cumsum([0, *map(len, people[:-1])])
    monkeypatch.setattr("incrowd.measures.exposure.definition.AT_ONCE", 16)
    for m, found in zip((1, 3, 5), means_of_best(np.concatenate(people), starts, [1, 3, 5]), strict=True):
        alone = [
            [sum(sorted(peaks[:, topic], reverse=True)[:m]) / m for topic in range(4)] for peaks in people
        ]
        assert np.array_equal(found, alone)


def test_without_any_time_a_lasting_interest_is_undefined_and_strength_is_not() -> None:
    assert math.isnan(person_risk([[0.9]], [UNDATED], 0, [], dimension="T"))
    assert person_risk([[0.9]], [UNDATED], 0, []) == 0.9


def test_weeks_run_from_monday_to_sunday_in_utc() -> None:
    monday = 1_388_966_400  # 6 January 2014, 00:00
    assert np.diff(periods([monday - 1, monday, monday + 7 * 86_400 - 1, monday + 7 * 86_400])).tolist() == [
        1,
        0,
        1,
    ]


def test_equals_share_the_best_rank_for_alerts_and_the_average_for_figures() -> None:
    assert alert_ranks([0.1, 0.5, 0.5, math.nan, 0.3]).tolist() == [4, 1, 1, 5, 3]
    assert average_ranks([0.1, 0.5, 0.5, 0.3]).tolist() == [4.0, 1.5, 1.5, 3.0]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    posts = draw(st.integers(1, 25))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    person = np.sort(rng.integers(0, 4, posts))
    person = np.unique(person, return_inverse=True)[1]
    period = np.where(rng.random(posts) < 0.2, UNDATED, rng.integers(-1, 4, posts))
    return person, period, rng.integers(0, 5, (posts, 5)) / 4


@given(
    crowds(),
    st.sampled_from(DIMENSIONS),
    st.sampled_from([0.1, 0.3, 0.5, 1.0]),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["periods", "posts"]),
)
@settings(max_examples=150)
def test_scoring_a_crowd_equals_the_definition_person_by_person(
    crowd, dimension, k, m, literal, over
) -> None:
    person, period, similar = crowd
    collector = PeakCollector(person.max() + 1, 5, literal=literal)
    for first in range(0, len(person), 7):
        part = slice(first, first + 7)
        collector.add(person[part], period[part], similar[part])
    options = ExposureOptions(breadth=k, breadth_over=over, weeks=m, literal=literal)
    risks = collector.finish().risks(TOPICS, dimension, options)
    for who in range(person.max() + 1):
        mine = person == who
        for topic in range(5):
            expected = person_risk(
                similar[mine],
                period[mine],
                topic,
                TOPICS.siblings(topic),
                dimension=dimension,
                k=k,
                m=m,
                breadth_over=over,
                literal=literal,
            )
            assert risks[who, topic] == pytest.approx(expected, nan_ok=True)


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from([UNDATED, 0, 1, 2, 3]),
        st.lists(st.floats(0, 1), min_size=5, max_size=5).map(np.array),
        min_size=1,
    ),
    st.sampled_from(DIMENSIONS),
    st.sampled_from([0.1, 0.3, 1.0]),
    st.integers(1, 4),
    st.sampled_from(["periods", "posts"]),
)
def test_one_persons_risks_for_all_topics_at_once_equal_the_definition(weeks, dimension, k, m, over) -> None:
    options = ExposureOptions(dimension=dimension, breadth=k, breadth_over=over, weeks=m)
    found = PersonRisks(TOPICS, options).risks(weeks)
    rows, periods = np.stack(list(weeks.values())), list(weeks)
    expected = [
        person_risk(rows, periods, at, TOPICS.siblings(at), dimension=dimension, k=k, m=m, breadth_over=over)
        for at in range(len(TOPICS))
    ]
    assert found == pytest.approx(expected, nan_ok=True)


@given(crowds(), st.randoms(use_true_random=False))
def test_the_order_of_posts_does_not_matter(crowd, random) -> None:
    person, period, similar = crowd
    order = list(range(len(person)))
    random.shuffle(order)
    first, second = PeakCollector(person.max() + 1, 5), PeakCollector(person.max() + 1, 5)
    first.add(person, period, similar)
    for at in order:
        second.add(person[[at]], period[[at]], similar[[at]])
    a, b = first.finish(), second.finish()
    assert (a.values == b.values).all()
    assert (a.period == b.period).all()


# ENTROPY and DIFF-PRIV


def held(count: int, k: int, me: bool) -> np.ndarray:
    """One word: `count` of k others have it; the person comes last."""
    return np.array([[True]] * count + [[False]] * (k - count) + [[me]])


def entropy(count: int, k: int, me: bool) -> float:
    return float(entropy_risks(held(count, k, me))[-1])


def test_entropy_of_a_holder_falls_from_its_value_for_a_unique_word_to_nothing() -> None:
    values = [entropy(c, 100, True) for c in range(101)]
    assert values[0] == pytest.approx(math.log2(101 / 100))
    assert round(values[0], 4) == 0.0144
    assert all(a > b for a, b in pairwise(values))
    assert values[100] == 0


def test_lacking_a_word_everybody_has_scores_as_having_one_nobody_has() -> None:
    assert entropy(100, 100, False) == pytest.approx(entropy(0, 100, True))
    both = held(100, 100, False)
    assert entropy_risks(both, present_only=True)[-1] == 0


@given(st.integers(0, 40), st.integers(1, 40), st.booleans())
def test_entropy_is_finite_and_equals_its_definition(count: int, k: int, me: bool) -> None:
    count = min(count, k)
    p, q = count / k, (count + me) / (k + 1)
    expected = (p * math.log2(p / q) if p else 0) + ((1 - p) * math.log2((1 - p) / (1 - q)) if p < 1 else 0)
    assert entropy(count, k, me) == pytest.approx(expected, abs=1e-12)


def test_diff_priv_is_infinite_for_a_unique_word_and_never_zero_for_a_used_one() -> None:
    risks, unique = diff_priv_risks(held(0, 100, True))
    assert risks[-1] == math.inf
    assert unique.tolist() == [0] * 100 + [1]
    risks, _ = diff_priv_risks(held(3, 100, False))
    assert risks[-1] == pytest.approx(math.log2(101 / 100))
    assert (diff_priv_risks(held(0, 100, False))[0] == 0).all()
    assert np.isfinite(diff_priv_risks(held(0, 100, True), smoothed=True)[0]).all()


def test_a_word_half_of_all_have_adds_nothing_above_the_floor_of_those_without_it() -> None:
    with_it, _ = diff_priv_risks(held(60, 100, True))
    without, _ = diff_priv_risks(held(60, 100, False))
    assert with_it[-1] < without[-1]


def test_infinite_diff_priv_is_ordered_by_the_number_of_unique_words() -> None:
    order = diff_priv_order([1.0, math.inf, math.inf, 0.2], [0, 1, 2, 0])
    assert np.argsort(-order).tolist() == [2, 1, 0, 3]


def test_a_crowd_of_one_has_no_others_to_compare_with() -> None:
    assert entropy_risks([[True]]).tolist() == [0]
    assert diff_priv_risks([[True]])[0].tolist() == [0]
