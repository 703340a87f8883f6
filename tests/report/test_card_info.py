"""What `incrowd card info` says of a card: the right numbers, and bounds that hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from incrowd import default_card
from incrowd.cards.card import Card
from incrowd.cards.noise import BLUR, library
from incrowd.report.card_info import advantage, described


def test_every_heading_says_something_and_the_numbers_are_the_card_s() -> None:
    card = default_card()
    told = dict(described(card))
    assert list(told) == [
        "What it is",
        "Whom it is of",
        "What protects them",
        "How good it is",
        "What it cannot tell",
    ]
    assert all(told.values())
    whom = " ".join(told["Whom it is of"])
    assert "about 3,500 people" in whom
    assert "26,981 words" in whom
    protected = " ".join(told["What protects them"])
    assert "epsilon 3" in protected
    assert "65% of cases" in protected
    assert len(told["What it cannot tell"]) == len(card.head["left_out"]) + 2


def test_a_card_is_described_in_one_order() -> None:
    one = {"spearman": 0.5, "median_exact": 1, "median_card": 2, "reach": 0.1}
    told_in = []
    for order in (1, -1):
        tried = dict([("b", one), ("a", one)][::order])
        facts = dict([("people", 5), ("items", 3), ("accuracy", tried)][::order])
        measures = dict([("unknown", facts), ("another", {"people": 4})][::order])
        told_in.append(described(Card.made({"communities": [], "measures": measures}, [])))
    assert told_in[0] == told_in[1]
    told = dict(told_in[0])
    assert told["Whom it is of"] == ["For another: people 4.", "For unknown: items 3, people 5."]
    assert [line.split(":")[0] for line in told["How good it is"]] == [
        "For another",
        "For unknown, a",
        "For unknown, b",
    ]


def test_somebody_who_knows_all_but_one_reaches_what_is_said_against_blurred_words() -> None:
    """Two Gaussians, one standard deviation BLUR, one apart: the best test is right so much more often."""
    rng = np.random.default_rng(0)
    seen = rng.standard_normal(400_000) * BLUR
    line = 0.5
    found = float(((seen + 1) > line).mean() - (seen > line).mean())
    assert found == pytest.approx(advantage(None), abs=0.004)


def test_a_card_of_items_says_nothing_about_words() -> None:
    card = Card.made({"communities": [], "measures": {"microdata": {"people": 1500}}}, [])
    protected = " ".join(dict(described(card))["What protects them"])
    assert "By what it says about words" not in protected
    assert "this one says nothing about any" in protected


@given(st.floats(0.1, 10.0))
def test_a_private_card_s_bound_holds_for_gaussian_noise(epsilon: float) -> None:
    """Noise that spends the whole budget: its advantage, in closed form, is below what is said."""
    delta = 1e-6
    rho = library().most_rho(epsilon, delta)
    reached = 2 * norm.cdf(math.sqrt(2 * rho) / 2) - 1
    said = advantage({"epsilon": epsilon, "delta": delta, "accountant": {"rho": rho}})
    assert reached <= said <= 1.0
