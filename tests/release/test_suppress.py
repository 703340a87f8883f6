"""What is released reaches the threshold, as a whole and without any single value, and can be checked."""

from __future__ import annotations

import dataclasses
import sys
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.release.cases import answers

from incrowd.errors import InputError
from incrowd.measures.release import (
    Budget,
    Certificate,
    HolderIndex,
    Method,
    PatternCounts,
    SuppressOptions,
    kernels,
    measure_q,
    suppress,
    verify,
)
from incrowd.measures.release.solve import p_min
from incrowd.measures.release.spec import PartCertificate


def passes(answer, values, threshold):
    """The rule itself: q of the values, and of the values without each of them."""
    chosen = {value: answer[value] for value in values}
    smaller = [{v: u for v, u in chosen.items() if v != out} for out in chosen] if len(chosen) > 1 else []
    return all(measure_q(some).q >= threshold for some in [chosen, *smaller])


def zipf_answer(seed, users=400, values=120, listed=5):
    draw = np.random.default_rng(seed)
    chance = 1 / np.arange(1, values + 1)
    who = np.repeat(np.arange(users), listed)
    what = draw.choice(values, size=len(who), p=chance / chance.sum())
    return {f"value {v}": sorted(set(who[what == v].tolist())) for v in range(values) if (what == v).any()}


@settings(max_examples=150, deadline=None)
@given(answers, st.integers(1, 4))
def test_what_is_released_passes_and_is_verified(answer, threshold):
    result = suppress(answer, threshold)
    assert sorted(result.released + result.withheld) == sorted(answer)
    assert not result.released or passes(answer, result.released, threshold)
    assert verify(answer, result.certificate).holds


@settings(max_examples=60, deadline=None)
@given(answers, st.integers(2, 3))
def test_small_answers_release_as_many_values_as_possible(answer, threshold):
    released = suppress(answer, threshold).released
    larger = combinations(answer, len(released) + 1)
    assert not any(passes(answer, some, threshold) for some in larger)


def test_the_papers_query_2_must_not_leave_at_q_two():
    # Each film has two holders, yet together q is 1.5; two of the three have q = 2 (D, or C and E).
    answer = {"Titanic": ["C", "D"], "Avatar": ["D", "E"], "Batman": ["C", "E"]}
    result = suppress(answer, 2)
    assert (len(result.released), result.q, result.method) == (2, 2, Method.EXACT)


def test_a_value_that_protects_another_does_not_count():
    # q is 2, but whoever ignores the first value is left with q = 1.5.
    answer = {"x": [2, 3], "y": [0, 2, 3], "z": [1, 3]}
    assert measure_q(answer).q == 2
    assert set(suppress(answer, 2).released) != set(answer)


@pytest.mark.parametrize("seed", range(3))
def test_larger_answers_are_certified_and_nothing_more_could_be_added(seed):
    answer = zipf_answer(seed)
    result = suppress(answer, 10)
    assert result.method is Method.CERTIFIED
    assert len(result.released) >= 10
    assert p_min(PatternCounts.from_holders({v: answer[v] for v in result.released})) >= 10
    assert verify(answer, result.certificate).holds
    for value in result.withheld:
        wider = {v: answer[v] for v in (*result.released, value)}
        assert p_min(PatternCounts.from_holders(wider)) < 10


def test_the_outcome_does_not_depend_on_order_form_or_repetition():
    answer = zipf_answer(7)
    first = suppress(answer, 10)
    shuffled = {value: list(reversed(users)) for value, users in reversed(answer.items())}
    assert suppress(shuffled, 10).released == first.released
    assert suppress(HolderIndex.from_holders(answer), 10).released == first.released
    assert suppress(PatternCounts.from_holders(answer), 10).released == first.released


def test_the_key_decides_the_order_of_what_is_released():
    answer = zipf_answer(3)
    orders = {suppress(answer, 10, options=SuppressOptions(key=key)).released for key in (b"one", b"two")}
    assert len(orders) == 2


def test_thousands_of_values_are_thinned_user_by_user(monkeypatch):
    answer = zipf_answer(5)
    by_pattern = suppress(answer, 10)
    monkeypatch.setattr(sys.modules[suppress.__module__], "MASKED_VALUES", 10)
    monkeypatch.setattr(kernels, "PAIRS_UP_TO", 10)
    by_user = suppress(answer, 10)
    assert verify(answer, by_user.certificate).holds
    assert len(by_user.released) >= len(by_pattern.released) * 0.7


def test_values_that_come_in_pairs_are_released_by_the_local_bound():
    # Nobody lists "rock" or "indie rock" alone next to 12 unrelated tastes: p_min is 0, companions are not.
    answer = {"rock": list(range(40)), "indie rock": list(range(40)), "jazz": list(range(40, 80))}
    answer |= {f"taste {i}": [0, *range(100 * i, 100 * i + 30)] for i in range(1, 13)}
    answer["rock"] += list(range(2000, 2020))
    answer["indie rock"] += list(range(2000, 2020))
    result = suppress(answer, 10)
    assert {"rock", "indie rock"} <= set(result.released)
    assert verify(answer, result.certificate).holds


def test_a_class_smaller_than_the_threshold_releases_nothing():
    answer = {"x": list(range(20))}
    assert suppress(answer, 10, options=SuppressOptions(class_size=20)).released == ("x",)
    small = suppress(answer, 10, options=SuppressOptions(class_size=9))
    assert (small.released, small.q, small.method) == ((), None, Method.NOTHING)


def test_over_budget_nothing_is_released():
    result = suppress(zipf_answer(1), 10, options=SuppressOptions(budget=Budget(seconds=0.0)))
    assert result.released == ()
    assert result.method is Method.NOTHING
    assert result.reason.startswith("over_budget")
    assert len(result.withheld) == len(zipf_answer(1))


def test_an_empty_answer_and_one_of_rare_values_release_nothing():
    assert suppress({}, 10).released == ()
    assert suppress({"x": [1, 2], "y": [3]}, 10).reason.startswith("nothing_fits")


def test_a_threshold_below_one_is_refused():
    with pytest.raises(InputError, match="threshold: expected 1 or more, got 0"):
        suppress({"x": [1]}, 0)


def test_certificates_survive_json():
    answer = {"x": [1, 2, 3], "y": [2, 3, 4, 5], "z": list(range(10, 30))}
    certificate = suppress(answer, 2).certificate
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    with pytest.raises(InputError, match="certificate"):
        Certificate.from_dict({"threshold": 3, "parts": [{"values": ["x"]}]})


def tampered(certificate, **changes):
    part = dataclasses.replace(certificate.parts[0], **changes)
    return dataclasses.replace(certificate, parts=(part, *certificate.parts[1:]))


def test_a_verifier_rejects_every_kind_of_false_certificate():
    answer = {"x": [1, 2, 3], "y": [2, 3, 4, 5]}
    counted = suppress(answer, 2).certificate
    assert counted.parts[0].exact
    assert verify(answer, counted).holds
    larger = counted.parts[0].at_least + 1
    false = {
        "claims a larger q": tampered(counted, at_least=larger),
        "claims a larger q without a value": tampered(counted, without=(larger, larger)),
        "says nothing about single values": tampered(counted, without=()),
        "claims local companions that are not there": tampered(counted, exact=False),
        "asks for less than it needs": dataclasses.replace(counted, threshold=9),
        "names a value twice": dataclasses.replace(counted, parts=counted.parts * 2),
        "names an unknown value": tampered(counted, values=("x", "w")),
        "parts what is connected": dataclasses.replace(
            counted,
            parts=tuple(PartCertificate(values=(v,), at_least=Fraction(3), exact=False) for v in ("x", "y")),
        ),
    }
    for name, certificate in false.items():
        assert not verify(answer, certificate).holds, name


def test_a_verifier_notices_that_the_data_changed():
    answer = zipf_answer(2)
    certificate = suppress(answer, 10).certificate
    victim = certificate.parts[0].values[0]
    fewer = answer | {victim: answer[victim][:9]}
    assert not verify(fewer, certificate).holds


def test_the_verifier_never_names_a_value_or_a_person():
    answer = {"secret taste": ["Anne", "another"], "other": ["another", "third"]}
    claim = PartCertificate(values=("secret taste", "other"), at_least=Fraction(5), exact=False)
    problems = verify(answer, Certificate(threshold=5, parts=(claim,))).problems
    assert problems
    assert not any(word in problem for problem in problems for word in ("secret", "Anne"))


def test_a_blind_choice_does_not_follow_who_is_more_common() -> None:
    """Two values of which one may leave: with one holder more the choice stays with the key."""
    both = list(range(25))
    chosen: dict[bool, set[tuple[object, ...]]] = {True: set(), False: set()}
    for blind in chosen:
        for extra in (0, 1):
            answer = {"x": [*both, *range(30, 36 + extra)], "y": [*both, *range(40, 47 - extra)]}
            options = SuppressOptions(key=b"k", blind=blind)
            chosen[blind].add(suppress(answer, 12, options=options).released)
    assert len(chosen[False]) == 2
    assert len(chosen[True]) == 1
