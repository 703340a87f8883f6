"""Policies, rules, publication, critical sets and words, on tables small enough to check by hand."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.belief.making import random_table, table_of

from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.belief.adversary import BeliefAdversary, learn_signs, unlinkable
from incrowd.measures.belief.assess import steps
from incrowd.measures.belief.critical import critical_sets, what_if_published
from incrowd.measures.belief.crowd_belief import CrowdBelief
from incrowd.measures.belief.engine import ExplicitBelief
from incrowd.measures.belief.network import NetworkBelief
from incrowd.measures.belief.policy import (
    Generalise,
    Perturb,
    Policy,
    Publication,
    Publish,
    Requirement,
    Withhold,
    load_policy,
    read_policy,
)
from incrowd.measures.belief.rules import InferenceRule, WorldKnowledge, learn_rules, load_rules, rules_toml
from incrowd.profiles.attributes import HIDDEN, AttributeSpace, SeenAttributes

PEOPLE = table_of(
    AttributeSpace.of({"city": ["A", "B"], "job": ["nurse", "smith"], "faith": ["none", "sun", "tree"]}),
    np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 1], [1, 0, 2], [1, 0, 2], [1, 1, 0], [1, HIDDEN, 2]]),
)


def seen(table=PEOPLE, **shown: str) -> SeenAttributes:
    return SeenAttributes(table.space, table.space.encode(shown))


def hide(values: dict[str, str], sigma: float, **more: bool) -> Policy:
    return Policy(requirements=(Requirement(values=values, sigma=sigma, **more),))


def test_a_requirement_is_judged_value_by_value_or_jointly() -> None:
    adversary = BeliefAdversary(CrowdBelief.learn(PEOPLE, 0.0))
    both = {"city": "A", "faith": "sun"}
    each = Requirement(values=both, sigma=0.5).belief(adversary, seen())
    np.testing.assert_allclose(each[0], [4 / 8, 3 / 8])
    joint = Requirement(values=both, sigma=0.5, joint=True).belief(adversary, seen())
    np.testing.assert_allclose(joint[0], [3 / 8])


def test_any_value_means_the_most_believed_one() -> None:
    adversary = BeliefAdversary(CrowdBelief.learn(PEOPLE, 0.0))
    assert Requirement(values={"faith": "*"}, sigma=0.5).belief(adversary, seen(city="A"))[0, 0] == 3 / 4


@given(st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_a_laxer_sigma_never_breaks_a_policy(low: float, high: float) -> None:
    adversary = BeliefAdversary(CrowdBelief.learn(PEOPLE, 0.1))
    low, high = sorted((low, high))
    strict = hide({"faith": "sun"}, low).excess(adversary, seen(city="A"))[0]
    assert not (strict <= 0 < hide({"faith": "sun"}, high).excess(adversary, seen(city="A"))[0])


def test_a_lone_rule_gives_exactly_its_confidence() -> None:
    for belief in (CrowdBelief.learn(PEOPLE, 0.1), NetworkBelief.learn(PEOPLE)):
        rule = InferenceRule(conditions=(("city", "A"),), attribute="faith", value="tree", confidence=0.7)
        adversary = BeliefAdversary(belief, WorldKnowledge.over(belief, [rule]))
        assert adversary.posteriors([2], seen(city="A"))[0][0, 2] == pytest.approx(0.7)
        before = belief.posteriors([2], seen(city="B"))[0]
        np.testing.assert_allclose(adversary.posteriors([2], seen(city="B"))[0], before)


def test_a_certain_rule_lets_the_next_one_fire() -> None:
    belief = CrowdBelief.learn(PEOPLE, 0.1)
    rules = [
        InferenceRule(conditions=(("job", "nurse"),), attribute="faith", value="sun", confidence=0.9),
        InferenceRule(conditions=(("city", "B"),), attribute="job", value="nurse"),
    ]
    after = WorldKnowledge.over(belief, rules).apply(seen(city="B"))
    assert set(after.soft) == {1, 2}
    np.testing.assert_allclose(belief.posteriors([1], after)[0], [[1.0, 0.0]])


def test_a_trait_outside_the_crowd_fires_only_for_those_who_have_it() -> None:
    belief = CrowdBelief.learn(PEOPLE, 0.1)
    rule = InferenceRule(
        conditions=(("community:forge", "yes"),), attribute="job", value="smith", confidence=0.8
    )
    with_it = BeliefAdversary(belief, WorldKnowledge.over(belief, [rule], [("community:forge", "yes")]))
    without = BeliefAdversary(belief, WorldKnowledge.over(belief, [rule]))
    assert with_it.posteriors([1], seen())[0][0, 1] == pytest.approx(0.8)
    np.testing.assert_allclose(without.posteriors([1], seen())[0], belief.posteriors([1], seen())[0])


def test_learnt_rules_count_support_and_confidence() -> None:
    rules = {
        (r.conditions, r.attribute, r.value): r
        for r in learn_rules(PEOPLE, min_support=2, min_confidence=0.7)
    }
    rule = rules[(("city", "A"),), "faith", "sun"]
    assert (rule.support, rule.confidence) == (3, 0.75)


def test_rules_survive_toml(tmp_path: Path) -> None:
    rules = learn_rules(PEOPLE, min_support=1, min_confidence=0.5)
    assert rules
    path = tmp_path / "rules.toml"
    path.write_text(rules_toml(rules), "utf-8")
    assert list(load_rules(path)) == rules


def test_decides_takes_the_commonest_value(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\nattribute = "city"\ndecides = "faith"\n', "utf-8")
    found = {rule.conditions[0][1]: (rule.value, rule.confidence) for rule in load_rules(path, PEOPLE)}
    assert found == {"A": ("sun", 1.0), "B": ("tree", 1.0)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule]]\nif = {a = 'x'}\nthen = {b = 'y', c = 'z'}", "rule 1.*one attribute"),
        ("[[rule]]\nif = {a = 'x'}\nthen = {b = 'y'}\nconfidence = 2", "rule 1.*0 to 1"),
        ("[[rule]]\nif = {a = 'x'}\nthen = {a = 'y'}", "both condition and conclusion"),
        ("[rule]\nif = 3", "two brackets"),
        ("not toml", "no TOML"),
    ],
)
def test_a_wrong_rule_is_explained(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=said):
        load_rules(path)


def test_a_policy_is_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        """
        [publish]
        withhold = ["faith"]
        perturb = { job = 0.8 }
        generalise = { city = { north = ["A", "B"] } }
        [[require]]
        attribute = "faith"
        own = true
        sigma = 0.4
        [[require]]
        all = { city = "A", job = "smith" }
        joint = true
        sigma = 0.2
        [[require]]
        same_user = ["one", "two"]
        sigma = 0.1
        """,
        "utf-8",
    )
    policy = load_policy(path, {"faith": "sun"})
    assert policy.requirements[0] == Requirement(values={"faith": "sun"}, sigma=0.4)
    assert policy.requirements[1].joint
    assert policy.links[0].communities == ("one", "two")
    assert isinstance(policy.publication.ways["faith"], Withhold)
    assert policy.publication.ways["job"] == Perturb(0.8)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "requires nothing"),
        ({"require": [{"attribute": "a"}]}, "'sigma' is missing"),
        ({"require": [{"attribute": "a", "sigma": 3}]}, "from 0 to 1"),
        ({"require": [{"attribute": "a", "sigma": 0.3, "own": True}]}, "crowd does not hold"),
        ({"require": [{"attribut": "a", "sigma": 0.3}]}, "unknown 'attribut'"),
        ({"requires": []}, "unknown part 'requires'"),
        ({"require": [{"attribute": "a", "sigma": 0.3}], "publish": {"hide": []}}, "knows withhold"),
    ],
)
def test_a_wrong_policy_is_explained(content: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_policy(content, {})


def test_an_unknown_value_is_refused_with_a_hint() -> None:
    with pytest.raises(NotInCrowd, match="Did you mean 'tree'"):
        PEOPLE.space.code("faith", "trees")
    with pytest.raises(NotInCrowd, match="it has: city, job, faith"):
        PEOPLE.space.place("zip")


def test_perturbing_and_generalising_by_hand() -> None:
    values = ("x", "y", "z")
    np.testing.assert_allclose(Perturb(0.8).likelihood(values, "y"), [0.1, 0.8, 0.1])
    np.testing.assert_allclose(Generalise({"g": ("x", "z")}).likelihood(values, "g"), [1, 0, 1])
    np.testing.assert_allclose(Publish().likelihood(values, "z"), [0, 0, 1])
    np.testing.assert_allclose(Withhold().likelihood(values, ""), [1, 1, 1])


@given(st.floats(0, 1), st.integers(0, 2))
@settings(max_examples=30, deadline=None)
def test_what_a_way_may_show_has_probability_one_in_all(keep: float, true: int) -> None:
    values = ("x", "y", "z")
    for way, shown in (
        (Perturb(keep), values),
        (Generalise({"g": ("x", "y")}), ("g", "z")),
        (Publish(), values),
    ):
        assert sum(way.likelihood(values, one)[true] for one in shown) == pytest.approx(1)


def test_perturbed_values_come_as_often_as_stated() -> None:
    rng = np.random.default_rng(0)
    shown = [Perturb(0.7).show("x", ("x", "y", "z"), rng) for _ in range(4000)]
    assert shown.count("x") / 4000 == pytest.approx(0.7, abs=3 * np.sqrt(0.21 / 4000))


def test_a_publication_must_be_true_somewhere() -> None:
    nothing = Publication(ways={"city": Withhold(), "job": Perturb(0.9)})
    with pytest.raises(InputError, match="at least one attribute must be shown"):
        nothing.show({"city": "A", "job": "smith"}, PEOPLE.space)
    assert nothing.show({"city": "A", "faith": "sun"}, PEOPLE.space) == {"faith": "sun"}


@given(st.integers(0, 10**6), st.floats(0.2, 0.9))
@settings(max_examples=25, deadline=None)
def test_critical_sets_are_all_the_minimal_ones(seed: int, sigma: float) -> None:
    table = random_table(seed, people=30, sizes=(3, 2, 3, 2, 3), missing=0.1)
    belief, evidence = (
        CrowdBelief.learn(table, 0.02),
        SeenAttributes(table.space, np.array([[HIDDEN, 1, 2, 0, 1]])),
    )
    adversary, policy = BeliefAdversary(belief), hide({"a0": "*"}, sigma)
    found = critical_sets(adversary, evidence, policy, largest=3)
    repairing = []
    for size in range(1, 4):
        for places in combinations([1, 2, 3, 4], size):
            hidden = np.zeros((1, 5), dtype=bool)
            hidden[0, list(places)] = True
            if policy.excess(adversary, evidence.hiding(hidden))[0] <= 0:
                repairing.append(set(places))
    minimal = [one for one in repairing if not any(other < one for other in repairing)]
    if policy.excess(adversary, evidence)[0] <= 0:
        assert not found.sets
    else:
        assert {frozenset(one.attributes) for one in found.sets} == {
            frozenset(f"a{p}" for p in one) for one in minimal
        }
        assert [one.loss for one in found.sets] == sorted(one.loss for one in found.sets)


def test_a_greedy_set_states_its_gap() -> None:
    """Three attributes that all repeat the secret: only withholding all three helps, and two were searched."""
    weights = np.zeros((2, 2, 2, 2, 2))
    weights[0, 0, 0, 0], weights[1, 1, 1, 1] = 0.25, 0.25
    belief = ExplicitBelief.over({name: ["0", "1"] for name in "sabcd"}, weights)
    evidence = SeenAttributes(belief.space, belief.space.encode({"a": "1", "b": "1", "c": "1", "d": "0"}))
    found = critical_sets(BeliefAdversary(belief), evidence, hide({"s": "1"}, 0.6), largest=2)
    assert found.sets == ()
    assert found.greedy is not None
    assert set(found.greedy.attributes) == {"a", "b", "c"}
    assert found.gap == 0


def test_what_if_by_hand() -> None:
    belief = BeliefAdversary(CrowdBelief.learn(PEOPLE, 0.0))
    truth = {"city": "A", "job": "smith", "faith": "sun"}
    (found,) = what_if_published(belief, seen(city="A"), hide({"faith": "sun"}, 0.5), truth)
    assert (found.attribute, found.before, found.after) == ("job", 0.75, 1.0)
    assert "rises from 0.75 to 1.00" in found.sentence()


def test_the_steps_add_up_to_the_change_of_belief() -> None:
    belief = CrowdBelief.learn(PEOPLE, 0.1)
    requirement = Requirement(values={"faith": "sun"}, sigma=0.5)
    evidence = seen(city="A", job="smith")
    rule = InferenceRule(conditions=(("language", "old"),), attribute="faith", value="sun", confidence=0.8)
    adversary = BeliefAdversary(belief, WorldKnowledge.over(belief, [rule], [("language", "old")]))
    parts = steps(adversary, evidence, requirement)
    after = requirement.belief(adversary, evidence)[0, 0]
    before = requirement.belief(BeliefAdversary(belief), seen())[0, 0]
    assert sum(part.contribution for part in parts) == pytest.approx(after - before)
    assert [part.what for part in parts] == ["your city", "your job", "what else is known of you"]


def test_two_profiles_are_as_linkable_as_the_surer_direction() -> None:
    link = unlinkable([0.1, 0.2, 0.2], 0, [0.3, 0.1], 0, sigma=0.5)
    assert link.posterior == pytest.approx(0.5)
    assert link.prior == 0.5
    assert link.unlinkable
    assert not unlinkable([0.0, 0.2], 0, [0.3, 0.1], 0, sigma=0.5).unlinkable


def test_words_that_go_with_a_value_suggest_it() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=200)
    rate = np.where(codes[:, None] == 1, [[0.6, 0.2, 0.5]], [[0.2, 0.6, 0.5]])
    used = sp.csr_matrix((rng.random((200, 3)) < rate).astype(float))
    signs = learn_signs(used, codes, 2)
    assert signs is not None
    likelihood = signs.likelihood(
        sp.csr_matrix([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), np.array([HIDDEN, HIDDEN])
    )
    assert likelihood[0, 1] > 2 * likelihood[0, 0]
    assert likelihood[1, 0] > 2 * likelihood[1, 1]


def test_words_that_say_nothing_are_cooled_down() -> None:
    """Noise from many words would make naive Bayes certain; leaving each person out shows that it is noise."""
    rng = np.random.default_rng(1)
    codes = rng.integers(2, size=400)
    used = sp.csr_matrix((rng.random((400, 500)) < 0.3).astype(float))
    signs = learn_signs(used, codes, 2)
    assert signs is not None
    likelihood = signs.likelihood(used, codes)
    odds = likelihood.max(axis=1) / likelihood.sum(axis=1)
    assert odds.mean() < 0.6


def test_too_few_writers_suggest_nothing() -> None:
    assert learn_signs(sp.csr_matrix(np.ones((3, 2))), np.array([0, 0, 1]), 2) is None
