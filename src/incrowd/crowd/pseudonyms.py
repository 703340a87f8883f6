"""Turns user names into ids that only the owner of the crowd's key can compute."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.crowd.disk import PRIVATE, Disk
from incrowd.errors import CrowdDamaged

if TYPE_CHECKING:
    import polars as pl

KEY_NAME = "key"
KEY_BYTES = 32
ID_BYTES = 16


@dataclass(frozen=True)
class Pseudonyms:
    """The naming rule of one crowd: BLAKE2b under its key, or the plain name if there is no key."""

    key: bytes | None

    def __repr__(self) -> str:
        return f"Pseudonyms({'plain' if self.key is None else 'keyed'})"

    def of(self, name: str) -> str:
        """Return the id of one user name."""
        if self.key is None:
            return name
        return blake2b(name.encode(), key=self.key, digest_size=ID_BYTES).hexdigest()

    def replace(self, names: pl.Series) -> pl.Series:
        """Return the ids of a column of names; each distinct name is hashed once."""
        if self.key is None:
            return names
        import polars as pl

        distinct = names.unique()
        ids = pl.Series([self.of(name) for name in distinct], dtype=pl.String)
        return names.replace_strict(distinct, ids, return_dtype=pl.String)


def make_key(folder: Path, disk: Disk) -> bytes:
    """Write a fresh random key into the crowd, readable by its owner alone."""
    key = secrets.token_bytes(KEY_BYTES)
    disk.write_whole(folder / KEY_NAME, key.hex().encode() + b"\n", PRIVATE)
    return key


def fingerprint(key: bytes) -> str:
    """Return a short public name of a key, by which a swapped key is noticed."""
    return blake2b(b"incrowd key", key=key, digest_size=8).hexdigest()


def load_key(folder: Path, expected: str) -> bytes | None:
    """Return the crowd's key, or None if it was thrown away; `expected` is its fingerprint."""
    path = folder / KEY_NAME
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES or fingerprint(key) != expected:
        raise CrowdDamaged(
            f"{path}: this is not the key the crowd was made with. Put the original key file back, "
            "or delete the file to go on without names."
        )
    return key
