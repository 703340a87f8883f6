"""The three engines agree where they should."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.belief.making import random_evidence, random_table, spelled_out, table_of, written_out

from incrowd.measures.belief import crowd_belief, crowd_kernel
from incrowd.measures.belief.crowd_belief import CELLS, CrowdBelief, Tries, combined, grouped
from incrowd.measures.belief.engine import BeliefModel, joint_probability
from incrowd.measures.belief.network import NetworkBelief
from incrowd.profiles.attributes import HIDDEN, AttributeSpace, AttributeTable, SeenAttributes
from incrowd.synthetic import SyntheticAttributes


@pytest.fixture(autouse=True, scope="module", params=["compiled", "plain"])
def kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    """Weigh small crowds with the compiled loops, and with those for a few people."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "compiled":
            patch.setattr(crowd_belief, "FEW_CELLS", 0)
        yield


def test_the_plain_loop_equals_the_compiled_one_bit_by_bit() -> None:
    rng = np.random.default_rng(0)
    starts = np.array([0, 3, 7, 9, 14])
    codes = (rng.integers(0, np.diff(starts), (500, 4)) + starts[:-1]).astype(np.uint32)
    weights, factors = rng.random(500), rng.random((6, 14)) * (rng.random((6, 14)) < 0.8)
    plain, targets, own = np.array([1]), np.array([0, 2, 3]), np.array([HIDDEN, 0, 17, 499, HIDDEN, 3])
    fixed = codes, weights, factors, plain, targets, own
    compiled, few = np.zeros_like(factors), np.zeros_like(factors)
    crowd_kernel.weigh(*fixed, compiled)
    crowd_belief.weigh_plainly(*fixed, few)
    assert np.array_equal(compiled, few)


@pytest.mark.parametrize("seed", range(3))
def test_tries_of_a_smoothing_equal_plain_guesses_bit_by_bit(seed: int) -> None:
    """Attributes of up to 300 values, some not given, whole rows left out; one smoothing changes after the other."""
    rng = np.random.default_rng(seed)
    sizes = [2, 5, 8, 17, 130, 300]
    space = AttributeSpace.of({f"a{size}": [str(value) for value in range(size)] for size in sizes})
    codes = np.where(rng.random((90, 6)) < 0.15, HIDDEN, rng.integers(0, sizes, (90, 6))).astype(np.int32)
    codes[:, 1] = codes[:, 0]
    table = AttributeTable(space, codes, np.arange(90).astype(str).astype(object), "hash")
    belief = CrowdBelief.learn(table, 0.9)
    own = np.sort(rng.permutation(90)[:40])
    evidence = SeenAttributes(space, codes[own].astype(np.int64), {}, own)
    targets = list(range(6))
    assert belief.weighs_grouped(targets, evidence)
    tries, smoothing = Tries(belief, evidence, targets), belief.smoothing
    for _ in range(12):
        smoothing = smoothing.copy()
        smoothing[rng.integers(6)] = rng.choice(crowd_belief.GRID)
        plain = crowd_belief._score(replace(belief, smoothing=smoothing), evidence, targets)
        assert tries.score(smoothing) == plain


def _agree(one: BeliefModel, other: BeliefModel, evidence: SeenAttributes) -> None:
    np.testing.assert_allclose(one.mass(evidence), other.mass(evidence), rtol=1e-12, atol=1e-15)
    targets = range(len(one.space.attributes))
    for mine, theirs in zip(
        one.posteriors(targets, evidence), other.posteriors(targets, evidence), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.4, 1.0]))
@settings(max_examples=25, deadline=None)
def test_the_crowd_equals_its_spelled_out_distribution(seed: int, smoothing: float) -> None:
    table = random_table(seed)
    belief = CrowdBelief.learn(table, smoothing)
    _agree(belief, spelled_out(belief, table), random_evidence(table.space, seed + 1))


@given(st.integers(0, 10**6), st.integers(0, 39))
@settings(max_examples=15, deadline=None)
def test_a_person_who_is_left_out_is_left_out(seed: int, row: int) -> None:
    table = random_table(seed)
    belief = CrowdBelief.learn(table, 0.1)
    evidence = random_evidence(table.space, seed, people=1)
    own = SeenAttributes(table.space, evidence.seen, evidence.soft, np.array([row]))
    without = spelled_out(belief, table, without=row)
    np.testing.assert_allclose(belief.mass(own), without.mass(evidence), rtol=1e-12)
    np.testing.assert_allclose(
        belief.posteriors([1], own)[0], without.posteriors([1], evidence)[0], atol=1e-12
    )


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_a_focused_crowd_answers_the_same(seed: int) -> None:
    table = random_table(seed, sizes=(3, 2, 4, 3))
    belief = CrowdBelief.learn(table, 0.1)
    person = np.array([[HIDDEN, 1, 2, 0]])
    evidence = SeenAttributes(table.space, person, {}, np.array([3]))
    hidden = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
    small, focused = belief.focused(evidence, [0])
    assert len(small.codes) <= len(belief.codes)
    whole = belief.posteriors([0], evidence.hiding(hidden))[0]
    np.testing.assert_allclose(small.posteriors([0], focused.hiding(hidden))[0], whole, atol=1e-12)


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_a_learnt_network_equals_its_multiplied_out_tables(seed: int) -> None:
    network = NetworkBelief.learn(random_table(seed, sizes=(3, 2, 4, 3)))
    _agree(network, written_out(network), random_evidence(network.space, seed))
    _agree(network, written_out(network), random_evidence(network.space, seed, people=1))


def test_a_given_network_with_two_parents_equals_its_multiplied_out_tables() -> None:
    rng = np.random.default_rng(3)
    space = AttributeSpace.of({"a": ["0", "1"], "b": ["0", "1", "2"], "c": ["0", "1"], "d": ["0", "1", "2"]})
    tables = (
        rng.dirichlet(np.ones(2)),
        rng.dirichlet(np.ones(3), 2),
        rng.dirichlet(np.ones(2), (2, 3)),
        rng.dirichlet(np.ones(3), 2),
    )
    network = NetworkBelief(space, ((), (0,), (0, 1), (2,)), tables)
    for people in (1, 6):
        _agree(network, written_out(network), random_evidence(space, 5, people))


def test_the_known_network_of_made_up_people_gives_its_own_tables_back() -> None:
    truth = SyntheticAttributes(users=10).truth
    network = NetworkBelief.given(truth.nodes)
    node = truth.by_name["income"]
    shown = {"degree": "master", "age": "26-35"}
    evidence = SeenAttributes(network.space, network.space.encode(shown))
    row = truth.by_name["degree"].values.index("master") * 6 + truth.by_name["age"].values.index("26-35")
    np.testing.assert_allclose(
        network.posteriors([network.space.place("income")], evidence)[0][0], node.table[row]
    )


def test_both_learnt_beliefs_recover_a_strong_rule() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(3, size=3000)
    b = np.where(rng.random(3000) < 0.9, a, rng.integers(3, size=3000))
    table = table_of(
        AttributeSpace.of({"a": ["x", "y", "z"], "b": ["x", "y", "z"]}), np.stack([a, b], axis=1)
    )
    evidence = SeenAttributes(table.space, table.space.encode({"a": "y"}))
    for belief in (CrowdBelief.learn(table, 0.01), NetworkBelief.learn(table)):
        assert belief.posteriors([1], evidence)[0][0, 1] == pytest.approx(0.9333, abs=0.03)


def test_the_best_tree_follows_the_strongest_links() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(3, size=2000)
    b = np.where(rng.random(2000) < 0.9, a, rng.integers(3, size=2000))
    c = np.where(rng.random(2000) < 0.9, b, rng.integers(3, size=2000))
    space = AttributeSpace.of({name: ["x", "y", "z"] for name in "abc"})
    edges = NetworkBelief.learn(table_of(space, np.stack([a, b, c], axis=1))).edges
    assert {frozenset(edge) for edge in edges} == {frozenset("ab"), frozenset("bc")}


def test_what_cannot_be_is_undefined() -> None:
    table = table_of(AttributeSpace.of({"a": ["x", "y"], "b": ["x", "y"]}), np.array([[0, 0], [1, 1]]))
    belief = CrowdBelief.learn(table, 0.0)
    evidence = SeenAttributes(table.space, table.space.encode({"a": "x", "b": "y"}))
    assert np.isnan(belief.posteriors([0], evidence)[0]).all()
    assert belief.mass(evidence)[0] == 0


def test_joint_probability_by_hand() -> None:
    table = table_of(
        AttributeSpace.of({"a": ["x", "y"], "b": ["x", "y"]}), np.array([[0, 0], [0, 0], [0, 1], [1, 1]])
    )
    belief = CrowdBelief.learn(table, 0.0)
    assert joint_probability(belief, {0: 0, 1: 0}, SeenAttributes.nothing(table.space))[0] == pytest.approx(
        0.5
    )


def test_blocks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from incrowd.measures.belief import crowd_belief

    table = random_table(1)
    belief, evidence = CrowdBelief.learn(table, 0.1), random_evidence(table.space, 2, people=37)
    whole = belief.posteriors([0, 2], evidence)
    monkeypatch.setattr(crowd_belief, "BLOCK_BYTES", 1)
    for one, other in zip(whole, belief.posteriors([0, 2], evidence), strict=True):
        np.testing.assert_array_equal(one, other)


def test_packing_columns_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from incrowd.measures.belief import crowd_belief

    table = random_table(4, sizes=(3, 2, 4, 5, 2))
    belief, evidence = CrowdBelief.learn(table, 0.1), random_evidence(table.space, 2, people=40)
    packed, mass = belief.posteriors([1, 3], evidence), belief.mass(evidence)
    monkeypatch.setattr(crowd_belief, "WORTH_GROUPING", 1000)
    np.testing.assert_allclose(belief.mass(evidence), mass, rtol=1e-12)
    for one, other in zip(packed, belief.posteriors([1, 3], evidence), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_groups_of_columns_stay_small_and_hold_everything() -> None:
    sizes = [366, 91, 61, 26, 21, 16, 7, 7, 5, 3]
    rng = np.random.default_rng(0)
    columns = [rng.integers(size, size=5000) for size in sizes]
    groups = grouped(columns, sizes, range(10))
    assert sorted(place for group in groups for place in group) == list(range(10))
    assert all(len(combined(columns, sizes, group)[1]) <= CELLS for group in groups)
    assert len(groups) < 7


def test_attributes_that_decide_each_other_are_packed_together() -> None:
    """Zip, city and region could have 90 * 30 * 10 combinations; 90 occur."""
    zips = np.random.default_rng(0).integers(90, size=3000)
    columns, sizes = [zips, zips // 3, zips // 9], [90, 30, 10]
    assert grouped(columns, sizes, range(3)) == [(0, 1, 2)]
    which, combinations = combined(columns, sizes, (0, 1, 2))
    assert len(combinations) == 90
    np.testing.assert_array_equal(combinations[which], np.stack(columns, axis=1))


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_many_people_are_weighed_as_one_by_one(seed: int) -> None:
    """Packed, in lanes, by combinations of targets, with attributes smoothed away: the same as the plain loop."""
    rng = np.random.default_rng(seed)
    table = random_table(seed, sizes=(3, 2, 4, 5, 2))
    belief = replace(CrowdBelief.learn(table), smoothing=rng.choice([0.0, 0.1, 0.7, 1.0], 5))
    evidence = random_evidence(table.space, seed, people=21)
    evidence = replace(evidence, own_rows=rng.integers(-1, 40, 21))
    targets = [int(place) for place in rng.permutation(5)[: rng.integers(1, 4)]]
    many = belief.posteriors(targets, evidence)
    for person in range(21):
        one = belief.posteriors(targets, evidence.people(slice(person, person + 1)))
        for together, alone in zip(many, one, strict=True):
            np.testing.assert_allclose(together[person], alone[0], rtol=1e-12)


def test_a_value_nobody_has_is_impossible_even_where_it_says_nothing() -> None:
    table = table_of(AttributeSpace.of({"a": ["x", "y"], "b": ["x", "y"]}), np.array([[0, 0], [0, 1]]))
    belief = CrowdBelief.learn(table, 1.0)
    assert np.isnan(belief.posteriors([1], SeenAttributes(table.space, np.array([[1, HIDDEN]])))[0]).all()


def test_an_attribute_nobody_gave_is_believed_evenly() -> None:
    table = table_of(
        AttributeSpace.of({"a": ["x", "y"], "b": ["x", "y"]}), np.array([[0, HIDDEN], [1, HIDDEN]])
    )
    evidence = SeenAttributes(table.space, table.space.encode({"a": "x"}))
    assert CrowdBelief.learn(table, 0.1).posteriors([1], evidence)[0].tolist() == [[0.5, 0.5]]


def test_nobody_asked_about_is_no_error() -> None:
    table = random_table(0)
    nobody = SeenAttributes(table.space, np.empty((0, 3), dtype=np.int64))
    for belief in (CrowdBelief.learn(table, 0.1), NetworkBelief.learn(table)):
        assert [part.shape for part in belief.posteriors([0, 2], nobody)] == [(0, 3), (0, 4)]
        assert belief.mass(nobody).shape == (0,)


def test_a_tree_finds_links_between_attributes_of_many_values_and_none_in_noise() -> None:
    """60 schools, each in one of 20 towns, 600 people: by far more cells than people, and a true link all the same."""
    rng = np.random.default_rng(5)
    school = rng.integers(60, size=600)
    town = np.where(rng.random(600) < 0.8, school % 20, rng.integers(20, size=600))
    noise = rng.integers(50, size=600)
    space = AttributeSpace.of(
        {
            "school": list(map(str, range(60))),
            "town": list(map(str, range(20))),
            "noise": list(map(str, range(50))),
        }
    )
    codes = np.stack([school, town, noise], axis=1)
    learnt = NetworkBelief.learn(table_of(space, codes))
    assert [set(edge) for edge in learnt.edges] == [{"school", "town"}]
    seen = np.array([[3, HIDDEN, HIDDEN]])
    assert learnt.posteriors([1], SeenAttributes(space, seen))[0][0, 3] > 0.5
