"""Counts on disk: computed once for the same posts and options, then read back."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from hashlib import blake2b
from pathlib import Path

import numpy as np
import polars as pl

from incrowd.text.counting import Counts
from incrowd.text.filters import Filters
from incrowd.text.options import TextOptions

LAYOUT = 1
"""Raised when the files below change, so that old ones are not read."""
SUMMARY = "summary.json"
_MATRIX = ("data", "indices", "indptr")


def name_of(
    data_hash: str,
    options: TextOptions,
    communities: list[str] | None,
    filters: Filters,
    period: pl.Expr | None,
) -> str:
    """Return a name that only the same question about the same posts has."""
    question = [
        LAYOUT,
        data_hash,
        options.hash,
        communities,
        [filters.min_posts, filters.min_profiles, filters.drop_largest],
        None if period is None else period.meta.serialize().hex(),
    ]
    return blake2b(json.dumps(question).encode(), digest_size=16).hexdigest()


def save(counts: Counts, place: Path) -> None:
    """Write counts into a folder, whole or not at all; a cache may fail to, and nothing is lost."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=place.parent, prefix="draft-"))
    except OSError:
        return
    try:
        _write(counts, draft)
        draft.rename(place)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)


def load(place: Path, memory: int) -> Counts | None:
    """Read counts back, or None if they are not there or damaged. A large matrix is paged in on demand."""
    if not (place / SUMMARY).exists():
        return None
    try:
        return _read(place, memory)
    except (OSError, EOFError, ValueError, KeyError, pl.exceptions.PolarsError):
        shutil.rmtree(place, ignore_errors=True)
        return None


def _read(place: Path, memory: int) -> Counts:
    import scipy.sparse as sp

    summary = json.loads((place / SUMMARY).read_text())
    files = [place / f"{part}.npy" for part in _MATRIX]
    is_large = sum(map(os.path.getsize, files)) > memory // 4
    data, indices, indptr = (np.load(file, mmap_mode="r" if is_large else None) for file in files)
    return Counts(
        matrix=sp.csr_matrix((data, indices, indptr), shape=summary["shape"]),
        identities=pl.read_parquet(place / "identities.parquet"),
        vocabulary=pl.read_parquet(place / "vocabulary.parquet")["token"],
        dropped=pl.read_parquet(place / "dropped.parquet"),
        options_hash=summary["options_hash"],
    )


def _write(counts: Counts, folder: Path) -> None:
    for part in _MATRIX:
        np.save(folder / f"{part}.npy", getattr(counts.matrix, part))
    counts.identities.write_parquet(folder / "identities.parquet")
    counts.vocabulary.to_frame().write_parquet(folder / "vocabulary.parquet")
    counts.dropped.write_parquet(folder / "dropped.parquet")
    summary = {"shape": counts.matrix.shape, "options_hash": counts.options_hash}
    (folder / SUMMARY).write_text(json.dumps(summary))
