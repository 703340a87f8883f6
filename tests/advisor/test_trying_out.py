"""Trying out changes: the parts that make it quick agree with the measures, and the search finds the smallest."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.advisor.making import own

from incrowd.advisor.answer import Changes
from incrowd.advisor.others import Others, columns_of
from incrowd.advisor.person import own_posts, post_words, without_words
from incrowd.advisor.search import fewest
from incrowd.crowd import Crowd
from incrowd.distances import Compute, ball_sizes, pairwise
from incrowd.errors import InputError
from incrowd.text import TextOptions, tokenise

counts = st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(any), min_size=2, max_size=12)


def shares(rows: list[list[int]]) -> sparse.csr_matrix:
    matrix = np.asarray(rows, np.float64)
    return sparse.csr_matrix(matrix / matrix.sum(axis=1, keepdims=True))


@settings(max_examples=60)
@given(counts, st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]))
def test_who_is_near_is_who_the_distances_say_is_near(rows: list[list[int]], radius: float) -> None:
    profile, matrix = shares(rows[:1]), shares(rows[1:])
    words = pl.Series([chr(97 + k) for k in range(6)])
    others = Others(matrix, words, Compute(kernel="reference"), np.unique(profile.indices).astype(np.int64))
    expected = ball_sizes(profile, matrix, radii=[radius], compute=Compute(kernel="reference"))[0, 0]
    assert int(others.within(profile, radius).sum()) == expected
    exact = pairwise(profile, matrix, compute=Compute(kernel="reference"))[0]
    assert np.allclose(others.distances(profile), exact, atol=1e-7)


def test_a_clone_is_near_at_any_radius() -> None:
    rows = shares([[1, 2, 3, 0, 0, 1], [1, 2, 3, 0, 0, 1], [0, 0, 0, 5, 1, 0]])
    others = Others(rows[1:], pl.Series(list("abcdef")), Compute(), np.array([0, 1, 2, 5]))
    assert others.within(rows[:1], 0.0).tolist() == [True, False]


def test_words_nobody_else_uses_get_places_of_their_own() -> None:
    places = columns_of(pl.Series(["b", "new", "c", "newer"]), pl.Series(["a", "b", "c"]))
    assert places.tolist() == [1, 3, 2, 4]


@given(st.integers(1, 200), st.integers(1, 300))
def test_the_search_finds_the_smallest_count_when_more_helps_more(most: int, needed: int) -> None:
    found = fewest(most, lambda count: float(needed - count), float(needed))
    assert found == min(needed, most)  # the best there is, if it cannot be reached


def test_the_search_gives_up_when_nothing_helps() -> None:
    assert fewest(50, lambda count: 5.0 + count, 5.0) is None
    assert fewest(50, lambda count: 0.0, 0.0) is None


words = st.lists(st.sampled_from(["Cats", "dogs!", "(fish)", "e-mail", "cats,dogs", "birds\n"]), max_size=20)


@given(words, st.sets(st.sampled_from(["cats", "dogs", "fish"])))
def test_words_that_were_taken_out_are_gone(chunks: list[str], gone: set[str]) -> None:
    options = TextOptions()
    left = tokenise(without_words(" ".join(chunks), frozenset(gone), options), options)
    assert not gone & set(left)


def test_words_are_counted_as_the_measures_count_them(tiny_crowd: Crowd) -> None:
    posts = own_posts(tiny_crowd, "alex")
    found = post_words(posts["text"], TextOptions())
    for row in (0, 7, 100):
        expected = pl.Series(tokenise(posts["text"][row], TextOptions()), dtype=pl.String).value_counts()
        said = dict(expected.iter_rows())
        place = found.matrix[row]
        assert {
            found.vocabulary[int(word)]: int(count)
            for word, count in zip(place.indices, place.data, strict=True)
        } == said


def test_changes_leave_the_rest_alone(tiny_crowd: Crowd) -> None:
    alex = own(tiny_crowd, "alex")
    item, attribute = min(alex.items), min(alex.attributes)
    changes = Changes(
        delete_posts=frozenset({0, 1}),
        move_posts=frozenset({5}),
        drop_items=frozenset({item}),
        withhold_attributes=frozenset({attribute}),
    )
    after = alex.after(changes)
    assert set(alex.numbers) - set(after.numbers) == {0, 1, 5}
    assert after.items == alex.items - {item}
    assert after.withheld == {attribute}
    assert after.other_name is not None
    assert after.other_name.numbers.tolist() == [5]
    assert alex.after(Changes()) is alex


@pytest.mark.parametrize(
    "changes",
    [
        Changes(delete_posts=frozenset({10_000})),
        Changes(drop_items=frozenset({"no such item"})),
        Changes(withhold_attributes=frozenset({"shoe size"})),
    ],
)
def test_what_the_person_does_not_have_cannot_be_changed(tiny_crowd: Crowd, changes: Changes) -> None:
    with pytest.raises(InputError, match="this person has no"):
        own(tiny_crowd, "alex").after(changes)
