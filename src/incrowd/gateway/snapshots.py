"""When the data move on: taking numbered snapshots, and telling who changed between them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.databases import Database
from incrowd.gateway.ledger import Ledger
from incrowd.gateway.policy import Policy
from incrowd.gateway.snapshot import Snapshot, load_prints, load_snapshot, save_prints


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshots:
    """The snapshots of one gateway."""

    database: Database
    policy: Policy
    ledger: Ledger
    folder: Path
    """Where fingerprints of what people listed are kept."""
    key: bytes
    account_age: bool
    """Whether young accounts are left out."""
    _changes: dict[tuple[int, int, str], NDArray[np.bool_] | None] = field(default_factory=dict)

    def current(self) -> Snapshot | None:
        """Return the snapshot that was in use before, if it is still there and made of the same tables."""
        known, kept = self.ledger.snapshot(), self.database.snapshots()
        if known is None or known[0] not in kept or known[2] != self._source():
            return None
        return load_snapshot(self.database, known[0], self.policy)

    def take(self, now: float) -> Snapshot:
        """Copy the data as they are now; the snapshot is in use once the ledger knows of it."""
        known = self.ledger.snapshot()
        number = 1 + max([known[0] if known else 0, *self.database.snapshots()])
        self.database.take(number, self.policy.database, self._cutoff(now))
        snapshot = load_snapshot(self.database, number, self.policy)
        save_prints(self.folder, snapshot, self.key)
        self.ledger.begin(number, now, self._source())
        self._forget(number)
        return snapshot

    def changed(self, snapshot: Snapshot, origin: int, attribute: str) -> NDArray[np.bool_] | None:
        """Flag who lists something else now than in an earlier snapshot; None if that is not known any more."""
        key = (snapshot.number, origin, attribute)
        if key not in self._changes:
            then = load_prints(self.folder, origin, attribute)
            now = snapshot.attributes[attribute].prints(self.key)
            self._changes[key] = None if then is None else np.pad(then, (0, len(now) - len(then))) != now
        return self._changes[key]

    def oldest(self, number: int) -> int:
        """Return the first snapshot that is still remembered when this one is in use."""
        return number - self.policy.snapshots.history + 1

    def _cutoff(self, now: float) -> datetime | None:
        """Return the moment before which an account must have been made (UTC)."""
        if not (self.policy.database.created and self.account_age):
            return None
        age = timedelta(days=self.policy.accounts.min_age_days)
        return (datetime.fromtimestamp(now, UTC) - age).replace(tzinfo=None)

    def _forget(self, number: int) -> None:
        """Drop what is no longer needed; the last snapshot but one stays for questions that are under way."""
        for old in self.database.snapshots():
            if old < number - 1:
                self.database.drop(old)
        needed = self.ledger.forget(self.oldest(number)) | {number - 1, number}
        for path in self.folder.glob("*.npz"):
            if int(path.stem) not in needed:
                path.unlink()
        self._changes.clear()

    def _source(self) -> bytes:
        """16 bytes that stand for the tables and columns that snapshots are made of."""
        database = self.policy.database
        plain = [database.users, database.id, database.created, self.policy.accounts.min_age_days]
        filters = sorted((name, one.column, one.type) for name, one in database.filters.items())
        attributes = sorted(
            (name, one.table, one.user, one.value) for name, one in database.attributes.items()
        )
        return blake2b(json.dumps([plain, filters, attributes]).encode(), digest_size=16).digest()
