from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd.row_groups import Compression, RowGroups, group_rows, parsed, read_groups, spelt
from incrowd.crowd.tables import fetched

SCHEMA = {"number": pl.UInt64(), "name": pl.String(), "time": pl.Int64(), "text": pl.String()}


def rows(count: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "number": rng.integers(0, 2**63, count, dtype=np.uint64),
            "name": [f"u{n % 7}" for n in range(count)],
            "time": [None if n % 5 == 0 else n for n in range(count)],
            "text": [rng.bytes(n % 50).hex() + "é" for n in range(count)],
        },
        SCHEMA,
    )


def written(path: Path, frames: list[pl.DataFrame], compression: Compression = "zstd") -> Path:
    groups = RowGroups(SCHEMA, compression, no_statistics=["text"], metadata={"made": "here"})
    path.write_bytes(b"".join([*map(groups.group, frames), groups.end()]))
    return path


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("sizes", [[], [0], [3], [1, 40_000, 0, 7], [2] * 40])
def test_every_reader_finds_the_rows(sizes: list[int], compression: Compression, tmp_path: Path) -> None:
    frames = [rows(size, seed) for seed, size in enumerate(sizes)]
    path = written(tmp_path / "a.parquet", frames, compression)
    expected = pl.concat([rows(0), *frames])
    assert pl.read_parquet(path).equals(expected)
    assert fetched(duckdb.sql(f"FROM '{path}'")).equals(expected)
    assert pl.DataFrame(pq.read_table(path)).equals(expected)
    assert pl.concat([rows(0), *read_groups(path)]).equals(expected)
    assert group_rows(path) == [size for size in sizes if size]
    assert pl.read_parquet_metadata(path)["made"] == "here"


def test_a_footer_tells_the_least_and_the_largest_values_but_of_texts(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [rows(10), rows(20)])
    about = pq.read_metadata(path)
    groups = [about.row_group(n) for n in range(2)]
    assert [group.column(2).statistics.max for group in groups] == [9, 19]
    assert not any(group.column(3).is_stats_set for group in groups)
    assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE time > 15").fetchall() == [(4,)]


@pytest.mark.parametrize("most", [None, 1, 7, 1000])
def test_some_rows_and_columns_are_read_by_the_piece(most: int | None, tmp_path: Path) -> None:
    frames = [rows(20, seed) for seed in range(5)]
    path = written(tmp_path / "a.parquet", frames)
    where = pl.col("name") == "u3"
    found = list(read_groups(path, ["text", "time"], where=where, most_rows=most))
    assert pl.concat(found).equals(pl.concat(frames).filter(where).select("text", "time"))
    assert max(frame.height for frame in found) <= (most or 20)


def test_files_of_others_are_read_by_the_piece(tmp_path: Path) -> None:
    table = rows(100)
    pq.write_table(table.to_arrow(), tmp_path / "a.parquet", row_group_size=30)
    assert [frame.height for frame in read_groups(tmp_path / "a.parquet")] == [30, 30, 30, 10]
    assert pl.concat(read_groups(tmp_path / "a.parquet")).equals(table)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_what_is_no_footer_is_refused(data: bytes) -> None:
    try:
        struct = parsed(data)
    except ValueError:
        return
    assert parsed(spelt(struct)) == struct


def test_a_footer_is_spelt_as_others_spell_it(tmp_path: Path) -> None:
    pq.write_table(rows(50).to_arrow(), tmp_path / "a.parquet", row_group_size=20)
    data = (tmp_path / "a.parquet").read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert spelt(parsed(footer)) == footer


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and so on, but it does not end so")
    with pytest.raises(ValueError, match="no Parquet"):
        group_rows(tmp_path / "a.parquet")
