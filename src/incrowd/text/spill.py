"""Arrays that wait on disk: written once, read in slices, gone when nobody holds them."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


class DiskArray:
    """A one-dimensional array in an unnamed temporary file; only what is sliced is in memory."""

    def __init__(self, dtype: npt.DTypeLike, folder: Path | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open as long as the array lives
        weakref.finalize(self, self._file.close)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, values: npt.NDArray[Any]) -> slice:
        """Write more values at the end; return where they are."""
        self._file.seek(0, 2)
        values.astype(self.dtype, copy=False).tofile(self._file)
        self._length += len(values)
        return slice(self._length - len(values), self._length)

    def __getitem__(self, part: slice) -> npt.NDArray[Any]:
        start, stop, _ = part.indices(self._length)
        self._file.seek(start * self.dtype.itemsize)
        return np.fromfile(self._file, self.dtype, max(0, stop - start))

    def mapped(self) -> npt.NDArray[Any]:
        """Return the whole as an array that the system pages in on demand; it may outlive this object."""
        if not self._length:
            return np.empty(0, self.dtype)
        self._file.flush()
        return np.memmap(self._file, self.dtype, mode="r+", shape=(self._length,))
