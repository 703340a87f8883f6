"""One gateway on a state folder: two would not know what the other has told."""

from __future__ import annotations

from pathlib import Path

from filelock import BaseFileLock

from incrowd.crowd.disk import PRIVATE_FOLDER, Disk, take_lock
from incrowd.errors import IncrowdError

NAME = "lock"
PATIENCE = 5.0
"""Seconds to wait for a gateway that was just killed to let go."""


class Occupied(IncrowdError):
    """Another gateway works on this state."""


def occupy(state: Path) -> BaseFileLock:
    """Take a state folder for this process; return a lock to release, which the system does if we die."""
    Disk().make_folder(state, PRIVATE_FOLDER)
    lock = take_lock(state / NAME, seconds=PATIENCE)
    if lock is None:
        raise Occupied(
            f"{state}: expected a state folder that no gateway uses, got one in use. Stop the other gateway, or ask "
            "it through its own port"
        )
    return lock
