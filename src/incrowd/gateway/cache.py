"""A memory with a budget: what was not used for longest is forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class Cache(Generic[Kept]):
    """Key -> thing, within a number of bytes. Safe to share between threads."""

    def __init__(self, budget: int, size: Callable[[Kept], int]) -> None:
        self._budget = budget
        self._size = size
        self._kept: OrderedDict[Hashable, tuple[Kept, int]] = OrderedDict()
        self._used = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def used(self) -> int:
        """Bytes taken, about."""
        return self._used

    def get(self, key: Hashable) -> Kept | None:
        """Return what is kept under a key, if it still is."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, thing: Kept) -> None:
        """Keep a thing; its size is asked again each time it is put, so put again what has grown."""
        size = self._size(thing) + 200
        with self._lock:
            _, before = self._kept.pop(key, (None, 0))
            self._kept[key] = (thing, size)
            self._used += size - before
            while self._used > self._budget and len(self._kept) > 1:
                _, (_, freed) = self._kept.popitem(last=False)
                self._used -= freed

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._used = 0
