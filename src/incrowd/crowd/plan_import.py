"""What an import will cost, told from the first rows of each file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from incrowd.crowd import readers
from incrowd.crowd.plan import Step
from incrowd.crowd.readers.base import Batch, ReadOptions
from incrowd.crowd.readers.source import Source
from incrowd.crowd.sources import Paths, require_files

SAMPLE_BYTES = 4 * 2**20
IMPORT_OVER_READING = 3.5
"""Checking, hashing, sorting and writing take this many times as long as parsing does."""
STORED_OVER_TEXT = 0.55
"""A crowd's size for each byte of its sources, unpacked."""


def plan_import(paths: Paths, format: str, options: ReadOptions) -> list[Step]:
    """Return the cost of importing files, one step a file."""
    return [_step(path, format, options) for path in require_files(paths)]


def _step(path: Path, format: str, options: ReadOptions) -> Step:
    reader = readers.detect(path, format)
    sampling = ReadOptions(
        kind=options.kind,
        columns=options.columns,
        community=options.community,
        user=options.user,
        batch_bytes=SAMPLE_BYTES,
        keep_complete=True,
    )
    start = time.perf_counter()
    rows, whole = _first(reader.read(path, sampling))
    seconds = time.perf_counter() - start
    size = unpacked_bytes(path)
    # A sample that is the whole file needs no estimate.
    times = 1.0 if whole else max(1.0, size / SAMPLE_BYTES)
    return Step(
        what=f"import {path.name}",
        rows=round(rows * times),
        text_bytes=round(size),
        seconds=seconds * times * IMPORT_OVER_READING,
    )


def _first(batches: Iterator[Batch]) -> tuple[int, bool]:
    """Return the rows of the first batch, and whether there is no other."""
    first = next(batches, None)
    if first is None:
        return 0, True
    return first.rows.height + first.rejects.height, next(batches, None) is None


def unpacked_bytes(path: Path) -> float:
    """Estimate a file's size after decompression from its beginning."""
    with Source(path, ReadOptions(keep_complete=True)) as source:
        unpacked = 0
        while unpacked < SAMPLE_BYTES and (piece := source.read(SAMPLE_BYTES)):
            unpacked += len(piece)
        return path.stat().st_size * unpacked / max(1, source.taken)
