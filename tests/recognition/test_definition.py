from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.measures.recognition.definition import halves, posts_it_takes
from incrowd.measures.recognition.history import Judged
from incrowd.statistics import expected_rank, first_place, unseen_above


def test_whoever_is_alone_at_the_top_is_named_and_ties_are_broken_by_chance() -> None:
    assert first_place([0, 0, 0, 1], [0, 1, 3, 0]).tolist() == [1.0, 0.5, 0.25, 0.0]


def test_people_who_were_not_compared_make_it_less_sure() -> None:
    assert first_place([0], [0], [0.7])[0] == pytest.approx(math.exp(-0.7))
    assert expected_rank([2], [1], [3.0])[0] == 6.5


def test_unseen_people_are_expected_from_how_scores_fall_off() -> None:
    rng = np.random.default_rng(0)
    population = rng.exponential(size=(200, 20_000))
    sample = population[:, :1_000]
    best = np.sort(sample, axis=1)[:, -30:]
    own = np.full(200, 8.0)
    expected = unseen_above(own, best, 1_000, 19_000)
    happened = (population[:, 1_000:] > 8.0).sum(axis=1)
    assert expected.mean() == pytest.approx(happened.mean(), rel=0.25)


def test_nobody_is_unseen_when_everybody_was_compared() -> None:
    assert not unseen_above(np.array([1.0]), np.array([[0.1, 0.2]]), 10, 0).any()


@given(st.integers(0, 10_000))
def test_halves_hold_all_posts_and_the_earlier_is_not_smaller(posts: int) -> None:
    earlier, later = halves(posts)
    assert earlier + later == posts
    assert 0 <= earlier - later <= 1


def test_how_many_posts_it_takes_lies_between_those_tried() -> None:
    takes = posts_it_takes({1: 0.1, 3: 0.3, 10: 0.7, 30: 0.9})
    # log odds -0.847 at ln 3 and 0.847 at ln 10: the middle is at exp((ln 3 + ln 10) / 2) = 5.48
    assert takes == 6


def test_it_takes_more_than_was_tried_or_cannot_be_told() -> None:
    assert posts_it_takes({1: 0.01, 3: 0.02}) == math.inf
    assert posts_it_takes({}) == math.inf
    assert posts_it_takes({1: math.nan, 3: 0.6}) == 3


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.integers(0, 3), st.floats(0, 1))
def test_being_more_recognisable_never_takes_more_posts(ps: list[float], place: int, up: float) -> None:
    more = list(ps)
    more[place] = max(more[place], up)
    known = (1, 3, 10, 30)
    assert posts_it_takes(dict(zip(known, more, strict=True))) <= posts_it_takes(
        dict(zip(known, ps, strict=True))
    )


def test_the_backtest_by_hand() -> None:
    judged = Judged(
        people=np.arange(4),
        happened=np.array([1.0, 0.0, 0.6, 0.1]),
        predicted=np.array([0.2, 0.4, 0.8, 0.1]),
        posts=np.array([2, 10, 12, 30]),
    )
    assert judged.auc == pytest.approx(
        3 / 4
    )  # recognised: the first and the third; one of four pairs is wrong
    assert judged.auc_of_many_posts == 1.0  # without the first, who wrote two posts
