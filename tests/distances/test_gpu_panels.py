"""The layout the GPU works on, checked without a GPU: sums over the layout give the reference distances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from incrowd.distances.gpu_panels import (
    CHUNK,
    DEPTH,
    METRICS,
    TILE,
    TINY,
    build_panel,
    chunks,
    count_users,
    log_scale,
    source,
    split_vocabulary,
)
from incrowd.distances.reference import METRICS as REFERENCE

SHARED = {
    "jensen-shannon": lambda x, y: (x + y) * np.log2(x + y) - x * np.log2(x) - y * np.log2(y),
    "total-variation": np.minimum,
    "hellinger": np.multiply,
    "angular-cosine": np.multiply,
}


def crowd(rows, words, seed, mean=12):
    """People with Zipf-like words; some say one word only."""
    rng = np.random.default_rng(seed)
    weights = 1 / (np.arange(words) + 2.0)
    lengths = np.maximum(rng.poisson(mean, rows), 1)
    counts = np.array([rng.multinomial(n, weights / weights.sum()) for n in lengths], dtype=float)
    counts[0] = 0
    counts[0, -1] = 1
    return sparse.csr_matrix(counts / counts.sum(axis=1, keepdims=True))


def shared_sums(a, b, vocabulary, metric, scale):
    """What dense_terms and sparse_terms add up, in plain NumPy over the panels' layout."""
    f = SHARED[metric]
    sums = np.zeros((a.padded, b.padded))
    for word in range(len(a.dense)):
        sums += f(a.dense[word].astype(float)[:, None], b.dense[word].astype(float)[None])
    listed = vocabulary.listed
    for tile_a in range(a.padded // TILE):
        for tile_b in range(b.padded // TILE):
            for word in range(listed):
                at, to = (
                    slice(*s[t * listed + word :][:2]) for s, t in ((a.starts, tile_a), (b.starts, tile_b))
                )
                x, y = a.entries[at], b.entries[to]
                i = tile_a * TILE + x.view(np.int32)[:, 2]
                j = tile_b * TILE + y.view(np.int32)[:, 2]
                sums[np.ix_(i, j)] += f(x[:, :1].astype(float), y[:, 0].astype(float))
    return sums[: a.rows, : b.rows] / scale


def to_distance(sums, a, b, metric):
    mass = (a.mass[: a.rows, None] + b.mass[None, : b.rows]) / 2
    if metric == "angular-cosine":
        return np.arccos(np.clip(sums, 0, 1)) / np.pi
    if metric == "total-variation":
        return mass - sums
    return np.sqrt(np.clip(mass - (sums / 2 if metric == "jensen-shannon" else sums), 0, 1))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dense_from", [0.0, 0.25, 2.0])
def test_sums_over_the_layout_give_the_reference_distance(metric, dense_from):
    x, y = crowd(150, 40, 1), crowd(131, 40, 2)
    vocabulary = split_vocabulary(count_users(x, np), 150, count_users(y, np), 131, dense_from=dense_from)
    scale = log_scale(x) if metric == "jensen-shannon" else 1.0
    a = build_panel(x, range(3, 150), vocabulary, metric, scale, 3, np)
    b = build_panel(y, range(131), vocabulary, metric, scale, 150, np)
    found = to_distance(shared_sums(a, b, vocabulary, metric, scale), a, b, metric)
    expected = REFERENCE[metric].distance(x[3:].toarray()[:, None], y.toarray()[None])
    assert np.abs(found - expected)[expected > 0.05].max() < 2e-6


@given(users=st.lists(st.integers(0, 50), min_size=1, max_size=40), dense_from=st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_the_vocabulary_is_sorted_by_use_and_drops_what_nobody_shares(users, dense_from):
    users = np.array(users)
    vocabulary = split_vocabulary(users, 50, None, 50, dense_from=dense_from)
    order = np.argsort(vocabulary.place)
    assert sorted(vocabulary.place) == list(range(len(users)))
    assert vocabulary.used == (users > 1).sum()
    assert 0 <= vocabulary.dense <= vocabulary.used
    assert (np.diff(users[order][: vocabulary.used]) <= 0).all()
    assert (users[order][: vocabulary.dense] / 50 >= dense_from - 1e-12).all()


def test_every_shared_entry_lies_in_exactly_one_place():
    x = crowd(300, 60, 3)
    vocabulary = split_vocabulary(count_users(x, np), 300, None, 300)
    panel = build_panel(x, range(300), vocabulary, "total-variation", 1.0, 0, np)
    assert panel.padded == 384
    assert len(panel.dense) % DEPTH == 0
    dense = (panel.dense > 2 * TINY).sum()
    kept = np.isin(x.indices, np.flatnonzero(vocabulary.place < vocabulary.used)).sum()
    assert dense + len(panel.entries) == kept
    assert panel.starts[-1] == len(panel.entries)
    assert (np.diff(panel.starts) >= 0).all()


def test_a_panel_can_hold_people_who_share_nothing():
    x = sparse.csr_matrix(np.eye(5))
    vocabulary = split_vocabulary(count_users(x, np), 5, None, 5)
    panel = build_panel(x, range(5), vocabulary, "jensen-shannon", 1.0, 0, np)
    assert (vocabulary.dense, vocabulary.listed) == (0, 0)
    assert panel.dense.size == 0
    assert len(panel.entries) == 0
    assert panel.mass.tolist() == [1.0] * 5 + [0.0] * (TILE - 5)


def test_chunks_cover_all_dense_words():
    assert list(chunks(300)) == [(0, CHUNK), (CHUNK, CHUNK), (2 * CHUNK, 300 - 2 * CHUNK)]


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_of_the_gpu_is_a_reference_metric_with_complete_macros(metric):
    assert metric in REFERENCE
    text = source(metric)
    for macro in ("TERM", "SHARED", "GAP", "DISTANCE", "BAND", "VALUE", "EXACT", "EXACT_DISTANCE"):
        assert f"#define {macro}(" in text
