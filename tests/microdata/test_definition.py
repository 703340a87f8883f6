"""The formulas, by hand and by property."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InputError
from incrowd.measures.microdata.definition import (
    expected_others,
    expected_set_size,
    fit_probability,
    fit_weights,
    known_sizes,
    privacy_score,
    risk_raw,
)
from incrowd.measures.microdata.spec import (
    ADVERSARIES,
    GroupSpec,
    Knowledge,
    ProfileFilter,
    ReleaseSpec,
    ScoreSpec,
)

sets_of_items = st.sets(st.integers(0, 12), min_size=1, max_size=9)


def test_raw_risk_is_the_share_of_rare_items_plus_the_logarithm_of_all() -> None:
    assert risk_raw(10, 5) == pytest.approx(0.5 + math.log(10))
    assert risk_raw(10, 5, log_base=2) == pytest.approx(0.5 + math.log2(10))
    assert math.isnan(float(risk_raw(0, 0)))


def test_the_riskiest_scores_0_and_the_least_risky_1() -> None:
    raw = risk_raw([8, 100, 1000], [0, 50, 1000])
    score = privacy_score(raw, raw.min(), raw.max())
    assert score[0] == 1
    assert score[-1] == 0
    assert np.all(np.diff(score) < 0)


def test_one_raw_value_for_all_gives_no_score() -> None:
    assert np.isnan(privacy_score([2.0, 2.0], 2.0, 2.0)).all()


def test_eight_items_round_half_up_to_one_or_two_known_items() -> None:
    # 5..20 % of 8 is 0.4 to 1.6 items: half-up gives 0 twice (raised to 1), 1 for 7..18 %, 2 for 19 and 20 %.
    sizes, weights = known_sizes(8, Knowledge())
    assert dict(zip(sizes.tolist(), weights.tolist(), strict=True)) == {1: 14 / 16, 2: 2 / 16}
    literal = dict(zip(*(part.tolist() for part in known_sizes(8, Knowledge(minimum=0))), strict=True))
    assert literal[0] == pytest.approx(2 / 16)  # 12.5 % of the draws know nothing
    floor = dict(
        zip(*(part.tolist() for part in known_sizes(8, Knowledge(rounding="floor", minimum=0))), strict=True)
    )
    assert floor[0] == pytest.approx(8 / 16)  # 50 %


def test_a_mixture_of_shares_and_numbers_keeps_its_weights() -> None:
    sizes, weights = known_sizes(100, Knowledge(percents=(10,), items=(3, 500), weights=(2, 1, 1)))
    assert dict(zip(sizes.tolist(), weights.tolist(), strict=True)) == {3: 0.25, 10: 0.5, 100: 0.25}


def test_four_people_on_paper() -> None:
    # u = {1,2,3,4}; two known items of six pairs: {1,2} fits u and v, {3,4} fits u and w, the rest u alone.
    crowd = [{1, 2, 3, 4}, {1, 2, 9}, {3, 4}, {7}]
    assert expected_set_size(crowd[0], crowd, Knowledge(percents=(), items=(2,))) == pytest.approx(
        (2 + 2 + 4) / 6
    )
    assert expected_set_size(crowd[0], crowd, Knowledge(percents=(100,))) == pytest.approx(1)


def test_knowing_nothing_everybody_fits() -> None:
    nothing = Knowledge(percents=(1e-9,), rounding="floor", minimum=0)
    assert expected_others([0, 1, 2], 8, nothing) == pytest.approx(3)


@given(
    mine=sets_of_items,
    others=st.lists(sets_of_items, max_size=6),
    known=st.integers(1, 5),
    wrong=st.integers(0, 2),
)
@settings(max_examples=60, deadline=None)
def test_the_closed_form_is_the_average_over_all_samples(
    mine: set[int], others: list[set[int]], known: int, wrong: int
) -> None:
    known = min(known, len(mine))
    samples = list(itertools.combinations(sorted(mine), known))
    crowd = [mine, *others]
    fits = sum(len(set(sample) - other) <= wrong for sample in samples for other in crowd)
    knowledge = Knowledge(percents=(), items=(known,), wrong=wrong)
    assert expected_set_size(mine, crowd, knowledge) == pytest.approx(fits / len(samples))


@given(items=st.integers(1, 300), wrong=st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_weights_are_probabilities_that_grow_with_the_overlap(items: int, wrong: int) -> None:
    weights = fit_weights(items, Knowledge(wrong=wrong))
    assert weights[-1] == pytest.approx(1)
    assert np.all(np.diff(weights) >= -1e-12)
    assert np.all((weights >= 0) & (weights <= 1 + 1e-12))


def test_rounding_down_leaves_more_people_and_rounding_up_fewer() -> None:
    crowd = [set(range(k, k + 11)) for k in range(8)]
    down, middle, up = (
        expected_set_size(crowd[0], crowd, Knowledge(rounding=rule)) for rule in ("floor", "half-up", "ceil")
    )
    assert down > middle > up


def test_huge_profiles_neither_overflow_nor_vanish() -> None:
    assert fit_probability([5000, 4999], 5000, 1000).tolist() == pytest.approx([1.0, 0.8])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Knowledge(percents=()), "at least one"),
        (lambda: Knowledge(percents=(0,)), "0 < p <= 100"),
        (lambda: Knowledge(items=(0,)), "at least 1"),
        (lambda: Knowledge(rounding="up"), "half-up"),  # type: ignore[arg-type]
        (lambda: Knowledge(weights=(1, 2)), "16 weights"),
        (lambda: ScoreSpec(rare_fraction=2), "share"),
        (lambda: GroupSpec(fewest=5, most=2), "fewest <= most"),
        (lambda: ReleaseSpec(crowd=0), "1 or more"),
        (lambda: ProfileFilter(fewest=9, most=8), "at least as many as the fewest, 9"),
    ],
)
def test_senseless_options_are_refused_with_what_would_make_sense(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


def test_a_share_threshold_grows_with_the_crowd() -> None:
    assert ScoreSpec(rare_fraction=0.01).threshold(13_265) == 133
    assert ScoreSpec().threshold(13_265) == 100


def test_knowledge_survives_json() -> None:
    for one in ADVERSARIES.values():
        assert Knowledge.from_dict(one.knowledge.to_dict()) == one.knowledge


def test_every_adversary_has_a_name_in_plain_words() -> None:
    for name, one in ADVERSARIES.items():
        assert one.name == name
        assert one.words.startswith("someone who knows")
    assert Knowledge().words == "someone who knows 5–20 % of your items"
