"""API keys: made here, shown once, kept only as salted hashes.

A key is 256 random bits, so a plain SHA-256 over salt and key cannot be searched; slow hashes are for
passwords that people choose.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from incrowd.crowd.disk import PRIVATE, PRIVATE_FOLDER, Disk, take_lock
from incrowd.errors import InputError
from incrowd.gateway.state import refuse_if_others_can_read

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
            refuse_if_others_can_read(self.path)
            self._keys = _read(self.path)
            self._seen = version

    @contextmanager
    def _changing(self) -> Iterator[dict[str, ApiKey]]:
        """Hold the file, hand out its keys, and write them back in one step if the block ends well."""
        disk = Disk()
        disk.make_folder(self.path.parent, PRIVATE_FOLDER)
        lock = take_lock(self.path.with_name(KEYS_NAME + ".lock"), seconds=-1)
        try:
            keys = _read(self.path) if self.path.exists() else {}
            yield keys
            text = json.dumps({"keys": [asdict(key) for key in keys.values()]}, indent=1)
            disk.write_whole(self.path, text.encode() + b"\n", PRIVATE)
        finally:
            if lock is not None:
                lock.release()


def _digest(salt: str, secret: str) -> str:
    return sha256(bytes.fromhex(salt) + secret.encode()).hexdigest()


def _read(path: Path) -> dict[str, ApiKey]:
    try:
        listed = json.loads(path.read_bytes())["keys"]
        keys = [ApiKey(**{name: str(value) for name, value in entry.items()}) for entry in listed]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"{path}: expected the keys as `incrowd gateway key add` wrote them, got something else. "
            "Restore the file from a backup, or remove it and hand out new keys."
        ) from None
    return {key.id: key for key in keys}
