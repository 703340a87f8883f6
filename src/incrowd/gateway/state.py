"""What holds a state folder together: the one secret every key is derived from, and the lock."""

from __future__ import annotations

import os
import secrets
from hashlib import blake2b
from pathlib import Path

from filelock import BaseFileLock

from incrowd.crowd.disk import PRIVATE, PRIVATE_FOLDER, Disk, take_lock
from incrowd.errors import IncrowdError, InputError

SECRET_NAME = "secret"  # noqa: S105  the name of a file
SECRET_BYTES = 32


class Secret:
    """256 random bits; each purpose gets a key of its own, so that one says nothing about another."""

    def __init__(self, root: bytes) -> None:
        self._root = root

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def key(self, purpose: str) -> bytes:
        """Return the 32-byte key of one purpose, the same every time."""
        return blake2b(purpose.encode(), key=self._root, digest_size=32).digest()


def open_secret(state: Path) -> Secret:
    """Return the secret of a state folder; the first call makes it, readable by its owner alone."""
    path, disk = state / SECRET_NAME, Disk()
    disk.make_folder(state, PRIVATE_FOLDER)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        return Secret(_read(path))
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(SECRET_BYTES).hex().encode() + b"\n")
        disk.sync(file)
    disk.sync_folder(state)
    return Secret(_read(path))


def refuse_if_others_can_read(path: Path) -> None:
    """Raise unless a private file is for its owner alone."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise InputError(
            f"{path}: expected a file for its owner alone (mode 600), got mode {mode:o}. "
            f"Run: chmod 600 {path}"
        )


def _read(path: Path) -> bytes:
    refuse_if_others_can_read(path)
    try:
        root = bytes.fromhex(path.read_text("ascii"))
    except ValueError:
        root = b""
    if len(root) != SECRET_BYTES:
        raise InputError(
            f"{path}: expected {SECRET_BYTES} bytes in hexadecimal, got something else. Put the original file "
            "back; with a new secret every earlier answer would be ordered and thinned differently."
        )
    return root


LOCK_NAME = "lock"
PATIENCE = 5.0
"""Seconds to wait for a gateway that was just killed to let go."""


class StateInUse(IncrowdError):
    """Another gateway works on this state."""


def lock_state(state: Path) -> BaseFileLock:
    """Take a state folder for this process: two gateways would not know what the other has told.

    Release what is returned; if this process dies, the system does.
    """
    Disk().make_folder(state, PRIVATE_FOLDER)
    lock = take_lock(state / LOCK_NAME, seconds=PATIENCE)
    if lock is None:
        raise StateInUse(
            f"{state}: expected a state folder that no gateway uses, got one in use. Stop the other gateway, or ask "
            "it through its own port"
        )
    return lock
