"""What holds a state folder together: one secret, one identity, the clients' keys, one lock, one clock.

The identity follows from the secret, and the ledger and the snapshots carry it. Whatever is missing, older than the
rest or from another gateway is refused: a gateway that forgot what it told cannot protect anybody.

API keys are made here, shown once, and kept only as salted hashes. A key is 256 random bits, so a plain SHA-256 over
salt and key cannot be searched; slow hashes are for passwords that people choose.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import blake2b, sha256
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
        return Secret(_read_secret(path))
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(SECRET_BYTES).hex().encode() + b"\n")
        disk.sync(file)
    disk.sync_folder(state)
    return Secret(_read_secret(path))


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


def _refuse_if_others_can_read(path: Path) -> None:
    """Raise unless a private file is for its owner alone."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise InputError(
            f"{path}: expected a file for its owner alone (mode 600), got mode {mode:o}. "
            f"Run: chmod 600 {path}"
        )


def _read_secret(path: Path) -> bytes:
    _refuse_if_others_can_read(path)
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


KEYS_NAME = "keys.json"
PREFIX = "incrowd"
NAME = re.compile(r"[\w.@+-]{1,80}")
TOKEN = re.compile(r"incrowd_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """One client's key as it is kept: who it belongs to, and a hash that recognises it."""

    id: str
    """Public part of the key, by which it is listed and removed."""
    name: str
    organisation: str
    """Clients of one organisation share a ledger and a budget."""
    salt: str
    digest: str
    created: str

    def matches(self, secret: str) -> bool:
        """Tell whether this is the key, in the same time for every wrong one."""
        return hmac.compare_digest(self.digest, _digest(self.salt, secret))


NOBODY = ApiKey(id="", name="", organisation="", salt="0" * 32, digest="-" * 64, created="")
"""Compared with when no key has the id, so that this takes as long as a wrong secret."""


class KeyStore:
    """The keys of one gateway, in a private file; changes made by another process are seen at once."""

    def __init__(self, state: Path) -> None:
        self.path = state / KEYS_NAME
        self._seen: tuple[int, int, int] | None = None
        self._keys: dict[str, ApiKey] = {}

    def __repr__(self) -> str:
        return f"KeyStore({len(self.all())} keys)"

    def all(self) -> tuple[ApiKey, ...]:
        """Return every key, oldest first."""
        self._refresh()
        return tuple(self._keys.values())

    def add(self, name: str, organisation: str) -> str:
        """Make a key and return it; it cannot be shown again."""
        for what, text in (("NAME", name), ("--organisation", organisation)):
            if not NAME.fullmatch(text):
                raise InputError(
                    f"{what}: expected 1 to 80 letters, digits and . @ + - _, "
                    f"got {len(text)} characters that do not fit"
                )
        identity, salt, secret = secrets.token_hex(6), secrets.token_hex(16), secrets.token_urlsafe(32)
        made = ApiKey(
            id=identity,
            name=name,
            organisation=organisation,
            salt=salt,
            digest=_digest(salt, secret),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with self._changing() as keys:
            if any(key.name == name for key in keys.values()):
                raise InputError(f"NAME: expected a new name, got '{name}', which already has a key")
            keys[identity] = made
        return f"{PREFIX}_{identity}_{secret}"

    def remove(self, name: str) -> None:
        """Take a key away, by its id or its client's name; the running gateway refuses it from now on."""
        with self._changing() as keys:
            found = [key.id for key in keys.values() if name in (key.id, key.name)]
            if not found:
                known = ", ".join(key.name for key in keys.values()) or "none"
                raise InputError(f"NAME: expected the name or id of a key, got '{name}'; there are: {known}")
            for identity in found:
                del keys[identity]

    def find(self, token: str) -> ApiKey | None:
        """Return whose key this is, or None."""
        self._refresh()
        parts = TOKEN.fullmatch(token)
        identity, secret = parts.groups() if parts else ("", "")
        key = self._keys.get(identity, NOBODY)
        return key if key.matches(secret) and key is not NOBODY else None

    def _refresh(self) -> None:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            self._seen, self._keys = None, {}
            return
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if version != self._seen:
            _refuse_if_others_can_read(self.path)
            self._keys = _read_keys(self.path)
            self._seen = version

    @contextmanager
    def _changing(self) -> Iterator[dict[str, ApiKey]]:
        """Hold the file, hand out its keys, and write them back in one step if the block ends well."""
        disk = Disk()
        disk.make_folder(self.path.parent, PRIVATE_FOLDER)
        lock = take_lock(self.path.with_name(KEYS_NAME + ".lock"), seconds=-1)
        try:
            keys = _read_keys(self.path) if self.path.exists() else {}
            yield keys
            text = json.dumps({"keys": [asdict(key) for key in keys.values()]}, indent=1)
            disk.write_whole(self.path, text.encode() + b"\n", PRIVATE)
        finally:
            if lock is not None:
                lock.release()


def _digest(salt: str, secret: str) -> str:
    return sha256(bytes.fromhex(salt) + secret.encode()).hexdigest()


def _read_keys(path: Path) -> dict[str, ApiKey]:
    try:
        listed = json.loads(path.read_bytes())["keys"]
        keys = [ApiKey(**{name: str(value) for name, value in entry.items()}) for entry in listed]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"{path}: expected the keys as `incrowd gateway key add` wrote them, got something else. "
            "Restore the file from a backup, or remove it and hand out new keys."
        ) from None
    return {key.id: key for key in keys}
