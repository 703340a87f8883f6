"""Flat profiles (every word equally often) add thousands of equal terms, whose roundings never cancel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from incrowd.distances import METRICS, Compute, pairwise

SIZES = np.unique(np.round(np.geomspace(5, 12_000, 24)).astype(int))
WORDS = 16_000


def flat_rows(seed: int) -> sp.csr_matrix:
    """Rows with n words of weight 1/n: nested ones, and ones with words drawn by lot."""
    generator = np.random.default_rng(seed)
    nested = [np.arange(n) for n in SIZES]
    drawn = [np.sort(generator.choice(WORDS, n, replace=False)) for n in SIZES]
    rows = [(words, np.full(len(words), 1 / len(words))) for words in (*nested, *drawn)]
    indptr = np.concatenate([[0], np.cumsum([len(words) for words, _ in rows])])
    values = np.concatenate([value for _, value in rows])
    return sp.csr_matrix((values, np.concatenate([w for w, _ in rows]), indptr), shape=(len(rows), WORDS))


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_the_cpu_kernel_keeps_its_word_on_flat_profiles(metric: str) -> None:
    rows = flat_rows(1)
    exact = pairwise(rows, metric=metric, compute=Compute(kernel="reference"))
    fast = pairwise(rows, metric=metric, compute=Compute(kernel="cpu"))
    assert np.abs(exact - fast).max() < 1e-6
