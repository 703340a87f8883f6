from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import synthetic
from incrowd.crowd.schema import COLUMNS
from incrowd.errors import InputError

TABLE = synthetic.items(users=300, items=120, entries=6_000, seed=2)
ROWS = TABLE.to_frame()


@settings(max_examples=10, deadline=None)
@given(chunk=st.integers(1, 7_000))
def test_rows_do_not_depend_on_the_chunk_size(chunk):
    assert pl.concat(TABLE.frames(chunk)).equals(ROWS)


def test_the_same_seed_gives_the_same_rows_and_another_seed_others():
    assert replace(TABLE).to_frame().equals(ROWS)
    assert not replace(TABLE, seed=3).to_frame().equals(ROWS)


def test_counts_are_exactly_as_asked_and_nobody_has_an_item_twice():
    assert dict(ROWS.schema) == COLUMNS["items"]
    assert ROWS.height == TABLE.rows == 6_000
    assert ROWS.n_unique(["user", "item"]) == 6_000
    assert ROWS["user"].n_unique() == 300


def test_the_matrix_holds_the_same_table():
    matrix = TABLE.to_csr(values=True)
    assert matrix.shape == (300, 120)
    assert matrix.has_sorted_indices
    user, item = matrix.nonzero()
    names = pl.DataFrame({"user": TABLE.user_names.gather(user), "item": TABLE.item_names.gather(item)})
    assert names.equals(ROWS.select("user", "item"))
    assert np.array_equal(matrix.data, ROWS["value"].to_numpy())
    assert (TABLE.to_csr().data == 1).all()


def test_profile_sizes_and_popularity_have_tails():
    matrix = synthetic.items(users=4_000, items=2_000, entries=160_000, seed=1).to_csr()
    popularity = np.sort(np.bincount(matrix.indices, minlength=2_000))[::-1]
    sizes = np.sort(np.diff(matrix.indptr))[::-1]
    assert popularity[:20].mean() > 10 * np.median(popularity)
    assert sizes[:40].mean() > 5 * np.median(sizes)


def test_a_profile_may_hold_every_item():
    table = synthetic.items(users=5, items=30, entries=150, size_tail=2.0)
    assert (table.to_csr().toarray() == 1).all()


def test_people_lean_towards_their_cluster_of_taste():
    table = synthetic.items(users=2_000, items=400, entries=40_000, taste=0.6, seed=4)
    user, item = table.to_csr().nonzero()
    own = table.choice.user_cluster[user] == table.choice.item_cluster[item]
    indifferent = replace(table, taste=0.0)
    user, item = indifferent.to_csr().nonzero()
    by_chance = indifferent.choice.user_cluster[user] == indifferent.choice.item_cluster[item]
    assert own.mean() > by_chance.mean() + 0.25


def test_ratings_are_one_to_five_and_higher_within_ones_taste():
    assert set(ROWS["value"]) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    user, item = TABLE.to_csr().nonzero()
    own = TABLE.choice.user_cluster[user] == TABLE.choice.item_cluster[item]
    assert ROWS["value"].to_numpy()[own].mean() > ROWS["value"].to_numpy()[~own].mean() + 0.2


def test_ratings_and_dates_can_be_left_out():
    bare = replace(TABLE, ratings=False, dates=False).to_frame()
    assert bare["value"].null_count() == bare["time"].null_count() == bare.height
    assert bare.select("user", "item").equals(ROWS.select("user", "item"))


def test_dates_fall_into_the_period():
    end = TABLE.start + TABLE.years * 365 * 86_400
    assert ROWS["time"].is_between(TABLE.start, end).all()


def test_the_cast_has_the_profile_it_is_given():
    table = replace(TABLE, cast=(("sam", 50),))
    assert table.to_frame().filter(user="sam").height == 50


def test_entries_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="synthetic entries: expected"):
        synthetic.items(users=10, items=5, entries=51)
