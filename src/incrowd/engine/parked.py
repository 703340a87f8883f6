"""A job laid down in a folder that all workers see: its arrays are mapped into memory, not copied.

Several worker processes on one machine then share one copy of the profiles, and nothing large travels.
"""

from __future__ import annotations

import mmap
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SMALL = 2**16
"""Bytes below which an array stays in the main file: a mapping costs a page and a file."""


@dataclass(frozen=True)
class Parked:
    """Where a job lies. Small, so it can travel with every task."""

    folder: Path
    arrays: int

    def open(self) -> Any:
        """Load the job and open it."""
        return self.load().open()

    def load(self) -> Any:
        """Read the job back; its large arrays are private maps of the files, writable without effect on them."""
        buffers = [_mapped(self.folder / str(number)) for number in range(self.arrays)]
        # Written by `park` a moment ago into a folder that is ours alone.
        return pickle.loads((self.folder / "job").read_bytes(), buffers=buffers)  # noqa: S301


def park(job: Any, folder: Path) -> Parked:
    """Write a job into an empty folder."""
    large: list[pickle.PickleBuffer] = []

    def stays(buffer: pickle.PickleBuffer) -> bool:
        if buffer.raw().nbytes < _SMALL:
            return True
        large.append(buffer)
        return False

    (folder / "job").write_bytes(pickle.dumps(job, protocol=5, buffer_callback=stays))
    for number, buffer in enumerate(large):
        (folder / str(number)).write_bytes(buffer.raw())
    return Parked(folder, len(large))


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
