from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.text.counting import DiskArray, TokenTally

POST = st.tuples(st.integers(0, 5), st.lists(st.integers(0, 7), max_size=6))


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.lists(POST, max_size=8), max_size=6),
    memory=st.sampled_from([0, 30, 200, 10**6]),
    rows=st.permutations([0, 1, 2, 3, -1, -1]),
    tokens=st.permutations(range(8)),
)
def test_counts_are_those_of_a_counter(
    batches: list[list[tuple[int, list[int]]]], memory: int, rows: list[int], tokens: list[int]
) -> None:
    tally = TokenTally(memory)
    for batch in batches:
        words = np.array([token for _, post in batch for token in post], np.int32)
        owners, lengths = [row for row, _ in batch], [len(post) for _, post in batch]
        tally.add(np.array(owners, np.int64), words, np.array(lengths, np.int64))
    seen = tally.tokens_seen(np.array(rows), 8)
    matrix = tally.matrix(np.array(rows), np.array(tokens))
    posts = [post for batch in batches for post in batch if rows[post[0]] >= 0]
    kept = Counter((rows[row], tokens[token]) for row, post in posts for token in post)
    assert matrix.shape == (4, 8)
    assert matrix.has_canonical_format
    assert {(r, c): matrix[r, c] for r, c in zip(*matrix.nonzero(), strict=True)} == kept
    assert {tokens[token] for token in np.flatnonzero(seen)} == {token for _, token in kept}


def test_what_does_not_fit_waits_on_disk_and_leaves_nothing_behind(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows, lengths = rng.integers(0, 300, 4_000), rng.integers(0, 10, 4_000)
    tokens = (rng.zipf(1.3, lengths.sum()) % 1000).astype(np.int32)
    tally = TokenTally(6_000, tmp_path)
    ends = np.cumsum(lengths)
    for part in np.array_split(np.arange(4_000), 37):
        tally.add(rows[part], tokens[ends[part[0]] - lengths[part[0]] : ends[part[-1]]], lengths[part])
    matrix = tally.matrix(np.arange(300), np.arange(1000)[::-1].copy())
    expected = np.zeros((300, 1000), np.int64)
    np.add.at(expected, (np.repeat(rows, lengths), 999 - tokens), 1)
    assert (matrix.toarray() == expected).all()
    assert not matrix.data.flags.owndata  # a view of a file
    assert list(tmp_path.iterdir()) == []  # which has no name


def test_an_array_on_disk_is_an_array(tmp_path: Path) -> None:
    array = DiskArray(np.int32, tmp_path)
    assert len(array.mapped()) == 0
    assert array.append(np.arange(5)) == slice(0, 5)
    assert array.append(np.arange(5, 10)) == slice(5, 10)
    assert array[3:7].tolist() == [3, 4, 5, 6]
    assert array[8:3].tolist() == []
    mapped = array.mapped()
    del array
    assert mapped.tolist() == list(range(10))
