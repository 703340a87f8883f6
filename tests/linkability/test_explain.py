"""Explanations add up to the distance; advice is what was measured."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import jensenshannon

from incrowd.distances import Compute
from incrowd.distances.profile_index import shared_terms
from incrowd.measures.linkability.explain import (
    OwnPair,
    posts_to_delete,
    shared_words,
    words_to_avoid,
)

COMPUTE = Compute(kernel="reference")
counts = arrays(np.float64, 12, elements=st.integers(0, 5).map(float)).filter(lambda x: x.sum() > 0)


@given(counts, counts)
def test_the_shares_add_up_to_the_distance(a: np.ndarray, b: np.ndarray) -> None:
    p, q = a / a.sum(), b / b.sum()
    d = jensenshannon(p, q, 2)
    assert shared_terms(p, q).sum() == pytest.approx(1 - (0 if math.isnan(d) else d) ** 2, abs=1e-7)


def test_evidence_names_shared_words_strongest_first() -> None:
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.1, 0.4, 0.0, 0.5])
    evidence = shared_words(p, q, ["tea", "milk", "salt", "rice"])
    assert [part.what for part in evidence] == ["the word “milk”", "the word “tea”"]


def crowd_of(seed: int, people: int = 30, words: int = 60) -> OwnPair:
    """A person with eight pet words used in both profiles, among others without them."""
    generator = np.random.default_rng(seed)
    rows = generator.poisson(1.0, (people, words)).astype(float) + 0.01
    own = generator.poisson(1.0, (2, words)).astype(float)
    own[:, :8] += 12
    others = sp.csr_matrix(rows / rows.sum(axis=1, keepdims=True))
    return OwnPair(own[0], own[1], others, COMPUTE)


def test_avoiding_the_pet_words_hides_the_person_as_promised() -> None:
    pair = crowd_of(1)
    names = [f"word{i}" for i in range(60)]
    assert pair.crowd(pair.source, pair.target) == 1
    advice = words_to_avoid(pair, names, wanted=5)
    assert advice is not None
    assert advice.before == 1
    assert advice.after >= 5
    removed = int(advice.what.split()[1])
    order = np.argsort(-shared_terms(pair.source / pair.source.sum(), pair.target / pair.target.sum()))
    keep = np.ones(60)
    keep[order[:removed]] = 0
    assert pair.crowd(pair.source * keep, pair.target * keep) == advice.after
    keep[order[removed - 1]] = 1
    assert pair.crowd(pair.source * keep, pair.target * keep) < 5


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_deleting_posts_has_the_promised_effect(seed: int) -> None:
    pair = crowd_of(seed)
    generator = np.random.default_rng(seed)
    owner = generator.integers(0, 15, int(pair.source.sum()))
    word = np.repeat(np.arange(60), pair.source.astype(int))
    posts = sp.coo_matrix((np.ones(word.size), (owner, word)), shape=(15, 60)).tocsr()
    found = posts_to_delete(pair, posts, wanted=3)
    if found is not None:
        advice, which = found
        left = pair.source - np.asarray(posts[which].sum(axis=0)).ravel()
        assert pair.crowd(left, pair.target) == advice.after > advice.before


def test_nothing_is_advised_to_somebody_who_hides_already() -> None:
    pair = crowd_of(2)
    assert words_to_avoid(pair, ["w"] * 60, wanted=1) is None


def test_an_emptied_profile_fits_everybody() -> None:
    pair = crowd_of(3)
    assert pair.crowd(np.zeros(60), pair.target) == 31
