"""One gateway on a state folder: two would not know what the other has told."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from time import monotonic, sleep

from incrowd.crowd.disk import PRIVATE, PRIVATE_FOLDER, Disk
from incrowd.errors import IncrowdError

NAME = "lock"
PATIENCE = 5.0
"""Seconds to wait for a gateway that was just killed to let go."""


class Occupied(IncrowdError):
    """Another gateway works on this state."""


def occupy(state: Path) -> int:
    """Take a state folder for this process; return a handle to close, which the system does if we die."""
    Disk().make_folder(state, PRIVATE_FOLDER)
    handle = os.open(state / NAME, os.O_RDWR | os.O_CREAT, PRIVATE)
    until = monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if monotonic() > until:
                break
            sleep(0.05)
    os.close(handle)
    raise Occupied(
        f"{state}: expected a state folder that no gateway uses, got one in use. Stop the other gateway, or ask "
        "it through its own port"
    )
