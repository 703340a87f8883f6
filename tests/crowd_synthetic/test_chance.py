from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd.synthetic import chance

KEY = chance.stream(0, "test")


def test_a_draw_depends_on_its_index_alone():
    whole = chance.bits(KEY, np.arange(100))
    assert np.array_equal(chance.bits(KEY, np.arange(40, 60)), whole[40:60])
    assert np.array_equal(chance.bits(KEY, np.array([7, 3])), whole[[7, 3]])


def test_streams_of_other_names_and_seeds_differ():
    index = np.arange(1000)
    streams = [chance.bits(chance.stream(seed, name), index) for seed in (0, 1) for name in ("a", "b")]
    assert len(np.unique(np.concatenate(streams))) == 4000


def test_the_hash_is_splitmix64():
    # The published generator: state += golden, then two multiplications; seed 1234567.
    draws = chance.bits(np.uint64(1234567), np.arange(1, 4))
    assert draws.tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_uniform_and_normal_draws_have_the_moments_they_should():
    index = np.arange(200_000)
    flat, bell = chance.uniform(KEY, index), chance.normal(KEY, index)
    assert flat.min() >= 0
    assert flat.max() < 1
    assert flat.mean() == pytest.approx(0.5, abs=0.003)
    assert flat.var() == pytest.approx(1 / 12, abs=0.001)
    assert bell.mean() == pytest.approx(0, abs=0.01)
    assert bell.std() == pytest.approx(1, abs=0.01)
    assert np.corrcoef(flat[:-1], flat[1:])[0, 1] == pytest.approx(0, abs=0.01)


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40),
    low=st.integers(0, 3),
    room=st.integers(0, 500),
    fraction=st.floats(0, 1),
)
def test_shares_add_up_and_keep_their_bounds_and_the_order_of_the_weights(weights, low, room, fraction):
    count, high = len(weights), low + room
    total = low * count + int(fraction * room * count)
    shares = chance.apportion(np.array(weights), total, low=low, high=high)
    assert shares.sum() == total
    assert shares.min() >= low
    assert shares.max() <= high
    order = np.argsort(weights, kind="stable")
    assert (np.diff(shares[order]) >= -1).all()  # rounding may cost one


def test_shares_by_hand():
    assert chance.apportion(np.array([1.0, 1.0, 2.0]), 8).tolist() == [2, 2, 4]
    assert chance.apportion(np.array([1.0, 1.0, 8.0]), 10, high=5).tolist() == [3, 2, 5]


def test_shares_that_cannot_be_met_are_refused():
    with pytest.raises(ValueError, match="does not split"):
        chance.apportion(np.ones(3), 10, low=0, high=2)


def test_a_lookup_table_holds_every_entry_in_proportion():
    weights = chance.zipf(300, 1.2)
    table = chance.lookup_table(weights)
    shares = np.bincount(table, minlength=300) / len(table)
    assert (shares > 0).all()
    assert np.abs(shares - weights).max() < 2 / len(table) * 10


@settings(max_examples=40, deadline=None)
@given(count=st.integers(1, 5000))
def test_interleaving_is_a_permutation(count):
    assert np.array_equal(np.sort(chance.interleave(np.arange(count), count)), np.arange(count))
