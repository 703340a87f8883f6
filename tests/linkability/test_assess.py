"""Linking communities of known truth: the dial of the synthetic crowd decides how well it works."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest

from incrowd.crowd import Crowd
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.linkability.assess import assess_person, link_rates
from incrowd.measures.linkability.in_words import certainty_assessment
from incrowd.measures.linkability.measure import Linkability, ReadyLinkability
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.prepared import PreparedCrowd
from incrowd.measures.protocol import AdvisorOptions, Person
from incrowd.measures.sampling import SampledRank
from incrowd.synthetic import posts

LINK = LinkabilityOptions(source="cycling", target="gardening", min_posts=5)


def crowd_with(linkability: float) -> Crowd:
    made = posts(users=60, communities=2, identities=120, posts=9_600, linkability=linkability, seed=3)
    return Crowd.from_frame(made.to_frame())


def first_place(linkability: float) -> tuple[float, float]:
    crowd = crowd_with(linkability)
    source, target = crowd.communities()["community"].to_list()
    rates = link_rates(crowd, LinkabilityOptions(source=source, target=target))
    assert rates.pairs == 60
    return rates.hit_rates[0].hit.low, rates.hit_rates[0].hit.mean


def test_the_dial_decides_how_many_are_linked() -> None:
    low, guessing = first_place(0.0)
    assert low <= 1 / 60  # within the guesser's interval
    assert guessing < 0.1
    half, full = first_place(0.5)[1], first_place(1.0)[1]
    assert guessing < half < full
    assert full > 0.95


def test_rates_carry_baselines_curves_and_json(tiny_crowd: Crowd) -> None:
    rates = link_rates(tiny_crowd, LINK)
    plain = json.loads(json.dumps(rates.to_dict(), allow_nan=False))
    keys = (
        "sources targets pairs precision_at mean_distance match_below_mean anonymity_matching_spearman "
        "anonymity_larger conformity_080 adversary"
    )
    assert set(keys.split()) <= set(plain)
    assert set(plain["precision_at"]) == {"1", "5", "10", "20"}
    first = plain["precision_at_detail"]["1"]
    assert first["guess"] == pytest.approx(1 / plain["targets"])
    assert first["low"] <= first["rate"] <= first["high"]
    recall = plain["curve"]["recall"]
    assert recall == sorted(recall)
    assert recall[-1] == 1.0
    closed, openly = plain["curve"]["precision_closed"][-1], plain["curve"]["precision_open"][-1]
    assert openly <= closed


@pytest.mark.parametrize("model", ["unigram", "indicator", "tfidf", "topics"])
@pytest.mark.parametrize("distance", ["jensen-shannon", "angular-cosine"])
def test_every_model_works_with_every_distance(tiny_crowd: Crowd, model: str, distance: str) -> None:
    options = LinkabilityOptions(source="cycling", target="gardening", model=model, distance=distance)  # type: ignore[arg-type]
    rates = link_rates(tiny_crowd, options)
    assert rates.pairs > 5
    assert all(0 <= rate.hit.mean <= 1 for rate in rates.hit_rates)


def test_a_persons_evidence_adds_up_and_advice_helps(tiny_crowd: Crowd) -> None:
    assessment = assess_person(tiny_crowd, LINK, "alex")
    total = math.fsum(part.contribution for part in assessment.evidence)
    assert total == pytest.approx(1 - assessment.assumptions.parameters["distance"] ** 2, abs=1e-6)
    assert assessment.value >= 1
    assert all(advice.after > advice.before == assessment.value for advice in assessment.advice)
    others = set(tiny_crowd.posts().select("user").unique().collect()["user"]) - {"alex"}
    shown = json.dumps(assessment.to_dict())
    assert not [name for name in others if name in shown]


def test_the_determined_adversary_is_at_least_as_good(tiny_crowd: Crowd) -> None:
    determined = LinkabilityOptions(source="cycling", target="gardening", min_posts=5, adversary="determined")
    strong, plain = link_rates(tiny_crowd, determined), link_rates(tiny_crowd, LINK)
    assert strong.hit_rates[0].hit.mean >= plain.hit_rates[0].hit.mean - 0.05
    assert strong.notes
    person = assess_person(tiny_crowd, determined, "alex")
    assert 0 <= person.value <= 1
    assert math.fsum(part.contribution for part in person.evidence) == pytest.approx(person.explained)


def test_who_is_not_there_is_said_without_names(tiny_crowd: Crowd) -> None:
    with pytest.raises(NotInCrowd, match="it has: "):
        link_rates(tiny_crowd, LinkabilityOptions(source="cycling", target="chess"))
    with pytest.raises(NotInCrowd, match=r"does not have .* posts with words in both .* min_posts"):
        assess_person(tiny_crowd, LINK, "nobody")
    with pytest.raises(InputError, match="lower min_posts"):
        link_rates(tiny_crowd, LinkabilityOptions(source="cycling", target="gardening", min_posts=10_000))


@pytest.mark.parametrize(
    "bad",
    [
        {"model": "bigram"},
        {"distance": "euclid"},
        {"adversary": "god"},
        {"min_posts": 0},
        {"target": "cycling"},
    ],
)
def test_bad_options_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InputError):
        LinkabilityOptions(**({"source": "cycling", "target": "gardening"} | bad))  # type: ignore[arg-type]


def test_without_anybody_in_both_rates_are_undefined() -> None:
    made = posts(users=20, communities=2, identities=20, posts=800, seed=1)
    crowd = Crowd.from_frame(made.to_frame())
    source, target = crowd.communities()["community"].to_list()
    rates = link_rates(crowd, LinkabilityOptions(source=source, target=target))
    assert rates.pairs == 0
    assert np.isnan(rates.hit_rates[0].hit.mean)
    assert rates.to_dict()["precision_at"]["1"] is None
    assert rates.sentence().startswith("Cannot tell")


@pytest.mark.parametrize(("others", "chosen"), [(6, ("large", "small")), (2, ("small", "large"))])
def test_nobody_is_looked_for_where_hardly_anybody_writes(others: int, chosen: tuple[str, str]) -> None:
    """The smaller community has more to go by, unless too few people there have enough posts."""
    members = {"large": [f"p{n}" for n in range(20)], "small": [f"p{n}" for n in range(others)]}
    rows = [
        (who, where, f"word{n} and tea{n % 7} by {who}", n)
        for where, names in members.items()
        for who in ["me", *names]
        for n in range(12)
    ]
    rows += [(f"few{n}", "small", "one post", n) for n in range(9)]
    crowd = Crowd.from_frame(pl.DataFrame(rows, schema=["user", "community", "text", "time"], orient="row"))
    prepared = PreparedCrowd.of(crowd)
    ready = ReadyLinkability(Linkability(), prepared, AdvisorOptions(min_posts=10))
    found = ready.most_to_go_by(Person("me", prepared))
    assert found is not None
    assert (found.source, found.target) == chosen


@pytest.mark.parametrize(("sure", "said"), [(0.03, "3% sure"), (0.5, "50% sure")])
def test_who_is_no_surer_than_a_guess_is_said_to_guess(sure: float, said: str) -> None:
    told = certainty_assessment(
        LINK, sure, targets=9, rank=SampledRank(1, None, 5), pairs=5, practice=0, data_hash=""
    ).meaning
    assert said in told
    assert ("no more than a guess" in told) == (sure < 1 / 9)
    assert ("a guess gives 11%" in told) == (sure > 1 / 9)
