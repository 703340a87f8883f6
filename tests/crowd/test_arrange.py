from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd import merge
from incrowd.crowd.disk import Disk
from incrowd.crowd.merge import PLACE_BITS, Places, arrange, side_by_side


def placed(places: list[int], ranks: object) -> pl.DataFrame:
    table = pl.DataFrame({"place": places, "rank": ranks, "occurrence": [1] * len(places)})
    return table.cast({"place": pl.UInt64, "rank": pl.UInt64, "occurrence": pl.UInt32})


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=3),
    group=st.integers(1, 5),
    pieces=st.integers(1, 7),
    buckets=st.integers(1, 6),
    seed=st.integers(0, 2**32),
)
def test_rows_come_out_by_rank_whatever_the_files_groups_batches_and_buckets(
    sizes: list[int],
    group: int,
    pieces: int,
    buckets: int,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("arrange")
    rng = np.random.default_rng(seed)
    files, places, words = [], [], []
    for number, size in enumerate(sizes):
        texts = [f"{number}.{row}" for row in range(size)]
        files.append(folder / f"{number}.parquet")
        pl.DataFrame({"text": texts}, {"text": pl.String}).write_parquet(files[-1], row_group_size=group)
        chosen = np.flatnonzero(rng.random(size) < 0.7)  # the others are duplicates
        places += [(number << PLACE_BITS) + int(row) for row in chosen]
        words += [texts[row] for row in chosen]
    ranks = rng.permutation(len(places)).astype(np.uint64)
    table = placed(places, ranks)
    cuts = np.sort(rng.integers(0, len(places) + 1, buckets - 1)).astype(np.uint64)
    ends = np.append(cuts, np.uint64(len(places)))
    spill = folder / "spill"
    rows = arrange(files, Places(table.iter_slices(pieces)), ends, ["text"], spill, Disk(durable=False))
    found = [text for frame in rows for text in frame["text"]]
    assert found == [words[row] for row in np.argsort(ranks)]
    assert not spill.exists()


def test_a_failure_midway_leaves_no_spill(tmp_path: Path) -> None:
    pl.DataFrame({"text": ["a", "b"]}).write_parquet(tmp_path / "0.parquet")
    ends = np.array([1, 2], np.uint64)
    rows = arrange(
        [tmp_path / "0.parquet"],
        Places([placed([0, 1], [1, 0])]),
        ends,
        ["text"],
        tmp_path / "spill",
        Disk(durable=False),
    )
    assert next(rows)["text"].to_list() == ["b"]
    assert (tmp_path / "spill").exists()
    rows.close()
    assert not (tmp_path / "spill").exists()


KEYS = st.tuples(
    st.sampled_from(["", "a", "b", "\u00e9", "\U0001f375"]),
    st.sampled_from([None, -5, 0, 7]),
    st.sampled_from([0, 2**63, 2**64 - 1]),
)


@settings(max_examples=60, deadline=None)
@given(
    runs=st.lists(st.lists(KEYS, max_size=12), max_size=4), files=st.integers(1, 3), rows=st.integers(1, 5)
)
def test_runs_side_by_side_come_out_as_if_sorted_together(
    runs: list[list[tuple[str, int | None, int]]],
    files: int,
    rows: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def order(key: tuple[str, int | None, int]) -> tuple[bytes, bool, int, int]:
        return key[0].encode(), key[1] is not None, key[1] or 0, key[2]

    folder = tmp_path_factory.mktemp("runs")
    schema = {"a": pl.String, "b": pl.Int64, "c": pl.UInt64}
    paths: list[list[Path]] = []
    for number, run in enumerate(runs):
        run.sort(key=order)
        step = max(1, -(-len(run) // files))
        paths.append([])
        for start in range(0, len(run), step):
            path = folder / f"{number}-{start}.parquet"
            some = pl.DataFrame(run[start : start + step], schema, orient="row")
            some.write_parquet(path, row_group_size=3)
            paths[-1].append(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "RUN_ROWS", rows)
        found = [row for frame in side_by_side(paths, list(schema)) for row in frame.rows()]
    assert found == sorted((key for run in runs for key in run), key=order)
