from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from incrowd.engine.checkpoints import read_piece, read_rows, write_piece, write_rows, write_table
from incrowd.errors import SchemaError, UnreadableSource

arrays = hnp.arrays(
    dtype=st.sampled_from([np.int32, np.int64, np.float32, np.float64, np.bool_]),
    shape=hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
)


@given(piece=st.dictionaries(st.text("abc_", min_size=1, max_size=8), arrays, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_piece_comes_back_as_it_was(piece, tmp_path_factory):
    path = tmp_path_factory.mktemp("piece") / "a.parquet"
    write_piece(path, piece)
    back = read_piece(path)
    assert list(back) == list(piece)
    for name, array in piece.items():
        assert back[name].dtype == array.dtype
        assert np.array_equal(back[name], array, equal_nan=array.dtype.kind == "f")
        assert back[name].flags.writeable


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (5, 7)])
def test_profiles_come_back_as_they_were(shape, tmp_path):
    rows = sparse.csr_matrix(np.random.default_rng(1).random(shape) * (np.arange(shape[1]) % 2))
    write_rows(tmp_path / "p.parquet", rows)
    back = read_rows(tmp_path / "p.parquet")
    assert back.shape == shape
    assert (back != rows).nnz == 0


def test_a_result_is_a_plain_table(tmp_path):
    write_table(tmp_path / "r.parquet", {"person": ["a", "b"], "within 0.5": np.array([3, 4])})
    assert pq.read_table(tmp_path / "r.parquet").to_pydict() == {"person": ["a", "b"], "within 0.5": [3, 4]}


def test_damaged_missing_and_foreign_files_are_named(tmp_path):
    with pytest.raises(UnreadableSource, match="missing or damaged"):
        read_piece(tmp_path / "none.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and so on")
    with pytest.raises(UnreadableSource, match="missing or damaged"):
        read_rows(tmp_path / "bad.parquet")
    write_table(tmp_path / "other.parquet", {"a": [1]})
    with pytest.raises(SchemaError, match="words"):
        read_rows(tmp_path / "other.parquet")
    write_table(tmp_path / "narrow.parquet", {"words": [[1]], "values": [[1.0]]})
    with pytest.raises(SchemaError, match="width"):
        read_rows(tmp_path / "narrow.parquet")


def test_nothing_is_left_of_a_write_that_fails(tmp_path):
    with pytest.raises(OSError, match="folder"):
        write_piece(tmp_path / "no such folder" / "a.parquet", {"a": np.zeros(1)})
    assert not list(tmp_path.iterdir())
