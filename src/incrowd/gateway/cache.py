"""A memory with a budget in bytes, shared by threads: what was not used for longest is forgotten first."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

Kept = TypeVar("Kept")
OVERHEAD = 600
"""Bytes that an entry takes besides what is kept, about: its key and the objects around it (measured: 490 to 650)."""


class Cache(Generic[Kept]):
    """Key -> thing, within a number of bytes. cachetools' own caches are not safe to share between threads."""

    def __init__(self, budget: int, size: Callable[[Kept], int]) -> None:
        self._kept: LRUCache[Hashable, Kept] = LRUCache(budget, lambda thing: size(thing) + OVERHEAD)
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def used(self) -> int:
        """Bytes taken, about."""
        return int(self._kept.currsize)

    def get(self, key: Hashable) -> Kept | None:
        """Return what is kept under a key, if it still is."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: Hashable, thing: Kept) -> None:
        """Keep a thing unless it alone passes the budget; put again what has grown, so that it is measured again."""
        with self._lock:
            self._kept.pop(key, None)
            if self._kept.getsizeof(thing) <= self._kept.maxsize:
                self._kept[key] = thing
