"""Profiles for the tests: small, awkward, and large enough to have rare words."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

METRICS = ["jensen-shannon", "angular-cosine", "total-variation", "hellinger"]


def normalise(rows: np.ndarray) -> np.ndarray:
    rows = np.asarray(rows, dtype=float)
    return rows / rows.sum(axis=1, keepdims=True)


@st.composite
def profiles(draw: st.DrawFn, people: int = 8, words: int = 9) -> np.ndarray:
    """Rows that sum to 1: single words, twins, rows without a common word, values of any size."""
    shape = (draw(st.integers(2, people)), draw(st.integers(1, words)))
    counts = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 3))).astype(float)
    tiny = draw(hnp.arrays(np.int64, shape, elements=st.integers(-9, 0)))
    rows = counts * 10.0 ** (tiny if draw(st.booleans()) else 0 * tiny)
    rows[rows.sum(axis=1) == 0, draw(st.integers(0, shape[1] - 1))] = 1.0
    return normalise(rows)


def crowd(people: int, words: int = 600, tokens: int = 120, seed: int = 0) -> sparse.csr_matrix:
    """A Zipf crowd with frequent and rare words, uneven sizes, twins and near twins."""
    rng = np.random.default_rng(seed)
    zipf = 1 / (np.arange(words) + 5.0)
    sizes = rng.lognormal(np.log(tokens), 0.8, people).astype(int) + 5
    rows = np.stack([rng.multinomial(size, zipf / zipf.sum()) for size in sizes]).astype(float)
    rows[1] = rows[0]
    rows[2] = rows[0]
    rows[2, rows[0].argmax()] += 1
    rows[3] = 0
    rows[3, words - 1] = 1
    return sparse.csr_matrix(normalise(rows[:, rng.permutation(words)]))
