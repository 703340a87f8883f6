"""Arrays kept in a crowd's cache, memory-mapped: made once for the same data and question, never read whole.

Nothing here loads more than NumPy: a draft is checked while somebody waits for the answer.
"""

from __future__ import annotations

import json
import math
import mmap
import shutil
import tempfile
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LAYOUT = 4
"""Raised when what is stored changes, so that old files are not read."""
FOLDER = "advisor"
ABOUT, DATA = "about.json", "arrays.bin"
ALIGNED = 64

Arrays = dict[str, NDArray[Any]]


def cached_arrays(
    cache: Path,
    kind: str,
    question: Mapping[str, Any],
    data_hash: str,
    make: Callable[[], tuple[Arrays, dict[str, Any]]],
) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays (and facts) of a question, made on the first time; those of older data are removed."""
    asked = blake2b(
        json.dumps([LAYOUT, question], sort_keys=True, default=str).encode(), digest_size=8
    ).hexdigest()
    place = cache / FOLDER / f"{kind}-{asked}-{data_hash}"
    found = _load(place)
    if found is not None:
        return found
    arrays, about = make()
    if not _save(place, arrays, about):
        return arrays, about
    for old in place.parent.glob(f"{kind}-{asked}-*"):
        if old != place:
            shutil.rmtree(old, ignore_errors=True)
    return _load(place) or (arrays, about)


def _load(place: Path) -> tuple[Arrays, dict[str, Any]] | None:
    if not (place / ABOUT).exists():
        return None
    try:
        about = json.loads((place / ABOUT).read_text(encoding="utf-8"))
        layout = about.pop("arrays")
        with (place / DATA).open("rb") as file:
            # One file and one mapping: opening dozens of files would take longer than the answer.
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return {name: _view(data, *entry) for name, entry in layout.items()}, about
    except (OSError, ValueError, KeyError, TypeError):
        shutil.rmtree(place, ignore_errors=True)
        return None


def _view(data: mmap.mmap, dtype: str, shape: list[int], start: int) -> NDArray[Any]:
    count = math.prod(shape)
    if not count:
        return np.zeros(shape, dtype)
    return np.frombuffer(data, dtype, count, start).reshape(shape)


def _save(place: Path, arrays: Arrays, about: Mapping[str, Any]) -> bool:
    """Write a folder whole or not at all; a cache may fail to, and nothing is lost."""
    draft = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=place.parent, prefix="unfinished-"))
        layout = _write(draft / DATA, arrays)
        (draft / ABOUT).write_text(json.dumps({**about, "arrays": layout}), encoding="utf-8")
        draft.rename(place)
    except OSError:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        return (place / ABOUT).exists()
    return True


def _write(path: Path, arrays: Arrays) -> dict[str, tuple[str, list[int], int]]:
    """Write arrays one after the other; return the type, the shape and the start of each."""
    layout = {}
    with path.open("wb") as file:
        file.write(bytes(ALIGNED))  # an empty file cannot be mapped
        for name, array in arrays.items():
            layout[name] = array.dtype.str, list(array.shape), file.tell()
            file.write(np.ascontiguousarray(array).tobytes())
            file.write(bytes(-file.tell() % ALIGNED))
    return layout


def identity(user: str) -> bytes:
    """Return the fixed-length name under which arrays list a person."""
    return blake2b(user.encode(), digest_size=16).hexdigest().encode()


def identities(users: list[str]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return everybody's fixed-length names, sorted, and the row each belongs to."""
    names = np.array([identity(user) for user in users], dtype="S32")
    order = np.argsort(names, kind="stable")
    return names[order], order.astype(np.int64)


def find_row(names: NDArray[Any], rows: NDArray[np.int64], user: str) -> int | None:
    """Return a person's row."""
    wanted = np.bytes_(identity(user))
    at = int(np.searchsorted(names, wanted))
    return int(rows[at]) if at < len(names) and names[at] == wanted else None


def spans(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all numbers from each start, `size` of them each, one span after the other.

    >>> spans(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(sizes) - sizes
    return np.asarray(np.arange(int(sizes.sum())) + np.repeat(starts - before, sizes))
