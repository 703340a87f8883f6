"""One importer at a time: a lock the system takes back by itself when the process dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from incrowd.errors import CrowdBusy

LOCK_NAME = ".lock"


@contextmanager
def import_lock(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the crowd for one import; if another holds it, wait or raise :class:`CrowdBusy`."""
    handle = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _acquire(handle, folder, wait)
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, folder: Path, wait: bool) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise CrowdBusy(
            f"{folder}: another import is running in this crowd. Wait for it to end, or pass --wait."
        ) from None
