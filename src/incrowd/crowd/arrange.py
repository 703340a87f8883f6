"""Puts the rows of many files into one given order, however long their texts are, within bounded memory.

The order is decided elsewhere, on keys alone. Here rows only move: each goes into the bucket its rank falls
into (a bucket fits in memory), buckets lie on the disk until all files are read, and come out one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from incrowd.crowd.disk import Disk

PLACE_BITS = 40
"""A row's place is (number of its file) << PLACE_BITS | (number of the row in it)."""

Numbers = np.ndarray[Any, np.dtype[np.uint64]]


class Places:
    """Which rows go where: columns `place`, `rank` and `occurrence`, sorted by place, read once."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._rest: pa.RecordBatch | None = None

    def before(self, end: int) -> list[pa.RecordBatch]:
        """Return the rows with places below `end` that were not returned before."""
        found = []
        while (batch := self._rest or next(self._batches, None)) is not None:
            count = int(np.searchsorted(batch.column("place").to_numpy(), np.uint64(end)))
            found.append(batch.slice(0, count))
            self._rest = batch.slice(count) if count < batch.num_rows else None
            if self._rest is not None:
                break
        return found


class Spill:
    """Rows on the disk, to be fetched back by bucket."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path, self._disk = path, disk
        self._file = disk.open(path)
        self._pieces: dict[int, list[int]] = {}

    def put(self, bucket: int, rows: pa.RecordBatch) -> None:
        """Append some rows of a bucket."""
        self._pieces.setdefault(bucket, []).append(self._file.tell())
        self._disk.write(self._file, rows.serialize())

    def get(self, bucket: int, schema: pa.Schema) -> pa.Table:
        """Return all rows of a bucket."""
        self._file.flush()
        with pa.OSFile(str(self._path)) as file:
            batches = []
            for start in self._pieces.pop(bucket, []):
                file.seek(start)
                batches.append(pa.ipc.read_record_batch(pa.ipc.read_message(file), schema))
        return pa.Table.from_batches(batches, schema)

    def close(self) -> None:
        """Forget everything."""
        self._file.close()
        self._disk.remove(self._path)


def arrange(
    files: Sequence[Path], places: Places, ends: Numbers, columns: Sequence[str], spill: Path, disk: Disk
) -> Iterator[pa.RecordBatch]:
    """Yield the chosen rows of all files in the order of their ranks.

    `ends` are the ranks at which buckets end; the last is the number of rows.
    """
    selected = _selected(files, places, columns)
    if len(ends) <= 1:
        yield from _in_order(list(selected))
        return
    pieces = Spill(spill, disk)
    try:
        schema = None
        for rows in selected:
            schema = rows.schema
            _distribute(rows, ends, pieces)
        for bucket in range(len(ends)) if schema is not None else ():
            yield from _in_order([pieces.get(bucket, schema)])
            pa.default_memory_pool().release_unused()
    finally:
        pieces.close()


def _selected(files: Sequence[Path], places: Places, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the chosen rows of one row group after the other, with their ranks."""
    for number, path in enumerate(files):
        with pq.ParquetFile(path) as file:
            start = number << PLACE_BITS
            for index in range(file.num_row_groups):
                group = file.read_row_group(index, columns=list(columns))
                chosen = pa.Table.from_batches(places.before(start + group.num_rows), _PLACES)
                if chosen.num_rows:
                    yield _take(group, chosen, start)
                start += group.num_rows


_PLACES = pa.schema([("place", pa.uint64()), ("rank", pa.uint64()), ("occurrence", pa.uint32())])


def _take(group: pa.Table, chosen: pa.Table, start: int) -> pa.Table:
    rows = group.take(chosen["place"].to_numpy() - np.uint64(start))
    for name in ("rank", "occurrence"):
        rows = rows.append_column(name, chosen[name])
    return rows.combine_chunks()


def _distribute(rows: pa.Table, ends: Numbers, pieces: Spill) -> None:
    ranks = rows["rank"].to_numpy()
    order = np.argsort(ranks)
    (batch,) = rows.take(order).combine_chunks().to_batches()
    buckets = np.searchsorted(ends, ranks[order], side="right")
    cuts = np.flatnonzero(np.diff(buckets)) + 1
    for first, last in zip([0, *cuts], [*cuts, len(buckets)], strict=True):
        pieces.put(int(buckets[first]), batch.slice(first, last - first))


def _in_order(tables: list[pa.Table]) -> Iterator[pa.RecordBatch]:
    if not tables:
        return
    rows = pa.concat_tables(tables)
    tables.clear()
    yield from rows.take(np.argsort(rows["rank"].to_numpy())).to_batches()
