"""What takes long and is the same for everybody, kept in the crowd's cache."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

FOLDER = "advisor"
LAYOUT = 1
"""Raised when what is kept changes, so that old files are not read."""

Arrays = Mapping[str, np.ndarray[Any, Any]]


def remembered(crowd: Crowd, question: Mapping[str, Any], answer: Callable[[], Arrays]) -> Arrays:
    """Return named arrays for a question about this data; computed at most once until the data changes.

    The question must hold every option that decides the answer. A damaged file is computed again.
    """
    text = json.dumps([LAYOUT, crowd.data_hash, question], sort_keys=True, default=str)
    place = crowd.cache / FOLDER / f"{blake2b(text.encode(), digest_size=12).hexdigest()}.npz"
    try:
        with np.load(place, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError):
        pass
    found = answer()
    _save(place, found)
    return found


def _save(place: Path, arrays: Arrays) -> None:
    """Write whole or not at all; a cache may fail to, and nothing is lost."""
    draft: str | None = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=place.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **dict(arrays))  # type: ignore[arg-type]  # the names are none of its options
        Path(draft).replace(place)
    except OSError:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)
