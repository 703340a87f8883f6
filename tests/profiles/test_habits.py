"""Habits are counted as written, and do not depend on how the posts arrive."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.profiles.habits import (
    FAMILIES,
    TEXT_FAMILIES,
    HabitLists,
    grouping,
    habits,
    only_used,
    summed,
)
from incrowd.profiles.kernels import scale_to_one

POSTS = pl.DataFrame(
    {
        "user": ["ann", "ann", "bob", "cid"],
        "community": ["tea", "tea", "tea", "tea"],
        "time": [0, 3600, None, 7 * 24 * 3600],
        "text": ["Hello there, world!", "i said hello", "HELLO   world...\n\nok", "hello there world"],
    },
    schema_overrides={"time": pl.Int64},
)


def distinct(family: str, text: str) -> int:
    frame = pl.DataFrame({"user": ["x"], "community": ["c"], "time": [0], "text": [text]})
    return int(habits(frame, families=(family,)).rows[family].nnz)


def test_one_row_an_identity_in_a_fixed_order() -> None:
    found = habits(POSTS)
    assert found.identities.to_dict(as_series=False) == {
        "user": ["ann", "bob", "cid"],
        "community": ["tea", "tea", "tea"],
        "posts": [2, 1, 1],
    }
    assert set(found.rows) == set(FAMILIES)
    assert len(found) == 3


def test_words_keep_case_and_punctuation_vocabulary_does_not() -> None:
    assert distinct("words", "Hello hello hello,") == 3
    assert distinct("vocabulary", "Hello hello hello,") == 1
    assert distinct("vocabulary", "don't dont") == 2


def test_phrases_are_pairs_within_one_post() -> None:
    assert distinct("phrases", "one two three") == 2
    assert distinct("phrases", "one") == 0
    split = pl.DataFrame({"user": ["x"] * 2, "community": ["c"] * 2, "time": [0, 1], "text": ["one", "two"]})
    assert habits(split, families=("phrases",)).rows["phrases"].nnz == 0


def test_style_sees_punctuation_capitals_and_breaks() -> None:
    plain, shouted = (
        habits(
            pl.DataFrame({"user": ["x"], "community": ["c"], "time": [0], "text": [text]}),
            families=("style",),
        ).rows["style"]
        for text in ("tomorrow morning", "TOMORROW MORNING!!!\n\n")
    )
    assert plain.nnz == 1  # one shape: no capitals
    assert shouted.nnz == 5  # two shouted words, one shape, one run of marks, one break


def test_identities_with_few_posts_are_left_out() -> None:
    assert habits(POSTS, min_posts=2).identities["user"].to_list() == ["ann"]
    assert len(habits(POSTS, min_posts=3)) == 0


def test_unknown_times_say_nothing() -> None:
    found = habits(POSTS)
    assert found.rows["hours"][1].nnz == 0
    assert found.rows["weeks"][1].nnz == 0
    shares = found.rows["hours"][0].toarray() ** 2
    assert np.isclose(shares.sum(), 1.0)


def test_some_identities_can_be_chosen_by_mask_or_number() -> None:
    found = habits(POSTS)
    assert found.only([2]).identities["user"].to_list() == ["cid"]
    assert found.only(np.array([True, False, True])).rows["words"].shape[0] == 2


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.text(max_size=30)), min_size=1, max_size=12), st.randoms()
)
def test_the_order_of_posts_never_matters(posts: list[tuple[str, str]], random: object) -> None:
    frame = pl.DataFrame(
        {"user": [u for u, _ in posts], "community": ["c"] * len(posts), "text": [t for _, t in posts]}
    ).with_columns(time=pl.lit(5, pl.Int64))
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=len(posts))
    straight, other = habits(frame), habits(shuffled)
    for family in TEXT_FAMILIES:
        assert (straight.rows[family] != other.rows[family]).nnz == 0


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([0, 1, 3, 256]))
def test_products_are_those_of_the_matrices(seed: int, common: int) -> None:
    rng = np.random.default_rng(seed)
    rows, people = (sp.random(7, 30, density, format="csr", random_state=rng) for density in (0.3, 0.5))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("incrowd.profiles.habits.MOST_COMMON", common)
        used, few = only_used(people.tocsr().astype(np.float32))
        assert (few.toarray() == people.toarray().astype(np.float32)[:, used]).all()
        found = HabitLists.of(few.T.tocsr(), used, people.shape[1]).products(rows.astype(np.float32))
    assert np.allclose(found, (rows @ people.T).toarray(), atol=1e-5)


def some_rows(rng: np.random.Generator) -> sp.csr_matrix:
    rows = sp.random(40, 300, 0.1, "csr", np.float32, rng)
    rows.data = np.ceil(9 * rows.data)
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_summed_rows_are_those_of_a_product_of_matrices_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = some_rows(rng)
    groups = [rng.integers(0, 40, size) for size in rng.integers(0, 6, 20)]
    product, got = grouping(groups, 40) @ rows, summed(groups, rows)
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(got, part), getattr(product, part))
    assert got.shape == product.shape
    assert summed([], rows).shape == (0, 300)


def test_rows_scaled_to_one_keep_their_direction() -> None:
    rng = np.random.default_rng(3)
    rows = some_rows(rng)
    rarity = rng.random(rows.nnz).astype(np.float32)
    weighed = sp.csr_matrix((rows.data * rarity, rows.indices, rows.indptr), rows.shape).toarray()
    lengths = np.linalg.norm(weighed, axis=1, keepdims=True)
    unit = sp.csr_matrix(
        (scale_to_one(rows.indptr, rows.data, rarity), rows.indices, rows.indptr), rows.shape
    )
    assert unit.toarray() == pytest.approx(weighed / np.where(lengths > 0, lengths, 1), abs=1e-6)
    nothing = scale_to_one(rows.indptr, rows.data, np.zeros_like(rarity))
    assert not nothing.any()
