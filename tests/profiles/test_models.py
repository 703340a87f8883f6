"""Models of word use by hand and by property; author topics find authors again who write alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from incrowd.errors import InputError
from incrowd.profiles import MODELS, build, from_matrix, indicator, tfidf, unigram
from incrowd.profiles.models import AuthorTopicOptions, author_topics

COUNTS = [[2, 2, 0], [0, 1, 3], [0, 0, 0]]
tables = arrays(np.int64, (6, 5), elements=st.integers(0, 9)).filter(lambda t: (t.sum(axis=1) > 0).all())


def test_models_by_hand() -> None:
    counts = from_matrix(COUNTS)
    assert unigram(counts).matrix.toarray().tolist() == [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]
    assert indicator(counts).matrix.toarray().tolist() == [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    rare, common = np.log(3 / 2) + 1, np.log(3 / 3) + 1
    wanted = np.array([2 * rare, 2 * common, 0])
    assert tfidf(counts).matrix.toarray()[0] == pytest.approx(wanted / wanted.sum())


def test_an_identity_without_words_is_left_out_and_counted() -> None:
    profiles = unigram(from_matrix(COUNTS, ids=["a", "b", "c"]))
    assert profiles.ids["user"].to_list() == ["a", "b"]
    assert profiles.dropped == {"empty_profile": 1}


@pytest.mark.parametrize("model", MODELS)
@given(table=tables)
def test_rows_are_distributions(model: str, table: np.ndarray) -> None:
    rows = build(model, from_matrix(table)).matrix
    assert np.allclose(np.asarray(rows.sum(axis=1)), 1.0)
    assert (rows.data > 0).all()


@given(table=tables)
def test_saying_everything_twice_changes_no_frequency(table: np.ndarray) -> None:
    once, twice = (unigram(from_matrix(t)).matrix.toarray() for t in (table, 2 * table))
    assert np.allclose(once, twice)


def test_rarity_can_be_counted_in_one_domain() -> None:
    counts = from_matrix([[1, 1], [1, 0], [1, 0]])
    everywhere = tfidf(counts).matrix.toarray()[0]
    in_first = tfidf(counts, domain=[0]).matrix.toarray()[0]
    assert everywhere[1] > everywhere[0]
    assert in_first[0] == pytest.approx(in_first[1])
    assert tfidf(counts, sublinear=True).matrix.shape == (3, 2)


def test_frames_and_matrices_are_taken_alike() -> None:
    for frame in (
        pd.DataFrame({"tea": [1, 0], "milk": [2, 3]}),
        pl.DataFrame({"tea": [1, 0], "milk": [2, 3]}),
    ):
        counts = from_matrix(frame)
        assert list(counts.vocabulary) == ["tea", "milk"]
        assert counts.matrix.toarray().tolist() == [[1, 2], [0, 3]]
    assert from_matrix(sp.coo_matrix([[1, 0], [0, 2]])).matrix.nnz == 2


def test_bad_tables_are_refused() -> None:
    with pytest.raises(InputError, match="at least 0"):
        from_matrix([[-1.0]])
    with pytest.raises(InputError, match="2 ids"):
        from_matrix([[1.0]], ids=["a", "b"])
    with pytest.raises(InputError, match="model must be one of unigram"):
        build("bigram", from_matrix([[1.0]]))


def test_some_profiles_can_be_chosen() -> None:
    profiles = unigram(from_matrix(COUNTS))
    assert len(profiles.only([1])) == 1
    assert profiles.only(np.array([True, False])).matrix.toarray().tolist() == [[0.5, 0.5, 0.0]]


OPTIONS = AuthorTopicOptions(author_topics=4, document_topics=4, sweeps=60, averaged=20)


def simulated(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Twelve authors in two groups: half of each post's words show the group, half the post's subject."""
    generator = np.random.default_rng(seed)
    words, posts, authors = [], [], []
    for author in range(12):
        for _ in range(15):
            post = len(authors)
            authors.append(author)
            subject = int(generator.integers(3))
            own = generator.integers(0, 10, 12) + 10 * (author % 2)
            about = generator.integers(0, 10, 12) + 20 + 10 * subject
            for word in np.concatenate([own, about]):
                words.append(word)
                posts.append(post)
    return np.array(words), np.array(posts), np.array(authors)


def test_authors_of_one_group_get_similar_mixtures() -> None:
    mixtures = author_topics(*simulated(1), 50, options=OPTIONS, seed=1)
    group = np.arange(12) % 2
    far = np.abs(mixtures[:, None] - mixtures[None]).sum(axis=2)
    same = group[:, None] == group[None]
    assert far[same].mean() < 0.5 * far[~same].mean()


def test_mixtures_are_distributions_and_repeat_with_the_seed() -> None:
    first = author_topics(*simulated(2), 50, options=OPTIONS, seed=3)
    assert np.allclose(first.sum(axis=1), 1.0)
    assert (first == author_topics(*simulated(2), 50, options=OPTIONS, seed=3)).all()
    assert (first != author_topics(*simulated(2), 50, options=OPTIONS, seed=4)).any()


def test_no_words_say_nothing() -> None:
    empty = np.zeros(0, np.int32)
    assert author_topics(empty, empty, np.array([0, 1]), 5, options=OPTIONS).tolist() == [[0.25] * 4] * 2
