"""Trying out changes: the parts that make it quick agree with the measures, and the search finds the smallest."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.advisor.making import own

from incrowd.crowd import Crowd
from incrowd.crowd.array_cache import identities
from incrowd.distances import Compute, ball_sizes, pairwise
from incrowd.distances.profile_index import DOUBTFUL, CommunityIndex, distance, word_keys
from incrowd.errors import InputError
from incrowd.measures.person import own_posts, post_words, without_words
from incrowd.measures.protocol import Changes
from incrowd.measures.search import fewest
from incrowd.text import TextOptions, tokenise

WORDS = list("abcdef")
REFERENCE = Compute(kernel="reference")
counts = st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(any), min_size=2, max_size=12)


def index_of(rows: list[list[int]]) -> CommunityIndex:
    """Lay out people a, b, c, ... with these counts of words."""
    names, places = identities([str(k) for k in range(len(rows))])
    counted, posts = sparse.csr_matrix(np.asarray(rows)), np.ones(len(rows), np.int64)
    return CommunityIndex.of_matrix(counted, word_keys(WORDS), names=names, rows=places, posts=posts)


def shares(rows: list[list[int]]) -> sparse.csr_matrix:
    matrix = np.asarray(rows, np.float64)
    return sparse.csr_matrix(matrix / matrix.sum(axis=1, keepdims=True))


@settings(max_examples=60)
@given(counts, st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]))
def test_who_is_near_is_who_the_distances_say_is_near(rows: list[list[int]], radius: float) -> None:
    index, profile = index_of(rows[1:]), index_of(rows[:1]).profile(0)
    expected = ball_sizes(shares(rows[:1]), shares(rows[1:]), radii=[radius], compute=REFERENCE)[0, 0]
    assert int(index.squares(profile).within(radius).sum()) == expected
    exact = pairwise(shares(rows[:1]), shares(rows[1:]), compute=REFERENCE)[0]
    assert np.allclose(index.exact(profile, np.arange(len(index))), exact, atol=1e-12)
    assert np.allclose(index.squares(profile).squares, exact**2, atol=DOUBTFUL)
    assert np.allclose([distance(profile, index.profile(k)) for k in range(len(index))], exact, atol=1e-9)


@settings(max_examples=60)
@given(counts, st.data())
def test_each_may_have_a_limit_of_their_own(rows: list[list[int]], data: st.DataObject) -> None:
    index, profile = index_of(rows[1:]), index_of(rows[:1]).profile(0)
    exact = index.exact(profile, np.arange(len(index)))
    some = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(index), max_size=len(index))))
    limits = np.array([data.draw(st.sampled_from([0.0, 0.5, float(exact[row])])) for row in some])
    found = index.squares(profile).within_each(some, limits)
    assert found.tolist() == [
        bool(round(exact[row], 12) <= round(limit, 12)) for row, limit in zip(some, limits, strict=True)
    ]


def test_a_clone_is_near_at_any_radius() -> None:
    index = index_of([[1, 2, 3, 0, 0, 1], [0, 0, 0, 5, 1, 0]])
    assert index.squares(index.profile(0)).within(0.0).tolist() == [True, False]


@given(counts)
def test_shares_of_an_index_are_those_it_was_made_from(rows: list[list[int]]) -> None:
    index = index_of(rows)
    order = np.argsort(word_keys(WORDS))
    assert np.allclose(index.shares(slice(None), index.keys).toarray(), shares(rows).toarray()[:, order])
    mean = np.delete(shares(rows).toarray(), 0, axis=0).mean(axis=0)
    assert np.allclose(index.average(index.keys, 0), mean[order])
    assert index.users(index.keys, 0).tolist() == (shares(rows).toarray()[1:] > 0).sum(axis=0)[order].tolist()
    some = np.flatnonzero(np.arange(len(rows)) % 2)
    assert np.allclose(index.shares(some, index.keys).toarray(), shares(rows).toarray()[some][:, order])


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
