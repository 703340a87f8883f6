from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.text import pairs
from incrowd.text.pairs import PairCounter
from incrowd.text.spill import DiskArray

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), max_size=60)


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(PAIRS, max_size=6),
    most_pairs=st.sampled_from([1, 3, 20, 10**6]),
    rows=st.permutations([0, 1, 2, 3, -1, -1]),
    columns=st.permutations(range(8)),
)
def test_counts_are_those_of_a_counter(
    batches: list[list[tuple[int, int]]], most_pairs: int, rows: list[int], columns: list[int]
) -> None:
    counter = PairCounter(most_pairs)
    for batch in batches:
        table = np.array(batch, np.int64).reshape(-1, 2)
        counter.add(table[:, 0], table[:, 1])
    seen = counter.columns_seen(np.array(rows), 8)
    matrix = counter.matrix(np.array(rows), np.array(columns))
    kept = Counter((rows[r], columns[c]) for batch in batches for r, c in batch if rows[r] >= 0)
    assert matrix.shape == (4, 8)
    assert matrix.has_canonical_format
    assert {(r, c): matrix[r, c] for r, c in zip(*matrix.nonzero(), strict=True)} == kept
    assert {columns[c] for c in np.flatnonzero(seen)} == {c for _, c in kept}


def test_runs_that_do_not_fit_are_merged_block_by_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "BLOCK", 500)
    rng = np.random.default_rng(5)
    rows, columns = rng.integers(0, 300, 20_000), rng.zipf(1.3, 20_000) % 1000
    counter = PairCounter(2_000, tmp_path)
    for part in np.array_split(np.arange(20_000), 37):
        counter.add(rows[part], columns[part])
    matrix = counter.matrix(np.arange(300), np.arange(1000)[::-1].copy())
    expected = np.zeros((300, 1000), np.int64)
    np.add.at(expected, (rows, 999 - columns), 1)
    assert (matrix.toarray() == expected).all()
    assert list(tmp_path.iterdir()) == []  # the files have no names and leave nothing behind


def test_an_array_on_disk_is_an_array(tmp_path: Path) -> None:
    array = DiskArray(np.int32, tmp_path)
    assert len(array.mapped()) == 0
    array.append(np.arange(5))
    array.append(np.arange(5, 10))
    assert array[3:7].tolist() == [3, 4, 5, 6]
    assert array[8:3].tolist() == []
    mapped = array.mapped()
    del array
    assert mapped.tolist() == list(range(10))
