"""What holds a state folder together: one secret, one identity, one lock, one clock.

The identity follows from the secret, and the ledger and the snapshots carry it. Whatever is missing, older than the
rest or
from another gateway is refused: a gateway that forgot what it told cannot protect anybody.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from time import monotonic, time

from filelock import BaseFileLock

from incrowd.crowd.disk import PRIVATE, PRIVATE_FOLDER, Disk, take_lock
from incrowd.errors import IncrowdError, InputError
from incrowd.gateway.monitoring import logger

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

    @property
    def identity(self) -> str:
        """Stands for this gateway in everything that belongs to it."""
        return self.key("identity").hex()[:32]


class BrokenState(IncrowdError):
    """Something of a state folder is missing, damaged, older than the rest, or from another gateway."""

    def __init__(self, state: Path, what: str) -> None:
        super().__init__(
            f"{state}: {what}. A gateway that forgot what it told cannot protect anybody, so it does not start. Put "
            "back a copy of the whole folder that was made after the last answer; if there is none, 'incrowd gateway "
            "reset' starts anew with all budgets spent"
        )


def open_secret(state: Path) -> Secret:
    """Return the secret of a state folder; the first call makes it, readable by its owner alone."""
    path, disk = state / SECRET_NAME, Disk()
    disk.make_folder(state, PRIVATE_FOLDER)
    if not path.exists() and (kept := belongings(state)):
        raise BrokenState(state, f"expected the file '{SECRET_NAME}' beside '{kept[0].name}', there is none")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        return Secret(_read(path))
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(SECRET_BYTES).hex().encode() + b"\n")
        disk.sync(file)
    disk.sync_folder(state)
    return Secret(_read(path))


BELONGINGS = ("ledger.sqlite", "ledger.seal", "snapshots-*", "prints", "audit", "audit.head")
"""What a gateway that has run leaves in its folder."""


def belongings(state: Path) -> list[Path]:
    """Return what a gateway has left in a folder, without its secret and its keys."""
    return [path for name in BELONGINGS for path in sorted(state.glob(name))]


def set_aside(state: Path) -> Path | None:
    """Move everything a gateway remembers into a folder beside it; None if there is nothing."""
    kept = [*belongings(state), *state.glob("ledger.sqlite-*")]
    kept += [state / SECRET_NAME] if (state / SECRET_NAME).exists() else []
    if not kept:
        return None
    aside = state / f"before-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    Disk().make_folder(aside, PRIVATE_FOLDER)
    for path in kept:
        Disk().rename(path, aside / path.name)
    return aside


class SteadyClock:
    """The time of day, as long as it does not jump.

    A clock that is set forward for a minute would stamp what is told with a day in the future, and budgets would
    stay spent
    until then. Here time goes on as it did when the process started; a jump is logged once and otherwise ignored.
    """

    DRIFT = 60.0
    """Seconds by which the system's clock may differ before it counts as a jump."""

    def __init__(self, wall: Callable[[], float] = time, steady: Callable[[], float] = monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()
        self._jumped = False
        self._lock = Lock()

    def __call__(self) -> float:
        """Return seconds since 1970."""
        with self._lock:
            expected, shown = self._steady() + self._offset, self._wall()
            away = abs(shown - expected) > self.DRIFT
            if away and not self._jumped:
                logger.error(
                    "the system's clock jumped by %.0f seconds; going on without it", shown - expected
                )
            elif self._jumped and not away:
                logger.info("the system's clock is back")
            self._jumped = away
            if not away and shown >= expected:  # follow small corrections, never backwards
                self._offset += shown - expected
                return shown
            return expected


def moment(seconds: float) -> str:
    """Spell seconds since 1970 as a date and time."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


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
