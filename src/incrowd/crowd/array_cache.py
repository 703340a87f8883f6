"""Arrays kept in a crowd's cache, memory-mapped: made once for the same data and question, never read whole.

Nothing here loads more than NumPy: a draft is checked while somebody waits for the answer.
"""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
import pickle
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from incrowd.errors import CrowdError

LAYOUT = 5
"""Raised when what is stored changes, so that old files are not read."""
FOLDER = "advisor"
ABOUT, DATA = "about.json", "arrays.bin"
ALIGNED = 64

UNFINISHED = "unfinished-"
LEFT_BEHIND = 86_400
"""Seconds after which what somebody began to write, and was killed, is taken away."""

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")

_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
"""What is mapped now; its pages count as this process's memory once they were looked at."""


class DiskArray:
    """A one-dimensional array that is written once, at its end, and read in slices; only these are in memory.

    It lies in a temporary file and is gone when nobody holds it. The file has no name, unless it may be kept.
    """

    def __init__(self, dtype: DTypeLike, folder: Path | None = None, *, may_be_kept: bool = False) -> None:
        self.dtype = np.dtype(dtype)
        self._file, self._path = _temporary(folder, named=may_be_kept)
        self._gone = weakref.finalize(self, _discard, self._file, self._path)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, values: NDArray[Any]) -> slice:
        """Write more values at the end; return where they are."""
        self._file.seek(0, 2)
        values.astype(self.dtype, copy=False).tofile(self._file)
        self._length += len(values)
        return slice(self._length - len(values), self._length)

    def __getitem__(self, part: slice) -> NDArray[Any]:
        start, stop, _ = part.indices(self._length)
        self._file.seek(start * self.dtype.itemsize)
        return np.fromfile(self._file, self.dtype, max(0, stop - start))

    def mapped(self) -> NDArray[Any]:
        """Return the whole as an array that the system pages in on demand; it may outlive this object."""
        if not self._length:
            return np.empty(0, self.dtype)
        self._file.flush()
        return np.memmap(self._file, self.dtype, mode="r+", shape=(self._length,))

    def keep(self, path: Path) -> None:
        """Move the file to where it stays; the array itself cannot be asked any more."""
        self._gone.detach()
        self._file.close()
        shutil.move(self._path or "", path)


def _discard(file: Any, path: Path | None) -> None:
    file.close()
    if path is not None:
        with suppress(OSError):
            path.unlink()


def _temporary(folder: Path | None, *, named: bool) -> tuple[Any, Path | None]:
    """Open a file, in the folder if that can be written to; it stays open as long as its array lives."""
    for place in (folder, None):
        with suppress(OSError):
            if not named:
                return tempfile.TemporaryFile(dir=place), None
            number, path = tempfile.mkstemp(dir=place, prefix=UNFINISHED)
            return os.fdopen(number, "w+b"), Path(path)
    raise CrowdError("no folder for temporary files can be written to; free some space, or set TMPDIR")


def cached_arrays(
    cache: Path,
    kind: str,
    question: Mapping[str, Any],
    data_hash: str,
    make: Callable[[], tuple[Mapping[str, NDArray[Any] | DiskArray], dict[str, Any]]],
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
        return {name: _in_memory(array) for name, array in arrays.items()}, about
    del arrays
    give_back()
    for old in place.parent.glob(f"{kind}-{asked}-*"):
        if old != place:
            shutil.rmtree(old, ignore_errors=True)
    found = _load(place)
    if found is None:
        raise CrowdError(f"{place}: what was just written there cannot be read. Is the disk full or failing?")
    return found


def _in_memory(array: NDArray[Any] | DiskArray) -> NDArray[Any]:
    return array.mapped() if isinstance(array, DiskArray) else array


def _load(place: Path) -> tuple[Arrays, dict[str, Any]] | None:
    if not (place / ABOUT).exists():
        return None
    try:
        about = json.loads((place / ABOUT).read_text(encoding="utf-8"))
        layout = about.pop("arrays")
        # One file and one mapping where it can be: opening dozens of files would take longer than the answer.
        data = {name: _mapping(place / name) for name in {DATA, *(entry[3] for entry in layout.values())}}
        return {name: _view(data[entry[3]], *entry[:3]) for name, entry in layout.items()}, about
    except (OSError, ValueError, KeyError, TypeError):
        shutil.rmtree(place, ignore_errors=True)
        return None


def _mapping(path: Path) -> mmap.mmap | None:
    with path.open("rb") as file:
        if not path.stat().st_size:
            return None
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    _mapped.add(mapping)
    return mapping


def _view(data: mmap.mmap | None, dtype: str, shape: list[int], start: int) -> NDArray[Any]:
    count = math.prod(shape)
    if not count or data is None:
        return np.zeros(shape, dtype)
    return np.frombuffer(data, dtype, count, start).reshape(shape)


def _save(place: Path, arrays: Mapping[str, NDArray[Any] | DiskArray], about: Mapping[str, Any]) -> bool:
    """Write a folder whole or not at all; a cache may fail to, and nothing is lost."""
    draft = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _clean(place.parent)
        draft = Path(tempfile.mkdtemp(dir=place.parent, prefix=UNFINISHED))
        layout = _write(draft / DATA, arrays)
        (draft / ABOUT).write_text(json.dumps({**about, "arrays": layout}), encoding="utf-8")
        # Arrays on disk move last, each as the file it is: a full disk has shown itself by now.
        for name, array in arrays.items():
            if isinstance(array, DiskArray):
                array.keep(draft / layout[name][3])
        draft.rename(place)
    except OSError:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
        return (place / ABOUT).exists()
    return True


def _clean(folder: Path) -> None:
    """Take away what was begun long ago and never finished."""
    for left in folder.glob(f"{UNFINISHED}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > LEFT_BEHIND:
                left.unlink() if left.is_file() else shutil.rmtree(left, ignore_errors=True)


def _write(path: Path, arrays: Mapping[str, NDArray[Any] | DiskArray]) -> dict[str, Any]:
    """Write arrays in memory one after the other; return the type, the shape, the start and the file of each."""
    layout: dict[str, Any] = {}
    with path.open("wb") as file:
        file.write(bytes(ALIGNED))  # an empty file cannot be mapped
        for name, array in arrays.items():
            if isinstance(array, DiskArray):
                layout[name] = array.dtype.str, [len(array)], 0, f"{name}.bin"
                continue
            layout[name] = array.dtype.str, list(array.shape), file.tell(), path.name
            if array.nbytes:
                # As bytes without a copy: arrays are large.
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            file.write(bytes(-file.tell() % ALIGNED))
    return layout


def release(*arrays: NDArray[Any]) -> None:
    """Let go of the pages of mapped arrays that were gone through: they stay on the disk, and in its cache."""
    for array in arrays:
        owner: Any = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        owner = owner.obj if isinstance(owner, memoryview) else owner
        if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            owner.madvise(mmap.MADV_DONTNEED)


def give_back() -> None:
    """Give memory back to the system: what was freed, and pages of mapped arrays, which come back when looked at.

    glibc keeps what was freed otherwise, and what comes next takes more.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapping in list(_mapped):
            mapping.madvise(mmap.MADV_DONTNEED)
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def set_aside(thing: T, folder: Path | None = None) -> T:
    """Return the same thing with its arrays in a temporary file, mapped: for what is large and seldom asked.

    The file has no name and is gone when nobody holds the arrays.
    """
    buffers: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    file, _ = _temporary(folder, named=False)
    with file:
        try:
            places = [_append(file, buffer.raw()) for buffer in buffers]
            file.flush()
        except OSError:  # the disk is full: memory it is
            return thing
        if not file.tell():
            return thing
        # A private mapping, though nobody writes: compiled loops tell arrays that may be written to from others.
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    _mapped.add(mapping)
    whole = memoryview(mapping)
    parts = [whole[start:stop] for start, stop in places]
    aside: T = pickle.loads(rest, buffers=parts)  # noqa: S301  our own, from a line above
    return aside


def _append(file: Any, data: memoryview) -> tuple[int, int]:
    """Write some bytes where an array may begin; return where they are."""
    file.write(bytes(-file.tell() % ALIGNED))
    start = file.tell()
    file.write(data)
    return start, file.tell()


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
